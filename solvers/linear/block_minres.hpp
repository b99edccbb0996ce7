// SPDX-License-Identifier: BSD-3-Clause
// MINRES for many right-hand sides.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// X = (A - shift I)^-1 B for a Hermitian, possibly indefinite or singular A; where a singular
/// system has no solution, a column ends without convergence, near the least residual. Each column
/// has a Lanczos recurrence and a shift of its own; all advance by the same kernels, converged ones
/// are swapped out. Without a preconditioner ||r_j|| falls from step to step; with one,
/// (r^H M r)^(1/2) does, and columns are still judged by ||r_j||.
///
/// X: rows x n, the guess (options.x_is_guess) and the result; does not overlap B. Shifts are real,
/// M is Hermitian positive definite: a column whose v^H M v is negative ends as `breakdown`, with
/// the number. Throws ShapeError and InputError for arguments that do not fit. Collective. One
/// product and one application of M a step, 2 all-reduces, 17 passes over a block besides the
/// product (26 with M). Memory: 8 blocks (10 with M). Sources: Paige and Saunders, SIAM J. Numer.
/// Anal. 12 (1975) 617; Elman, Silvester, Wathen, Finite Elements and Fast Iterative Solvers,
/// algorithm 6.1 (with M); Roehrig-Zoellner et al., SIAM J. Sci. Comput. 37 (2015) C695 (columns
/// with shifts advanced together).
template <class T>
LinearResult block_minres(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                          const LinearOptions& options, LinearWorkspace<T>& workspace);

}  // namespace quiver

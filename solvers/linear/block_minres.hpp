// SPDX-License-Identifier: BSD-3-Clause
// MINRES for many right-hand sides.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// X = (A - shift I)^-1 B for a Hermitian, possibly indefinite or singular A. If a singular system
/// has no solution, the column ends unconverged, near the minimal residual. Each column has its own
/// Lanczos recurrence and shift; all columns advance by the same kernels, and converged columns are
/// removed. Without a preconditioner ||r_j|| decreases in every step; with a preconditioner (r^H M
/// r)^(1/2) decreases, but convergence is still judged by ||r_j||.
///
/// X: rows x n, the guess (options.x_is_guess) and the result; must not overlap B. Shifts must be
/// real, M Hermitian positive definite: a column whose v^H M v is negative ends as `breakdown`,
/// with the value in its message. Throws ShapeError and InputError for invalid arguments.
/// Collective. Cost of a step: one product and one application of M, 2 all-reduces, 18 passes over
/// a block besides the product (26 with M). Memory: 9 blocks (11 with M), one less without
/// options.fresh_residuals. Sources: Paige and Saunders, SIAM J. Numer. Anal. 12 (1975) 617; Elman,
/// Silvester, Wathen, Finite Elements and Fast Iterative Solvers, algorithm 6.1 (with M);
/// Roehrig-Zoellner et al., SIAM J. Sci. Comput. 37 (2015) C695 (columns with shifts advanced
/// together).
template <class T>
LinearResult block_minres(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                          const LinearOptions& options, LinearWorkspace<T>& workspace);

}  // namespace quiver

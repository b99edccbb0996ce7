// SPDX-License-Identifier: BSD-3-Clause
// BiCGStab for many right-hand sides.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// X = (A - shift I)^-1 B for any A, with short recurrences: little memory, residuals that may
/// jump. Each column has its own recurrence and shift; all advance by the same kernels, converged
/// ones are swapped out. The preconditioner acts on the right. Where a recurrence breaks down (the
/// shadow residual is orthogonal to what it meets) the column starts afresh from the present X; if
/// it has not halved its residual until then, it ends as `breakdown`, with the number.
///
/// X: rows x n, the guess (options.x_is_guess) and the result; does not overlap B. Throws
/// ShapeError and InputError for arguments that do not fit. Collective. Two products and two
/// applications of M a step, 3 all-reduces, 24 passes over a block besides the products. Memory: 7
/// blocks (9 with M). Source: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631.
template <class T>
LinearResult bicgstab(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                      const LinearOptions& options, LinearWorkspace<T>& workspace);

}  // namespace quiver

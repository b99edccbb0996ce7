// SPDX-License-Identifier: BSD-3-Clause
// BiCGStab for many right-hand sides.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// X = (A - shift I)^-1 B for any A, with short recurrences: little memory, but residuals may jump.
/// Each column has its own recurrence and shift; all columns advance by the same kernels, and
/// converged columns are removed. The preconditioner acts on the right. If a recurrence breaks down
/// (the shadow residual is orthogonal to the product or to the residual), the column restarts from
/// the current X; if it has not halved its residual since its last start, it ends as `breakdown`,
/// with the value in its message.
///
/// X: rows x n, the guess (options.x_is_guess) and the result; must not overlap B. Throws
/// ShapeError and InputError for invalid arguments. Collective. Cost of a step: two products and
/// two applications of M, 3 all-reduces, 27 passes over a block besides the products. Memory: 8
/// blocks (10 with M), one less without options.fresh_residuals. Source: van der Vorst, SIAM J.
/// Sci. Stat. Comput. 13 (1992) 631.
template <class T>
LinearResult bicgstab(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                      const LinearOptions& options, LinearWorkspace<T>& workspace);

}  // namespace quiver

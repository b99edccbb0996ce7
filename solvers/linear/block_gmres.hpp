// SPDX-License-Identifier: BSD-3-Clause
// Restarted GMRES for many right-hand sides.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// X = (A - shift I)^-1 B for any A; ||r_j|| never grows. Each column has its own Krylov space,
/// Hessenberg matrix and shift (a shared space would exclude different shifts); all columns advance
/// by one product per step. New vectors are orthogonalised twice against their column's basis
/// (classical Gram-Schmidt), with two all-reduces for all columns. The preconditioner acts on the
/// right and must not change within a solve. After options.restart steps, or when at most half of
/// the columns are left, X is updated and the remaining columns restart.
///
/// X: rows x n, the guess (options.x_is_guess) and the result; must not overlap B. A column whose
/// projected operator is singular when its Krylov space is exhausted ends as `breakdown`; a column
/// whose restarts no longer reduce the residual ends as `stagnated` (a longer restart may help).
/// Throws ShapeError and InputError for invalid arguments. Collective. Cost of step k: one product
/// and one application of M for all columns, 4 reads of k basis vectors for each column, 2
/// all-reduces. Memory: 5 blocks (6 with M), one less without options.fresh_residuals, and n
/// (restart + 1) columns. Sources: Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986) 856;
/// Giraud, Langou, Rozloznik, van den Eshof, Numer. Math. 101 (2005) 87 (twice is enough).
template <class T>
LinearResult block_gmres(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                         const LinearOptions& options, LinearWorkspace<T>& workspace);

}  // namespace quiver

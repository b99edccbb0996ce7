// SPDX-License-Identifier: BSD-3-Clause
// Chebyshev filter diagonalisation: all eigenpairs of a Hermitian operator in a window.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// All eigenpairs with eigenvalues in options.window; `k` and `which` do not count.
///
/// Bounds of the spectrum: short Lanczos runs. Density of states: Chebyshev moments of random
/// columns say how many eigenvalues the window and its surroundings hold, and how well that is
/// known. Filter: the Chebyshev series of the window with Jackson's damping; its degree is that of
/// a step 1/6 of the window wide. Search: X <- p(A) X with as many columns as p leaves, then
/// Rayleigh-Ritz, until all pairs in the window have converged; where that takes long, X is
/// widened. Verify: fresh random columns, orthogonal to what was found and to guard vectors beside
/// the window, are filtered, too. A missing eigenvector would keep its share of them; once all are
/// shorter than 1/20 of that, there is none, but with a probability that docs/solvers.md bounds.
///
/// `iterations` and max_iterations count filters, each of `degree` products.
/// The result holds what was found, ascending, with the count that the density of states expects.
/// Eigenvalues nearer to an end of the window than the tolerance times ||A|| may be on either side.
/// An empty window is a result without pairs. `max_basis` limits the columns (0: no limit but
/// memory): InputError naming the columns that the window takes where that is too few. B and
/// the preconditioner are not used: InputError for a B. Throws what check_problem() and
/// check_options() do, NumericalError as chebyshev_subspace(). Collective. Cost of a sweep of
/// degree d with m columns: d products and d passes more with m columns, then as
/// chebyshev_subspace(). Source: Pieper, Kreutzer, Alvermann, Galgon, Fehske, Hager, Lang, Wellein,
/// J. Comput. Phys. 325 (2016) 226.
template <class T>
EigenResult<T> window_filter(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options);

}  // namespace quiver

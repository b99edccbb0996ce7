// SPDX-License-Identifier: BSD-3-Clause
// Chebyshev filter diagonalisation: all eigenpairs of a Hermitian operator in a window.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// All eigenpairs of a Hermitian operator, or of A x = lambda B x, with eigenvalues in
/// options.window; `k` and `which` are ignored. With a B = G G^H the operator is G^-1 A G^-H
/// (EigenProblem::b).
///
/// Bounds of the spectrum: a short Lanczos run. Density of states: Chebyshev moments of random
/// columns estimate how many eigenvalues the window and its surroundings hold, with a standard
/// error. Filter: p is the Chebyshev series, damped by Kaiser's window, of the indicator function
/// of the window. p is 1/2 at the ends of the window and falls, over a step beside it, to a
/// hundredth of the square root of the tolerance. A wider step needs a lower degree, but more
/// columns; the step is chosen by the cost of both. Search: X <- p(A) X with as many columns as
/// eigenvalues are expected in the window and the steps, then Rayleigh-Ritz, until all pairs in the
/// window have converged; if convergence is slow, X is widened. Verify: fresh random columns,
/// orthogonal to the pairs found and to guard vectors beside the window, are filtered, too. A
/// missing eigenvector would keep its component in these columns. If all filtered columns are
/// shorter than 1/20 (times the smallest value of p in the window), no eigenvector is missing,
/// except with a probability that docs/solvers.md bounds.
///
/// `iterations` and max_iterations count applications of the filter. One application takes as many
/// block products as the degree of p. The result holds the pairs found, ascending, and the count
/// estimated from the density of states. Computed values up to 32 eps max(||A||, |end|) outside of
/// an end count as inside, those farther out do not. Computed values have the accuracy of the
/// tolerance, so that an eigenvalue closer to an end than the tolerance times ||A|| may be on
/// either side. An empty window is a result without pairs. `max_basis` limits the estimated number
/// of columns (0: max_pairs limits it): InputError, naming this number, if the limit is too small.
/// The preconditioner is ignored. Throws the errors of check_problem() and check_options(),
/// NumericalError as chebyshev_subspace(). Collective. Cost of a sweep of degree d with m columns:
/// d products with m columns, d passes over m columns that sum the series, and the passes and
/// all-reduces of a sweep of chebyshev_subspace(). Source: Pieper, Kreutzer, Alvermann, Galgon,
/// Fehske, Hager, Lang, Wellein, J. Comput. Phys. 325 (2016) 226;
/// Kaiser, Proc. IEEE Int. Symp. Circuits and Systems (1974) 20.
template <class T>
EigenResult<T> window_filter(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options);

}  // namespace quiver

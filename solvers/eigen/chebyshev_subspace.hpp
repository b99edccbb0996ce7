// SPDX-License-Identifier: BSD-3-Clause
// Chebyshev-filtered subspace iteration for an end of the spectrum of Hermitian operators, with
// verified multiplicities.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The k smallest or largest eigenpairs of a Hermitian operator, or of A x = lambda B x.
///
/// Bounds: a short Lanczos run; its largest Ritz value and residual norm bound the far end.
/// Sweep: X <- p(A) X by fused products, where p is a scaled Chebyshev polynomial that damps the
/// interval from the last Ritz value of the subspace to the far end. X is then orthonormalised
/// against the locked pairs, and Rayleigh-Ritz follows. The subspace holds `max_basis` columns (0:
/// k plus some guard vectors). The degree is chosen for the slowest wanted pair and limited by the
/// growth of the fastest.
/// Converged pairs at the wanted end are locked. Refine: Rayleigh-Ritz on the locked pairs with
/// fresh products; pairs above the tolerance are swept again.
/// Verify: fresh random columns, orthogonal to locked pairs and guard vectors, are filtered with
/// p(mu) = 1 at a mu beyond the last wanted eigenvalue. A missing eigenvector would keep its
/// component in these columns. If all filtered columns are shorter than 1/20, no eigenvector is
/// missing, except with a probability that docs/solvers.md bounds. Otherwise the columns join the
/// subspace, so that the search finds the missing eigenvector.
///
/// A subspace that would span half the space or more spans all of it instead: one Rayleigh-Ritz
/// step. Start vectors and constraints of the problem are used as EigenProblem documents. The
/// preconditioner is ignored. With a B = G G^H the operator is G^-1 A G^-H (EigenProblem::b).
/// `block` is the number of columns that are filtered together (0: default_panel()). `iterations`
/// of the result counts products with the active block.
///
/// The operator must be Hermitian and its norm, unless 0, within NormRange: NumericalError if the
/// projected matrix shows otherwise, or if a product holds NaN or infinity. Throws the errors of
/// check_problem() and check_options(). Collective. Cost of a sweep of degree d with m columns: d +
/// 1 products with m columns, about 12 passes over m columns, 5 all-reduces; memory rows x (k + 2
/// basis + 2 block + 48) elements. Source: Zhou, Saad, Tiago, Chelikowsky, J. Comput. Phys. 219
/// (2006) 172; bounds: Zhou and Li, Linear Algebra Appl. 435 (2011) 480.
template <class T>
EigenResult<T> chebyshev_subspace(Context& ctx, const EigenProblem<T>& problem,
                                  const EigenOptions& options);

}  // namespace quiver

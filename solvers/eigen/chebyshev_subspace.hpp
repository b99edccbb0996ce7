// SPDX-License-Identifier: BSD-3-Clause
// Chebyshev-filtered subspace iteration for an end of the spectrum of Hermitian operators, with
// verified multiplicities.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The k smallest or largest eigenpairs of a Hermitian operator.
///
/// Bounds: a short Lanczos run, whose largest Ritz value and residual norm bound the far end.
/// Sweep: X <- p(A) X, p a scaled Chebyshev polynomial that damps from the last Ritz value of the
/// subspace to the far end, by fused products; X is orthonormalised against the locked pairs, then
/// Rayleigh-Ritz. The subspace holds `max_basis` columns (0: k and some guard vectors). The degree
/// is what the slowest wanted pair needs, as far as the growth of the fastest allows.
/// Converged pairs at the wanted end are locked. Refine: Rayleigh-Ritz on the locked pairs with
/// fresh products; pairs above the tolerance are swept again.
/// Verify: fresh random columns, orthogonal to locked pairs and guard vectors, are filtered with
/// p(mu) = 1 at a mu beyond the last wanted eigenvalue. A missing eigenvector would keep its share
/// of them; once all columns are shorter than 1/20, there is none, but with a probability that
/// docs/solvers.md bounds. Otherwise they join the subspace, and so what was missing is found.
///
/// A subspace that would be half the space or more takes all of it instead: one Rayleigh-Ritz step.
/// Start vectors and constraints of the problem are used as EigenProblem says, B and the
/// preconditioner are not: InputError for a B. `block` is the number of columns that are filtered
/// together (0: up to 32). `iterations` of the result counts products with such a panel.
///
/// The operator must be Hermitian and its norm, unless 0, within NormRange: NumericalError when the
/// projected matrix shows otherwise, or when a product holds NaN or infinity. Throws what
/// check_problem() and check_options() do. Collective. Cost of a sweep of degree d with m columns:
/// d + 1 products with m columns, some 12 passes over m columns, 5 all-reduces; memory rows x (k +
/// 2 basis + 2 block + 30) elements. Source: Zhou, Saad, Tiago, Chelikowsky, J. Comput. Phys. 219
/// (2006) 172; bounds: Zhou and Li, Linear Algebra Appl. 435 (2011) 480.
template <class T>
EigenResult<T> chebyshev_subspace(Context& ctx, const EigenProblem<T>& problem,
                                  const EigenOptions& options);

}  // namespace quiver

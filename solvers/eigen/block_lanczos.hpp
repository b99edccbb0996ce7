// SPDX-License-Identifier: BSD-3-Clause
// Thick-restart block Lanczos for Hermitian operators, with verified multiplicities.
#pragma once

#include <cstdint>

#include "blockvec/context.hpp"
#include "kernels/operator.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The k smallest or largest eigenpairs of a Hermitian operator.
///
/// Search: a basis V of Krylov blocks, fully orthogonalised (block_gram_schmidt, also against the
/// locked pairs), A V = V H + F R; Ritz pairs of H; when the basis is full, converged pairs at the
/// wanted end are locked and the basis shrinks to the best Ritz vectors, followed by F (Wu and
/// Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602, in blocks).
/// Start vectors and constraints of the problem are used as EigenProblem says, B and the
/// preconditioner are not: InputError for a B, whose inverse would be needed.
/// Refine: Rayleigh-Ritz on the locked pairs with fresh products; pairs above the tolerance are
/// searched again.
/// Verify: at least 2 fresh random columns, orthogonal to the locked pairs, start a search of the
/// complement. Its extreme Ritz pair (theta, rho) ends it once it lies outside the wanted set by
/// 100 sqrt(rows) rho, or once rho is rounding noise. Pairs inside the wanted set are taken in, and
/// another round with fresh columns follows, until one finds nothing. An error needs start columns
/// that are all nearly orthogonal to a missing eigenvector: docs/solvers.md bounds the probability.
///
/// The operator must be Hermitian and its norm, unless 0, within NormRange: NumericalError when the
/// projected matrix shows otherwise, or when a product holds NaN or infinity. Throws what
/// check_problem() and check_options() do. Collective. Cost of a block step with a basis of p
/// columns: one product with b columns, 4 all-reduces, 4 reads of the basis; memory rows x (k +
/// basis + block) elements.
template <class T>
EigenResult<T> block_lanczos(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options);
template <class T>
EigenResult<T> block_lanczos(Context& ctx, Operator<T>& a, const EigenOptions& options) {
    return block_lanczos(ctx, EigenProblem<T>{a}, options);
}

}  // namespace quiver

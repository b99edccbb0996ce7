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

/// The k smallest or largest eigenpairs of a Hermitian operator, or of A x = lambda B x.
///
/// Search: a basis V of Krylov blocks, fully orthogonalised by block_gram_schmidt (also against the
/// locked pairs), satisfies A V = V H + F R; Ritz pairs come from H. When the basis is full or all
/// wanted pairs have converged, converged pairs at the wanted end are locked and the basis shrinks
/// to the best Ritz vectors, followed by F (block version of Wu and Simon, SIAM J. Matrix Anal.
/// Appl. 22 (2000) 602).
/// Start vectors and constraints of the problem are used as EigenProblem documents. The
/// preconditioner is ignored. With a B = G G^H the operator is G^-1 A G^-H (EigenProblem::b).
/// Refine: Rayleigh-Ritz on the locked pairs with fresh products; pairs above the tolerance are
/// searched again.
/// Verify: if the search began with at least 5 random columns, its own next Ritz pair may show that
/// no copy is missing (missing_growth()). Otherwise at least 2 fresh random columns, orthogonal to
/// the locked pairs, start a search of the complement. Its extreme Ritz value theta with residual
/// rho ends the search once theta lies outside the wanted set by 100 sqrt(rows) rho, or once rho is
/// rounding noise (judge_complement()). Pairs found inside the wanted set are absorbed, and another
/// round with fresh columns follows, until a round finds nothing. The verdict is wrong only if all
/// start columns are nearly orthogonal to a missing eigenvector: docs/solvers.md bounds the
/// probability.
///
/// The operator must be Hermitian and its norm, unless 0, within NormRange: NumericalError if the
/// projected matrix shows otherwise, or if a product holds NaN or infinity. Throws the errors of
/// check_problem() and check_options(). Collective. Cost of a block step with a basis of p columns:
/// one product with b columns, 4 all-reduces, 2 reads of the basis (4 with constraints or a
/// protection); memory rows x (2 k + basis + 6 max(block, 2)) elements.
template <class T>
EigenResult<T> block_lanczos(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options);
template <class T>
EigenResult<T> block_lanczos(Context& ctx, Operator<T>& a, const EigenOptions& options) {
    return block_lanczos(ctx, EigenProblem<T>{a}, options);
}

}  // namespace quiver

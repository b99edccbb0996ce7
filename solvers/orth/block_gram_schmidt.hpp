// SPDX-License-Identifier: BSD-3-Clause
// Block Gram-Schmidt with re-orthogonalisation, rank-revealing, in any inner product.
#pragma once

#include <cstdint>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "solvers/orth/inner_product.hpp"

namespace quiver {

struct OrthOptions {
    /// Replace directions that W does not have by random ones, so that Q keeps W's width wherever
    /// the space has room.
    bool replace_deficient = true;
    /// Seed of the random replacements; the same on all ranks.
    std::uint64_t seed = 1;
    /// With B: the memory for B W holds that product already.
    bool product_given = false;
};

/// What orthonormalising W against V gave: W_in = V h + Q r, with Q in the first `columns` columns
/// of W.
template <class T>
struct OrthResult {
    SmallMatrix<T> h;  // V.cols x W.cols
    SmallMatrix<T> r;  // columns x W.cols; zero rows belong to random replacements
    /// Columns of Q: W.cols, or less where directions were missing and not (or could not be)
    /// replaced.
    int columns = 0;
    /// Columns of Q that span (with V) what W_in had: the numerical rank of (I - V V^H) W_in.
    int rank = 0;
    /// Sweeps over the block, two all-reduces each (one when V has no columns); 2 as a rule.
    int passes = 0;
    /// A Cholesky factorisation was refused, SVQB stepped in.
    bool used_svqb = false;
};

/// W <- Q with Q^H Q = I and V^H Q = 0 to a small multiple of the unit round-off, whatever the
/// condition of W.
///
/// V: rows x p, orthonormal, W: rows x w, both distributed as `map` says and in the Context's
/// place; they do not overlap (columns of one block may). Each pass projects (classical
/// Gram-Schmidt) and orthonormalises within the block by Cholesky-QR or, where the Gram matrix is
/// too ill-conditioned for that, by SVQB with clamped eigenvalues; passes repeat until one finds
/// the block orthonormal already to a tenth ("twice is enough"). A direction is missing when what
/// projections left of it is rounding noise, c eps ||w_j||.
///
/// Throws NumericalError naming the columns when W holds NaN or infinity. Cost of the usual two
/// passes: 4 reads of V, 2 x (1 + 2 + 2) passes over W, 8 rows (p w + w w) flops, 4
/// all-reduces. Sources: Stewart, SIAM J. Sci. Comput. 31 (2008) 761 (block Gram-Schmidt);
/// Stathopoulos and Wu, SIAM J. Sci. Comput. 23 (2002) 2165 (SVQB).
template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, BlockView<const T> v,
                                 BlockView<T> w, const OrthOptions& options = {});

/// The same in the inner product <x, y> = x^H B y: W <- Q with Q^H B Q = I and V^H B Q = 0 to a
/// small multiple of cond(B) times the unit round-off, and BW <- B Q.
///
/// BV: B V of the same shape, or no columns if the caller does not keep it: then every pass
/// multiplies by B again. BW: memory of W's shape that does not overlap W, or no columns if the
/// caller has no use for B Q. W may come with its product (options.product_given). Without B (a
/// default InnerProduct) BV and BW are not looked at, and all is as above.
///
/// A direction is missing when its length in the B-norm is c eps sqrt(||B||) ||w_j||_2. BW takes
/// the same updates as W; where these cancel more than a digit it is multiplied anew. Throws
/// NumericalError on all ranks also where B is found not to be Hermitian positive definite or its
/// product not finite; an error that B throws on one rank is thrown there. Cost of the usual two
/// passes with BV: 4 reads of V and of BV less two, twice the updates of W, one product with B
/// (none if given and W is well conditioned; one more if not), 5 all-reduces.
template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, const InnerProduct<T>& inner,
                                 std::type_identity_t<BlockView<const T>> v,
                                 std::type_identity_t<BlockView<const T>> bv, BlockView<T> w,
                                 std::type_identity_t<BlockView<T>> bw,
                                 const OrthOptions& options = {});

}  // namespace quiver

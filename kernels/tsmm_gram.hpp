// SPDX-License-Identifier: BSD-3-Clause
// tsmm_gram: a tall & skinny update and the Gram matrix of its result, in one pass.
#pragma once

#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// W = alpha V H + beta W, then G = W^H W of the new W, summed over the rows of all ranks.
///
/// V: rows x m, W: rows x n, both in the Context's place; H: m x n and G: n x n, each in host or
/// device memory; H and G equal on every rank. beta = 0 overwrites W, even NaN and infinity; G is
/// always overwritten. Either V and W do not overlap, or both start at the same element with the
/// same ld. In the second case the update is formed in place, as in tsmm. For instance, W = W H
/// with V = W is a step of Cholesky-QR: H is the inverse of a factor, and G is the Gram matrix of
/// the result. H overlaps neither V nor W; G overlaps no other operand. A G in host memory is ready
/// when the call returns, a G in device memory in stream order.
///
/// Throws ShapeError for any other shape, place or aliasing.
/// Cost: bytes sizeof(T) rows (m + n) (+ rows n if beta is not 0), flops 2 rows (m n + n n) (8 for
/// complex), one all-reduce of n n elements unless `reduce` is this_rank. On a device, only the
/// last panel of columns of a wide V is fused with the sums; the other panels are separate
/// products. A W wider than 64 columns, and shapes whose sums leave no registers for the update,
/// need one more pass over W, for the sums. The same ranks, device and threads give the same bits.
/// Source: Yamamoto, Nakatsukasa, Yanagisawa, Fukaya, ETNA 44 (2015) 306 (Cholesky-QR2); for the
/// kernels, the source of tsmm and tsmttsm.
template <class T>
void tsmm_gram(Context& ctx, std::type_identity_t<T> alpha,
               std::type_identity_t<BlockView<const T>> v,
               std::type_identity_t<BlockView<const T>> h, std::type_identity_t<T> beta,
               BlockView<T> w, std::type_identity_t<BlockView<T>> g,
               Reduce reduce = Reduce::all_ranks);

}  // namespace quiver

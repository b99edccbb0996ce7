// SPDX-License-Identifier: BSD-3-Clause
// QR factorisation of a block by a tree over the ranks.
#pragma once

#include <cstdint>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// How the rows of one rank are factored. `products`: block_gram_schmidt on this rank's rows
/// (Householder QR on the host if there are fewer rows than columns). It needs only a few block
/// products and no factorisation column by column, which suits GPUs: torch.linalg.qr, which calls
/// the library's geqrf, takes 68 ms on an H200 for 10^7 x 4 doubles, while five passes at memory
/// speed take 0.4 ms. `automatic`: householder on the host, products on a device.
enum class LocalQr : std::uint8_t { automatic, householder, products };

/// W = Q R; W <- Q, returns R: upper triangular, w x w, with a non-negative diagonal and the same
/// bits on all ranks. ||I - Q^H Q|| and ||W - Q R|| / ||W|| are small multiples of eps whatever the
/// condition of W (with `products` and without full rank the residual is up to 100 w eps). If W has
/// no full rank, Q is filled up with further orthonormal columns.
///
/// W: rows x w in the Context's place, any number of rows on each rank. NaN or infinity in W gives
/// NaN or infinity in columns of R. Cost with householder: 2 reads and 2 writes of W, 6 rows w w
/// flops; no all-reduce, but log2(ranks) messages of w w numbers up a binary tree, as many down,
/// and one broadcast. Source: Demmel, Grigori, Hoemmen, Langou, SIAM J. Sci. Comput. 34 (2012)
/// A206.
template <Scalar T>
SmallMatrix<T> tsqr(Context& ctx, BlockView<T> w, LocalQr local = LocalQr::automatic);

}  // namespace quiver

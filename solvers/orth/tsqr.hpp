// SPDX-License-Identifier: BSD-3-Clause
// QR factorisation of a block by a tree over the ranks.
#pragma once

#include <cstdint>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// How the rows of one rank are factored. `products`: block_gram_schmidt among the rank's own rows
/// (on the host where they are fewer than the columns), which is a handful of products and no
/// factorisation column by column, and so the way of a GPU: torch.linalg.qr, which calls its
/// library's geqrf, takes 68 ms of an H200 for 10^7 x 4 doubles, of which five passes at the speed
/// of the memory are 0.4. `automatic` is householder on the host, products on a device.
enum class LocalQr : std::uint8_t { automatic, householder, products };

/// W = Q R; W <- Q, returns R: upper triangular, w x w, its diagonal not negative, the same bits on
/// all ranks. ||I - Q^H Q|| and ||W - Q R|| / ||W|| are small multiples of eps whatever the
/// condition of W (with products and without full rank, the residual up to 100 w eps); of W without
/// full rank Q has further columns that are orthonormal to the others.
///
/// W: rows x w in the Context's place, each rank any number of rows. Not finite numbers in W make
/// columns of R that are not finite.
/// Cost with householder: 2 reads and 2 writes of W, 6 rows w w flops; no all-reduce, but
/// log2(ranks) messages of w w numbers up a binary tree and as many down, and one broadcast.
/// Source: Demmel, Grigori, Hoemmen, Langou, SIAM J. Sci. Comput. 34 (2012) A206.
template <Scalar T>
SmallMatrix<T> tsqr(Context& ctx, BlockView<T> w, LocalQr local = LocalQr::automatic);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Householder QR of tall & skinny blocks in host memory.
#pragma once

#include <functional>

#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// X = Q R, where R has k = min(rows, n) rows and is upper trapezoidal; then X <- Q M with the k x
/// n matrix M = `middle(R)`. If `middle` returns the identity, X becomes Q itself. A caller that
/// combines the R of several blocks lets `middle` return this block's part of the orthonormal
/// factor of the stacked R. Q is orthonormal to a multiple of eps for every X.
///
/// X: rows x n in host memory, any number of rows. Pieces of about 256 KiB are factored separately
/// (on `threads` threads); their stacked R are then factored like a block. Cost: 2 reads and 2
/// writes of X, 6 rows n n flops (24 for complex). Source: Demmel, Grigori, Hoemmen, Langou, SIAM
/// J. Sci. Comput. 34 (2012) A206.
template <Scalar T>
void householder_qr(BlockView<T> x, int threads,
                    const std::function<SmallMatrix<T>(SmallMatrix<T>)>& middle);

}  // namespace quiver

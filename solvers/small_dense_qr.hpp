// SPDX-License-Identifier: BSD-3-Clause
// Householder QR of tall & skinny blocks in host memory, in pieces that Eigen factors.
#pragma once

#include <functional>

#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// With X = Q R, R of k = min(rows, n) rows and upper trapezoidal, X <- Q M where M = `middle(R)`
/// is k x n: the identity for Q itself, or what a caller makes of the R of several blocks. Q is
/// orthonormal to a multiple of eps whatever X is.
///
/// X: rows x n in host memory, any rows. Pieces of about 256 KiB are factored by themselves (on
/// `threads` threads), their R below each other like a block again. Cost: 2 reads and 2 writes of
/// X, 6 rows n n flops (24 for complex). Source: Demmel, Grigori, Hoemmen, Langou, SIAM J. Sci.
/// Comput. 34 (2012) A206.
template <Scalar T>
void householder_qr(BlockView<T> x, int threads,
                    const std::function<SmallMatrix<T>(SmallMatrix<T>)>& middle);

}  // namespace quiver

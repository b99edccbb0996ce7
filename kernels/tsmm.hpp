// SPDX-License-Identifier: BSD-3-Clause
// tsmm: tall & skinny matrix times small matrix.
#pragma once

#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// Y = alpha X C + beta Y.
///
/// X: rows x m, Y: rows x n, both in the Context's place; C: m x n in host or device memory. beta =
/// 0 overwrites Y whatever it holds. Either X and Y do not overlap, or both start at the same
/// element with the same ld: then the product is formed in place, X(:, 0:n) = alpha X C + beta
/// X(:, 0:n), also for n < m and n > m. C overlaps neither.
///
/// Throws ShapeError when shapes, places or aliasing are none of these. No communication.
/// Cost: bytes sizeof(T) rows (m + n) (+ rows n when beta is not 0), flops 2 rows m n (8 for
/// complex). Source: Ernst, Hager, Thies, Wellein, IJHPCA 2020, sections 3 and 5.
template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta, BlockView<T> y);

}  // namespace quiver

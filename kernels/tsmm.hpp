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
/// 0 overwrites Y, even NaN and infinity. Either X and Y do not overlap, or both start at the same
/// element with the same ld. In that case the product is formed in place, X(:, 0:n) = alpha X C +
/// beta X(:, 0:n), also for n < m and n > m. C overlaps neither.
///
/// Throws ShapeError for any other shape, place or aliasing. No communication.
/// Cost: bytes sizeof(T) rows (m + n) (+ rows n if beta is not 0), flops 2 rows m n (8 for
/// complex). Source: Ernst, Hager, Thies, Wellein, IJHPCA 2020, sections 3 and 5.
template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta, BlockView<T> y);

/// Y = alpha X C + beta Y D in one pass over the memory.
///
/// X: rows x m, Y: rows x n, both in the Context's place; C: m x n and D: n x n, each in host or
/// device memory. beta = 0 overwrites Y, even NaN and infinity in Y or D. X and Y do not overlap; C
/// and D overlap neither.
///
/// Throws ShapeError for any other shape, place or aliasing. No communication.
/// Cost: bytes sizeof(T) rows (m + 2 n), flops 2 rows (m + n) n (8 for complex). A device needs one
/// pass while C, D and some rows fit the shared memory (m + n up to about 100 to 200, n up to 64).
/// For a wider X, either the first columns of X share the pass of Y D and the other columns pass
/// over Y again, or Y D comes first. Source: as above; the kernel multiplies [X Y] by C stacked on
/// D.
template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta, BlockView<T> y,
          std::type_identity_t<BlockView<const T>> d);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Operations on the columns of blocks: axpby, scale, dots, norms, copies, permutations.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// Y = alpha X + beta Y. Same shape, both in the Context's place. beta = 0 overwrites Y, alpha = 0
/// does not read X. Y may be X itself; otherwise the two do not overlap. Throws ShapeError. Bytes
/// sizeof(T) rows cols (2, or 3 if beta is not 0), flops 3 rows cols (real). No communication.
template <class T>
void axpby(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
           std::type_identity_t<T> beta, BlockView<T> y);

/// Y(:, j) = alpha[j] X(:, j) + beta[j] Y(:, j). alpha and beta hold one coefficient per column.
template <class T>
void axpby(Context& ctx, std::type_identity_t<std::span<const T>> alpha,
           std::type_identity_t<BlockView<const T>> x,
           std::type_identity_t<std::span<const T>> beta, BlockView<T> y);

/// X = alpha X; alpha = 0 overwrites X, even NaN and infinity.
template <class T>
void scale(Context& ctx, std::type_identity_t<T> alpha, BlockView<T> x);

/// X(:, j) = alpha[j] X(:, j).
template <class T>
void scale(Context& ctx, std::type_identity_t<std::span<const T>> alpha, BlockView<T> x);

/// result[j] = x_j^H y_j, summed over all ranks. Same shape; X and Y may be the same. Ready when
/// the call returns. Bytes sizeof(T) rows cols (2, or 1 if X is Y); one all-reduce of cols
/// elements.
template <class T>
void dots(Context& ctx, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> y, std::span<T> result,
          Reduce reduce = Reduce::all_ranks);

/// result[j] = ||x_j||_2 over all ranks. The squares may overflow.
template <class T>
void norms(Context& ctx, BlockView<const T> x, std::span<real_t<T>> result);
template <class T>
requires(!std::is_const_v<T>) void norms(Context& ctx, BlockView<T> x,
                                         std::span<real_t<T>> result) {
    norms(ctx, BlockView<const T>(x), result);
}

/// Y = X between any two places and precisions: U and T are both real (s, d, h, b) or both complex
/// (c, z). Rounds to nearest. Same shape, no overlap. Copies from or to host memory are complete
/// when the call returns. Throws ShapeError; UnsupportedError for device memory without a device.
template <class U, class T>
void copy(Context& ctx, BlockView<const U> x, BlockView<T> y);
template <class U, class T>
requires(!std::is_const_v<U>) void copy(Context& ctx, BlockView<U> x, BlockView<T> y) {
    copy(ctx, BlockView<const U>(x), y);
}

/// Y(:, j) = X(:, source[j]) for j = 0 .. Y.cols - 1: selects, repeats or permutes columns. X and Y
/// either do not overlap or are the same block (in place, with any `source`). Throws ShapeError for
/// a column that X does not have. Bytes 2 sizeof(T) rows Y.cols.
template <class T>
void gather_columns(Context& ctx, std::type_identity_t<BlockView<const T>> x,
                    std::span<const int> source, BlockView<T> y);

/// Y(i, :) = X(source[i], :) for i = 0 .. Y.rows - 1: selects or repeats rows of this rank, of any
/// scalar (s, d, c, z, h, b). Y has no gaps between its rows and does not overlap X; `source` is in
/// host memory. Throws ShapeError, also for a row that X does not have. Bytes 2 sizeof(T) Y.rows
/// cols. No communication.
template <class T>
void gather_rows(Context& ctx, std::type_identity_t<BlockView<const T>> x,
                 std::span<const std::int64_t> source, BlockView<T> y);

/// X(i, j) = value.
template <class T>
void fill(Context& ctx, std::type_identity_t<T> value, BlockView<T> x);

}  // namespace quiver

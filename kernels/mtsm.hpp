// SPDX-License-Identifier: BSD-3-Clause
// mtsm: a large dense matrix, or its adjoint, times a tall & skinny matrix.
#pragma once

#include <type_traits>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "blockvec/matrix_view.hpp"
#include "blockvec/row_map.hpp"

namespace quiver {

/// Y = alpha A X + beta Y on this rank alone.
///
/// A: m x k of any size, X: k x n, Y: m x n, each stored by rows or by columns with any stride, all
/// in the Context's place. Any n; one pass over A serves up to 64 columns. beta = 0 overwrites Y,
/// even NaN and infinity. Y overlaps neither A nor X.
///
/// Throws ShapeError for any other shape, place or aliasing. No communication. The same device and
/// threads give the same bits.
/// Cost: bytes sizeof(A) m k + sizeof(T) n (k + m) (+ m n if beta is not 0), flops 2 m k n (8 for
/// complex). Memory-bound while n is below about 30 (d), 20 (s, z), 10 (c).
/// Source: Rivera, Chen, Xiong, Zhang, Song, Tao, "TSM2X", JPDC 151, 2021, sections 3.1 (TSM2R) and
/// 3.2 (TSM2L: A tall and stored by columns, X small).
template <class T>
void mtsm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<T> beta,
          MatrixView<T> y);

/// Y = alpha A^H X + beta Y. A: m x k, X: m x n, Y: k x n; otherwise as mtsm.
template <class T>
void mtsm_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                  std::type_identity_t<MatrixView<const T>> a,
                  std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<T> beta,
                  MatrixView<T> y);

/// As above for A in half precision or bfloat16, accumulated in float. On a device with tensor
/// cores, entries of X may be rounded with a relative error of 2^-22, and NaN or infinity in a row
/// of A or a column of X makes the results in that row or column NaN or infinite.
void mtsm(Context& ctx, float alpha, MatrixView<const half_t> a, MatrixView<const float> x,
          float beta, MatrixView<float> y);
void mtsm(Context& ctx, float alpha, MatrixView<const bfloat16_t> a, MatrixView<const float> x,
          float beta, MatrixView<float> y);
void mtsm_adjoint(Context& ctx, float alpha, MatrixView<const half_t> a, MatrixView<const float> x,
                  float beta, MatrixView<float> y);
void mtsm_adjoint(Context& ctx, float alpha, MatrixView<const bfloat16_t> a,
                  MatrixView<const float> x, float beta, MatrixView<float> y);

/// Y = alpha A X + beta Y over all ranks. `a` holds this rank's rows of A, which are the rows of
/// y's RowMap, and all columns of A, which correspond to the rows of x. One all-gather of the k n
/// elements of x: between GPUs where halos travel between GPUs (RankLinks), otherwise by MPI
/// through host memory. Collective; otherwise as above. A ShapeError or MemoryError before the
/// all-gather is thrown on all ranks.
template <class T>
void mtsm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          const BlockVector<T>& x, std::type_identity_t<T> beta, BlockVector<T>& y);

/// The same for views: x has this rank's rows of a block that `map` distributes.
template <class T>
void mtsm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          const RowMap& map, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<T> beta, BlockView<T> y);

/// Y = alpha A^H X + beta Y over all ranks. `a` holds this rank's rows of A, which are the rows of
/// x's RowMap, and all columns of A, which correspond to the rows of y. One all-reduce of k n
/// elements, which stays in device memory where RankLinks can do that. Collective. An error before
/// the all-reduce is thrown on all ranks.
template <class T>
void mtsm_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                  std::type_identity_t<MatrixView<const T>> a, const BlockVector<T>& x,
                  std::type_identity_t<T> beta, BlockVector<T>& y);

/// The same for views: y has this rank's rows of a block that `map` distributes.
template <class T>
void mtsm_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                  std::type_identity_t<MatrixView<const T>> a,
                  std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
                  const RowMap& map, BlockView<T> y);

/// tsmm of kernels/tsmm.hpp, Y = alpha X C + beta Y, also for blocks stored by columns, as in
/// Fortran and BLAS. X: rows x m, C: m x n, Y: rows x n, each in either order; C in host or device
/// memory. Y overlaps neither X nor C. Otherwise as mtsm (TSM2L of the paper).
template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> x,
          std::type_identity_t<MatrixView<const T>> c, std::type_identity_t<T> beta,
          MatrixView<T> y);

}  // namespace quiver

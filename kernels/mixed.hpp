// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm and tsmm whose blocks have less precision than their sums: half precision and bfloat16
// with sums in float, float with sums in double, double with sums of two doubles.
#pragma once

#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// Whether a type is stored in two bytes.
template <class T>
inline constexpr bool is_short_v = dtype_v<T> == Dtype::h || dtype_v<T> == Dtype::b;

/// C = alpha A^T B + beta C, summed over the rows of all ranks, with the sums in the precision of
/// C. Arguments, aliasing, errors and the sum over the ranks are those of tsmttsm in
/// kernels/tsmttsm.hpp.
///
/// Products of two elements are exact in the sum's type (half: barring overflow, of bfloat16 only).
/// With u = 2^-24 (2^-53 for sums in double), |error| <= (256 + rows / 2^20) 2 u sum_k |a_k| |b_k|
/// for any input and any device: the tensor cores drop bits where they add, so a warp's sums go to
/// other sums, rounded, every 128 steps. Sums beyond the range of C are infinite, never wrong.
///
/// Cost: bytes sizeof(In) rows (m + n) (rows m when A is B), flops 2 rows m n, one all-reduce of
/// m n elements. Same bits for the same ranks, device and threads.
/// Source: Tang, Komatsu, Sato, Kobayashi, IJNC 11(2), 2021; Ernst et al., IJHPCA 2020.
void tsmttsm(Context& ctx, float alpha, BlockView<const half_t> a, BlockView<const half_t> b,
             float beta, BlockView<float> c, Reduce reduce = Reduce::all_ranks);
void tsmttsm(Context& ctx, float alpha, BlockView<const bfloat16_t> a,
             BlockView<const bfloat16_t> b, float beta, BlockView<float> c,
             Reduce reduce = Reduce::all_ranks);
/// The Gram matrix of a float basis as exact as double is.
void tsmttsm(Context& ctx, double alpha, BlockView<const float> a, BlockView<const float> b,
             double beta, BlockView<double> c, Reduce reduce = Reduce::all_ranks);

/// high + low = A^T B, summed over the rows of all ranks: each sum is formed as if in twice the
/// precision of double and rounded at the end to high, the nearest double, and low, which holds the
/// next 53 bits. |error| <= (u + 2 rows u^2) |sum| for high alone and about rows u^2 sum_k |a_k|
/// |b_k| for both, u = 2^-53; not where products underflow or sums overflow (infinite or not a
/// number then).
///
/// A: rows x m, B: rows x n, both in the Context's place; high and low: m x n in host memory, equal
/// on every rank afterwards. Throws ShapeError when shapes or places disagree.
/// Cost: bytes 8 rows (m + n), some 17 operations instead of 2 for a product and its sum, one
/// all-reduce of 2 m n elements a rank, all ranks' side by side.
/// Source: Dot2 of Ogita, Rump, Oishi, SISC 26(6), 2005.
void tsmttsm_twofold(Context& ctx, BlockView<const double> a, BlockView<const double> b,
                     BlockView<double> high, BlockView<double> low,
                     Reduce reduce = Reduce::all_ranks);

/// Y = alpha X C + beta Y, formed in float.
///
/// X: rows x m, Y: rows x n, both in the Context's place; C: m x n in host or device memory, of X's
/// type or float. beta = 0 overwrites Y whatever it holds. X, C and Y do not overlap. On a device a
/// float C is taken as the sum of two elements of X's type, each column scaled by a power of two:
/// the relative error of its entries is at most 2^-21 of the column's largest (2^-16 for bfloat16).
/// Results beyond the range of Y are infinite; what is not finite in a row of X or a column of C
/// stays in that row or column.
///
/// Throws ShapeError when shapes, places or aliasing are none of these. No communication.
/// Cost: bytes rows (2 m + sizeof(Out) n) (+ sizeof(Out) rows n when beta is not 0), flops 2 rows m
/// n. Source: as above.
template <class In, class Small, class Out>
void tsmm_mixed(Context& ctx, float alpha, BlockView<const In> x, BlockView<const Small> c,
                float beta, BlockView<Out> y);

template <class In, class Small, class Out>
void tsmm(Context& ctx, float alpha, BlockView<In> x, BlockView<Small> c, float beta,
          BlockView<Out> y) requires is_short_v<In> {
    tsmm_mixed<std::remove_const_t<In>, std::remove_const_t<Small>, Out>(ctx, alpha, x, c, beta, y);
}

/// The powers of two that bring the columns of a block into the range of a shorter type: e_j =
/// ceil(log2 ||x_j||_2) - 15, so that |2^-e_j x_ij| <= 2^15 for all i, within -126 .. 126; 0 for
/// columns that are zero. The same on all ranks. Throws InputError for a column that is not
/// finite. Cost: reads the block once; one all-reduce.
template <class T>
std::vector<int> column_exponents(Context& ctx, BlockView<const T> x);

/// Y(i, j) = 2^-e_j X(i, j), rounded to nearest. Same shape, no overlap. With e from
/// column_exponents nothing overflows, and what is less than 2^-29 of a column's norm loses bits to
/// the short exponent of half precision. Products of Y belong to X after scale_back.
template <class T, class Out>
void copy_scaled(Context& ctx, BlockView<const T> x, std::span<const int> exponents,
                 BlockView<Out> y);

/// C(i, j) = 2^(rows_i + columns_j) C(i, j), in host memory; no exponents are zeros. For C = A^T B
/// of scaled blocks with their exponents; for Y = X C of a scaled X with its exponents as rows,
/// before the product.
template <class T>
void scale_back(BlockView<T> c, std::span<const int> rows, std::span<const int> columns);

}  // namespace quiver

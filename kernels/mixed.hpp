// SPDX-License-Identifier: BSD-3-Clause
// Mixed-precision tsmttsm and tsmm, whose blocks have less precision than their sums: half
// precision and bfloat16 with sums in float, float with sums in double, double with sums of two
// doubles.
#pragma once

#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// True for the 2-byte storage types.
template <class T>
inline constexpr bool is_short_v = dtype_v<T> == Dtype::h || dtype_v<T> == Dtype::b;

/// C = alpha A^T B + beta C, summed over the rows of all ranks, accumulated in the precision of C.
/// Arguments, aliasing, errors and reduction are those of tsmttsm in kernels/tsmttsm.hpp.
///
/// The product of two elements is exact in the accumulation type (half precision always; bfloat16
/// unless it overflows or underflows). With u = 2^-24 (2^-53 for sums in double), |error| <= (256 +
/// rows / 2^20) 2 u sum_k |a_k| |b_k| for any input and any device: tensor cores truncate when they
/// add, so every 128 steps the sums of a warp are added, with correct rounding, to separate
/// accumulators. Sums beyond the range of C become infinite, never a wrong finite number.
///
/// Cost: bytes sizeof(In) rows (m + n) (rows m when A is B), flops 2 rows m n, one all-reduce of m
/// n elements. The same ranks, device and threads give the same bits.
/// Source: Tang, Komatsu, Sato, Kobayashi, IJNC 11(2), 2021; Ernst et al., IJHPCA 2020.
void tsmttsm(Context& ctx, float alpha, BlockView<const half_t> a, BlockView<const half_t> b,
             float beta, BlockView<float> c, Reduce reduce = Reduce::all_ranks);
void tsmttsm(Context& ctx, float alpha, BlockView<const bfloat16_t> a,
             BlockView<const bfloat16_t> b, float beta, BlockView<float> c,
             Reduce reduce = Reduce::all_ranks);
/// The product of float blocks with the accuracy of double, for instance the Gram matrix of a float
/// basis.
void tsmttsm(Context& ctx, double alpha, BlockView<const float> a, BlockView<const float> b,
             double beta, BlockView<double> c, Reduce reduce = Reduce::all_ranks);

/// high + low = A^T B, summed over the rows of all ranks. Each sum is accumulated as if in twice
/// the precision of double, then rounded to high, the nearest double, and low, the next 53 bits.
/// With u = 2^-53, |error| <= (u + 2 rows u^2) |sum| for high alone and about rows u^2 sum_k |a_k|
/// |b_k| for both. The bounds do not hold if products underflow or sums overflow (the results are
/// then infinite or NaN).
///
/// A: rows x m, B: rows x n, both in the Context's place; high and low: m x n in host memory, equal
/// on every rank afterwards. Throws ShapeError if shapes or places disagree.
/// Cost: bytes 8 rows (m + n), about 17 operations instead of 2 per product and addition. The
/// all-reduce gathers 2 m n elements from every rank.
/// Source: Dot2 of Ogita, Rump, Oishi, SISC 26(6), 2005.
void tsmttsm_twofold(Context& ctx, BlockView<const double> a, BlockView<const double> b,
                     BlockView<double> high, BlockView<double> low,
                     Reduce reduce = Reduce::all_ranks);

/// high + low = X^T X, summed over the rows of all ranks: the Gram matrix for a Cholesky
/// factorisation in twice the precision (solvers/orth/wide_gram.hpp).
///
/// On a host this is tsmttsm_twofold of X and X. A device rounds the columns of at most 64 columns
/// to integers of 64 bits times a power of two, and forms the products of their 8-bit digits on the
/// tensor cores without rounding errors: high + low = (X + E)^T (X + E) with |e_ij| <= 2^-62 max_k
/// |x_kj| over the rows of the rank, so that ||e_j|| <= sqrt(rows) 2^-62 ||x_j||, up to |error| <=
/// (64 + rows / 2^20)^2 2^-104 ||x_i|| ||x_j||. No product of elements underflows or overflows;
/// sums whose value does become subnormal or infinite. NaN and infinity in a column make its row
/// and its column NaN. More than 64 columns are computed as on a host.
///
/// X: rows x n in the Context's place; high and low: n x n in host memory, symmetric, equal on
/// every rank afterwards; high is the double nearest to the sum. Throws ShapeError if shapes or
/// places disagree.
/// Cost: bytes 8 rows n, on a device read twice; on a device 32 rows n^2 multiply-adds of bytes, on
/// a host the operations of tsmttsm_twofold. The all-reduce gathers 2 n^2 elements from every rank.
/// Source: Ozaki, Ogita, Oishi, Rump, Numer. Algorithms 59 (2012) 95; on tensor cores Mukunoki,
/// Ozaki, Ogita, Imamura, ISC High Performance 2020; with integers Ootomo, Ozaki, Yokota, IJHPCA 38
/// (2024) 297.
void gram_twofold(Context& ctx, BlockView<const double> x, BlockView<double> high,
                  BlockView<double> low, Reduce reduce = Reduce::all_ranks);

/// Y = alpha X C + beta Y, computed in float.
///
/// X: rows x m, Y: rows x n, both in the Context's place; C: m x n in host or device memory, of the
/// type of X or float. beta = 0 overwrites Y, even NaN and infinity. X, C and Y do not overlap. On
/// a device, a float C is represented as the sum of two elements of the type of X, with each column
/// scaled by a power of two: the error of an entry, relative to the largest entry of its column, is
/// at most 2^-21 (2^-16 for bfloat16). Results beyond the range of Y become infinite. NaN or
/// infinity in a row of X or a column of C stays in that row or column.
///
/// Throws ShapeError for any other shape, place or aliasing. No communication.
/// Cost: bytes rows (2 m + sizeof(Out) n) (+ sizeof(Out) rows n if beta is not 0), flops 2 rows m
/// n. Source: as above.
template <class In, class Small, class Out>
void tsmm_mixed(Context& ctx, float alpha, BlockView<const In> x, BlockView<const Small> c,
                float beta, BlockView<Out> y);

template <class In, class Small, class Out>
void tsmm(Context& ctx, float alpha, BlockView<In> x, BlockView<Small> c, float beta,
          BlockView<Out> y) requires is_short_v<In> {
    tsmm_mixed<std::remove_const_t<In>, std::remove_const_t<Small>, Out>(ctx, alpha, x, c, beta, y);
}

/// The exponents that scale the columns of a block into the range of a shorter type: e_j =
/// ceil(log2 ||x_j||_2) - 15, so that |2^-e_j x_ij| <= 2^15 for all i; limited to -126 .. 126, and
/// 0 for a zero column. The same on all ranks. Throws InputError for a column with NaN or infinity.
/// Cost: reads the block once; one all-reduce per 8 columns.
template <class T>
std::vector<int> column_exponents(Context& ctx, BlockView<const T> x);

/// Y(i, j) = 2^-e_j X(i, j), rounded to nearest. Same shape, no overlap. With e from
/// column_exponents nothing overflows; elements below 2^-29 of the norm of their column lose bits,
/// because half precision has a short exponent. Products of Y are mapped back to products of X by
/// scale_back.
template <class T, class Out>
void copy_scaled(Context& ctx, BlockView<const T> x, std::span<const int> exponents,
                 BlockView<Out> y);

/// C(i, j) = 2^(rows_i + columns_j) C(i, j), in host memory; an empty list of exponents means
/// zeros. For C = A^T B of scaled blocks, pass both lists of exponents after the product. For Y = X
/// C of a scaled X, apply it to C with the exponents of X as rows, before the product.
template <class T>
void scale_back(BlockView<T> c, std::span<const int> rows, std::span<const int> columns);

}  // namespace quiver

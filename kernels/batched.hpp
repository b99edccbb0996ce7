// SPDX-License-Identifier: BSD-3-Clause
// Batches of very small square matrices: LU with partial pivoting, Cholesky, and the solutions,
// inverses and determinants that follow from the factors.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/matrix_view.hpp"
#include "blockvec/scalar.hpp"

namespace quiver {

/// The largest orders of a matrix: for LU, for Cholesky, and for either in an interleaved batch.
inline constexpr int largest_batched_lu = 64;
inline constexpr int largest_batched_cholesky = 512;
inline constexpr int largest_interleaved = 16;

/// `count` matrices of rows x cols in memory. Element (i, j) lies `at` = i ld + j (row_major) or j
/// ld + i (column_major) elements after the first element of its matrix. Matrix b starts at data +
/// b stride or, if `pointers` is given, at pointers[b]. In an interleaved batch, element (i, j) of
/// matrix b is data[at stride + b], with stride >= count.
/// Trivially copyable; MatrixBatch<T> converts to MatrixBatch<const T>.
template <class T>
struct MatrixBatch {
    T* data = nullptr;
    T* const* pointers = nullptr;  // count pointers in the place of the batch, or null
    /// The order of each square matrix, 0 to rows, in the place of the batch; null: all have order
    /// rows. Elements beyond the order of a matrix are neither read nor written.
    const int* sizes = nullptr;
    std::int64_t count = 0;
    int rows = 0;
    int cols = 0;
    int ld = 0;
    std::int64_t stride = 0;
    MatrixOrder order = MatrixOrder::row_major;
    bool interleaved = false;
    Place place = Place::host;

    /// A batch of contiguous matrices, one after the other.
    static constexpr MatrixBatch packed(T* data, std::int64_t count, int rows, int cols,
                                        Place place = Place::host,
                                        MatrixOrder order = MatrixOrder::row_major) {
        return {data,
                nullptr,
                nullptr,
                count,
                rows,
                cols,
                order == MatrixOrder::row_major ? cols : rows,
                static_cast<std::int64_t>(rows) * cols,
                order,
                false,
                place};
    }
    /// An interleaved batch: element (i, j) of all matrices is contiguous.
    static constexpr MatrixBatch side_by_side(T* data, std::int64_t count, int rows, int cols,
                                              Place place = Place::host,
                                              MatrixOrder order = MatrixOrder::row_major) {
        MatrixBatch batch = packed(data, count, rows, cols, place, order);
        batch.stride = count;
        batch.interleaved = true;
        return batch;
    }
    constexpr operator MatrixBatch<const T>() const requires(!std::is_const_v<T>) {
        return {data, pointers, sizes, count, rows, cols, ld, stride, order, interleaved, place};
    }
};

/// P A = L U for every matrix. The result overwrites A: U with its diagonal, and below it the
/// multipliers of the unit lower triangular L. Row j was exchanged with row pivots[b rows + j] >=
/// j, counted from 0 (LAPACK's ipiv minus 1). The pivot is the candidate with the largest |re| +
/// |im|, as in LAPACK. Of equal candidates the first is the pivot; NaN counts as larger than all
/// numbers.
///
/// a: square, of order 1 to 64. pivots: count x rows, status: count, both in the Context's place.
/// status[b]: 0, or j + 1 where j is the first column whose pivot is zero or not finite. A column
/// with a zero pivot is not eliminated, and the factorisation continues; other matrices are not
/// affected. Matrices must not overlap each other.
/// Throws ShapeError for invalid sizes, strides or places. On a device this operation and all
/// others of this header are enqueued. No communication: a batch belongs to its rank.
/// Bytes count (2 sizeof(T) n^2 + 4 n + 4), flops 2/3 n^3 per matrix (times 4 for complex).
/// Source: Haidar, Abdelfattah, Zounon, Tomov, Dongarra, IEEE TPDS 29(5), 2018, sections 4.2, 4.4.
template <class T>
void lu_factor(Context& ctx, MatrixBatch<T> a, std::span<int> pivots, std::span<int> status);

/// B = A^-1 B for every matrix, from the result of lu_factor. b: as many matrices as lu, with as
/// many rows, any number of columns and any layout but interleaved; the orders of lu apply. A
/// matrix with a nonzero status gives infinities or NaN in its own result only. b overlaps no other
/// argument. Throws ShapeError.
template <class T>
void lu_solve(Context& ctx, std::type_identity_t<MatrixBatch<const T>> lu,
              std::span<const int> pivots, MatrixBatch<T> b);

/// inverse = A^-1 for every matrix, from the result of lu_factor; otherwise as lu_solve.
template <class T>
void lu_inverse(Context& ctx, std::type_identity_t<MatrixBatch<const T>> lu,
                std::span<const int> pivots, MatrixBatch<T> inverse);

/// det A = sign[b] exp(log_abs[b]) for every matrix, from the result of lu_factor. |sign| is 1, or
/// 0 if a pivot is zero (log_abs is then -infinity). Both results have `count` elements in the
/// Context's place. Throws ShapeError.
template <class T>
void lu_determinant(Context& ctx, std::type_identity_t<MatrixBatch<const T>> lu,
                    std::span<const int> pivots, std::span<T> sign, std::span<real_t<T>> log_abs);

/// A = L L^H for every Hermitian positive definite matrix. The lower triangle is read and
/// overwritten by L; the strict upper triangle is not touched. The imaginary parts of the diagonal
/// are taken as 0. For the upper triangle and A = U^H U, pass the batch with the other MatrixOrder.
///
/// a: square, of order 1 to 512. status[b]: 0, or j + 1 where j is the first column whose pivot is
/// not positive and finite (A is not positive definite, or not finite); the triangle of such a
/// matrix is undefined from that column on. Otherwise as lu_factor.
/// Bytes count (sizeof(T) n (n + 1) + 4), flops 1/3 n^3 per matrix (times 4 for complex).
/// Source: as lu_factor, section 4.3 (left-looking panels, fused update and factorisation).
template <class T>
void cholesky_factor(Context& ctx, MatrixBatch<T> a, std::span<int> status);

/// B = A^-1 B for every matrix, from the result of cholesky_factor; otherwise as lu_solve.
template <class T>
void cholesky_solve(Context& ctx, std::type_identity_t<MatrixBatch<const T>> l, MatrixBatch<T> b);

/// inverse = A^-1, both triangles, from the result of cholesky_factor; otherwise as lu_solve.
template <class T>
void cholesky_inverse(Context& ctx, std::type_identity_t<MatrixBatch<const T>> l,
                      MatrixBatch<T> inverse);

/// log_det[b] = log det A for every matrix, from the result of cholesky_factor. Throws ShapeError.
template <class T>
void cholesky_log_determinant(Context& ctx, std::type_identity_t<MatrixBatch<const T>> l,
                              std::span<real_t<T>> log_det);

/// Summary of the status array of a batch.
struct BatchFailures {
    std::int64_t count = 0;
    /// The first failed matrix, and its failed column counted from 0; -1 if none failed.
    std::int64_t matrix = -1;
    int column = -1;
};

/// Copies the status to the host; waits for all enqueued work.
BatchFailures find_failures(Context& ctx, std::span<const int> status);

}  // namespace quiver

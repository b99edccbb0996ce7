// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of factors, solutions, inverses and determinants of many small
// matrices.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// `count` matrices: element (i, j) of matrix b is matrix(b)[i row_step + j col_step]. One of the
/// steps is 1 unless the batch is interleaved (matrix_step = 1).
template <class T>
struct BatchOf {
    T* data;
    T* const* pointers;  // count, or null
    const int* sizes;    // count, or null: all `rows`
    std::int64_t count;
    int rows, cols;
    std::int64_t matrix_step, row_step, col_step;

    constexpr T* matrix(std::int64_t b) const {
        return pointers != nullptr ? pointers[b] : data + b * matrix_step;
    }
    /// The order of a square matrix.
    constexpr int size(std::int64_t b) const {
        if (sizes == nullptr) {
            return rows;
        }
        return sizes[b] < 0 ? 0 : sizes[b] < rows ? sizes[b] : rows;
    }
};

/// See lu_factor in kernels/batched.hpp.
template <class T>
struct LuArgs {
    BatchOf<T> a;
    int* pivots;  // count x a.rows
    int* status;  // count
};

/// For matrices of order n: bytes count (2 sizeof(T) n^2 + 4 (n + 1)); flops 2/3 count n^3 (8/3 for
/// complex).
template <class T>
constexpr Cost cost(const LuArgs<T>& args) {
    const double n = args.a.rows;
    const auto count = static_cast<double>(args.a.count);
    return {args.a.count, args.a.rows, args.a.cols,
            count * (2 * sizeof(T) * n * n + (n + 1) * sizeof(int)),
            count * (n * n * n / 3) * flops_per_multiply_add<T>};
}

/// See cholesky_factor in kernels/batched.hpp.
template <class T>
struct CholeskyArgs {
    BatchOf<T> a;
    int* status;  // count
};

/// For matrices of order n, with one triangle read and written: bytes count (sizeof(T) n (n + 1) +
/// 4); flops count n^3 / 3 (4/3 for complex).
template <class T>
constexpr Cost cost(const CholeskyArgs<T>& args) {
    const double n = args.a.rows;
    const auto count = static_cast<double>(args.a.count);
    return {args.a.count, args.a.rows, args.a.cols, count * (sizeof(T) * n * (n + 1) + sizeof(int)),
            count * (n * n * n / 6) * flops_per_multiply_add<T>};
}

/// B = A^-1 B with the factors of A: those of LU and its pivots, or those of Cholesky if the pivots
/// are null. from_identity: B is not read; the identity is used instead.
template <class T>
struct BatchedSolveArgs {
    BatchOf<const T> factor;
    const int* pivots;  // count x factor.rows, or null
    BatchOf<T> b;
    bool from_identity;
};

/// For factors of order n and k columns of B: bytes count (sizeof(T) (n^2 + 2 n k) + 4 n) with the
/// factors of LU. The factors of Cholesky have n (n + 1) / 2 elements and no pivots; with
/// from_identity B is not read. flops 2 count n^2 k (8 for complex).
template <class T>
constexpr Cost cost(const BatchedSolveArgs<T>& args) {
    const double n = args.factor.rows;
    const auto count = static_cast<double>(args.b.count);
    const double triangles = args.pivots != nullptr ? n * n : n * (n + 1) / 2;
    const double elements = triangles + n * args.b.cols * (args.from_identity ? 1 : 2);
    return {args.b.count, args.b.rows, args.b.cols,
            count * (elements * sizeof(T) + (args.pivots != nullptr ? n * sizeof(int) : 0)),
            count * (n * n * args.b.cols) * flops_per_multiply_add<T>};
}

/// The sign of det A and the logarithm of |det A| from the factors of A, as above; sign is null for
/// Cholesky.
template <class T, class R>
struct DeterminantArgs {
    BatchOf<const T> factor;
    const int* pivots;
    T* sign;
    R* log_abs;
};

/// For factors of order n: bytes count (n (sizeof(T) + 4) + sizeof(T) + sizeof(R)), without the 4
/// if pivots is null, and without the second sizeof(T) if sign is null; flops 2 count n (8 for
/// complex).
template <class T, class R>
constexpr Cost cost(const DeterminantArgs<T, R>& args) {
    const double n = args.factor.rows;
    const auto count = static_cast<double>(args.factor.count);
    const double results = sizeof(R) + (args.sign != nullptr ? sizeof(T) : 0.0);
    return {args.factor.count, args.factor.rows, 1,
            count * (n * (sizeof(T) + (args.pivots != nullptr ? sizeof(int) : 0)) + results),
            count * n * flops_per_multiply_add<T>};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
std::size_t workspace_bytes(int threads, const LuArgs<T>& args);
template <class T>
void lu_factor(int threads, const LuArgs<T>& args, void* workspace);
template <class T>
std::size_t workspace_bytes(int threads, const CholeskyArgs<T>& args);
template <class T>
void cholesky_factor(int threads, const CholeskyArgs<T>& args, void* workspace);
template <class T>
std::size_t workspace_bytes(int threads, const BatchedSolveArgs<T>& args);
template <class T>
void batched_solve(int threads, const BatchedSolveArgs<T>& args, void* workspace);
template <class T, class R>
void batched_determinant(int threads, const DeterminantArgs<T, R>& args);
}  // namespace host
namespace cuda {
template <class T>
void lu_factor(Context& ctx, const LuArgs<T>& args);
template <class T>
void cholesky_factor(Context& ctx, const CholeskyArgs<T>& args);
template <class T>
void batched_solve(Context& ctx, const BatchedSolveArgs<T>& args);
template <class T, class R>
void batched_determinant(Context& ctx, const DeterminantArgs<T, R>& args);
}  // namespace cuda
#endif

}  // namespace quiver

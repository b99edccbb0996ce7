// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/batched.hpp"

#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"

namespace quiver {
namespace {

template <class T>
std::string describe(const MatrixBatch<T>& batch) {
    return std::to_string(batch.count) + " matrices of " + std::to_string(batch.rows) + " x " +
           std::to_string(batch.cols) + ", ld " + std::to_string(batch.ld) +
           (batch.pointers != nullptr ? ", by pointers"
                                      : ", stride " + std::to_string(batch.stride)) +
           (batch.order == MatrixOrder::row_major ? ", row-major" : ", column-major") +
           (batch.interleaved ? ", interleaved, " : ", ") + to_string(batch.place);
}

/// Elements from the first to one past the last of a matrix, without its stride. The caller checks
/// for overflow.
template <class T>
std::int64_t extent(const MatrixBatch<T>& batch) {
    const int lines = batch.order == MatrixOrder::row_major ? batch.rows : batch.cols;
    const int length = batch.order == MatrixOrder::row_major ? batch.cols : batch.rows;
    return static_cast<std::int64_t>(lines - 1) * batch.ld + length;
}

template <class T>
bool is_empty(const MatrixBatch<T>& batch) {
    return batch.count == 0 || batch.rows == 0 || batch.cols == 0;
}

/// Bytes from the first to one past the last of a batch without pointers; -1 if 64 bits do not
/// suffice.
template <class T>
std::int64_t span_bytes(const MatrixBatch<T>& batch) {
    std::int64_t elements = 0;
    const std::int64_t steps = batch.interleaved ? extent(batch) - 1 : batch.count - 1;
    const std::int64_t last = batch.interleaved ? batch.count : extent(batch);
    const bool fits =
        !__builtin_mul_overflow(steps, batch.stride, &elements) &&
        !__builtin_add_overflow(elements, last, &elements) &&
        !__builtin_mul_overflow(elements, static_cast<std::int64_t>(sizeof(T)), &elements);
    return fits ? elements : -1;
}

template <class T>
void require_batch(const Context& ctx, const MatrixBatch<T>& batch, const char* operation,
                   const char* name) {
    const auto details = [&] { return std::string(name) + ": " + describe(batch); };
    const int length = batch.order == MatrixOrder::row_major ? batch.cols : batch.rows;
    require_shape(batch.count >= 0 && batch.rows >= 0 && batch.cols >= 0 && batch.ld >= length,
                  operation, "a batch has a negative size, or ld is too short", details);
    if (is_empty(batch)) {
        return;
    }
    require_shape(batch.place == ctx.place(), operation, "a batch is not in the Context's place",
                  [&] { return details() + "; Context: " + to_string(ctx.place()); });
    require_shape(batch.pointers != nullptr || batch.data != nullptr, operation,
                  "a batch has no memory", details);
    if (batch.interleaved) {
        require_shape(batch.rows <= largest_interleaved && batch.cols <= largest_interleaved,
                      operation, "interleaved matrices have at most 16 rows and columns", details);
        require_shape(batch.pointers == nullptr && batch.stride >= batch.count, operation,
                      "an interleaved batch has pointers, or a stride below its count", details);
    } else if (batch.pointers == nullptr && batch.count > 1) {
        require_shape(batch.stride >= extent(batch), operation, "the matrices of a batch overlap",
                      details);
    }
    require_shape(batch.pointers != nullptr || span_bytes(batch) >= 0, operation,
                  "the extent of a batch in bytes exceeds 64 bits", details);
}

template <class T>
void require_square(const Context& ctx, const MatrixBatch<T>& batch, int largest,
                    const char* operation, const char* name) {
    require_batch(ctx, batch, operation, name);
    require_shape(
        (batch.rows == batch.cols && batch.rows >= 1 && batch.rows <= largest) || batch.count == 0,
        operation, "the matrices are not square, or their order is outside 1 .. n", [&] {
            return std::string(name) + ": " + describe(batch) + "; n = " + std::to_string(largest);
        });
}

void require_length(const char* operation, const char* name, std::size_t length, std::int64_t count,
                    int each) {
    require_shape(static_cast<std::int64_t>(length) == count * each, operation,
                  "an array does not have the length of the batch", [&] {
                      return std::string(name) + ": " + std::to_string(length) + " elements, not " +
                             std::to_string(count) + " x " + std::to_string(each);
                  });
}

/// Judged by extents; for batches given by pointers the caller is responsible.
template <class T>
void require_apart(const char* operation, const MatrixBatch<const T>& factor,
                   const MatrixBatch<T>& b) {
    if (is_empty(factor) || is_empty(b) || factor.pointers != nullptr || b.pointers != nullptr) {
        return;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(factor.data);
    const auto second = reinterpret_cast<std::uintptr_t>(b.data);
    require_shape(first + static_cast<std::uintptr_t>(span_bytes(factor)) <= second ||
                      second + static_cast<std::uintptr_t>(span_bytes(b)) <= first,
                  operation, "the result overlaps the factors",
                  [&] { return describe(factor) + "; " + describe(b); });
}

template <class T>
BatchOf<T> leaf_batch(const MatrixBatch<T>& batch) {
    const std::int64_t element = batch.interleaved ? batch.stride : 1;
    const bool by_rows = batch.order == MatrixOrder::row_major;
    return {batch.data,
            batch.pointers,
            batch.sizes,
            batch.count,
            batch.rows,
            batch.cols,
            batch.interleaved ? 1 : batch.stride,
            by_rows ? batch.ld * element : element,
            by_rows ? element : batch.ld * element};
}

/// Solves, or inverts if from_identity.
template <const auto& operation, class T>
void run_solve(Context& ctx, int largest, const MatrixBatch<const T>& factor, const int* pivots,
               const MatrixBatch<T>& b, bool from_identity) {
    constexpr const char* name = operation.name;
    require_square(ctx, factor, largest, name, "factors");
    require_batch(ctx, b, name, from_identity ? "inverse" : "B");
    require_shape(
        b.count == factor.count && b.rows == factor.rows && (!from_identity || b.cols == b.rows),
        name, "the result does not have the count and rows of the factors",
        [&] { return describe(factor) + "; " + describe(b); });
    require_shape(!b.interleaved, name, "the result is interleaved", [&] { return describe(b); });
    require_apart(name, factor, b);
    if (is_empty(b)) {
        return;
    }
    dispatch<operation, T>(ctx, [&](const auto& kernel) {
        kernel(BatchedSolveArgs<T>{leaf_batch(factor), pivots, leaf_batch(b), from_identity});
    });
}

template <const auto& operation, class T>
void run_determinant(Context& ctx, const MatrixBatch<const T>& factor, const int* pivots, T* sign,
                     real_t<T>* log_abs) {
    if (factor.count == 0) {
        return;
    }
    dispatch<operation, T>(ctx, [&](const auto& kernel) {
        kernel(DeterminantArgs<T, real_t<T>>{leaf_batch(factor), pivots, sign, log_abs});
    });
}

}  // namespace

template <class T>
void lu_factor(Context& ctx, MatrixBatch<T> a, std::span<int> pivots, std::span<int> status) {
    constexpr const char* operation = operations::lu_factor.name;
    require_square(ctx, a, largest_batched_lu, operation, "A");
    require_length(operation, "pivots", pivots.size(), a.count, a.rows);
    require_length(operation, "status", status.size(), a.count, 1);
    if (is_empty(a)) {
        return;
    }
    dispatch<operations::lu_factor, T>(ctx, [&](const auto& kernel) {
        kernel(LuArgs<T>{leaf_batch(a), pivots.data(), status.data()});
    });
}

template <class T>
void lu_solve(Context& ctx, std::type_identity_t<MatrixBatch<const T>> lu,
              std::span<const int> pivots, MatrixBatch<T> b) {
    constexpr const char* operation = operations::lu_solve.name;
    require_length(operation, "pivots", pivots.size(), lu.count, lu.rows);
    run_solve<operations::lu_solve>(ctx, largest_batched_lu, lu, pivots.data(), b, false);
}

template <class T>
void lu_inverse(Context& ctx, std::type_identity_t<MatrixBatch<const T>> lu,
                std::span<const int> pivots, MatrixBatch<T> inverse) {
    constexpr const char* operation = operations::lu_inverse.name;
    require_length(operation, "pivots", pivots.size(), lu.count, lu.rows);
    run_solve<operations::lu_inverse>(ctx, largest_batched_lu, lu, pivots.data(), inverse, true);
}

template <class T>
void lu_determinant(Context& ctx, std::type_identity_t<MatrixBatch<const T>> lu,
                    std::span<const int> pivots, std::span<T> sign, std::span<real_t<T>> log_abs) {
    constexpr const char* operation = operations::lu_determinant.name;
    require_square(ctx, lu, largest_batched_lu, operation, "factors");
    require_length(operation, "pivots", pivots.size(), lu.count, lu.rows);
    require_length(operation, "sign", sign.size(), lu.count, 1);
    require_length(operation, "log_abs", log_abs.size(), lu.count, 1);
    run_determinant<operations::lu_determinant, T>(ctx, lu, pivots.data(), sign.data(),
                                                   log_abs.data());
}

template <class T>
void cholesky_factor(Context& ctx, MatrixBatch<T> a, std::span<int> status) {
    constexpr const char* operation = operations::cholesky_factor.name;
    require_square(ctx, a, largest_batched_cholesky, operation, "A");
    require_length(operation, "status", status.size(), a.count, 1);
    if (is_empty(a)) {
        return;
    }
    dispatch<operations::cholesky_factor, T>(ctx, [&](const auto& kernel) {
        kernel(CholeskyArgs<T>{leaf_batch(a), status.data()});
    });
}

template <class T>
void cholesky_solve(Context& ctx, std::type_identity_t<MatrixBatch<const T>> l, MatrixBatch<T> b) {
    run_solve<operations::cholesky_solve, T>(ctx, largest_batched_cholesky, l, nullptr, b, false);
}

template <class T>
void cholesky_inverse(Context& ctx, std::type_identity_t<MatrixBatch<const T>> l,
                      MatrixBatch<T> inverse) {
    run_solve<operations::cholesky_inverse, T>(ctx, largest_batched_cholesky, l, nullptr, inverse,
                                               true);
}

template <class T>
void cholesky_log_determinant(Context& ctx, std::type_identity_t<MatrixBatch<const T>> l,
                              std::span<real_t<T>> log_det) {
    constexpr const char* operation = operations::cholesky_log_determinant.name;
    require_square(ctx, l, largest_batched_cholesky, operation, "factors");
    require_length(operation, "log_det", log_det.size(), l.count, 1);
    run_determinant<operations::cholesky_log_determinant, T>(ctx, l, nullptr, nullptr,
                                                             log_det.data());
}

BatchFailures find_failures(Context& ctx, std::span<const int> status) {
    std::vector<int> copied;
    if (ctx.place() == Place::device && !status.empty()) {
        copied.resize(status.size());
        device::copy(copied.data(), status.data(), status.size_bytes(), ctx.stream());
        ctx.synchronize();
        status = copied;
    }
    BatchFailures failures;
    for (std::size_t b = 0; b < status.size(); ++b) {
        if (status[b] != 0) {
            if (failures.count == 0) {
                failures.matrix = static_cast<std::int64_t>(b);
                failures.column = status[b] - 1;
            }
            ++failures.count;
        }
    }
    return failures;
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define QUIVER_INSTANTIATE(T)                                                                     \
    template void lu_factor(Context&, MatrixBatch<T>, std::span<int>, std::span<int>);            \
    template void lu_solve(Context&, MatrixBatch<const T>, std::span<const int>, MatrixBatch<T>); \
    template void lu_inverse(Context&, MatrixBatch<const T>, std::span<const int>,                \
                             MatrixBatch<T>);                                                     \
    template void lu_determinant(Context&, MatrixBatch<const T>, std::span<const int>,            \
                                 std::span<T>, std::span<real_t<T>>);                             \
    template void cholesky_factor(Context&, MatrixBatch<T>, std::span<int>);                      \
    template void cholesky_solve(Context&, MatrixBatch<const T>, MatrixBatch<T>);                 \
    template void cholesky_inverse(Context&, MatrixBatch<const T>, MatrixBatch<T>);               \
    template void cholesky_log_determinant<T>(Context&, MatrixBatch<const T>, std::span<real_t<T>>);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

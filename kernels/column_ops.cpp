// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/column_ops.hpp"

#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver {
namespace {

template <class T, class U>
void require_same_shape(const char* operation, const BlockView<T>& x, const BlockView<U>& y) {
    require_shape(x.rows == y.rows && x.cols == y.cols, operation, "X and Y differ in shape",
                  [&] { return describe("X", x, "Y", y); });
}

template <class T>
void check_axpby(const Context& ctx, const char* operation, const BlockView<const T>& x,
                 const BlockView<T>& y) {
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    require_same_shape(operation, x, y);
    require_shape(!overlap(x, y) || same_block(x, y), operation,
                  "X and Y overlap but are not the same block",
                  [&] { return describe("X", x, "Y", y); });
}

template <class T>
void require_coefficients(const char* operation, const char* name, std::span<const T> values,
                          int cols) {
    require_shape(values.size() == static_cast<std::size_t>(cols), operation,
                  "the number of coefficients differs from the number of columns", [&] {
                      return std::to_string(values.size()) + " in " + name + ", " +
                             std::to_string(cols) + " columns";
                  });
}

/// True if the runtime would copy short rows one by one; a kernel then moves many rows at once.
template <class U, class T>
bool has_short_pieces(const BlockView<const U>& x, const BlockView<T>& y) {
    constexpr std::size_t short_row = 1024;
    return (x.ld != x.cols || y.ld != y.cols) &&
           static_cast<std::size_t>(x.cols) * sizeof(T) < short_row;
}

/// Copies without conversion: one contiguous copy if neither side has gaps.
template <class T>
void copy_same(Context& ctx, const BlockView<const T>& x, const BlockView<T>& y) {
    const std::size_t row_bytes = static_cast<std::size_t>(x.cols) * sizeof(T);
    if (x.ld == x.cols && y.ld == y.cols) {
        device::copy(y.data, x.data, static_cast<std::size_t>(x.rows) * row_bytes, ctx.stream());
    } else {
        device::copy_2d(y.data, static_cast<std::size_t>(y.ld) * sizeof(T), x.data,
                        static_cast<std::size_t>(x.ld) * sizeof(T), row_bytes,
                        static_cast<std::size_t>(x.rows), ctx.stream());
    }
}

/// Copies between host and device with a change of precision. The host converts, a batch of rows at
/// a time.
template <class U, class T>
void copy_through_host(Context& ctx, const BlockView<const U>& x, const BlockView<T>& y) {
    constexpr std::int64_t most_bytes = std::int64_t{16} << 20;
    const bool to_device = y.place == Place::device;
    const std::size_t element = to_device ? sizeof(T) : sizeof(U);
    const std::int64_t row_bytes = x.cols * static_cast<std::int64_t>(element);
    const std::int64_t step = std::min(std::max(most_bytes / row_bytes, std::int64_t{1}), x.rows);
    const Scratch staged =
        ctx.scratch(MemoryKind::pinned, static_cast<std::size_t>(step * row_bytes));
    for (std::int64_t first = 0; first < x.rows; first += step) {
        const std::int64_t count = std::min(step, x.rows - first);
        const auto x_rows = x.row_range(first, count);
        const auto y_rows = y.row_range(first, count);
        if (to_device) {
            const BlockView<T> middle(staged.as<T>(), count, x.cols, x.cols);
            host::convert(ctx.threads(), ConvertArgs<U, T>{count, x.cols, x_rows.data, x.ld,
                                                           middle.data, middle.ld});
            copy_same<T>(ctx, middle, y_rows);
            ctx.synchronize();
        } else {
            const BlockView<U> middle(staged.as<U>(), count, x.cols, x.cols);
            copy_same<U>(ctx, x_rows, middle);
            ctx.synchronize();
            host::convert(ctx.threads(), ConvertArgs<U, T>{count, x.cols, middle.data, middle.ld,
                                                           y_rows.data, y.ld});
        }
    }
}

/// Y = X by the leaf or by a copy of the runtime, depending on the places.
template <class Kernel, class U, class T>
void move(Context& ctx, const Kernel& kernel, const BlockView<const U>& x, const BlockView<T>& y) {
    const bool on_host = x.place == Place::host && y.place == Place::host;
    const bool on_device = x.place == Place::device && y.place == Place::device;
    const ConvertArgs<U, T> args{x.rows, x.cols, x.data, x.ld, y.data, y.ld};
    const Ledger::Entry entry = kernel.enter(cost(args), on_device ? Place::device : Place::host);
    if (on_host) {
        host::convert(ctx.threads(), args);
        return;
    }
    if constexpr (std::is_same_v<U, T>) {
        if (on_device && has_short_pieces(x, y)) {
            kernel.leaf(args);
            return;
        }
        copy_same<T>(ctx, x, y);
        if (!on_device) {
            ctx.synchronize();
        }
    } else if (on_device) {
        kernel.leaf(args);
    } else {
        copy_through_host(ctx, x, y);
    }
}

}  // namespace

template <class T>
void axpby(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
           std::type_identity_t<T> beta, BlockView<T> y) {
    const auto update = [&](const auto& kernel) {
        check_axpby(ctx, operations::axpby.name, x, y);
        if (!y.empty()) {
            kernel(AxpbyArgs<T>{y.rows, y.cols, alpha, nullptr, x.data, x.ld, beta, nullptr, y.data,
                                y.ld});
        }
    };
    dispatch<operations::axpby, T>(ctx, update, alpha, x, beta, y);
}

template <class T>
void axpby(Context& ctx, std::type_identity_t<std::span<const T>> alpha,
           std::type_identity_t<BlockView<const T>> x,
           std::type_identity_t<std::span<const T>> beta, BlockView<T> y) {
    const auto update = [&](const auto& kernel) {
        constexpr const char* name = operations::axpby.name;
        check_axpby(ctx, name, x, y);
        require_coefficients(name, "alpha", alpha, y.cols);
        require_coefficients(name, "beta", beta, y.cols);
        if (!y.empty()) {
            const LeafArray<T> alphas(ctx, alpha);
            const LeafArray<T> betas(ctx, beta);
            kernel(AxpbyArgs<T>{y.rows, y.cols, T(0), alphas.data(), x.data, x.ld, T(0),
                                betas.data(), y.data, y.ld});
        }
    };
    dispatch<operations::axpby, T>(ctx, update, alpha, x, beta, y);
}

template <class T>
void scale(Context& ctx, std::type_identity_t<T> alpha, BlockView<T> x) {
    const auto update = [&](const auto& kernel) {
        check_axpby<T>(ctx, operations::scale.name, x, x);
        if (!x.empty()) {
            kernel(AxpbyArgs<T>{x.rows, x.cols, alpha, nullptr, x.data, x.ld, T(0), nullptr, x.data,
                                x.ld});
        }
    };
    dispatch<operations::scale, T>(ctx, update, alpha, x);
}

template <class T>
void scale(Context& ctx, std::type_identity_t<std::span<const T>> alpha, BlockView<T> x) {
    const auto update = [&](const auto& kernel) {
        require_operand(ctx, x, operations::scale.name, "X");
        require_coefficients(operations::scale.name, "alpha", alpha, x.cols);
        if (!x.empty()) {
            const LeafArray<T> alphas(ctx, alpha);
            kernel(AxpbyArgs<T>{x.rows, x.cols, T(0), alphas.data(), x.data, x.ld, T(0), nullptr,
                                x.data, x.ld});
        }
    };
    dispatch<operations::scale, T>(ctx, update, alpha, x);
}

template <class T>
void dots(Context& ctx, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> y, std::span<T> result, Reduce reduce) {
    constexpr const char* operation = operations::dots.name;
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    require_same_shape(operation, x, y);
    require_shape(result.size() == static_cast<std::size_t>(x.cols), operation,
                  "the number of results differs from the number of columns", [&] {
                      return std::to_string(result.size()) + " results, " + std::to_string(x.cols) +
                             " columns";
                  });
    if (x.cols == 0) {
        return;
    }
    dispatch<operations::dots, T>(ctx, [&](const auto& kernel) {
        const auto compute = [&](T* partial) {
            kernel(DotsArgs<T>{x.rows, x.cols, x.data, x.ld, y.data, y.ld, partial});
        };
        reduce_to_host<T>(ctx, result.size(), reduce, compute,
                          [&](const T* sums) { std::copy_n(sums, result.size(), result.begin()); });
    });
}

template <class T>
void norms(Context& ctx, BlockView<const T> x, std::span<real_t<T>> result) {
    const Scratch squares = ctx.scratch(MemoryKind::host, result.size() * sizeof(T));
    const std::span<T> squared(squares.as<T>(), result.size());
    dots(ctx, x, x, squared);
    for (std::size_t j = 0; j < result.size(); ++j) {
        result[j] = std::sqrt(real_part(squared[j]));
    }
}

template <class T>
void gather_columns(Context& ctx, std::type_identity_t<BlockView<const T>> x,
                    std::span<const int> source, BlockView<T> y) {
    constexpr const char* operation = operations::gather_columns.name;
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    require_shape(
        x.rows == y.rows && source.size() == static_cast<std::size_t>(y.cols), operation,
        "X and Y differ in rows, or the number of sources differs from the columns of Y", [&] {
            return describe("X", x, "Y", y) + "; " + std::to_string(source.size()) + " sources";
        });
    for (const int column : source) {
        require_shape(column >= 0 && column < x.cols, operation, "a source is not a column of X",
                      [&] { return "column " + std::to_string(column) + "; X: " + describe(x); });
    }
    require_shape(!overlap(x, y) || same_block(x, y), operation,
                  "X and Y overlap but are not the same block",
                  [&] { return describe("X", x, "Y", y); });
    if (y.empty()) {
        return;
    }
    const LeafArray<int> sources(ctx, source);
    dispatch<operations::gather_columns, T>(ctx, [&](const auto& kernel) {
        kernel(GatherColumnsArgs<T>{y.rows, x.cols, y.cols, x.data, x.ld, sources.data(), y.data,
                                    y.ld});
    });
}

template <class T>
void gather_rows(Context& ctx, std::type_identity_t<BlockView<const T>> x,
                 std::span<const std::int64_t> source, BlockView<T> y) {
    constexpr const char* operation = operations::gather_rows.name;
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    const auto blocks = [&] { return describe("X", x, "Y", y); };
    require_shape(x.cols == y.cols && source.size() == static_cast<std::size_t>(y.rows), operation,
                  "X and Y differ in columns, or the source is not one row for each row of Y",
                  [&] { return blocks() + "; " + std::to_string(source.size()) + " sources"; });
    require_shape(y.ld == y.cols || y.rows < 2, operation, "Y has gaps between its rows", blocks);
    require_shape(!overlap(x, y), operation, "X and Y overlap", blocks);
    for (const std::int64_t row : source) {
        require_shape(row >= 0 && row < x.rows, operation, "a source is not a row of X",
                      [&] { return std::to_string(row) + "; " + blocks(); });
    }
    if (y.empty()) {
        return;
    }
    dispatch<operations::gather_rows, T>(ctx, [&](const auto& kernel) {
        const LeafArray<std::int64_t> rows(ctx, source);
        kernel(GatherRowsArgs<T>{y.rows, y.cols, x.rows, x.data, x.ld, rows.data(), y.data});
    });
}

template <class T>
void fill(Context& ctx, std::type_identity_t<T> value, BlockView<T> x) {
    require_operand(ctx, x, operations::fill.name, "X");
    if (!x.empty()) {
        dispatch<operations::fill, T>(ctx, [&](const auto& kernel) {
            kernel(FillArgs<T>{x.rows, x.cols, value, x.data, x.ld});
        });
    }
}

template <class U, class T>
void copy(Context& ctx, BlockView<const U> x, BlockView<T> y) {
    constexpr const char* operation = operations::copy.name;
    require_valid(x, operation, "X");
    require_valid(y, operation, "Y");
    require_same_shape(operation, x, y);
    require_shape(!overlap(x, y), operation, "X and Y overlap",
                  [&] { return describe("X", x, "Y", y); });
    if (y.empty()) {
        return;
    }
    const bool on_host = x.place == Place::host && y.place == Place::host;
    if (!on_host && ctx.place() == Place::host) {
        throw UnsupportedError(
            "copy: a block is in device memory, but the Context has no device (" +
            describe("X", x, "Y", y) + ")");
    }
    dispatch<operations::copy, T>(ctx, [&](const auto& kernel) { move(ctx, kernel, x, y); });
}

template <class T>
using Lengths = std::span<real_t<T>>;

#define QUIVER_INSTANTIATE(T)                                                                   \
    template void axpby(Context&, T, BlockView<const T>, T, BlockView<T>);                      \
    template void axpby(Context&, std::span<const T>, BlockView<const T>, std::span<const T>,   \
                        BlockView<T>);                                                          \
    template void scale(Context&, T, BlockView<T>);                                             \
    template void scale(Context&, std::span<const T>, BlockView<T>);                            \
    template void dots(Context&, BlockView<const T>, BlockView<const T>, std::span<T>, Reduce); \
    template void norms(Context&, BlockView<const T>, Lengths<T>);                              \
    template void gather_columns(Context&, BlockView<const T>, std::span<const int>,            \
                                 BlockView<T>);                                                 \
    template void fill(Context&, T, BlockView<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(T)                                                              \
    template void gather_rows(Context&, BlockView<const T>, std::span<const std::int64_t>, \
                              BlockView<T>);
QUIVER_FOR_EACH_ELEMENT(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(U, T) template void copy(Context&, BlockView<const U>, BlockView<T>);
QUIVER_FOR_EACH_CONVERSION(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/mixed.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/column_ops.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver {
namespace {

template <class In, class Sum>
void product(Context& ctx, Sum alpha, const BlockView<const In>& a, const BlockView<const In>& b,
             Sum beta, const BlockView<Sum>& c, Reduce reduce) {
    require_product(ctx, operations::tsmttsm_mixed.name, a, b, c);
    if (c.empty()) {
        return;
    }
    dispatch<operations::tsmttsm_mixed, In>(ctx, [&](const auto& kernel) {
        sum_small(ctx, beta, c, reduce, [&](Sum factor, Sum* target, std::int64_t ld) {
            kernel(MixedTsmttsmArgs<In, Sum>{a.rows, a.cols, b.cols, alpha, a.data, a.ld, b.data,
                                             b.ld, factor, target, ld});
        });
    });
}

/// Gathers the sums of all ranks and adds them in rank order in twice the precision; an all-reduce
/// of the values would lose the last bits of the low parts.
void sum_over_ranks(const Context& ctx, double* sums, std::int64_t size) {
    const std::int64_t ranks = ctx.comm().size();
    constexpr std::int64_t most_gathered = 1 << 20;
    const std::int64_t batch = std::clamp<std::int64_t>(most_gathered / (2 * ranks), 1, size);
    const Scratch gathered = ctx.scratch(
        MemoryKind::host, static_cast<std::size_t>((ranks + 1) * 2 * batch) * sizeof(double));
    double* const all = gathered.as<double>();
    double* const total = all + ranks * 2 * batch;
    for (std::int64_t first = 0; first < size; first += batch) {
        const std::int64_t count = std::min(batch, size - first);
        const auto gathered_count = static_cast<std::size_t>(ranks * 2 * count);
        std::fill_n(all, gathered_count, 0.0);
        double* const own = all + ctx.comm().rank() * 2 * count;
        std::copy_n(sums + first, count, own);
        std::copy_n(sums + size + first, count, own + count);
        ctx.comm().sum(std::span<double>(all, gathered_count));
        host::sum_twofold(TwofoldSumArgs{static_cast<int>(ranks), count, all, total});
        std::copy_n(total, count, sums + first);
        std::copy_n(total + count, count, sums + size + first);
    }
}

/// high + low = A^T B by the operation, whose leaf takes args_for(sums).
template <const auto& operation, class ArgsFor>
void twofold_product(Context& ctx, const BlockView<const double>& a,
                     const BlockView<const double>& b, const BlockView<double>& high,
                     const BlockView<double>& low, Reduce reduce, const ArgsFor& args_for) {
    require_product(ctx, operation.name, a, b, high);
    require_product(ctx, operation.name, a, b, low);
    require_shape((high.place == Place::host && low.place == Place::host) || high.empty(),
                  operation.name, "the results are not in host memory",
                  [&] { return describe("high", high, "low", low); });
    require_shape(!overlap(high, low), operation.name, "the results overlap",
                  [&] { return describe("high", high, "low", low); });
    if (high.empty()) {
        return;
    }
    const std::int64_t size = high.rows * high.cols;
    const auto use = [&](const double* sums) {
        const Scratch copy =
            ctx.scratch(MemoryKind::host, static_cast<std::size_t>(2 * size) * sizeof(double));
        double* const total = copy.as<double>();
        std::copy_n(sums, 2 * size, total);
        if (needs_ranks(ctx, reduce)) {
            sum_over_ranks(ctx, total, size);
        }
        for (std::int64_t i = 0; i < high.rows; ++i) {
            std::copy_n(total + i * high.cols, high.cols, high.data + i * high.ld);
            std::copy_n(total + size + i * high.cols, high.cols, low.data + i * low.ld);
        }
    };
    dispatch<operation, double>(ctx, [&](const auto& kernel) {
        const auto compute = [&](double* sums) { kernel(args_for(sums)); };
        reduce_to_host<double>(ctx, static_cast<std::size_t>(2 * size), Reduce::this_rank, compute,
                               use);
    });
}

}  // namespace

void tsmttsm(Context& ctx, float alpha, BlockView<const half_t> a, BlockView<const half_t> b,
             float beta, BlockView<float> c, Reduce reduce) {
    product(ctx, alpha, a, b, beta, c, reduce);
}

void tsmttsm(Context& ctx, float alpha, BlockView<const bfloat16_t> a,
             BlockView<const bfloat16_t> b, float beta, BlockView<float> c, Reduce reduce) {
    product(ctx, alpha, a, b, beta, c, reduce);
}

void tsmttsm(Context& ctx, double alpha, BlockView<const float> a, BlockView<const float> b,
             double beta, BlockView<double> c, Reduce reduce) {
    product(ctx, alpha, a, b, beta, c, reduce);
}

void tsmttsm_twofold(Context& ctx, BlockView<const double> a, BlockView<const double> b,
                     BlockView<double> high, BlockView<double> low, Reduce reduce) {
    twofold_product<operations::tsmttsm_twofold>(ctx, a, b, high, low, reduce, [&](double* sums) {
        return TwofoldTsmttsmArgs{a.rows, a.cols, b.cols, a.data, a.ld, b.data, b.ld, sums};
    });
}

void gram_twofold(Context& ctx, BlockView<const double> x, BlockView<double> high,
                  BlockView<double> low, Reduce reduce) {
    twofold_product<operations::gram_twofold>(ctx, x, x, high, low, reduce, [&](double* sums) {
        return GramTwofoldArgs{x.rows, x.cols, x.data, x.ld, sums};
    });
}

template <class In, class Small, class Out>
void tsmm_mixed(Context& ctx, float alpha, BlockView<const In> x, BlockView<const Small> c,
                float beta, BlockView<Out> y) {
    constexpr UpdateNames names{operations::tsmm_mixed.name, "X", "C", "Y"};
    require_update(ctx, names, x, c, y);
    require_shape(!overlap(x, y), names.operation, "the blocks overlap",
                  [&] { return describe("X", x, "Y", y); });
    if (y.empty()) {
        return;
    }
    const LeafArray<Small> c_array(ctx, c);
    dispatch<operations::tsmm_mixed, In>(ctx, [&](const auto& kernel) {
        kernel(MixedTsmmArgs<In, Small, Out>{y.rows, x.cols, y.cols, alpha, x.data, x.ld,
                                             c_array.data(), c_array.ld(), beta, y.data, y.ld});
    });
}

template <class T>
std::vector<int> column_exponents(Context& ctx, BlockView<const T> x) {
    // Accumulate the squares in double, because those of float may overflow: take the diagonals of
    // a few narrow products.
    constexpr int panel = 8;
    constexpr int head_room = 15;
    std::vector<int> exponents(static_cast<std::size_t>(x.cols));
    for (int first = 0; first < x.cols; first += panel) {
        const int width = std::min(panel, x.cols - first);
        const BlockView<const T> columns = x.columns(first, width);
        SmallMatrix<double> squares(width, width);
        tsmttsm(ctx, 1.0, columns, columns, 0.0, squares.view());
        for (int j = 0; j < width; ++j) {
            const double norm = std::sqrt(squares(j, j));
            if (!std::isfinite(norm)) {
                InputError error("column_exponents: column " + std::to_string(first + j) +
                                 " has the norm " + std::to_string(norm) +
                                 "; only finite columns can be scaled");
                error.set_collective();
                throw error;
            }
            int exponent = 0;
            const double fraction = std::frexp(norm, &exponent);
            // norm = fraction 2^exponent with 1/2 <= fraction < 1.
            const int ceiling = fraction == 0.5 ? exponent - 1 : exponent;
            exponents[static_cast<std::size_t>(first + j)] =
                norm == 0 ? 0 : std::clamp(ceiling - head_room, -126, 126);
        }
    }
    return exponents;
}

template <class T, class Out>
void copy_scaled(Context& ctx, BlockView<const T> x, std::span<const int> exponents,
                 BlockView<Out> y) {
    constexpr const char* operation = "copy_scaled";
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    require_shape(
        x.rows == y.rows && x.cols == y.cols &&
            exponents.size() == static_cast<std::size_t>(x.cols),
        operation,
        "X and Y differ in shape, or the number of exponents differs from the number of columns",
        [&] {
            return describe("X", x, "Y", y) + "; " + std::to_string(exponents.size()) +
                   " exponents";
        });
    require_shape(!overlap(x, y), operation, "X and Y overlap",
                  [&] { return describe("X", x, "Y", y); });
    if (x.empty()) {
        return;
    }
    std::vector<T> factors;
    for (const int exponent : exponents) {
        factors.push_back(std::ldexp(T(1), -exponent));
    }
    const std::vector<T> zeros(factors.size());
    constexpr std::int64_t piece_elements = 1 << 22;
    const std::int64_t piece = std::clamp<std::int64_t>(piece_elements / x.cols, 1, x.rows);
    const Scratch scratch =
        ctx.scratch(memory_kind(ctx.place()),
                    static_cast<std::size_t>(piece) * static_cast<std::size_t>(x.cols) * sizeof(T));
    for (std::int64_t first = 0; first < x.rows; first += piece) {
        const std::int64_t rows = std::min(piece, x.rows - first);
        const BlockView<T> scaled(scratch.as<T>(), rows, x.cols, x.cols, ctx.place());
        axpby<T>(ctx, factors, x.row_range(first, rows), zeros, scaled);
        copy(ctx, scaled, y.row_range(first, rows));
    }
}

template <class T>
void scale_back(BlockView<T> c, std::span<const int> rows, std::span<const int> columns) {
    require_shape(c.place == Place::host || c.empty(), "scale_back", "C is not in host memory",
                  [&] { return describe(c); });
    require_shape((rows.empty() || rows.size() == static_cast<std::size_t>(c.rows)) &&
                      (columns.empty() || columns.size() == static_cast<std::size_t>(c.cols)),
                  "scale_back", "the numbers of exponents differ from the rows and columns of C",
                  [&] {
                      return describe(c) + "; " + std::to_string(rows.size()) + " and " +
                             std::to_string(columns.size()) + " exponents";
                  });
    for (std::int64_t i = 0; i < c.rows; ++i) {
        for (int j = 0; j < c.cols; ++j) {
            c(i, j) = std::ldexp(c(i, j),
                                 (rows.empty() ? 0 : rows[static_cast<std::size_t>(i)]) +
                                     (columns.empty() ? 0 : columns[static_cast<std::size_t>(j)]));
        }
    }
}

#define QUIVER_INSTANTIATE(In, Small, Out)                                                        \
    template void tsmm_mixed(Context&, float, BlockView<const In>, BlockView<const Small>, float, \
                             BlockView<Out>);
QUIVER_FOR_EACH_MIXED_TSMM(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

template std::vector<int> column_exponents(Context&, BlockView<const float>);
template std::vector<int> column_exponents(Context&, BlockView<const double>);
template void copy_scaled(Context&, BlockView<const float>, std::span<const int>,
                          BlockView<half_t>);
template void copy_scaled(Context&, BlockView<const float>, std::span<const int>,
                          BlockView<bfloat16_t>);
template void copy_scaled(Context&, BlockView<const double>, std::span<const int>,
                          BlockView<half_t>);
template void copy_scaled(Context&, BlockView<const double>, std::span<const int>,
                          BlockView<bfloat16_t>);
template void scale_back(BlockView<float>, std::span<const int>, std::span<const int>);
template void scale_back(BlockView<double>, std::span<const int>, std::span<const int>);

}  // namespace quiver

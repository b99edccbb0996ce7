// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/operator.hpp"

#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/dispatch.hpp"

namespace quiver {
namespace {

template <class T>
void check(const Context& ctx, const RowMap& map, const BlockView<const T>& x,
           const BlockView<T>& y, const ApplyOptions<T>& options) {
    constexpr const char* operation = "apply_fused";
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    require_shape(
        x.rows == map.local_rows() && y.rows == x.rows && y.cols == x.cols, operation,
        "X and Y are not (rows of this rank) x (one width)",
        [&] { return std::to_string(map.local_rows()) + " rows; " + describe("X", x, "Y", y); });
    require_shape(!overlap(x, y), operation, "X and Y overlap",
                  [&] { return describe("X", x, "Y", y); });
    const auto width = static_cast<std::size_t>(x.cols);
    const std::size_t shifts = options.shift.size();
    require_shape(
        shifts <= 1 || shifts == width, operation,
        "the number of shifts is neither one nor the number of columns",
        [&] { return std::to_string(shifts) + " shifts, " + std::to_string(width) + " columns"; });
    for (const std::size_t size :
         {options.dot_yy.size(), options.dot_xy.size(), options.dot_xx.size()}) {
        require_shape(
            size == 0 || size == width, operation,
            "the number of dots differs from the number of columns",
            [&] { return std::to_string(size) + " dots, " + std::to_string(width) + " columns"; });
    }
}

/// Y = alpha Y - alpha shift X.
template <class T>
void shift_and_scale(Context& ctx, T alpha, std::span<const T> shift, BlockView<const T> x,
                     BlockView<T> y) {
    if (shift.empty()) {
        if (alpha != T(1)) {
            scale(ctx, alpha, y);
        }
        return;
    }
    const auto width = static_cast<std::size_t>(y.cols);
    const std::vector<T> y_factors(width, alpha);
    std::vector<T> x_factors(width);
    for (std::size_t j = 0; j < width; ++j) {
        x_factors[j] = -multiply(alpha, shift[shift.size() == 1 ? 0 : j]);
    }
    axpby<T>(ctx, std::span<const T>(x_factors), x, std::span<const T>(y_factors), y);
}

}  // namespace

template <class T>
void form_dots(Context& ctx, BlockView<const T> x, BlockView<const T> y,
               const ApplyOptions<T>& options) {
    const auto form = [&](BlockView<const T> left, BlockView<const T> right, std::span<T> to) {
        if (!to.empty()) {
            dots(ctx, left, right, to);
        }
    };
    form(y, y, options.dot_yy);
    form(x, y, options.dot_xy);
    form(x, x, options.dot_xx);
}

template <class T>
void Operator<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                              const ApplyOptions<T>& options) {
    check(ctx, row_map(), x, y, options);
    if (options.alpha == T(0)) {
        scale(ctx, options.beta, y);
    } else if (options.beta == T(0)) {
        apply(ctx, x, y);
        shift_and_scale(ctx, options.alpha, options.shift, x, y);
    } else {
        const std::size_t bytes =
            static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols) * sizeof(T);
        const Scratch scratch = ctx.scratch(memory_kind(ctx.place()), bytes);
        const BlockView<T> product(scratch.as<T>(), y.rows, y.cols, y.cols, ctx.place());
        apply(ctx, x, product);
        shift_and_scale(ctx, T(1), options.shift, x, product);
        axpby(ctx, options.alpha, product, options.beta, y);
    }
    form_dots<T>(ctx, x, y, options);
}

template <class T>
void Operator<T>::prepare(Context&, std::span<const int>, bool) {}

template <class T>
void Operator<T>::audit(Context&) {}

#define QUIVER_INSTANTIATE(T)                                                 \
    template void form_dots(Context&, BlockView<const T>, BlockView<const T>, \
                            const ApplyOptions<T>&);                          \
    template class Operator<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

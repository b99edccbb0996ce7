// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/operator.hpp"

#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/fused_arguments.hpp"

namespace quiver {
namespace {

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
    check_fused(ctx, row_map(), x, y, options);
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

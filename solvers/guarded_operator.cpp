// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/guarded_operator.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {

namespace {

/// Calls product(x, y), through copies without gaps if X or Y is a few columns of a wide block: a
/// product reads the rows of X in irregular order, one cache line each.
template <class T, class Product>
void packed(Context& ctx, BlockView<const T> x, BlockView<T> y, Product&& product) {
    if (x.empty() || (x.ld < 2 * x.cols && y.ld < 2 * y.cols)) {
        product(x, y);
        return;
    }
    const auto size = static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols);
    const Scratch scratch = ctx.scratch(memory_kind(ctx.place()), 2 * size * sizeof(T));
    const BlockView<T> px(scratch.as<T>(), x.rows, x.cols, x.cols, x.place);
    const BlockView<T> py(px.data + size, x.rows, x.cols, x.cols, x.place);
    copy(ctx, x, px);
    product(px, py);
    copy(ctx, BlockView<const T>(py), y);
}

}  // namespace

template <class T>
void GuardedOperator<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    applications_ += y.cols;
    product_.run(ctx, y, [&] {
        packed(ctx, x, y, [&](BlockView<const T> px, BlockView<T> py) { a_.apply(ctx, px, py); });
    });
}

template <class T>
void GuardedOperator<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                     const ApplyOptions<T>& options) {
    // Operators differ in how they sum several dots over the ranks: in one all-reduce or more. A
    // rank on which the product fails could not take part in these, so the dots are computed after
    // the product.
    const bool dots_after =
        !(options.dot_yy.empty() && options.dot_xx.empty()) && ctx.comm().size() > 1;
    ApplyOptions<T> product = options;
    if (dots_after) {
        product.dot_yy = product.dot_xy = product.dot_xx = {};
    }
    bool done = false;
    applications_ += y.cols;
    product_.run(ctx, y, [&] {
        a_.apply_fused(ctx, x, y, product);
        done = true;
    });
    // A rank on which the product failed must still call the all-reduce that the others made inside
    // it.
    if (dots_after || !done) {
        form_dots<T>(ctx, x, y, options);
    }
}

#define QUIVER_INSTANTIATE(T) template class GuardedOperator<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/guarded_operator.hpp"

#include <complex>
#include <limits>
#include <utility>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {

namespace {

/// product(x, y), through copies without gaps where these are a few columns of wide blocks: a
/// product reads the rows of X in no order, a cache line for each.
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
template <class Product>
void GuardedOperator<T>::guard(Context& ctx, BlockView<T> y, Product&& product) {
    applications_ += y.cols;
    try {
        product();
    } catch (const Error& error) {
        if (error.collective()) {
            throw;
        }
        pending_ = std::current_exception();
    } catch (...) {
        pending_ = std::current_exception();
    }
    // NaN is the status word. A rank without rows has no element to put it in; its caller has to
    // end the others.
    if (pending_ && (y.rows == 0 || ctx.comm().size() == 1)) {
        rethrow_pending();
    }
    if (pending_) {
        fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y);
    }
}

template <class T>
void GuardedOperator<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    guard(ctx, y, [&] {
        packed(ctx, x, y, [&](BlockView<const T> px, BlockView<T> py) { a_.apply(ctx, px, py); });
    });
}

template <class T>
void GuardedOperator<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                     const ApplyOptions<T>& options) {
    bool done = false;
    guard(ctx, y, [&] {
        a_.apply_fused(ctx, x, y, options);
        done = true;
    });
    if (!done && !options.dot_xy.empty()) {
        dots(ctx, x, y, options.dot_xy);  // the sum that the other ranks make within the product
    }
}

template <class T>
void GuardedOperator<T>::rethrow_pending() {
    if (pending_) {
        std::rethrow_exception(std::exchange(pending_, nullptr));
    }
}

template class GuardedOperator<float>;
template class GuardedOperator<double>;
template class GuardedOperator<std::complex<float>>;
template class GuardedOperator<std::complex<double>>;

}  // namespace quiver

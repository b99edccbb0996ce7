// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/guarded_operator.hpp"

#include <complex>
#include <limits>
#include <utility>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {

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
    guard(ctx, y, [&] { a_.apply(ctx, x, y); });
}

template <class T>
void GuardedOperator<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                     const ApplyOptions<T>& options) {
    guard(ctx, y, [&] { a_.apply_fused(ctx, x, y, options); });
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

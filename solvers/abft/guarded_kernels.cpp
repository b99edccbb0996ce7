// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/guarded_kernels.hpp"

#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/tsmm_gram.hpp"
#include "solvers/abft/protected_products.hpp"
#include "solvers/abft/protected_updates.hpp"

namespace quiver {
namespace {

AbftOptions results_alone(AbftOptions options) {
    for (int place = 0; place < fault_places; ++place) {
        if (place != static_cast<int>(FaultPlace::output)) {
            options.inject.where[place] = false;
        }
    }
    return options;
}

}  // namespace

template <class T>
void GuardedOperations<T>::tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c,
                                T beta, BlockView<T> y) {
    const ScopedPolicy kernels(ctx, nullptr);
    protected_tsmm<T>(ctx, guard_, alpha, x, c, beta, y);
}

template <class T>
void GuardedOperations<T>::tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c,
                                T beta, BlockView<T> y, BlockView<const T> d) {
    const ScopedPolicy kernels(ctx, nullptr);
    protected_tsmm<T>(ctx, guard_, alpha, x, c, beta, y, d);
}

template <class T>
void GuardedOperations<T>::tsmttsm(Context& ctx, T alpha, BlockView<const T> a,
                                   BlockView<const T> b, T beta, BlockView<T> c, Reduce reduce) {
    const ScopedPolicy kernels(ctx, nullptr);
    protected_tsmttsm<T>(ctx, guard_, alpha, a, b, beta, c, reduce);
}

template <class T>
void GuardedOperations<T>::tsmm_gram(Context& ctx, T alpha, BlockView<const T> v,
                                     BlockView<const T> h, T beta, BlockView<T> w, BlockView<T> g,
                                     Reduce reduce) {
    const ScopedPolicy kernels(ctx, nullptr);
    if (guard_.options.mode == AbftMode::off) {  // the fused kernel, as without protection
        guard_.begin();
        quiver::tsmm_gram(ctx, alpha, v, h, beta, w, g, reduce);
        guard_.strike(ctx, FaultPlace::output, w);
        guard_.begin();  // the second step, as with checks
        guard_.strike(ctx, FaultPlace::output, g);
        return;
    }
    Checksum<T> sums;
    protected_tsmm<T>(ctx, guard_, alpha, v, h, beta, w, {nullptr, nullptr, &sums});
    protected_tsmttsm<T>(ctx, guard_, T(1), w, w, T(0), g, reduce, &sums, &sums);
}

template <class T>
void GuardedOperations<T>::axpby(Context& ctx, T alpha, BlockView<const T> x, T beta,
                                 BlockView<T> y) {
    const ScopedPolicy kernels(ctx, nullptr);
    protected_axpby<T>(ctx, guard_, alpha, x, beta, y);
}

template <class T>
void GuardedOperations<T>::axpby(Context& ctx, std::span<const T> alpha, BlockView<const T> x,
                                 std::span<const T> beta, BlockView<T> y) {
    const ScopedPolicy kernels(ctx, nullptr);
    protected_axpby<T>(ctx, guard_, alpha, x, beta, y);
}

GuardedKernels::GuardedKernels(Context& ctx, AbftOptions options)
    : guard_(results_alone(options)), scoped_(ctx, &policy_) {
    operations_.for_each([this]<class T>(GuardedOperations<T>& of_scalar) {
        policy_.operations.get<T>() = &of_scalar;
    });
}

#define QUIVER_INSTANTIATE(T) template class GuardedOperations<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

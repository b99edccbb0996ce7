// SPDX-License-Identifier: BSD-3-Clause
// GuardedKernels: the products and updates of a solver's blocks under checks, whatever the solver.
#pragma once

#include <complex>

#include "kernels/block_policy.hpp"
#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// tsmm, tsmttsm and axpby of protected_updates.hpp and protected_products.hpp in the place of the
/// kernels' own; tsmm_gram is both, one after the other. Shapes, results and all-reduces as there.
template <class T>
class GuardedOperations final : public BlockOperations<T> {
  public:
    explicit GuardedOperations(OperationGuard& guard) : guard_(guard) {}

    void tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c, T beta,
              BlockView<T> y) override;
    void tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c, T beta,
              BlockView<T> y, BlockView<const T> d) override;
    void tsmttsm(Context& ctx, T alpha, BlockView<const T> a, BlockView<const T> b, T beta,
                 BlockView<T> c, Reduce reduce) override;
    void tsmm_gram(Context& ctx, T alpha, BlockView<const T> v, BlockView<const T> h, T beta,
                   BlockView<T> w, BlockView<T> g, Reduce reduce) override;
    void axpby(Context& ctx, T alpha, BlockView<const T> x, T beta, BlockView<T> y) override;
    void axpby(Context& ctx, std::span<const T> alpha, BlockView<const T> x,
               std::span<const T> beta, BlockView<T> y) override;

  private:
    OperationGuard& guard_;
};

/// While it lives, all such operations of the Context are guarded, in every scalar. Sums of
/// operands are formed at each call: what changes in memory between calls is not seen. With `off`
/// operations run as they are, struck by the injector alone.
class GuardedKernels {
  public:
    /// `options.inject` strikes results (FaultPlace::output) alone.
    GuardedKernels(Context& ctx, AbftOptions options);

    const AbftCounts& counts() const { return guard_.counts; }
    const FaultInjector& injector() const { return guard_.injector; }

  private:
    OperationGuard guard_;
    GuardedOperations<float> s_{guard_};
    GuardedOperations<double> d_{guard_};
    GuardedOperations<std::complex<float>> c_{guard_};
    GuardedOperations<std::complex<double>> z_{guard_};
    BlockPolicy policy_{{&s_, &d_, &c_, &z_}};
    ScopedPolicy scoped_;
};

}  // namespace quiver

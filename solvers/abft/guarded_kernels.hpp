// SPDX-License-Identifier: BSD-3-Clause
// GuardedKernels: checks the block products and block updates of any solver.
#pragma once

#include "kernels/block_policy.hpp"
#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// Replaces the kernels' tsmm, tsmttsm and axpby by the checked versions of protected_updates.hpp
/// and protected_products.hpp; tsmm_gram calls both, one after the other. Shapes, results and
/// all-reduces are those of these functions.
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

/// While this object exists, the calls of tsmm, tsmttsm, tsmm_gram, axpby and scale with this
/// Context are checked, for every scalar. Checksums of operands are formed at each call: changes in
/// memory between calls are not detected. With mode `off` the operations run unchecked, but their
/// results still get injected faults.
class GuardedKernels {
  public:
    /// Of `options.inject` only faults in results (FaultPlace::output) are injected.
    GuardedKernels(Context& ctx, AbftOptions options);

    const AbftCounts& counts() const { return guard_.counts; }
    const FaultInjector& injector() const { return guard_.injector; }

  private:
    OperationGuard guard_;
    PerScalar<GuardedOperations> operations_{guard_};
    BlockPolicy policy_;
    ScopedPolicy scoped_;
};

}  // namespace quiver

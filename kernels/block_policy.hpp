// SPDX-License-Identifier: BSD-3-Clause
// BlockPolicy: who makes products and updates of blocks in the place of the kernels.
//
// The walk of one call: a solver calls tsmm(ctx, ...) as always. Where the Context has a policy
// (ScopedPolicy, for as long as a solve takes), the call goes to its BlockOperations<T>, which
// checks what the kernel makes, and calls the kernel with the policy laid aside.
#pragma once

#include <complex>
#include <span>
#include <tuple>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// The operations of one scalar, with the arguments and the meaning of the functions of the same
/// name in kernels/.
template <class T>
class BlockOperations {
  public:
    virtual void tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c, T beta,
                      BlockView<T> y) = 0;
    virtual void tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c, T beta,
                      BlockView<T> y, BlockView<const T> d) = 0;
    virtual void tsmttsm(Context& ctx, T alpha, BlockView<const T> a, BlockView<const T> b, T beta,
                         BlockView<T> c, Reduce reduce) = 0;
    virtual void tsmm_gram(Context& ctx, T alpha, BlockView<const T> v, BlockView<const T> h,
                           T beta, BlockView<T> w, BlockView<T> g, Reduce reduce) = 0;
    virtual void axpby(Context& ctx, T alpha, BlockView<const T> x, T beta, BlockView<T> y) = 0;
    virtual void axpby(Context& ctx, std::span<const T> alpha, BlockView<const T> x,
                       std::span<const T> beta, BlockView<T> y) = 0;

  protected:
    ~BlockOperations() = default;
};

/// What carries out the operations of each scalar; null: the kernels.
struct BlockPolicy {
    std::tuple<BlockOperations<float>*, BlockOperations<double>*,
               BlockOperations<std::complex<float>>*, BlockOperations<std::complex<double>>*>
        operations;
};

/// Who carries out the operations of a Context on blocks of T; null: the kernels.
template <class T>
BlockOperations<T>* operations_of(const Context& ctx) {
    const BlockPolicy* const policy = ctx.policy();
    return policy == nullptr ? nullptr : std::get<BlockOperations<T>*>(policy->operations);
}

/// Gives a Context another policy, or none, until the end of this object.
class ScopedPolicy {
  public:
    ScopedPolicy(Context& ctx, const BlockPolicy* policy) : ctx_(ctx), before_(ctx.policy()) {
        ctx.set_policy(policy);
    }
    ~ScopedPolicy() { ctx_.set_policy(before_); }
    ScopedPolicy(const ScopedPolicy&) = delete;
    ScopedPolicy& operator=(const ScopedPolicy&) = delete;

  private:
    Context& ctx_;
    const BlockPolicy* before_;
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// BlockPolicy: an optional override of the products and updates of blocks.
//
// Control flow: a solver calls tsmm(ctx, ...) as usual. If the Context has a policy (set by
// ScopedPolicy for the duration of a solve), the call goes to the policy's BlockOperations<T>. That
// object calls the kernel with the policy temporarily removed, and checks the result.
#pragma once

#include <span>

#include "blockvec/context.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// The operations for one scalar type. Each function has the arguments and the meaning of the
/// function of the same name in kernels/.
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

template <class T>
using BlockOperationsPointer = BlockOperations<T>*;

/// The override of each scalar type; null calls the kernels directly.
struct BlockPolicy {
    PerScalar<BlockOperationsPointer> operations;
};

/// The override of a Context for blocks of T; null if the kernels are called directly.
template <class T>
BlockOperations<T>* operations_of(const Context& ctx) {
    const BlockPolicy* const policy = ctx.policy();
    return policy == nullptr ? nullptr : policy->operations.get<T>();
}

/// Sets the policy of a Context, possibly to null, until the end of the scope.
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

// SPDX-License-Identifier: BSD-3-Clause
// dispatch: the only path from a public operation to its leaves, through the policy and the ledger.
// Private to kernels/.
//
// Control flow: tsmttsm(ctx, ...) calls dispatch<operations::tsmttsm, T>. If the Context has a
// policy and the operation has a protected form, the policy gets the arguments. Otherwise the body
// checks the arguments and calls the given KernelOf, which opens the ledger entry and calls the
// leaf. Only dispatch can construct a KernelOf, so that no operation can bypass the policy.
#pragma once

#include "blockvec/context.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/leaves.hpp"
#include "kernels/operation_table.hpp"

namespace quiver {

/// The kernel of one operation; dispatch passes it to the body of the public function.
template <const auto& operation, class T>
class KernelOf {
  public:
    /// Opens the ledger entry and calls the leaf.
    template <class Args>
    void operator()(const Args& args) const {
        const Ledger::Entry entry = enter(cost(args));
        leaf(args);
    }

    /// Opens the ledger entry of a call, for operations that call several leaves.
    [[nodiscard]] Ledger::Entry enter(const Cost& cost) const { return enter(cost, ctx_.place()); }
    [[nodiscard]] Ledger::Entry enter(const Cost& cost, Place place) const {
        return {
            ctx_.ledger(),
            {operation.name, dtype_v<T>, place, cost.rows, cost.m, cost.n, cost.bytes, cost.flops}};
    }
    /// Calls the leaf without a ledger entry; see run_leaf.
    template <class Args, class... Options>
    void leaf(const Args& args, const Options&... device_options) const {
        run_leaf(ctx_, operation.leaf, args, device_options...);
    }

  private:
    explicit KernelOf(Context& ctx) : ctx_(ctx) {}
    template <const auto& other, class U, class Body, class... Given>
    friend void dispatch(Context& ctx, Body&& body, const Given&... given);

    Context& ctx_;
};

/// Passes `given`, the arguments of the public function, to the Context's policy if there is one
/// and the operation has a protected form; otherwise calls body(kernel) with the KernelOf. T is the
/// scalar type of the ledger entry.
template <const auto& operation, class T, class Body, class... Given>
void dispatch(Context& ctx, Body&& body, const Given&... given) {
    static_assert(operations::is_listed(&operation), "operations::all lists every operation");
    if constexpr (operation.is_protected()) {
        if (BlockOperations<T>* const policy = operations_of<T>(ctx)) {
            operation.protection.hand_over(*policy, ctx, given...);
            return;
        }
    }
    body(KernelOf<operation, T>(ctx));
}

}  // namespace quiver

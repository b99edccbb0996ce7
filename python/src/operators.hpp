// SPDX-License-Identifier: BSD-3-Clause
// Operators of any scalar as Python objects, and the interruption of their products by Ctrl-C.
#pragma once

#include <chrono>
#include <span>

#include <nanobind/nanobind.h>

#include "c/shared/any_operator.hpp"
#include "kernels/operator.hpp"
#include "python/src/shared_context.hpp"

namespace quiver::python {

using doors::AnyOperator;

/// Checks for pending signals. If there is one, stores its exception (KeyboardInterrupt) in
/// callback_error() and returns false.
bool check_signals();

/// An operator that checks for signals before its products, at most 20 times a second, so that
/// Ctrl-C also ends solves without a callback. It also ends the solve if a callback raised an
/// exception.
template <class T>
class InterruptibleOperator final : public Operator<T> {
  public:
    explicit InterruptibleOperator(Operator<T>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        look();
        a_.apply(ctx, x, y);
    }
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override {
        look();
        a_.apply_fused(ctx, x, y, options);
    }
    void prepare(Context& ctx, std::span<const int> widths, bool dots) override {
        a_.prepare(ctx, widths, dots);
    }
    void audit(Context& ctx) override { a_.audit(ctx); }
    OperatorFaults faults() const override { return a_.faults(); }

  private:
    void look() {
        if (callback_error()) {
            throw Error(ErrorKind::other, "a callback has raised an exception");
        }
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) {
            return;
        }
        last_ = now;
        if (!check_signals()) {
            throw Error(ErrorKind::other, "a signal has ended the solve");
        }
    }
    Operator<T>& a_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void bind_operators(nb::module_& module);

}  // namespace quiver::python

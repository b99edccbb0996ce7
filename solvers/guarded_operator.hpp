// SPDX-License-Identifier: BSD-3-Clause
// An operator whose failure on some ranks does not leave the other ranks waiting. Private to
// solvers/.
#pragma once

#include <cstdint>

#include "kernels/operator.hpp"
#include "solvers/orth/inner_product.hpp"

namespace quiver {

/// Counts the products of an operator and catches exceptions that only this rank throws. Such an
/// exception fills Y with NaN, and the reductions that follow carry the NaN to all ranks. A solver
/// that finds the NaN calls rethrow_pending(), which throws the exception on this rank, and then
/// throws NumericalError on the others. This costs no additional messages.
template <class T>
class GuardedOperator {
  public:
    explicit GuardedOperator(Operator<T>& a) : a_(a) {}

    const RowMap& row_map() const { return a_.row_map(); }
    void prepare(Context& ctx, std::span<const int> widths, bool dots = false) {
        a_.prepare(ctx, widths, dots);
    }
    /// Y = A X.
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y);
    /// Runs `part`, a part of a product that computes Y by other means than apply(), with the same
    /// handling of errors. A product is counted with its `first` part.
    template <class Part>
    void run_part(Context& ctx, BlockView<T> y, bool first, Part&& part) {
        applications_ += first ? y.cols : 0;
        product_.run(ctx, y, part);
    }
    /// Y = alpha (A - shift) X + beta Y, with the dots that the options request.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options);
    OperatorFaults faults() const { return a_.faults(); }
    /// Throws the exception of a failed product on this rank, if there is one.
    void rethrow_pending() { product_.rethrow(); }
    /// Discards that exception, for a caller that repeats the product on all ranks.
    void forget_pending() { product_.forget(); }
    /// Products so far, counted by column.
    std::int64_t applications() const { return applications_; }

  private:
    Operator<T>& a_;
    GuardedProduct product_;
    std::int64_t applications_ = 0;
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// An operator that may fail on some ranks without hanging the others. Private to solvers/.
#pragma once

#include <cstdint>

#include "kernels/operator.hpp"
#include "solvers/orth/inner_product.hpp"

namespace quiver {

/// Counts products and catches what they throw on this rank only. The product's block is NaN then:
/// the sums that follow carry it to all ranks, which find out (NumericalError) and call
/// rethrow_pending(). No message more than a faultless run has.
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
    /// A part of a product that makes Y by other means than apply(), with the same care. The first
    /// part is counted.
    template <class Part>
    void run_part(Context& ctx, BlockView<T> y, bool first, Part&& part) {
        applications_ += first ? y.cols : 0;
        product_.run(ctx, y, part);
    }
    /// Y = alpha (A - shift) X + beta Y. Without dot_yy, whose sum a rank that fails would miss;
    /// the sum of dot_xy is made up for here, not by the caller.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options);
    /// Throws what a product threw on this rank, if one did.
    void rethrow_pending() { product_.rethrow(); }
    /// Forgets it: all ranks try again.
    void forget_pending() { product_.forget(); }
    /// Products, counted by column.
    std::int64_t applications() const { return applications_; }

  private:
    Operator<T>& a_;
    GuardedProduct product_;
    std::int64_t applications_ = 0;
};

}  // namespace quiver

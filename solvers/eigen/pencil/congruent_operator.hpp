// SPDX-License-Identifier: BSD-3-Clause
// The operator R^H A R for an R of which only products are known. Private to solvers/eigen.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "blockvec/context.hpp"
#include "kernels/operator.hpp"

namespace quiver {

/// Y = R^H A R X. `right` writes R X, `adjoint` writes R^H X; their arguments do not overlap. All
/// arguments must outlive this object. Cost of a product: one with each of R, A and R^H, and
/// scratch memory for one block.
template <class T>
class CongruentOperator final : public Operator<T> {
  public:
    using Factor = std::function<void(Context&, BlockView<const T>, BlockView<T>)>;
    using Prepare = std::function<void(Context&, std::span<const int>)>;

    /// `prepare` prepares the products with R and R^H for blocks of these widths.
    CongruentOperator(Operator<T>& a, Factor right, Factor adjoint, Prepare prepare = {})
        : a_(a),
          right_(std::move(right)),
          adjoint_(std::move(adjoint)),
          prepare_(std::move(prepare)) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const std::size_t elements =
            static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols);
        const Scratch scratch = ctx.scratch(memory_kind(ctx.place()), elements * sizeof(T));
        const BlockView<T> z(scratch.as<T>(), x.rows, x.cols, x.cols, ctx.place());
        right_(ctx, x, y);
        a_.apply(ctx, BlockView<const T>(y), z);
        adjoint_(ctx, BlockView<const T>(z), y);
    }
    void prepare(Context& ctx, std::span<const int> widths, bool dots) override {
        a_.prepare(ctx, widths, dots);
        if (prepare_) {
            prepare_(ctx, widths);
        }
    }
    void audit(Context& ctx) override { a_.audit(ctx); }
    OperatorFaults faults() const override { return a_.faults(); }

  private:
    Operator<T>& a_;
    Factor right_;
    Factor adjoint_;
    Prepare prepare_;
};

}  // namespace quiver

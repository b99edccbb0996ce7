// SPDX-License-Identifier: BSD-3-Clause
// Operators of any scalar as Python objects: sparse matrices, Python functions, preconditioners.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

#include "blockvec/scalar.hpp"
#include "kernels/operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "python/src/shared_context.hpp"

namespace quiver::python {

/// An operator of one of the four scalars, shared by Python objects.
struct AnyOperator {
    Dtype dtype = Dtype::d;
    std::int64_t rows = 0;
    std::shared_ptr<void> matrix;     // SparseMatrix<T>, or null
    std::shared_ptr<void> operation;  // Operator<T>; the same object as `matrix` if that is set
    std::shared_ptr<SharedContext> home;
    std::shared_ptr<void> keep_alive;  // an operator to which this one refers

    template <class T>
    Operator<T>& get() const {
        return *static_cast<Operator<T>*>(operation.get());
    }
    template <class T>
    SparseMatrix<T>* sparse() const {
        return static_cast<SparseMatrix<T>*>(matrix.get());
    }
    template <class T>
    static AnyOperator wrap(std::shared_ptr<SharedContext> home, std::shared_ptr<Operator<T>> op) {
        AnyOperator any;
        any.dtype = dtype_v<T>;
        any.rows = op->row_map().global_rows();
        any.operation = std::shared_ptr<void>(op, static_cast<void*>(op.get()));
        any.home = std::move(home);
        return any;
    }
};

/// Raises the exception of a pending signal (KeyboardInterrupt) in callback_error(). Returns false
/// if there was one.
bool check_signals();

/// An operator that looks for signals before its products, at most 20 times a second, so that
/// Ctrl-C ends solvers without a callback.
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

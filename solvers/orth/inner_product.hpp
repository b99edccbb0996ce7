// SPDX-License-Identifier: BSD-3-Clause
// The inner product in which vectors are orthonormal.
#pragma once

#include <exception>
#include <limits>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operator.hpp"

namespace quiver {

/// <x, y>_B = x^H B y. Cheap to copy; one object per solve.
template <class T>
struct InnerProduct {
    /// Hermitian positive definite; must outlive this object. Null means B = I.
    Operator<T>* b = nullptr;
    /// An estimate of ||B||_2, used only to distinguish rounding noise from a direction.
    real_t<T> norm = 1;
};

/// The inner product of B (null: B = I). ||B||_2 is estimated by `power_steps` steps of the power
/// method with one random column; the estimate is seldom less than a third of the norm.
///
/// Collective. Throws NumericalError on all ranks if B is found not to be positive definite or its
/// product not finite; if B throws on one rank, that rank throws B's exception and the other ranks
/// NumericalError. Cost: power_steps products with one column, each with an all-reduce of two
/// numbers; nothing for B = I.
template <class T>
InnerProduct<T> inner_product(Context& ctx, Operator<T>* b, int power_steps = 5);

/// Runs products whose failure on one rank must not leave the other ranks waiting. The exception is
/// kept and Y is filled with NaN; reductions over Y carry the NaN to all ranks. A caller that finds
/// a NaN must call rethrow() before it throws its own error.
class GuardedProduct {
  public:
    /// Y = B X.
    template <class T>
    void apply(Context& ctx, Operator<T>& b, BlockView<const T> x, BlockView<T> y) {
        run(ctx, y, [&] { b.apply(ctx, x, y); });
    }
    /// Runs product(), which computes Y. Throws immediately if all ranks throw, if there is only
    /// one rank, or if this rank has no row of Y to fill with NaN.
    template <class T, class Product>
    void run(Context& ctx, BlockView<T> y, Product&& product) {
        try {
            product();
        } catch (const Error& error) {
            if (error.collective()) {
                throw;
            }
            pending_ = std::current_exception();
        } catch (...) {
            pending_ = std::current_exception();
        }
        if (pending_ && (y.empty() || ctx.comm().size() == 1)) {
            rethrow();
        }
        if (pending_) {
            fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y);
        }
    }
    /// Throws the kept exception of a product on this rank, if there is one.
    void rethrow() {
        if (pending_) {
            std::rethrow_exception(std::exchange(pending_, nullptr));
        }
    }
    /// Discards the kept exception.
    void forget() { pending_ = nullptr; }

  private:
    std::exception_ptr pending_;
};

}  // namespace quiver

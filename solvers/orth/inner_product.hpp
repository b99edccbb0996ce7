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

/// <x, y>_B = x^H B y. Cheap to copy; made once a solve.
template <class T>
struct InnerProduct {
    /// Hermitian positive definite, outlives the use; none means B = I.
    Operator<T>* b = nullptr;
    /// About ||B||_2: tells rounding noise from a direction, nothing else depends on it.
    real_t<T> norm = 1;
};

/// The inner product of B (nullptr: of I), with ||B||_2 from `power_steps` steps of the power
/// method on one random column, which is seldom less than a third of it.
///
/// Collective. Throws NumericalError on all ranks where B is found not to be positive definite or
/// its product not to be finite; an error that B throws on one rank is thrown there, and a
/// NumericalError on the others. Cost: power_steps products with one column, an all-reduce of two
/// numbers each; nothing for B = I.
template <class T>
InnerProduct<T> inner_product(Context& ctx, Operator<T>* b, int power_steps = 5);

/// Products whose failure on one rank must not leave the others waiting: the exception is kept and
/// Y filled with NaN, which the sums made of Y carry to all ranks. Who finds them not finite calls
/// rethrow() before throwing an error of its own.
class GuardedProduct {
  public:
    /// Y = B X.
    template <class T>
    void apply(Context& ctx, Operator<T>& b, BlockView<const T> x, BlockView<T> y) {
        run(ctx, y, [&] { b.apply(ctx, x, y); });
    }
    /// product(), which makes Y. Throws at once what all ranks throw, and where no other rank waits
    /// or this one has no row to put a NaN in.
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
    /// Throws what a product has thrown on this rank, if one has.
    void rethrow() {
        if (pending_) {
            std::rethrow_exception(std::exchange(pending_, nullptr));
        }
    }
    void forget() { pending_ = nullptr; }

  private:
    std::exception_ptr pending_;
};

}  // namespace quiver

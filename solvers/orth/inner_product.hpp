// SPDX-License-Identifier: BSD-3-Clause
// The inner product in which vectors are orthonormal.
#pragma once

#include <exception>

#include "blockvec/scalar.hpp"
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

/// Y = B X where a failure on one rank must not leave the others waiting: the exception is kept and
/// Y filled with NaN, which the sums made of Y carry to all ranks. Who finds them not finite calls
/// rethrow() before throwing an error of its own.
class GuardedProduct {
  public:
    /// Throws at once where no other rank waits, or where this rank has no row to put a NaN in.
    template <class T>
    void apply(Context& ctx, Operator<T>& b, BlockView<const T> x, BlockView<T> y);
    /// Throws what apply() has kept, if anything.
    void rethrow();

  private:
    std::exception_ptr pending_;
};

}  // namespace quiver

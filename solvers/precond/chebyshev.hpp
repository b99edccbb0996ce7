// SPDX-License-Identifier: BSD-3-Clause
// A polynomial in an operator, close to its inverse on an interval.
#pragma once

#include <cstdint>

#include "kernels/operator.hpp"

namespace quiver {

/// Bounds of the spectrum of a Hermitian operator from Lanczos steps with one random vector.
struct SpectrumEstimate {
    /// The extreme Ritz values.
    double least = 0;
    double largest = 0;
    /// largest and the length of the vector that came last: no eigenvalue is above it, but for
    /// vectors that the start has no part of.
    double bound = 0;
};

/// `steps` products with one column. NumericalError when one is not finite. Source: Zhou and Li, J.
/// Comput. Phys. 230 (2011) 8783.
template <class T>
SpectrumEstimate estimate_spectrum(Context& ctx, Operator<T>& a, int steps = 12,
                                   std::uint64_t seed = 1);

/// Y = p(A) X with p(t) = (1 - q(t)) / t, q(t) = T_d((b + a - 2 t) / (b - a)) / T_d((b + a) / (b -
/// a)): the residual polynomial q is the smallest on [a, b] of all those of degree d with q(0) = 1.
/// p is positive on (0, b]. d - 1 products a call, d - 1 + 2 d passes over the block.
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 12.1.
template <class T>
class ChebyshevPolynomial final : public Operator<T> {
  public:
    /// 0 < lower < upper, degree >= 1, or InputError. `a` must outlive this.
    ChebyshevPolynomial(Operator<T>& a, int degree, double lower, double upper);
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;

  private:
    Operator<T>& a_;
    int degree_;
    double centre_;
    double half_width_;
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// A polynomial of an operator that approximates its inverse on an interval.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/operator.hpp"

namespace quiver {

/// Bounds of the spectrum of a Hermitian operator from Lanczos steps with one random vector.
struct SpectrumEstimate {
    /// The extreme Ritz values.
    double least = 0;
    double largest = 0;
    /// `largest` + the length of the last, unnormalised vector: an upper bound of all eigenvalues
    /// whose eigenvectors have a component in the start vector.
    double bound = 0;

    /// The larger magnitude of the two, an estimate of ||A|| from below.
    double norm() const { return std::max(std::abs(least), std::abs(largest)); }
};

/// Makes at most `steps` products with one column. Collective. Throws NumericalError if a product
/// is not finite. Source: Zhou and Li, J. Comput. Phys. 230 (2011) 8783.
template <class T>
SpectrumEstimate estimate_spectrum(Context& ctx, Operator<T>& a, int steps = 12,
                                   std::uint64_t seed = 1);

/// Y = p(A) X with p(t) = (1 - q(t)) / t and q(t) = T_d((b + a - 2 t) / (b - a)) / T_d((b + a) / (b
/// - a)), where [a, b] = [lower, upper] and d = degree. Of all polynomials of degree d with q(0) =
/// 1, the residual polynomial q is the smallest on [a, b]. p is positive on (0, b]. Cost of a call:
/// d - 1 products and 2 d + 1 updates of a block. Source: Saad, Iterative Methods for Sparse Linear
/// Systems, 2nd ed., algorithm 12.1.
template <class T>
class ChebyshevPolynomial final : public Operator<T> {
  public:
    /// Requires 0 < lower < upper and degree >= 1; throws InputError otherwise. `a` must outlive
    /// this object.
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

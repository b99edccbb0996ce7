// SPDX-License-Identifier: BSD-3-Clause
// A polynomial of A that approximates the inverse of A - sigma: LOBPCG's preconditioner if the
// caller gives none. Private to solvers/eigen.
#pragma once

#include <cmath>
#include <utility>

#include "kernels/column_ops.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {

/// W <- q(A) W with q(lambda) = (1 - c(lambda)) / (lambda - sigma): `degree` steps of the Chebyshev
/// iteration for (A - sigma) Y = W from Y = 0. Here c is the Chebyshev polynomial of that degree
/// with c(sigma) = 1, and |c| is at most 0.18 (for degree 6) between `far`, the other end of the
/// spectrum, and sigma + (1.2 / degree)^2 (far - sigma). q has one sign on the whole spectrum, on
/// both sides of sigma.
///
/// Y and Z: workspace of W's shape. The eigenvalues near sigma that LOBPCG must separate lie
/// degree^2 times further apart in the spectrum of q(A) (A - sigma), so LOBPCG needs about 1 /
/// degree as many iterations. Cost: degree - 1 fused products and as many axpby. Source: Saad,
/// Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 12.1.
template <class T>
void apply_chebyshev_inverse(Context& ctx, GuardedOperator<T>& a, int degree, double sigma,
                             double far, BlockView<T> w, BlockView<T> y, BlockView<T> z) {
    using Real = real_t<T>;
    constexpr double damped = 1.2;
    const double sign = far > sigma ? 1 : -1;  // M = sign (A - sigma)
    const double high = std::abs(far - sigma);
    const double low = high * (damped / degree) * (damped / degree);
    const double centre = (high + low) / 2;
    const double radius = (high - low) / 2;
    double rho = radius / centre;
    axpby(ctx, T(static_cast<Real>(1 / centre)), w, T(0), y);
    for (int step = 1; step < degree; ++step) {
        // Z <- Y + e (Y - Z) + c (W - M Y)
        const double next_rho = 1 / (2 * centre / radius - rho);
        const double c = 2 * next_rho / radius;
        const double e = next_rho * rho;
        const T shift = T(static_cast<Real>(sigma + sign * (1 + e) / c));
        ApplyOptions<T> options;
        options.alpha = T(static_cast<Real>(-sign * c));
        options.beta = T(static_cast<Real>(step == 1 ? 0 : -e));
        options.shift = std::span<const T>(&shift, 1);
        a.apply_fused(ctx, y, z, options);
        if (step + 1 < degree) {
            axpby(ctx, T(static_cast<Real>(c)), w, T(1), z);
            std::swap(y, z);
        } else {
            axpby(ctx, T(1), z, T(static_cast<Real>(c)), w);
        }
        rho = next_rho;
    }
}

}  // namespace quiver

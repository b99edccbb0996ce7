// SPDX-License-Identifier: BSD-3-Clause
// Matrices with known spectra and the checks of their dense solutions.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/eigen/dense_eigen.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {

/// Q diag(values) Q^H with Q a product of three random reflections: its eigenvalues are `values` up
/// to a small multiple of the rounding of double precision.
template <class T>
DenseRows<T> with_spectrum(std::mt19937_64& random, const std::vector<double>& values) {
    using W = std::complex<double>;
    const std::size_t n = values.size();
    std::normal_distribution<double> normal;
    DenseRows<W> a(n, std::vector<W>(n));
    for (std::size_t i = 0; i < n; ++i) {
        a[i][i] = values[i];
    }
    for (int reflection = 0; reflection < 3; ++reflection) {
        std::vector<W> v(n);
        double length = 0;
        for (W& x : v) {
            x = {normal(random), is_complex_v<T> ? normal(random) : 0};
            length += std::norm(x);
        }
        // H A H with H = I - 2 v v^H / v^H v is A - v u^H - u v^H.
        std::vector<W> u(n);
        W inner = 0;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                u[i] += 2 / length * a[i][j] * v[j];
            }
            inner += std::conj(v[i]) * u[i];
        }
        for (std::size_t i = 0; i < n; ++i) {
            u[i] -= inner / length * v[i];
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                a[i][j] -= v[i] * std::conj(u[j]) + u[i] * std::conj(v[j]);
            }
        }
    }
    DenseRows<T> result(n, std::vector<T>(n));
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const std::complex<double> entry = i == j ? W(a[i][j].real()) : a[i][j];
            if constexpr (is_complex_v<T>) {
                result[i][j] = T(entry);
            } else {
                result[i][j] = static_cast<T>(entry.real());
            }
            result[j][i] = conjugate(result[i][j]);
        }
    }
    return result;
}

/// The wanted values of `spectrum` by a different algorithm than the solver's: removes the least
/// wanted value until k are left.
inline std::vector<double> wanted(std::vector<double> spectrum, const EigenOptions& options) {
    if (options.window) {
        std::erase_if(spectrum, [&](double x) {
            return x < options.window->low || x > options.window->high;
        });
        return spectrum;
    }
    while (spectrum.size() > static_cast<std::size_t>(options.k)) {
        const double low = spectrum.front();
        const double high = spectrum.back();
        const double target = options.which == Which::target ? options.target : 0;
        const bool low_is_farther = std::abs(low - target) > std::abs(high - target);
        switch (options.which) {
            case Which::largest:
                spectrum.erase(spectrum.begin());
                break;
            case Which::target:
            case Which::smallest_magnitude:
                spectrum.erase(low_is_farther ? spectrum.begin() : spectrum.end() - 1);
                break;
            case Which::largest_magnitude: {
                const auto least =
                    std::min_element(spectrum.begin(), spectrum.end(),
                                     [](double a, double b) { return std::abs(a) < std::abs(b); });
                spectrum.erase(least);
                break;
            }
            case Which::both_ends: {
                const auto k = static_cast<std::size_t>(options.k);
                spectrum.erase(spectrum.begin() + static_cast<std::ptrdiff_t>(k / 2),
                               spectrum.end() - static_cast<std::ptrdiff_t>(k - k / 2));
                break;
            }
            default:
                spectrum.pop_back();
        }
    }
    return spectrum;
}

template <class T>
class DenseEigenChecks : public ::testing::Test {
  protected:
    /// Checks that the result is converged, verified and has the values `exact` up to rounding.
    /// With `a`, also checks residuals and orthonormality up to rounding.
    void expect(const EigenResult<T>& result, const std::vector<double>& exact, double norm,
                Operator<T>* a = nullptr) {
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        EXPECT_EQ(result.method, Method::dense);
        EXPECT_EQ(result.message, "");
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], rounding(result) * norm) << j;
        }
        if (a != nullptr && !exact.empty()) {
            for (const double residual : fresh_residuals(ctx, *a, result)) {
                EXPECT_LE(residual, rounding(result) * norm);
            }
            EXPECT_LE(orthonormality_defect(ctx, BlockView<const T>(result.vectors.view())),
                      rounding(result));
        }
    }
    /// A bound of the relative backward error of products and reflections with n rows.
    double rounding(const EigenResult<T>& result) const {
        const double n = static_cast<double>(result.vectors.row_map().global_rows());
        return 4 * (8 + std::sqrt(n)) * static_cast<double>(epsilon_v<T>);
    }

    Context ctx = make_context();
    std::mt19937_64 random = make_generator();
};
inline constexpr Which all_ends[] = {
    Which::smallest,           Which::largest,  Which::target, Which::largest_magnitude,
    Which::smallest_magnitude, Which::both_ends};

inline EigenOptions dense(Which which, int k) {
    EigenOptions options;
    options.which = which;
    options.k = k;
    options.method = Method::dense;
    return options;
}

}  // namespace quiver::test

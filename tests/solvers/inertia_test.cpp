// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/inertia.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/sparse/assemble.hpp"
#include "tests/support/problems.hpp"

namespace quiver {
namespace {

template <class T>
CsrRows<T> laplace3d_rows(int n) {
    // All rows on every rank, for any number of ranks.
    return rows_from_callback<T>(
        Comm(), std::int64_t{n} * n * n,
        is_complex_v<T> ? Symmetry::hermitian : Symmetry::symmetric,
        [n](std::int64_t row, RowEntries<T>& entries) {
            const auto at = [&](std::int64_t to, bool inside, double imaginary) {
                if (!inside) {
                    return;
                }
                // Hops along x have the phase i, which a diagonal unitary transformation removes.
                if constexpr (is_complex_v<T>) {
                    entries.add(to,
                                imaginary != 0 ? T(0, static_cast<real_t<T>>(imaginary)) : T(-1));
                } else {
                    entries.add(to, T(-1));
                }
            };
            const std::int64_t x = row % n;
            const std::int64_t y = row / n % n;
            const std::int64_t z = row / n / n;
            entries.add(row, T(6));
            at(row - 1, x > 0, 1);
            at(row + 1, x + 1 < n, -1);
            at(row - n, y > 0, 0);
            at(row + n, y + 1 < n, 0);
            at(row - std::int64_t{n} * n, z > 0, 0);
            at(row + std::int64_t{n} * n, z + 1 < n, 0);
        });
}

template <class T>
class InertiaTest : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(InertiaTest, Scalars);

TYPED_TEST(InertiaTest, CountsEigenvaluesOfALaplacian) {
    const auto rows = laplace3d_rows<TypeParam>(7);
    const auto spectrum = test::laplace3d_spectrum(7, 7, 7);
    for (const double shift : {-1.0, 0.7, 1.03, 3.3, 6.1, 9.77, 13.0}) {
        const Inertia result = inertia(rows, shift);
        EXPECT_TRUE(result.reliable) << shift;
        EXPECT_EQ(result.below, std::count_if(spectrum.begin(), spectrum.end(),
                                              [&](double value) { return value < shift; }))
            << shift;
        EXPECT_EQ(result.below + result.above, 343);
    }
}

/// Close to an eigenvalue a count may be wrong; the error bound tells which counts are right.
TYPED_TEST(InertiaTest, TheErrorTellsWhichCountsAreRight) {
    const auto rows = laplace3d_rows<TypeParam>(5);
    const auto spectrum = test::laplace3d_spectrum(5, 5, 5);
    int right = 0;
    int doubtful = 0;
    for (const double eigenvalue : spectrum) {
        for (double distance = 0.01; distance > 1e-14; distance /= 3) {
            const double shift = eigenvalue + distance;
            double nearest = distance;
            for (const double other : spectrum) {
                nearest = std::min(nearest, std::abs(other - shift));
            }
            const Inertia result = inertia(rows, shift);
            // The closed form of the eigenvalues is rounded, too.
            if (!result.reliable || result.error + 1e-14 >= nearest) {
                ++doubtful;
                continue;
            }
            ++right;
            EXPECT_EQ(result.below, std::count_if(spectrum.begin(), spectrum.end(),
                                                  [&](double value) { return value < shift; }))
                << shift << ", " << distance << " from an eigenvalue, error " << result.error;
        }
    }
    EXPECT_GT(right, 10 * static_cast<int>(spectrum.size()));
    EXPECT_GT(doubtful, 0);
}

TYPED_TEST(InertiaTest, AVanishingPivotIsReported) {
    const auto rows = rows_from_callback<TypeParam>(
        Comm(), 5, Symmetry::symmetric,
        [](std::int64_t row, RowEntries<TypeParam>& entries) { entries.add(row, TypeParam(2)); });
    EXPECT_FALSE(inertia(rows, 2.0).reliable);
    EXPECT_EQ(inertia(rows, 2.5).below, 5);
}

TYPED_TEST(InertiaTest, LargeMatricesAreRefused) {
    const auto rows = rows_from_callback<TypeParam>(
        Comm(), most_inertia_rows + 1, Symmetry::symmetric,
        [](std::int64_t row, RowEntries<TypeParam>& entries) { entries.add(row, TypeParam(2)); });
    EXPECT_THROW(inertia(rows, 0.0), InputError);
}

}  // namespace
}  // namespace quiver

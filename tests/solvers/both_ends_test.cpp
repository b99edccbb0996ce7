// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues of largest and smallest magnitude and from both ends, against sorted known spectra.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// The wanted eigenvalues, ascending, found by sorting all of them.
std::vector<double> wanted(std::vector<double> all, int k, Which which) {
    std::sort(all.begin(), all.end());
    const auto count = static_cast<std::size_t>(k);
    if (which == Which::both_ends) {
        all.erase(all.begin() + k / 2, all.end() - (k - k / 2));
        return all;
    }
    std::sort(all.begin(), all.end(), [&](double a, double b) {
        return which == Which::largest_magnitude ? std::abs(a) > std::abs(b)
                                                 : std::abs(a) < std::abs(b);
    });
    all.resize(count);
    std::sort(all.begin(), all.end());
    return all;
}

template <class T>
class BothEndsTest : public ::testing::Test {
  protected:
    void check(const std::vector<double>& values, int k, Which which,
               Method method = Method::lanczos) {
        SparseMatrix<T> a = test::diagonal<T>(ctx, values);
        EigenOptions options;
        options.k = k;
        options.which = which;
        options.method = method;
        const auto result = eigensolve(ctx, EigenProblem<T>{a}, options);
        double norm = 0;
        for (const double value : values) {
            norm = std::max(norm, std::abs(value));
        }
        test::check_pairs(ctx, a, result, wanted(values, k, which), k, Which::smallest, norm);
    }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BothEndsTest, Scalars);

TYPED_TEST(BothEndsTest, SpectraOfEveryBalance) {
    std::mt19937_64 generator = test::make_generator();
    for (const double shift : {-3.0, -1.5, 0.0, 1.5, 3.0}) {
        std::vector<double> values;
        for (int i = 0; i < 90; ++i) {
            // The wanted values have distinct magnitudes, at least 0.02 apart.
            const double sign = generator() % 2 == 0 ? 1 : -1;
            values.push_back(shift + sign * (0.5 + 0.02 * i));
        }
        for (const Which which : {Which::largest_magnitude, Which::both_ends}) {
            const int k = 1 + static_cast<int>(generator() % 9);
            SCOPED_TRACE("shift " + std::to_string(shift) + ", k " + std::to_string(k) + ", " +
                         to_string(which));
            this->check(values, k, which);
        }
    }
}

TYPED_TEST(BothEndsTest, EveryPairOfASmallMatrix) {
    const std::vector<double> values{-5, 0, 3, 4};
    for (const Which which : {Which::largest_magnitude, Which::both_ends}) {
        for (int k = 1; k <= 4; ++k) {
            SCOPED_TRACE(std::string(to_string(which)) + ", k " + std::to_string(k));
            this->check(values, k, which);
        }
    }
    // One multiple eigenvalue: the vectors of both solves must be orthogonal.
    for (int k = 1; k <= 5; ++k) {
        this->check({2, 2, 2, 2, 2}, k, Which::both_ends);
    }
}

/// The pairs of each end have errors along the vectors of the other end, which a loose tolerance
/// does not remove.
TYPED_TEST(BothEndsTest, LooseTolerancesLeaveNoProductsBetweenTheEnds) {
    using T = TypeParam;
    std::vector<double> values;
    for (int i = 0; i < 400; ++i) {
        values.push_back(1 + 0.01 * i);
    }
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, values);
    SparseMatrix<T> b = test::diagonal<T>(this->ctx, std::vector<double>(400, 4.0));
    for (SparseMatrix<T>* mass : {static_cast<SparseMatrix<T>*>(nullptr), &b}) {
        for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg}) {
            SCOPED_TRACE(to_string(method));
            EigenOptions options;
            options.k = 10;
            options.which = Which::both_ends;
            options.method = method;
            options.tol = 0.02;
            const auto result = eigensolve(this->ctx, EigenProblem<T>{a, mass}, options);
            EXPECT_TRUE(result.converged) << result.message;
            const BlockView<const T> x = result.vectors.view();
            ASSERT_EQ(x.cols, 10);
            SmallMatrix<T> products(10, 10);
            tsmttsm(this->ctx, T(mass == nullptr ? 1 : 4), x, x, T(0), products);
            for (int i = 0; i < 10; ++i) {
                for (int j = 0; j < 10; ++j) {
                    EXPECT_NEAR(std::abs(products(i, j) - T(i == j ? 1 : 0)), 0,
                                2000 * static_cast<double>(epsilon_v<T>))
                        << i << ' ' << j;
                }
            }
            const std::vector<double> fresh = test::fresh_residuals(this->ctx, a, result);
            for (std::size_t j = 0; mass == nullptr && j < fresh.size(); ++j) {
                EXPECT_NEAR(fresh[j], result.residuals[j],
                            1e-3 * fresh[j] + 1000 * static_cast<double>(epsilon_v<T>));
            }
        }
    }
}

/// All values but 0 have the magnitude 1. The solve of the high end finds 0 before any copy of -1;
/// the result must have a copy of -1 in its place.
TYPED_TEST(BothEndsTest, EqualMagnitudesOfBothEnds) {
    using T = TypeParam;
    std::vector<double> values(10, -1);
    values.push_back(0);
    values.push_back(1);
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, values);
    EigenOptions options;
    options.which = Which::largest_magnitude;
    for (const Method method : {Method::lanczos, Method::lobpcg, Method::jacobi_davidson}) {
        for (int k = 2; k <= 9; ++k) {
            options.method = method;
            options.k = k;
            const EigenResult<T> result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
            EXPECT_TRUE(result.converged) << to_string(method) << ": " << result.message;
            ASSERT_EQ(result.eigenvalues.size(), static_cast<std::size_t>(k));
            const double error = result.tolerance + 50 * static_cast<double>(epsilon_v<T>);
            for (const double value : result.eigenvalues) {
                EXPECT_NEAR(std::abs(value), 1, error) << to_string(method) << ", k " << k;
            }
        }
    }
}

/// The second solve works in the complement of the vectors of the first, where the matrix is zero
/// up to rounding.
TYPED_TEST(BothEndsTest, MatricesOfLowRank) {
    using T = TypeParam;
    std::vector<double> values(1100);
    values[8] = 1;
    SparseMatrix<T> one = test::diagonal<T>(this->ctx, values);
    SparseMatrix<T> rank_one =
        test::matrix_from_rows<T>(this->ctx, 14, [](std::int64_t row, auto& entries) {
            for (std::int64_t column = 0; column < 14; ++column) {
                entries.add(column, T(static_cast<real_t<T>>((1 + row) * (1 + column)) / 1015));
            }
        });
    for (SparseMatrix<T>* a : {&one, &rank_one}) {
        for (const Which which : {Which::largest_magnitude, Which::both_ends}) {
            EigenOptions options;
            options.which = which;
            options.k = 5;
            options.method = a == &one ? Method::chebyshev : Method::lanczos;
            const EigenResult<T> result = eigensolve(this->ctx, EigenProblem<T>{*a}, options);
            EXPECT_TRUE(result.converged) << result.message;
            ASSERT_EQ(result.eigenvalues.size(), 5U);
            const double error = result.tolerance + 50 * static_cast<double>(epsilon_v<T>);
            EXPECT_NEAR(result.eigenvalues.back(), 1, error);
            for (std::size_t j = 0; j < 4; ++j) {
                EXPECT_NEAR(result.eigenvalues[j], 0, error);
            }
        }
    }
}

TYPED_TEST(BothEndsTest, SmallestMagnitudeIsInterior) {
    std::vector<double> values(60);
    for (int i = 0; i < 60; ++i) {
        values[i] = (i % 2 == 0 ? 1 : -1) * (0.3 + 0.1 * i);
    }
    this->check(values, 3, Which::smallest_magnitude, Method::jacobi_davidson);
}

TYPED_TEST(BothEndsTest, RefusesWhatTwoSolvesCannotDo) {
    using T = TypeParam;
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, {1, 2, 3, 4, 5});
    EigenOptions options;
    options.k = 6;
    options.which = Which::largest_magnitude;
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{a}, options), InputError);
    options.k = 2;
    options.max_iterations = -1;
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{a}, options), InputError);
}

/// A window ignores `which` and the target, also in the checks of the options.
TYPED_TEST(BothEndsTest, AWindowTakesAnyWhich) {
    using T = TypeParam;
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, {1, 2, 3, 4, 5});
    for (const Method method :
         {Method::automatic, Method::filter, Method::dense, Method::shift_invert}) {
        for (const Which which :
             {Which::smallest, Which::largest, Which::target, Which::largest_magnitude,
              Which::smallest_magnitude, Which::both_ends}) {
            EigenOptions options;
            options.method = method;
            options.which = which;
            options.target = std::numeric_limits<double>::infinity();
            options.k = 100;
            options.window = Window{1.5, 3.5};
            const EigenResult<T> result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
            EXPECT_TRUE(result.converged) << result.message;
            ASSERT_EQ(result.eigenvalues.size(), 2U) << to_string(method) << to_string(which);
            EXPECT_NEAR(result.eigenvalues[0], 2, 1e-5);
            EXPECT_NEAR(result.eigenvalues[1], 3, 1e-5);
        }
    }
}

}  // namespace
}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Bounds of the errors of eigenvalues: the formula without B, and bounds that hold for every method
// with B.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/pencil/reduced_pencil.hpp"
#include "solvers/eigen/pencil/solve_with_errors.hpp"
#include "tests/solvers/chain_eigenvalues.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/solvers/wanted_eigenvalues.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::DenseRows;

/// The error of an eigenvalue is at most its residual r and, at a known distance g from all others,
/// r^2 / (g - r).
TEST(EigenvalueErrors, WithoutBTheyFollowFromResidualsAndDistances) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::diagonal<double>(ctx, {1, 2, 3, 4});
    EigenResult<double> result;
    result.eigenvalues = {1e-7, 1, 2, 2 + 1e-6};
    result.residuals = {1e-6, 1e-6, 1e-6, 1e-6};
    result.norm_estimate = 100;
    result.multiplicity = Multiplicity::verified;
    EigenOptions options;
    options.which = Which::smallest;
    const double rounding = 800 * std::numeric_limits<double>::epsilon();
    const double far = 1e-12 + rounding;
    const double near = 1e-6 + rounding;
    const auto expect = [&](const std::vector<double>& bounds) {
        const auto errors = eigenvalue_errors<double>(ctx, {a}, options, result).bounds;
        ASSERT_EQ(errors.size(), bounds.size());
        for (std::size_t j = 0; j < bounds.size(); ++j) {
            EXPECT_NEAR(errors[j], bounds[j], 2e-6 * bounds[j]) << j;
        }
    };
    // The distance of the last value to the next one is unknown.
    expect({far, far, near, near});
    options.which = Which::largest;
    expect({near, far, near, near});
    // Unknown eigenvalues lie between both ends, so no distance is known.
    options.which = Which::both_ends;
    expect({near, near, near, near});
    options.which = Which::smallest;
    result.multiplicity = Multiplicity::unverified;
    expect({near, near, near, near});
    result.multiplicity = Multiplicity::verified;
    options.window = Window{0, 3};
    expect({near, far, near, near});
}

template <class T>
class EigenvalueErrorsTest : public ::testing::Test {
  protected:
    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(EigenvalueErrorsTest, Scalars);

/// B has a condition number of about 100, without and with other units of the rows, and norms may
/// be far from 1. A loose tolerance leaves errors that the bounds must cover. They are of use:
/// at most a tenth of the largest eigenvalue.
TYPED_TEST(EigenvalueErrorsTest, BoundsHoldForEveryMethodWithB) {
    using T = TypeParam;
    constexpr int n = 60;
    constexpr bool is_single = sizeof(real_t<T>) == sizeof(float);
    for (const int power : is_single ? std::vector<int>{0} : std::vector<int>{0, 200}) {
        auto rows = test::random_matrix<T>(this->random, n, 2, true);
        auto masses = test::random_matrix<T>(this->random, n, 1, true);
        const auto exact =
            test::oracle::eigenvalues(test::as_oracle(rows), test::as_oracle(masses));
        const std::vector<double> spectrum(exact.begin(), exact.end());
        for (const bool has_units : {false, true}) {
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t j = 0; j < n; ++j) {
                    const int units = has_units ? static_cast<int>(i % 7 + j % 7) - 6 : 0;
                    rows[i][j] *= std::ldexp(real_t<T>(1), units + (has_units ? 0 : power));
                    masses[i][j] *= std::ldexp(real_t<T>(1), units - (has_units ? 0 : power));
                }
            }
            SparseMatrix<T> a = test::stored(this->ctx, rows);
            SparseMatrix<T> b = test::stored(this->ctx, masses);
            for (const Method method :
                 {Method::dense, Method::shift_invert, Method::lanczos, Method::chebyshev,
                  Method::lobpcg, Method::jacobi_davidson}) {
                if (reduces_pencil(method) && this->ctx.comm().size() > 1) {
                    continue;  // several ranks reduce by a diagonal B only
                }
                EigenOptions options;
                options.which = Which::smallest;
                options.k = 4;
                options.method = method;
                options.tol = 1e-5;
                const auto result = eigensolve(this->ctx, EigenProblem<T>{a, &b}, options);
                SCOPED_TRACE(std::string(to_string(method)) + (has_units ? ", units" : "") + " 2^" +
                             std::to_string(power));
                ASSERT_TRUE(result.converged) << result.message;
                ASSERT_EQ(result.errors.size(), 4U);
                for (std::size_t j = 0; j < 4; ++j) {
                    const double value = std::ldexp(result.eigenvalues[j], -2 * power);
                    const double error = std::ldexp(result.errors[j], -2 * power);
                    const double rounding =
                        32 * std::numeric_limits<double>::epsilon() * spectrum.back();
                    EXPECT_LE(std::abs(value - spectrum[j]), error + rounding) << j;
                    EXPECT_LE(error, 0.1 * std::abs(spectrum.back())) << j;
                }
            }
        }
    }
}

/// Stiff supports make tol ||A|| larger than all wanted eigenvalues, which have many copies.
/// Methods then return some eigenvalues in place of others; the bounds must say so.
TYPED_TEST(EigenvalueErrorsTest, BoundsHoldInAClusterThatIsCut) {
    using T = TypeParam;
    if constexpr (sizeof(real_t<T>) == sizeof(double)) {
        constexpr int part = 8;
        constexpr int copies = 30;
        constexpr int n = part * copies;
        std::uniform_real_distribution<double> stiffness(0.5, 2);
        DenseRows<T> one(part, std::vector<T>(part));
        DenseRows<T> one_b(part, std::vector<T>(part));
        double before = stiffness(this->random);
        for (std::size_t i = 0; i < part; ++i) {
            const double after = stiffness(this->random);
            one[i][i] = T(before + after + (i == 3 ? 1e11 : 0));
            one_b[i][i] = T(stiffness(this->random));
            if (i + 1 < part) {
                one[i][i + 1] = one[i + 1][i] = T(-after);
            }
            before = after;
        }
        // An oracle in double precision would have errors of 1e-5.
        std::vector<double> diagonal;
        std::vector<double> right;
        std::vector<double> weights;
        for (std::size_t i = 0; i < part; ++i) {
            diagonal.push_back(std::real(one[i][i]));
            right.push_back(i + 1 < part ? -std::real(one[i][i + 1]) : 0);
            weights.push_back(std::real(one_b[i][i]));
        }
        const auto exact = test::chain_eigenvalues(diagonal, right, weights, part);
        DenseRows<T> rows(n, std::vector<T>(n));
        DenseRows<T> masses(n, std::vector<T>(n));
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t block = i / part * part;
            for (std::size_t j = block; j < block + part; ++j) {
                rows[i][j] = one[i - block][j - block];
                masses[i][j] = one_b[i - block][j - block];
            }
        }
        SparseMatrix<T> a = test::stored(this->ctx, rows);
        SparseMatrix<T> b = test::stored(this->ctx, masses);
        int verified = 0;
        for (const Method method :
             {Method::shift_invert, Method::lanczos, Method::lobpcg, Method::automatic}) {
            for (const double tol : {1e-14, 1e-8}) {
                if (method == Method::lobpcg && tol < 1e-8) {
                    continue;  // many steps at the level of rounding errors
                }
                EigenOptions options;
                options.which = Which::smallest;
                options.k = 2 * copies - 7;
                options.method = method;
                options.tol = tol;
                const auto result = eigensolve(this->ctx, EigenProblem<T>{a, &b}, options);
                SCOPED_TRACE(std::string(to_string(method)) + " " + std::to_string(tol));
                for (std::size_t j = 0; result.converged && j < result.errors.size(); ++j) {
                    const auto value = static_cast<double>(exact[j / copies]);
                    EXPECT_LE(std::abs(result.eigenvalues[j] - value),
                              result.errors[j] + 1e-12 * value)
                        << j;
                }
                verified += result.converged ? 1 : 0;
            }
        }
        EXPECT_GE(verified, 4);
    }
}

/// 0 has more copies than are wanted, and eigenvalues near it differ by less than shift-invert
/// tells apart: it may return these in place of 0, but the bounds must say so.
TEST(EigenvalueErrors, BoundsHoldAroundATargetInACluster) {
    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
    for (int trial = 0; trial < 8; ++trial) {
        std::vector<double> values;
        for (int i = 0; i < 1500; ++i) {
            const int sign = std::uniform_int_distribution<int>(-1, 1)(random);
            const int exponent = std::uniform_int_distribution<int>(-20, 20)(random);
            values.push_back(sign * std::ldexp(1.0, exponent));
        }
        SparseMatrix<double> a = test::diagonal<double>(ctx, values);
        const auto nearer = [](double x, double y) { return std::abs(x) < std::abs(y); };
        std::sort(values.begin(), values.end(), nearer);
        for (const int k : {7, 30}) {
            EigenOptions options;
            options.which = Which::target;
            options.method = Method::shift_invert;
            options.k = k;
            options.tol = 1e-8;
            const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
            ASSERT_TRUE(result.converged) << result.message;
            std::vector<double> found = result.eigenvalues;
            std::sort(found.begin(), found.end(), nearer);
            const double bound = *std::max_element(result.errors.begin(), result.errors.end());
            for (std::size_t j = 0; j < found.size(); ++j) {
                EXPECT_LE(std::abs(found[j]) - std::abs(values[j]), bound) << trial << " " << j;
            }
        }
    }
}

/// The sum of `pairs` random permutations and their inverses: the largest eigenvalue is 2 pairs,
/// and its vector is constant, whose squares a long sum adds with errors of one sign.
TYPED_TEST(EigenvalueErrorsTest, LongColumnsCostNoDigits) {
    using T = TypeParam;
    constexpr int n = 3000;
    constexpr int pairs = 8;
    std::vector<std::vector<std::int64_t>> neighbours(n);
    std::vector<std::int64_t> next(n);
    for (int pair = 0; pair < pairs; ++pair) {
        std::iota(next.begin(), next.end(), 0);
        std::shuffle(next.begin(), next.end(), this->random);
        for (int i = 0; i < n; ++i) {
            const auto to = next[static_cast<std::size_t>(i)];
            neighbours[static_cast<std::size_t>(i)].push_back(to);
            neighbours[static_cast<std::size_t>(to)].push_back(i);
        }
    }
    SparseMatrix<T> a =
        test::matrix_from_rows<T>(this->ctx, n, [&](std::int64_t row, RowEntries<T>& entries) {
            for (const std::int64_t column : neighbours[static_cast<std::size_t>(row)]) {
                entries.add(column, T(1));
            }
        });
    for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg}) {
        EigenOptions options;
        options.which = Which::largest;
        options.k = 1;
        options.method = method;
        options.tol = sizeof(real_t<T>) == sizeof(float) ? 1e-5 : 1e-8;
        const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
        SCOPED_TRACE(to_string(method));
        ASSERT_TRUE(result.converged) << result.message;
        EXPECT_NEAR(result.eigenvalues[0], 2 * pairs,
                    16 * pairs * static_cast<double>(epsilon_v<T>));
    }
}

/// All eigenvalues of A = 0 are 0, and so are the norms to which residuals are relative.
TYPED_TEST(EigenvalueErrorsTest, BoundsOfAZeroMatrixAreFinite) {
    using T = TypeParam;
    constexpr int n = 60;
    auto masses = test::random_matrix<T>(this->random, n, 1, true);
    SparseMatrix<T> a = test::stored(this->ctx, DenseRows<T>(n, std::vector<T>(n)));
    for (const bool has_units : {false, true}) {
        for (std::size_t i = 0; has_units && i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                masses[i][j] *= std::ldexp(real_t<T>(1), static_cast<int>(i % 21 + j % 21) - 20);
            }
        }
        SparseMatrix<T> b = test::stored(this->ctx, masses);
        for (const bool has_b : {false, true}) {
            for (const Method method :
                 {Method::automatic, Method::dense, Method::shift_invert, Method::lanczos,
                  Method::chebyshev, Method::lobpcg, Method::jacobi_davidson}) {
                if (has_b && reduces_pencil(method) && this->ctx.comm().size() > 1) {
                    continue;  // several ranks reduce by a diagonal B only
                }
                EigenOptions options;
                options.which =
                    method == Method::shift_invert ? Which::smallest_magnitude : Which::smallest;
                options.k = 3;
                options.method = method;
                const auto result =
                    eigensolve(this->ctx, EigenProblem<T>{a, has_b ? &b : nullptr}, options);
                SCOPED_TRACE(std::string(to_string(method)) + (has_b ? ", B" : "") +
                             (has_units ? ", units" : ""));
                ASSERT_TRUE(result.converged) << result.message;
                ASSERT_EQ(result.errors.size(), 3U);
                for (std::size_t j = 0; j < 3; ++j) {
                    EXPECT_LE(result.errors[j], 1e-12);
                    EXPECT_LE(std::abs(result.eigenvalues[j]), result.errors[j]);
                }
            }
        }
    }
}

/// With a tolerance of 1e-8 ||A|| = 1000 the first Ritz values pass, though all eigenvalues but
/// one are below 4.
TYPED_TEST(EigenvalueErrorsTest, AutomaticGoesOnIfNoDigitIsCertain) {
    using T = TypeParam;
    if constexpr (sizeof(real_t<T>) == sizeof(double)) {
        constexpr int n = 1500;
        const std::int64_t support =
            std::uniform_int_distribution<std::int64_t>(0, n - 1)(this->random);
        SparseMatrix<T> a = test::matrix_from_rows<T>(
            this->ctx, n, [support](std::int64_t row, RowEntries<T>& entries) {
                entries.add(row, T(row == support ? 1e11 : 2));
                for (const std::int64_t column : {row - 1, row + 1}) {
                    if (column >= 0 && column < n) {
                        entries.add(column, T(-1));
                    }
                }
            });
        EigenOptions options;
        options.which = Which::smallest;
        options.k = 1;
        options.tol = 1e-8;
        const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
        ASSERT_TRUE(result.converged) << result.message;
        // The support divides the chain in two.
        const auto longer = static_cast<double>(std::max(support, n - 1 - support) + 1);
        const double exact = 2 - 2 * std::cos(std::numbers::pi / longer);
        EXPECT_LE(std::abs(result.eigenvalues[0] - exact), result.errors[0]);
        EXPECT_LE(result.errors[0], 0.01);
        EXPECT_NE(result.method, Method::chebyshev) << result.method_reason;
    }
}

}  // namespace
}  // namespace quiver

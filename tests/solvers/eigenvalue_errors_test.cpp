// SPDX-License-Identifier: BSD-3-Clause
// Bounds of the errors of eigenvalues: the formula without B, and bounds that hold for every method
// with B.
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/pencil/reduced_pencil.hpp"
#include "solvers/eigen/pencil/unit_residuals.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/solvers/wanted_eigenvalues.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

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
        const auto errors = eigenvalue_errors<double>(ctx, {a}, options, result);
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
    constexpr bool is_single = sizeof(real_t<T>) == sizeof(float);
    constexpr int n = 60;
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

}  // namespace
}  // namespace quiver

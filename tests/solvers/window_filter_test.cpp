// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/window_filter.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/eigen/chebyshev/filter_step.hpp"
#include "solvers/eigen/chebyshev/window_series.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class WindowFilterTest : public ::testing::Test {
  protected:
    /// Checks that all eigenvalues of `spectrum` in a window are found. Its ends must lie in gaps.
    EigenResult<T> check(Operator<T>& a, const std::vector<double>& spectrum, double low,
                         double high) {
        EigenOptions options;
        options.window = Window{low, high};
        options.method = Method::filter;
        EigenResult<T> result = eigensolve(ctx, EigenProblem<T>{a}, options);
        EXPECT_EQ(result.method, Method::filter);
        std::vector<double> inside;
        for (const double value : spectrum) {
            if (value >= low && value <= high) {
                inside.push_back(value);
            }
        }
        std::sort(inside.begin(), inside.end());
        EXPECT_EQ(result.eigenvalues.size(), inside.size());
        if (result.eigenvalues.size() == inside.size() && !inside.empty()) {
            const double norm =
                std::max(std::abs(*std::min_element(spectrum.begin(), spectrum.end())),
                         std::abs(*std::max_element(spectrum.begin(), spectrum.end())));
            test::check_pairs(ctx, a, result, inside, static_cast<int>(inside.size()),
                              Which::smallest, norm);
        }
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        return result;
    }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(WindowFilterTest, Scalars);

/// The middle of the first gap above `value` in the sorted `spectrum` that is at least `least`
/// wide; `value` if there is none.
double gap_near(const std::vector<double>& spectrum, double value, double least) {
    for (std::size_t i = 0; i + 1 < spectrum.size(); ++i) {
        if (spectrum[i] >= value && spectrum[i + 1] - spectrum[i] >= least) {
            return (spectrum[i] + spectrum[i + 1]) / 2;
        }
    }
    return value;
}

TYPED_TEST(WindowFilterTest, InsideOfASpectrumEveryCopy) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 9, 9, 8);
    const auto spectrum = test::laplace3d_spectrum(9, 9, 8);
    const double low = gap_near(spectrum, 2.2, 1e-3);
    const double middle = gap_near(spectrum, 2.4, 1e-3);
    const double high = gap_near(spectrum, 2.6, 1e-3);
    const auto whole = this->check(a, spectrum, low, high);
    // The eigenvalues of two disjoint halves are those of the whole window.
    const auto left = this->check(a, spectrum, low, middle);
    const auto right = this->check(a, spectrum, middle, high);
    EXPECT_EQ(left.eigenvalues.size() + right.eigenvalues.size(), whole.eigenvalues.size());
    EXPECT_GT(left.eigenvalues.size(), 0u);
    // The estimate has a statistical error and an error of the smooth ends of the filter.
    const auto count = static_cast<double>(whole.eigenvalues.size());
    EXPECT_NEAR(whole.expected_count, count, 5 * whole.expected_error + 0.5 * count);
}

TYPED_TEST(WindowFilterTest, AnEndOfTheSpectrumAndNothingAtAll) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 9, 8, 7);
    const auto spectrum = test::laplace3d_spectrum(9, 8, 7);
    this->check(a, spectrum, -1, gap_near(spectrum, 0.9, 1e-3));
    this->check(a, spectrum, 12.5, 13);
    // A gap in the middle.
    std::vector<double> values;
    values.reserve(300);
    for (int i = 0; i < 300; ++i) {
        values.push_back(i % 2 == 0 ? 1 + 0.001 * i : -1 - 0.001 * i);
    }
    auto gapped = test::diagonal<TypeParam>(this->ctx, values);
    this->check(gapped, values, -0.5, 0.5);
}

TYPED_TEST(WindowFilterTest, ManyCopiesInAWindow) {
    std::vector<double> values(37, 0.5);
    for (int i = 0; i < 600; ++i) {
        values.push_back(i < 300 ? -2 + 0.006 * i : 1 + 0.006 * i);
    }
    auto a = test::diagonal<TypeParam>(this->ctx, values);
    this->check(a, values, 0.4, 0.6);
    auto few = test::diagonal<TypeParam>(this->ctx, {1, 2, 2, 3});
    this->check(few, {1, 2, 2, 3}, 1.5, 2.5);
    auto zero = test::diagonal<TypeParam>(this->ctx, std::vector<double>(20, 0.0));
    this->check(zero, std::vector<double>(20, 0.0), -1, 1);
}

/// Every copy of an eigenvalue at an end of the window is inside, by every method, and an
/// eigenvalue farther outside than rounding is not, also if the tolerance is much larger than its
/// distance.
TYPED_TEST(WindowFilterTest, EigenvaluesAtAnEnd) {
    using T = TypeParam;
    const double eps = static_cast<double>(epsilon_v<T>);
    const double beside = 1000 * eps;
    std::vector<double> values = {0.5, 0.5, 0.5, 0.55, 0.6, 0.6, 0.5 - beside, 0.6 + beside};
    for (int i = 0; i < 300; ++i) {
        values.push_back(i < 150 ? -2 + 0.015 * i : 1 + 0.005 * i);
    }
    auto a = test::diagonal<T>(this->ctx, values);
    for (const Method method : {Method::filter, Method::dense, Method::shift_invert}) {
        EigenOptions options;
        options.window = Window{0.5, 0.6};
        options.method = method;
        options.tol = 1e-4;
        const EigenResult<T> result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
        SCOPED_TRACE(to_string(method));
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), 6U);
        const double exact[] = {0.5, 0.5, 0.5, 0.55, 0.6, 0.6};
        for (std::size_t j = 0; j < 6; ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], 100 * eps);
        }
        EXPECT_EQ(result.vectors.width(), 6);
    }
}

/// Large multiplets at both ends, and windows of width 0, with the least tolerance.
TYPED_TEST(WindowFilterTest, EveryCopyAtAnEndWithTheLeastTolerance) {
    using T = TypeParam;
    constexpr int rows = 210;
    constexpr int levels = 7;
    std::vector<double> values(rows);
    for (int i = 0; i < rows; ++i) {
        values[static_cast<std::size_t>(i)] = 0.3 + i % levels;
    }
    auto a = test::diagonal<T>(this->ctx, values);
    auto same = test::diagonal<T>(this->ctx, std::vector<double>(rows, -3));
    const auto count = [&](Operator<T>& matrix, double low, double high) {
        EigenOptions options;
        options.window = Window{low, high};
        options.method = Method::filter;
        options.tol = epsilon_v<T>;
        const EigenResult<T> result = eigensolve(this->ctx, EigenProblem<T>{matrix}, options);
        EXPECT_TRUE(result.converged) << result.message;
        for (const double value : result.eigenvalues) {
            EXPECT_NEAR(std::clamp(value, low, high), value, 4000 * epsilon_v<T>);
        }
        return std::ssize(result.eigenvalues);
    };
    EXPECT_EQ(count(a, 2.3, 4.3), rows / levels * 3);
    EXPECT_EQ(count(a, 2.3, 2.3), rows / levels);
    EXPECT_EQ(count(a, 0.3, 6.3), rows);
    EXPECT_EQ(count(same, -3, -3), rows);
    EXPECT_EQ(count(same, -2, -1), 0);
}

TYPED_TEST(WindowFilterTest, InvalidInputIsAnInputError) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 9, 8, 7);
    EigenOptions options;
    options.method = Method::filter;
    EXPECT_THROW(window_filter(this->ctx, EigenProblem<TypeParam>{a}, options), InputError);
    options.window = Window{2, 1};
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<TypeParam>{a}, options), InputError);
    options.window = Window{1, 9};
    options.max_basis = 20;
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<TypeParam>{a}, options), InputError);
    options.method = Method::lanczos;
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<TypeParam>{a}, options), InputError);
}

/// Waits in its products, as slow as those of a large matrix, and counts them.
class Slow final : public Operator<double> {
  public:
    explicit Slow(Operator<double>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const double> x, BlockView<double> y) override {
        if (++products > fast_products) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        a_.apply(ctx, x, y);
    }

    std::int64_t products = 0;
    std::int64_t fast_products = 0;

  private:
    Operator<double>& a_;
};

/// A narrow window takes 1000 products for the density of states, and more for the panels of the
/// filter: the callback is called during both.
TEST(WindowFilter, ACallbackEndsTheDensityAndTheFilter) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 600, 1, 1);
    for (const std::string last : {"density", "search"}) {
        Slow slow(a);
        slow.fast_products = last == "density" ? 0 : 1030;
        EigenOptions options;
        options.method = Method::filter;
        options.window = Window{5.5, 5.500001};
        bool stopped = false;
        options.keep_going = [&](const IterationEvent& event) {
            EXPECT_EQ(event.wanted, 0);
            stopped = stopped || event.stage == last;
            return !stopped;
        };
        const auto result = eigensolve(ctx, EigenProblem<double>{slow}, options);
        EXPECT_TRUE(result.interrupted);
        EXPECT_FALSE(result.converged);
        EXPECT_TRUE(stopped);
        EXPECT_NE(result.message.find("interrupted after "), std::string::npos) << result.message;
        // 24 products find the bounds.
        EXPECT_LT(slow.products, last == "density" ? 200 : 1300);
    }
}

TEST(WindowSeries, IsAStepThatStaysBetweenZeroAndOne) {
    const ChebyshevInterval spectrum{-3, 7, 0};
    const int degree = 300;
    const auto series = window_series(spectrum, 1, 2, degree);
    const double step = 3.2 * spectrum.half_width() / degree;
    for (int i = 0; i <= 1000; ++i) {
        const double at = -3 + 0.01 * i;
        const double value = series_at(series, spectrum, at);
        EXPECT_GE(value, -1e-12) << at;
        EXPECT_LE(value, 1 + 1e-12) << at;
        if (at > 1 + 3 * step && at < 2 - 3 * step) {
            EXPECT_GE(value, 0.99) << at;
        }
        if (at < 1 - 4 * step || at > 2 + 4 * step) {
            EXPECT_LE(value, 0.01) << at;
        }
    }
}

/// The filter is compared with its definition at the degree of the design; a tenth fewer terms
/// leave more than the ripple.
TEST(FilterSeries, FallsToTheRippleOverAStep) {
    const ChebyshevInterval spectrum{-3, 7, 0};
    for (const double ripple : {1e-4, 1e-7}) {
        for (const auto& [low, high, step] :
             {std::array{1.0, 2.0, 0.1}, std::array{-1.0, -0.9, 0.03}, std::array{6.9, 8.0, 0.2}}) {
            const WindowDesign design{step, ripple};
            const auto series = filter_series(spectrum, low, high, design);
            EXPECT_EQ(series.size(), static_cast<std::size_t>(design.degree() + 1));
            WindowDesign shorter = design;
            shorter.step = step / 0.8;
            const auto less = filter_series(spectrum, low, high, shorter);
            double outside = 0;
            double outside_less = 0;
            for (int i = 0; i <= 4000; ++i) {
                const double angle = std::numbers::pi * i / 4000;
                const double at = spectrum.at_angle(angle);
                const double beyond =
                    std::max(spectrum.angle(high) - angle, angle - spectrum.angle(low));
                const double value = series_at(series, spectrum, at);
                EXPECT_GE(value, -2 * ripple) << at;
                EXPECT_LE(value, 1 + 2 * ripple) << at;
                if (beyond >= step) {
                    outside = std::max(outside, std::abs(value));
                    outside_less = std::max(outside_less, std::abs(series_at(less, spectrum, at)));
                } else if (beyond <= 0) {
                    EXPECT_GE(value, 0.49) << at;
                }
            }
            EXPECT_LE(outside, 2 * ripple);
            EXPECT_GE(outside_less, 4 * ripple);
        }
    }
}

/// The eigenvalues of a path have the same distance in the angle, as the prediction assumes.
TEST(FilterStep, PredictsTheProductsOfASolve) {
    Context ctx = test::make_context();
    constexpr int n = 3000;
    SparseMatrix<double> a = test::laplace3d<double>(ctx, n, 1, 1);
    const ChebyshevInterval spectrum{4, 8, 0};
    EigenOptions options;
    for (const int inside : {5, 60}) {
        // Angles halfway between those of two eigenvalues.
        const double from = (n / 3 + 0.5) * std::numbers::pi / (n + 1);
        const double to = from + inside * std::numbers::pi / (n + 1);
        options.window = Window{spectrum.at_angle(to), spectrum.at_angle(from)};
        const EigenResult<double> result = window_filter(ctx, EigenProblem<double>{a}, options);
        ASSERT_EQ(result.eigenvalues.size(), static_cast<std::size_t>(inside));
        const double predicted = filter_products(options.tol, inside, to - from);
        const auto products = static_cast<double>(result.operator_applications);
        EXPECT_LE(predicted, 1.3 * products);
        EXPECT_GE(predicted, 0.3 * products);
    }
}

}  // namespace
}  // namespace quiver

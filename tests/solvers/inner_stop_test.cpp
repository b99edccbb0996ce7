// SPDX-License-Identifier: BSD-3-Clause
// The stopping rule of the inner solvers of Jacobi-Davidson, against vectors.
#include "solvers/eigen/jacobi_davidson/inner_stop.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/random.hpp"

namespace quiver {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& x, const Vector& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}
Vector sum(double a, const Vector& x, double b, const Vector& y) {
    Vector result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        result[i] = a * x[i] + b * y[i];
    }
    return result;
}
Vector random_vector(std::int64_t seed) {
    Vector result(12);
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = uniform(7, static_cast<std::int64_t>(i), seed) - 0.5;
    }
    return result;
}
/// A = diag(1, 2, ...).
Vector times_a(const Vector& x) {
    Vector result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        result[i] = static_cast<double>(i + 1) * x[i];
    }
    return result;
}

/// A correction equation of A x = lambda beta x with any t, and the scalars of its inner solver.
struct Equation {
    InnerStop::Column column;
    LinearStep step;
    double linear = 0;
    double eigen = 0;

    Equation(double beta, double shift, double size_of_t, double sign) {
        Vector x = random_vector(1);
        x = sum(1 / std::sqrt(beta * dot(x, x)), x, 0, x);
        const double theta = dot(x, times_a(x));
        const Vector r = sum(1, times_a(x), -theta * beta, x);
        Vector t = random_vector(2);
        t = sum(size_of_t, t, -size_of_t * beta * dot(x, t), x);
        Vector at = sum(1, times_a(t), -shift * beta, t);
        at = sum(1, at, -beta * dot(x, at), x);
        const Vector g = sum(1, r, -1, at);
        const Vector u = sum(1, x, -1, t);
        const double lambda = dot(u, times_a(u)) / (beta * dot(u, u));
        const Vector left = sum(1, times_a(u), -lambda * beta, u);
        eigen = std::sqrt(dot(left, left) / dot(u, u));
        linear = std::sqrt(dot(g, g) / dot(x, x));
        column.theta = theta;
        column.shift = shift;
        column.xx = dot(x, x);
        step = {0, std::sqrt(dot(g, g)), sign * dot(r, t), sign * dot(t, g), dot(t, t)};
    }
};

TEST(InnerStop, EstimatesTheResidualOfTheCorrectedPair) {
    for (const double beta : {1.0, 4.0, 0.3}) {
        for (const double sign : {1.0, -1.0}) {
            for (const double size : {0.0, 0.01, 0.7, 5.0}) {
                const Equation equation(beta, 3.2 / beta, size, sign);
                const auto estimate = InnerStop::estimate(equation.column, equation.step, sign);
                EXPECT_NEAR(estimate.linear, equation.linear, 1e-12 * equation.linear);
                EXPECT_NEAR(estimate.eigen, equation.eigen, 1e-12 * equation.eigen);
            }
        }
    }
}

/// Steps of a linear residual and, by bx, of an eigenvalue residual: t is a unit vector, so that
/// omega = 2, and the eigenvalue residual tends to |lambda - sigma|.
LinearStep step_of(double residual, double lambda) {
    return {0, residual, -2 * lambda, 0, 1};
}

TEST(InnerStop, StopsWhenTheEigenvalueResidualNoLongerFalls) {
    InnerStop stop({{.wanted = 1e-9}}, 1, 3);
    EXPECT_FALSE(stop(step_of(1, 1e-3)));
    EXPECT_FALSE(stop(step_of(0.1, 1e-3)));
    EXPECT_FALSE(stop(step_of(0.01, 1e-3)));
    EXPECT_FALSE(stop(step_of(0.001, 1e-3)));
    EXPECT_TRUE(stop(step_of(0.0001, 1e-3)));
}

TEST(InnerStop, DoesNotStopInTheFirstSteps) {
    InnerStop stop({{.wanted = 1e-9}}, 1, 3);
    EXPECT_FALSE(stop(step_of(1e-6, 1e-3)));
    EXPECT_FALSE(stop(step_of(1e-7, 1e-3)));
    EXPECT_FALSE(stop(step_of(1e-8, 1e-3)));
    EXPECT_TRUE(stop(step_of(1e-8, 1e-3)));
}

TEST(InnerStop, StopsAtTheWantedResidual) {
    InnerStop stop({{.wanted = 1e-3}, {.wanted = 1e-6}}, 1, 1);
    EXPECT_FALSE(stop(step_of(0.1, 0)));
    EXPECT_TRUE(stop(step_of(1e-5, 0)));
    LinearStep other = step_of(0.1, 0);
    other.column = 1;
    EXPECT_FALSE(stop(other));
    other.residual = 1e-5;
    EXPECT_FALSE(stop(other));
}

}  // namespace
}  // namespace quiver

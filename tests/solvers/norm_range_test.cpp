// SPDX-License-Identifier: BSD-3-Clause
// Matrices whose norm has a square that overflows or underflows, with more rows than
// Method::automatic gives to a dense solve: every method finds the values of spectrum(), scaled.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/precond/preconditioner.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

constexpr int blocks = 600;
constexpr double coupling = 0.25;
/// B is this number times mass_size times the identity.
constexpr double mass = 4;

/// The centre of block i: four far below the others, four far above, two in a gap.
double centre(int i) {
    return i < 4 ? -3.0 - i : i < 8 ? 12.0 + i : i < 10 ? i - 6.0 : 5 + 0.004 * i;
}

/// Ascending.
std::vector<double> spectrum() {
    std::vector<double> values;
    for (int i = 0; i < blocks; ++i) {
        values.push_back(centre(i) - coupling);
        values.push_back(centre(i) + coupling);
    }
    std::sort(values.begin(), values.end());
    return values;
}

/// Blocks [m c; conj c m] with the eigenvalues m - |c| and m + |c|.
template <class T>
SparseMatrix<T> matrix(Context& ctx, double size) {
    const auto real = [=](double value) { return T(static_cast<real_t<T>>(size * value)); };
    T offdiagonal = real(coupling);
    if constexpr (is_complex_v<T>) {
        offdiagonal *= T(real_t<T>(0.6), real_t<T>(0.8));
    }
    return test::matrix_from_rows<T>(ctx, 2 * blocks, [=](std::int64_t row, RowEntries<T>& e) {
        e.add(row, real(centre(static_cast<int>(row / 2))));
        e.add(row ^ 1, row % 2 == 0 ? offdiagonal : conjugate(offdiagonal));
    });
}

template <class T>
class NoStates final : public Checkpoint<T> {
  public:
    bool due() override { return false; }
    void save(Context& /*ctx*/, const SolverState<T>& /*state*/) override {}
};

template <class T>
class NormRangeTest : public ::testing::Test {
  protected:
    static constexpr bool is_double = sizeof(real_t<T>) == sizeof(double);
    Context ctx = test::make_context();
    /// Only one size on several ranks, where reductions take most of the time.
    const std::vector<double> sizes =
        ctx.comm().size() > 1
            ? std::vector<double>{is_double ? 1e160 : 1e25}
            : std::vector<double>{is_double ? 1e-160 : 1e-25, is_double ? 1e160 : 1e25};

    static EigenOptions options(Method method, Which which, int k, double target = 0) {
        EigenOptions options;
        options.method = method;
        options.which = which;
        options.k = k;
        options.target = target;
        options.tol = 1e-9;
        return options;
    }

    /// Checks the eigenvalues, `exact` times the unit, and the lengths of their vectors.
    void expect(const EigenProblem<T>& problem, const EigenOptions& options,
                const std::vector<double>& exact, double size, double mass_size = 0) {
        SCOPED_TRACE(std::string(to_string(options.method)) + ", " + to_string(options.which) +
                     ", norm " + std::to_string(std::log10(size)));
        const EigenResult<T> result = eigensolve(ctx, problem, options);
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        const double unit = mass_size > 0 ? size / (mass * mass_size) : size;
        const double norm = 20;  // of the unscaled matrix, rounded up
        const double allowed =
            4 * (result.tolerance + 20 * static_cast<double>(epsilon_v<T>)) * norm;
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j] / unit, exact[j], allowed) << j;
            EXPECT_LE(result.residuals[j], result.tolerance * result.norm_estimate);
        }
        EXPECT_GE(result.norm_estimate / size, 5);
        EXPECT_LE(result.norm_estimate / size, 3 * norm);
        const BlockView<const T> x = result.vectors.view();
        std::vector<real_t<T>> lengths(exact.size());
        norms(ctx, x, std::span<real_t<T>>(lengths));
        const double length = mass_size > 0 ? 1 / std::sqrt(mass * mass_size) : 1;
        for (const real_t<T> one : lengths) {
            EXPECT_NEAR(static_cast<double>(one) / length, 1,
                        1e3 * static_cast<double>(epsilon_v<T>));
        }
    }
};
using NormScalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(NormRangeTest, NormScalars);

TYPED_TEST(NormRangeTest, EveryMethodSolves) {
    using T = TypeParam;
    const std::vector<double> all = spectrum();
    const std::vector<double> low(all.begin(), all.begin() + 5);
    const std::vector<double> high(all.end() - 5, all.end());
    const std::vector<double> inner = {1.75, 2.25, 2.75};
    std::vector<double> both(all.begin(), all.begin() + 2);
    both.insert(both.end(), all.end() - 2, all.end());
    for (const double size : this->sizes) {
        SparseMatrix<T> a = matrix<T>(this->ctx, size);
        const EigenProblem<T> problem{a};
        for (const Method method :
             {Method::automatic, Method::lanczos, Method::chebyshev, Method::lobpcg,
              Method::jacobi_davidson, Method::shift_invert}) {
            this->expect(problem, this->options(method, Which::smallest, 5), low, size);
            this->expect(problem, this->options(method, Which::largest, 5), high, size);
        }
        this->expect(problem, this->options(Method::lanczos, Which::both_ends, 4), both, size);
        this->expect(problem, this->options(Method::lanczos, Which::largest_magnitude, 5), high,
                     size);
        for (const Method method :
             {Method::automatic, Method::jacobi_davidson, Method::shift_invert}) {
            this->expect(problem, this->options(method, Which::target, 3, 2.1 * size), inner, size);
        }
        EigenOptions window = this->options(Method::filter, Which::smallest, 1);
        window.window = Window{1.5 * size, 3 * size};
        this->expect(problem, window, inner, size);
    }
}

TYPED_TEST(NormRangeTest, PencilsAndPreconditioners) {
    using T = TypeParam;
    const std::vector<double> all = spectrum();
    const std::vector<double> low(all.begin(), all.begin() + 5);
    const std::vector<double> inner = {1.75, 2.25, 2.75};
    for (const double size : this->sizes) {
        const double mass_size = std::sqrt(size);
        SparseMatrix<T> a = matrix<T>(this->ctx, size);
        SparseMatrix<T> b =
            test::diagonal<T>(this->ctx, std::vector<double>(2 * blocks, mass * mass_size));
        EigenProblem<T> problem{a};
        problem.b = &b;
        for (const Method method : {Method::lobpcg, Method::jacobi_davidson}) {
            this->expect(problem, this->options(method, Which::smallest, 5), low, size, mass_size);
        }
        PreconditionerOptions ldlt = parse_preconditioner("ldlt");
        ldlt.shift = 2.1 * size / (mass * mass_size);
        ldlt.absolute = false;
        const auto inverse = make_preconditioner(this->ctx, a, ldlt, &b);
        problem.inverse = inverse.get();
        this->expect(problem, this->options(Method::jacobi_davidson, Which::target, 3, *ldlt.shift),
                     inner, size, mass_size);
        problem.inverse = nullptr;
        ldlt.shift = -8 * size / (mass * mass_size);
        ldlt.absolute = true;
        const auto positive = make_preconditioner(this->ctx, a, ldlt, &b);
        problem.preconditioner = positive.get();
        this->expect(problem, this->options(Method::lobpcg, Which::smallest, 5), low, size,
                     mass_size);
    }
}

TYPED_TEST(NormRangeTest, WhatCannotBeScaledIsRefused) {
    using T = TypeParam;
    const double huge = this->sizes.back();
    SparseMatrix<T> a = matrix<T>(this->ctx, huge);
    test::Unstored<T> unstored(a);
    const auto word = [&](const EigenProblem<T>& problem) {
        try {
            eigensolve(this->ctx, problem, this->options(Method::lanczos, Which::smallest, 2));
        } catch (const Error& error) {
            EXPECT_TRUE(error.collective());
            return std::string(error.what());
        }
        return std::string("no error");
    };
    const std::string text = word(EigenProblem<T>{unstored});
    EXPECT_NE(text.find("without stored entries is not scaled"), std::string::npos) << text;
    NoStates<T> states;
    EigenProblem<T> saved{a};
    saved.checkpoint = &states;
    EXPECT_NE(word(saved).find("omit the checkpoint, or scale the matrix"), std::string::npos)
        << word(saved);
}

}  // namespace
}  // namespace quiver

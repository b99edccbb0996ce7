// SPDX-License-Identifier: BSD-3-Clause
// Pencils whose unknowns have units that differ by up to 30 decades: shift-invert, the dense solver
// and the automatic choice find the eigenvalues of the pencil without units, all verified.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/pencil/unit_balance.hpp"
#include "tests/solvers/chain_eigenvalues.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/solvers/wanted_eigenvalues.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::chain_eigenvalues;
using test::DenseRows;

template <class T>
class GradedPencilTest : public ::testing::Test {
  protected:
    static constexpr double eps = static_cast<double>(epsilon_v<T>);
    /// Decades of units whose squares, times entries, are normal numbers of T.
    static constexpr int decades = sizeof(real_t<T>) == sizeof(float) ? 14 : 30;

    struct Pencil {
        DenseRows<T> a;
        DenseRows<T> b;
        std::vector<double> spectrum;
    };

    /// Random A and B; a positive definite A if `positive`.
    Pencil random_pencil(int n, bool positive) {
        Pencil pencil{test::random_matrix<T>(random, n, 2, positive),
                      test::random_matrix<T>(random, n, 1, true),
                      {}};
        const auto values =
            test::oracle::eigenvalues(test::as_oracle(pencil.a), test::as_oracle(pencil.b));
        pencil.spectrum.assign(values.begin(), values.end());
        return pencil;
    }
    /// The pencil in units of powers of two, with which products do not round.
    Pencil in_units(Pencil pencil, const std::vector<int>& exponents) {
        const auto apply = [&](DenseRows<T>& m) {
            for (std::size_t i = 0; i < m.size(); ++i) {
                for (std::size_t j = 0; j < m.size(); ++j) {
                    m[i][j] *= std::ldexp(real_t<T>(1), exponents[i] + exponents[j]);
                }
            }
        };
        apply(pencil.a);
        apply(pencil.b);
        return pencil;
    }
    /// A tridiagonal A with the entries -right[i] beside the diagonal, and a diagonal B; no
    /// spectrum.
    Pencil chain(const std::vector<double>& diagonal, const std::vector<double>& right,
                 const std::vector<double>& masses) {
        const std::size_t n = diagonal.size();
        Pencil pencil{DenseRows<T>(n, std::vector<T>(n)), DenseRows<T>(n, std::vector<T>(n)), {}};
        for (std::size_t i = 0; i < n; ++i) {
            pencil.a[i][i] = T(static_cast<real_t<T>>(diagonal[i]));
            pencil.b[i][i] = T(static_cast<real_t<T>>(masses[i]));
            if (i + 1 < n) {
                pencil.a[i][i + 1] = pencil.a[i + 1][i] = T(static_cast<real_t<T>>(-right[i]));
            }
        }
        return pencil;
    }
    std::vector<int> graded_units(int n) {
        std::vector<int> exponents;
        exponents.reserve(static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) {
            exponents.push_back(static_cast<int>(decades * 3.32 * (i / (n - 1.0) - 0.5)));
        }
        return exponents;
    }
    std::vector<int> mixed_units(int n) {
        std::vector<int> exponents = graded_units(n);
        std::shuffle(exponents.begin(), exponents.end(), random);
        return exponents;
    }

    /// `relative`: the values are compared relative to their own size, else to the largest one.
    void expect(const Pencil& pencil, EigenOptions options, bool relative = false) {
        SparseMatrix<T> a = test::stored(ctx, pencil.a);
        SparseMatrix<T> b = test::stored(ctx, pencil.b);
        EigenProblem<T> problem{a, &b};
        const std::vector<double> exact = test::wanted(pencil.spectrum, options);
        const auto n = static_cast<double>(pencil.a.size());
        const double largest =
            std::max(std::abs(pencil.spectrum.front()), std::abs(pencil.spectrum.back()));
        const auto result = eigensolve(ctx, problem, options);
        SCOPED_TRACE(std::string(to_string(options.method)) + " " + to_string(options.which));
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        EXPECT_FALSE(result.cluster_cut);
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            const double size = relative ? std::abs(exact[j]) : largest;
            EXPECT_NEAR(result.eigenvalues[j], exact[j], 100 * std::sqrt(n) * eps * size) << j;
        }
        expect_error_bounds(result, exact, largest, relative);
        // Residuals in rows: relative to the terms of each row, so that no unit hides a row.
        const int count = result.vectors.width();
        SmallMatrix<T> x(static_cast<int>(n), count);
        const RowMap& map = result.vectors.row_map();
        copy(ctx, std::as_const(result.vectors).view(),
             x.view().row_range(map.first_row(), map.local_rows()));
        ctx.comm().sum(
            std::span<T>(x.data(), static_cast<std::size_t>(n) * static_cast<std::size_t>(count)));
        for (int c = 0; c < count; ++c) {
            expect_pair(pencil, x, c, result.eigenvalues[static_cast<std::size_t>(c)],
                        result.tolerance);
        }
        expect_orthonormal(pencil, x);
    }
    /// The bounds hold up to rounding errors of the exact values; they leave four digits if the
    /// errors are relative to the values.
    void expect_error_bounds(const EigenResult<T>& result, const std::vector<double>& exact,
                             double largest, bool relative) {
        const auto n = static_cast<double>(result.vectors.row_map().global_rows());
        ASSERT_EQ(result.errors.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            const double size = std::abs(exact[j]);
            const double rounding = 100 * std::sqrt(n) * eps * (relative ? size : largest);
            EXPECT_LE(std::abs(result.eigenvalues[j] - exact[j]), result.errors[j] + rounding) << j;
            // Squares of units in single precision do not reach far enough for all sizes.
            if (relative && sizeof(real_t<T>) == sizeof(double)) {
                EXPECT_LE(result.errors[j], 1e-4 * size) << j;
            }
        }
    }
    /// X^H B X = I up to rounding relative to (sum b_ii |x_i|^2)^(1/2) of both vectors, which do
    /// not depend on the units.
    void expect_orthonormal(const Pencil& pencil, const SmallMatrix<T>& x) {
        using Wide = std::complex<double>;
        const std::size_t n = pencil.b.size();
        const auto at = [&](std::size_t i, int c) { return Wide(x(static_cast<int>(i), c)); };
        std::vector<double> length(static_cast<std::size_t>(x.cols()));
        for (int c = 0; c < x.cols(); ++c) {
            double& sum = length[static_cast<std::size_t>(c)];
            for (std::size_t i = 0; i < n; ++i) {
                sum += std::abs(Wide(pencil.b[i][i])) * std::norm(at(i, c));
            }
            sum = std::sqrt(sum);
            for (int d = 0; d <= c; ++d) {
                Wide product = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    for (std::size_t j = 0; j < n; ++j) {
                        product += std::conj(at(i, c)) * Wide(pencil.b[i][j]) * at(j, d);
                    }
                }
                EXPECT_LE(std::abs(product - Wide(c == d ? 1 : 0)),
                          100 * std::sqrt(static_cast<double>(n)) * eps * sum *
                              length[static_cast<std::size_t>(d)])
                    << "pairs " << d << " and " << c;
            }
        }
    }
    /// r_i / s_i with s_i^2 = the sum of |a_ii| and |lambda| b_ii, relative to max s_i |x_i|.
    void expect_pair(const Pencil& pencil, const SmallMatrix<T>& x, int c, double value,
                     double tolerance) {
        double residual = 0;
        double length = 0;
        for (std::size_t i = 0; i < pencil.a.size(); ++i) {
            std::complex<double> sum = 0;
            for (std::size_t j = 0; j < pencil.a.size(); ++j) {
                using Wide = std::complex<double>;
                sum += (Wide(pencil.a[i][j]) - value * Wide(pencil.b[i][j])) *
                       Wide(x(static_cast<int>(j), c));
            }
            const double unit =
                std::sqrt(std::abs(std::complex<double>(pencil.a[i][i])) +
                          std::abs(value) * std::abs(std::complex<double>(pencil.b[i][i])));
            residual = std::max(residual, std::abs(sum) / unit);
            length =
                std::max(length, unit * std::abs(std::complex<double>(x(static_cast<int>(i), c))));
        }
        EXPECT_LE(residual, 16 * (tolerance + eps) * length) << "pair " << c;
    }

    EigenOptions wanted(Method method, Which which, int k, double target = 0) {
        EigenOptions options;
        options.method = method;
        options.which = which;
        options.k = k;
        options.target = target;
        return options;
    }
    EigenOptions window(Method method, const std::vector<double>& spectrum, std::size_t first,
                        std::size_t last) {
        EigenOptions options = wanted(method, Which::smallest, 1);
        options.window = Window{(spectrum[first - 1] + spectrum[first]) / 2,
                                (spectrum[last - 1] + spectrum[last]) / 2};
        return options;
    }
    void expect_all(const Pencil& pencil, Method method, bool relative = false) {
        for (const Which which : {Which::smallest, Which::largest, Which::both_ends,
                                  Which::smallest_magnitude, Which::largest_magnitude}) {
            expect(pencil, wanted(method, which, 5), relative);
        }
        const std::size_t middle = pencil.spectrum.size() / 2;
        const double target = 0.7 * pencil.spectrum[middle] + 0.3 * pencil.spectrum[middle + 1];
        expect(pencil, wanted(method, Which::target, 4, target), relative);
        expect(pencil, window(method, pencil.spectrum, middle - 3, middle + 6), relative);
    }

    /// Blocks of two rows: a random pencil of two rows times 2^-e, where the unit of its second row
    /// is another power of two. The eigenvalues have the sizes 2^e of the blocks, and are known
    /// with all digits.
    Pencil blocks_over_decades() {
        constexpr int n = 80;
        Pencil pencil{DenseRows<T>(n, std::vector<T>(n)), DenseRows<T>(n, std::vector<T>(n)), {}};
        std::uniform_real_distribution<double> uniform(0.1, 1);
        for (int i = 0; i < n; i += 2) {
            const auto at = static_cast<std::size_t>(i);
            const double size = std::ldexp(1.0, (i * 7 % n) / 2 - n / 4);
            const auto a = static_cast<real_t<T>>(uniform(random));
            const auto b = static_cast<real_t<T>>(uniform(random));
            const auto mass = std::ldexp(real_t<T>(1), (i * 11 % 40) - 20);
            // [1 a; a 4] and [2 0; 0 b]: 2 b l^2 - (b + 8) l + 4 - a^2 = 0
            const double p = (b + 8) / (4 * static_cast<double>(b));
            const double q = (4 - static_cast<double>(a) * a) / (2 * static_cast<double>(b));
            const double root = p + std::sqrt(p * p - q);
            pencil.spectrum.push_back(size * root);
            pencil.spectrum.push_back(size * q / root);
            const auto times = [&](double value) {
                return T(static_cast<real_t<T>>(size * mass * value));
            };
            pencil.a[at][at] = times(1);
            pencil.a[at][at + 1] = pencil.a[at + 1][at] = times(a);
            pencil.a[at + 1][at + 1] = times(4);
            pencil.b[at][at] = T(2 * mass);
            pencil.b[at + 1][at + 1] = T(b * mass);
        }
        std::sort(pencil.spectrum.begin(), pencil.spectrum.end());
        return pencil;
    }

    /// A B of units between 2^-10 and 2^10, and A in the same units.
    Pencil with_masses_of_units(DenseRows<T> a) {
        std::uniform_int_distribution<int> unit(-10, 10);
        DenseRows<T> b(a.size(), std::vector<T>(a.size()));
        std::vector<int> exponents;
        for (std::size_t i = 0; i < a.size(); ++i) {
            b[i][i] = T(1);
            exponents.push_back(unit(random));
        }
        return in_units({std::move(a), std::move(b), {}}, exponents);
    }
    /// The solve is verified, and the values are right to 1e-10 of `size`.
    void expect_values(const Pencil& pencil, const EigenOptions& options,
                       const std::vector<double>& exact, double size) {
        SparseMatrix<T> a = test::stored(ctx, pencil.a);
        SparseMatrix<T> b = test::stored(ctx, pencil.b);
        const auto result = eigensolve(ctx, EigenProblem<T>{a, &b}, options);
        SCOPED_TRACE(std::string(to_string(options.method)) + " " + to_string(options.which));
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], std::max(1e-10, 100 * eps) * size) << j;
            EXPECT_LE(result.errors[j], std::max(1e-4, 1e4 * eps) * size) << j;
        }
    }

    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(GradedPencilTest, Scalars);

TYPED_TEST(GradedPencilTest, UnitsOverManyDecades) {
    constexpr int n = 90;
    for (const bool positive : {true, false}) {
        const auto pencil = this->random_pencil(n, positive);
        for (const Method method : {Method::shift_invert, Method::dense, Method::automatic}) {
            if (method == Method::automatic && test::is_host_repetition()) {
                continue;  // one of the other two
            }
            this->expect_all(this->in_units(pencil, this->graded_units(n)), method);
            this->expect_all(this->in_units(pencil, this->mixed_units(n)), method);
        }
    }
}

TYPED_TEST(GradedPencilTest, EigenvaluesOverManyDecades) {
    const auto pencil = this->blocks_over_decades();
    for (const Method method : {Method::shift_invert, Method::dense, Method::automatic}) {
        this->expect(pencil, this->wanted(method, Which::smallest, 5), true);
        this->expect(pencil, this->wanted(method, Which::smallest_magnitude, 5), true);
        this->expect(pencil, this->wanted(method, Which::largest, 5), true);
        for (const std::size_t at : {20u, 40u, 60u}) {
            const double target = 0.7 * pencil.spectrum[at] + 0.3 * pencil.spectrum[at + 1];
            this->expect(pencil, this->wanted(method, Which::target, 3, target), true);
            this->expect(pencil, this->window(method, pencil.spectrum, at, at + 5), true);
        }
    }
}

/// A method that works in the units of the problem finds residuals below tol ||A|| without a
/// correct digit. What it returns as converged must be right.
TYPED_TEST(GradedPencilTest, PairsAreJudgedInBalancedUnits) {
    const auto pencil = this->blocks_over_decades();
    SparseMatrix<TypeParam> a = test::stored(this->ctx, pencil.a);
    SparseMatrix<TypeParam> b = test::stored(this->ctx, pencil.b);
    for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg}) {
        // Of 60 largest values the smallest are 10^-8 of the largest.
        for (const int k : {5, 60}) {
            EigenOptions options = this->wanted(method, Which::largest, k);
            options.tol = 1e-5;
            const std::vector<double> exact = test::wanted(pencil.spectrum, options);
            const auto result = eigensolve(this->ctx, EigenProblem<TypeParam>{a, &b}, options);
            SCOPED_TRACE(std::string(to_string(method)) + " " + std::to_string(k));
            EXPECT_TRUE(result.converged || k > 5) << result.message;
            for (std::size_t j = 0; result.converged && j < result.errors.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], exact[j], 0.1 * exact[j]) << j;
            }
        }
    }
}

/// An iteration that works in the units of the problem finds residuals below tol ||A|| without a
/// correct digit.
TYPED_TEST(GradedPencilTest, JacobiDavidsonInUnitsOverManyDecades) {
    constexpr int n = 60;
    const auto pencil = this->random_pencil(n, true);
    const auto in_units = this->in_units(pencil, this->mixed_units(n));
    const auto& spectrum = pencil.spectrum;
    const double target = 0.7 * spectrum[n / 2] + 0.3 * spectrum[n / 2 + 1];
    for (const EigenOptions& options :
         {this->wanted(Method::jacobi_davidson, Which::smallest, 4),
          this->wanted(Method::jacobi_davidson, Which::largest, 4),
          this->wanted(Method::jacobi_davidson, Which::target, 3, target)}) {
        this->expect(in_units, options);
    }
}

/// A chain of springs with five stiff supports, masses over 12 decades and units over 8: the
/// largest eigenvalues are 10^20 times the smallest, so that solves without a shift lose these.
TYPED_TEST(GradedPencilTest, StiffSupportsAndMassesOverManyDecades) {
    using T = TypeParam;
    if constexpr (sizeof(real_t<T>) == 8) {
        constexpr int n = 120;
        const auto uniform = [&](double low, double high) {
            return std::uniform_real_distribution<double>(low, high)(this->random);
        };
        const auto integer = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(this->random);
        };
        std::vector<double> diagonal;
        std::vector<double> right;
        std::vector<double> masses;
        std::vector<int> units;
        for (int i = 0; i < n; ++i) {
            right.push_back(uniform(0.5, 2));
            diagonal.push_back(right.back() + (i > 0 ? right[right.size() - 2] : 1));
            masses.push_back(std::pow(10, uniform(-12, 0)));
            units.push_back(integer(-13, 13));
        }
        for (int i = 0; i < 5; ++i) {
            diagonal[static_cast<std::size_t>(integer(0, n - 1))] += 1e10;
        }
        auto pencil = this->in_units(this->chain(diagonal, right, masses), units);
        pencil.spectrum = chain_eigenvalues(diagonal, right, masses, n);
        for (const Method method : {Method::dense, Method::automatic, Method::shift_invert}) {
            this->expect(pencil, this->wanted(method, Which::smallest, 6), true);
            this->expect(pencil, this->window(method, pencil.spectrum, 3, 12), true);
            const double target = 0.6 * pencil.spectrum[7] + 0.4 * pencil.spectrum[8];
            this->expect(pencil, this->wanted(method, Which::target, 4, target), true);
        }
    }
}

/// Supports of 2^33 beside springs of about 1, in units over six decades: the largest wanted
/// eigenvalues are 10^12 times the smallest, which need units and shifts of their own.
TYPED_TEST(GradedPencilTest, BothEndsOfStiffSupports) {
    using T = TypeParam;
    if constexpr (sizeof(real_t<T>) == 8) {
        constexpr int n = 100;
        const std::vector<double> right(n, 1.0);
        const std::vector<double> masses(n, 1.0);
        std::vector<double> diagonal(n, 2.0);
        std::vector<int> units;
        for (std::size_t i = 0; i < n; ++i) {
            diagonal[i] += std::bernoulli_distribution(0.1)(this->random) ? 0x1p33 : 0;
            units.push_back(std::uniform_int_distribution<int>(-10, 10)(this->random));
        }
        diagonal[n / 2] += 0x1p33;
        auto pencil = this->in_units(this->chain(diagonal, right, masses), units);
        pencil.spectrum = chain_eigenvalues(diagonal, right, masses, n);
        SparseMatrix<T> a = test::stored(this->ctx, pencil.a);
        SparseMatrix<T> b = test::stored(this->ctx, pencil.b);
        for (const EigenOptions& options :
             {this->wanted(Method::dense, Which::both_ends, 10),
              this->wanted(Method::dense, Which::largest_magnitude, n / 2),
              this->wanted(Method::automatic, Which::both_ends, 10)}) {
            SCOPED_TRACE(std::string(to_string(options.method)) + " " + to_string(options.which));
            const std::vector<double> exact = test::wanted(pencil.spectrum, options);
            const auto result = eigensolve(this->ctx, EigenProblem<T>{a, &b}, options);
            ASSERT_TRUE(result.converged) << result.message;
            EXPECT_EQ(result.multiplicity, Multiplicity::verified);
            ASSERT_EQ(result.eigenvalues.size(), exact.size());
            for (std::size_t j = 0; j < exact.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e-9 * exact[j]) << j;
            }
        }
    }
}

/// Masses over eight decades and units over six decades: no units fit both ends, and products with
/// B of vectors of one end have rounding errors as large as the vectors of the other end.
TYPED_TEST(GradedPencilTest, BothEndsOfManyMasses) {
    using T = TypeParam;
    constexpr int n = 1040;  // too many rows for a dense solve
    constexpr int k = 5;
    const std::vector<double> diagonal(n, 2.5);
    const std::vector<double> right(n, 1.0);
    std::vector<double> masses;
    std::vector<int> units;
    for (int i = 0; i < n; ++i) {
        masses.push_back(
            std::ldexp(1.0, std::uniform_int_distribution<int>(-13, 13)(this->random)));
        units.push_back(std::uniform_int_distribution<int>(-10, 10)(this->random));
    }
    const auto pencil = this->in_units(this->chain(diagonal, right, masses), units);
    std::vector<double> exact = chain_eigenvalues(diagonal, right, masses, k);
    for (const double value : chain_eigenvalues(diagonal, right, masses, k, n - k)) {
        exact.push_back(value);
    }
    SparseMatrix<T> a = test::stored(this->ctx, pencil.a);
    SparseMatrix<T> b = test::stored(this->ctx, pencil.b);
    for (const Method method : {Method::automatic, Method::lobpcg}) {
        if (method == Method::lobpcg && this->ctx.comm().size() > 1) {
            break;  // hundreds of steps with messages that dominate their time
        }
        SCOPED_TRACE(to_string(method));
        const auto result = eigensolve(this->ctx, EigenProblem<T>{a, &b},
                                       this->wanted(method, Which::both_ends, 2 * k));
        ASSERT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        ASSERT_EQ(result.errors.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            const double rounding = 1000 * this->eps * exact[j];
            EXPECT_NEAR(result.eigenvalues[j], exact[j], rounding) << j;
            EXPECT_LE(result.errors[j], 0.5 * exact[j]) << j;
        }
        BlockVector<T> images(this->ctx, a.row_map(), 2 * k);
        b.apply(this->ctx, std::as_const(result.vectors).view(), images.view());
        SmallMatrix<T> products(2 * k, 2 * k);
        tsmttsm(this->ctx, T(1), std::as_const(result.vectors).view(), std::as_const(images).view(),
                T(0), products);
        for (int i = 0; i < 2 * k; ++i) {
            for (int j = 0; j < 2 * k; ++j) {
                EXPECT_NEAR(std::abs(products(i, j) - T(i == j ? 1 : 0)), 0, 2000 * this->eps);
            }
        }
    }
}

/// A matrix without B, and with B = I, whose rows differ by 2^40: rounding errors of ||A|| leave
/// the wanted eigenvalues no digit in single and two or three in double precision. Small matrices
/// begin with a dense solve, large ones with a factorisation or an iteration.
TYPED_TEST(GradedPencilTest, StiffMatricesHaveTheirSmallEigenvalues) {
    using T = TypeParam;
    for (const int n : {90, 1040}) {
        const auto rows = static_cast<std::size_t>(n);
        const std::vector<double> right(rows, 1.0);
        const std::vector<double> masses(rows, 1.0);
        std::vector<double> diagonal(rows, 2.5);
        for (int i = 0; i < n / 16; ++i) {
            const int row = std::uniform_int_distribution<int>(0, n - 1)(this->random);
            diagonal[static_cast<std::size_t>(row)] = 0x1p40;
        }
        diagonal.front() = 0x1p40;
        auto pencil = this->chain(diagonal, right, masses);
        pencil.spectrum = chain_eigenvalues(diagonal, right, masses, n < 100 ? n : 40);
        SparseMatrix<T> a = test::stored(this->ctx, pencil.a);
        SparseMatrix<T> b = test::stored(this->ctx, pencil.b);
        for (SparseMatrix<T>* mass : {static_cast<SparseMatrix<T>*>(nullptr), &b}) {
            for (const Method method : {Method::automatic, Method::shift_invert}) {
                for (const EigenOptions& options :
                     {this->wanted(method, Which::smallest, 6),
                      this->wanted(method, Which::smallest_magnitude, 4),
                      this->window(method, pencil.spectrum, 3, 12)}) {
                    SCOPED_TRACE(std::to_string(n) + " " + to_string(method) + " " +
                                 to_string(options.which) + (mass == nullptr ? "" : " with B"));
                    EigenProblem<T> problem{a};
                    problem.b = mass;
                    const auto result = eigensolve(this->ctx, problem, options);
                    ASSERT_TRUE(result.converged) << result.message;
                    EXPECT_EQ(result.multiplicity, Multiplicity::verified);
                    EXPECT_EQ(result.method, Method::shift_invert) << result.method_reason;
                    const std::vector<double> exact = test::wanted(pencil.spectrum, options);
                    ASSERT_EQ(result.eigenvalues.size(), exact.size());
                    for (std::size_t j = 0; j < exact.size(); ++j) {
                        EXPECT_NEAR(result.eigenvalues[j], exact[j], 100 * this->eps * exact[j]);
                        EXPECT_LE(result.errors[j], 0.01 * exact[j]) << j;
                    }
                }
            }
        }
    }
}

/// A spring between unknowns i and j of a stiffness matrix.
void tie(DenseRows<double>& a, std::size_t i, std::size_t j, double spring) {
    a[i][i] += spring;
    a[j][j] += spring;
    a[i][j] -= spring;
    a[j][i] -= spring;
}

/// Stiff springs that tie nodes of a grid: the rows stay singular to rounding in any units.
TEST(ShiftInvert, StiffTiesAreSolvedInTheUnitsOfTheProblem) {
    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
    constexpr int width = 20;
    constexpr int n = width * 18;
    DenseRows<double> a(n, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
        a[i][i] += 0.125;
        if (i % width != 0) {
            tie(a, i - 1, i, 1);
        }
        if (i >= width) {
            tie(a, i - width, i, 1);
        }
    }
    std::uniform_int_distribution<std::size_t> node(0, n - 1);
    for (int ties = 0; ties < 15;) {
        const std::size_t i = node(random);
        const std::size_t j = node(random);
        if (i != j && a[i][i] < 100 && a[j][j] < 100) {
            tie(a, i, j, 0x1p33);
            ++ties;
        }
    }
    const auto exact = test::oracle::eigenvalues(test::as_oracle(a));
    const std::vector<double> spectrum(exact.begin(), exact.end());
    SparseMatrix<double> matrix = test::stored(ctx, a);
    EigenOptions options;
    options.method = Method::shift_invert;
    options.window = Window{spectrum[3] / 2 + spectrum[4] / 2, spectrum[11] / 2 + spectrum[12] / 2};
    const std::vector<double> some = test::wanted(spectrum, options);
    const auto result = eigensolve(ctx, EigenProblem<double>{matrix}, options);
    ASSERT_TRUE(result.converged) << result.message;
    EXPECT_LE(result.iterations, 100);
    ASSERT_EQ(result.eigenvalues.size(), some.size());
    constexpr double error_of_oracle = 1e-4;
    for (std::size_t j = 0; j < some.size(); ++j) {
        EXPECT_LE(std::abs(result.eigenvalues[j] - some[j]), result.errors[j] + error_of_oracle);
        EXPECT_LE(result.errors[j], 1e-4) << j;
    }
}

/// Light masses on stiff springs beside a body: in balanced units rounding does not allow residuals
/// of a few eps. A search at full accuracy takes no more shifts than one at 1e-10.
TEST(ShiftInvert, LightMassesAtFullAccuracy) {
    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
    constexpr std::size_t width = 20;
    constexpr std::size_t body = width * 16;
    constexpr std::size_t n = body + 80;
    const auto uniform = [&](double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(random);
    };
    DenseRows<double> a(n, std::vector<double>(n));
    DenseRows<double> b(n, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
        b[i][i] = i < body ? uniform(0.5, 2) : std::pow(10, uniform(-8, -1));
        a[i][i] += i < width ? 1 : 0;
        if (i >= body) {
            tie(a, 4 * (i - body), i, 1e8);
        } else if (i % width != 0) {
            tie(a, i - 1, i, uniform(0.5, 2));
        }
        if (i >= width && i < body) {
            tie(a, i - width, i, uniform(0.5, 2));
        }
    }
    SparseMatrix<double> left = test::stored(ctx, a);
    SparseMatrix<double> right = test::stored(ctx, b);
    EigenOptions options;
    options.method = Method::shift_invert;
    options.window = Window{1, 3};
    const auto rough = eigensolve(ctx, EigenProblem<double>{left, &right}, options);
    options.tol = 1e-16;
    const auto sharp = eigensolve(ctx, EigenProblem<double>{left, &right}, options);
    ASSERT_TRUE(rough.converged && sharp.converged) << rough.message << sharp.message;
    EXPECT_LE(sharp.iterations, 2 * rough.iterations + 8);
    ASSERT_EQ(sharp.eigenvalues.size(), rough.eigenvalues.size());
    EXPECT_GT(sharp.eigenvalues.size(), 20U);
    for (std::size_t j = 0; j < sharp.eigenvalues.size(); ++j) {
        EXPECT_LE(std::abs(sharp.eigenvalues[j] - rough.eigenvalues[j]),
                  sharp.errors[j] + rough.errors[j]);
    }
}

/// The sizes of eigenvalues are estimated from the rows of A in units in which B is alike and its
/// norm is near 1, whatever the units of the unknowns are.
TYPED_TEST(GradedPencilTest, LikelyValuesDoNotDependOnUnits) {
    using T = TypeParam;
    constexpr int n = 40;
    DenseRows<T> a(n, std::vector<T>(n));
    for (std::size_t i = 0; i < n; ++i) {
        a[i][i] = T(static_cast<real_t<T>>(std::ldexp(1.0, static_cast<int>(i % 8))));
    }
    const auto pencil =
        this->in_units(this->with_masses_of_units(std::move(a)), std::vector<int>(n, 10));
    SparseMatrix<T> left = test::stored(this->ctx, pencil.a);
    SparseMatrix<T> right = test::stored(this->ctx, pencil.b);
    const EigenProblem<T> problem{left, &right};
    UnitBalance<T> units(this->ctx, problem, Method::shift_invert, this->random());
    ASSERT_TRUE(units.is_needed());
    const double largest = units.likely_value(Which::largest_magnitude, 1);
    EXPECT_GE(largest, 128.0 / 8);
    EXPECT_LE(largest, 128.0 * 8);
    const double least = units.likely_value(Which::smallest_magnitude, 1);
    EXPECT_GE(least, 1.0 / 8);
    EXPECT_LE(least, 8.0);
}

/// A = v v^H, where some v_i are 0, has the eigenvalue 0 n - 1 times: also for vectors without
/// components in the rows of A that are zero, which would have no length in the inner product of B
/// if these rows had units for a size of 0.
TYPED_TEST(GradedPencilTest, ZeroRowsOfASingularMatrix) {
    using T = TypeParam;
    const int n = std::uniform_int_distribution<int>(40, 60)(this->random);
    std::uniform_int_distribution<int> entry(-3, 3);
    std::vector<int> v{1, 0};
    while (std::ssize(v) < n) {
        v.push_back(entry(this->random));
    }
    DenseRows<T> a(v.size(), std::vector<T>(v.size()));
    double square = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        square += v[i] * v[i];
        for (std::size_t j = 0; j < v.size(); ++j) {
            a[i][j] = T(static_cast<real_t<T>>(v[i] * v[j]));
        }
    }
    const auto pencil = this->with_masses_of_units(std::move(a));
    for (const Method method : {Method::automatic, Method::dense}) {
        for (const Which which : {Which::smallest, Which::smallest_magnitude}) {
            this->expect_values(pencil, this->wanted(method, which, 10),
                                std::vector<double>(10, 0.0), square);
        }
        this->expect_values(pencil, this->wanted(method, Which::largest, 1), {square}, square);
    }
}

/// Chains without supports, each with its own stiffness, which is 0 for the first. In units for the
/// eigenvalues 0, rows of A are alike and those of B are not: B seems to be singular.
TYPED_TEST(GradedPencilTest, SingularChainsOfManySizes) {
    using T = TypeParam;
    if constexpr (sizeof(real_t<T>) == sizeof(double)) {
        constexpr std::size_t part = 3;
        constexpr std::size_t chains = 20;
        DenseRows<T> a(part * chains, std::vector<T>(part * chains));
        for (std::size_t i = 0; i + 1 < a.size(); ++i) {
            if (i % part + 1 < part && i >= part) {
                const auto stiffness = std::ldexp(real_t<T>(1), -3 * static_cast<int>(i / part));
                a[i][i] += stiffness;
                a[i + 1][i + 1] += stiffness;
                a[i][i + 1] = a[i + 1][i] = -stiffness;
            }
        }
        const auto pencil = this->with_masses_of_units(std::move(a));
        for (const Which which : {Which::smallest, Which::smallest_magnitude}) {
            this->expect_values(pencil, this->wanted(Method::shift_invert, which, chains),
                                std::vector<double>(chains, 0.0), 0.375);
        }
        this->expect_values(pencil, this->wanted(Method::shift_invert, Which::largest, 2),
                            {0.125, 0.375}, 0.375);
    }
}

/// Rows of A whose B is zero are 2^9 times smaller than the k-th smallest eigenvalue, 1, so that
/// the units of the first solve are chosen for a size that no wanted eigenvalue has. The units for
/// 1 differ from these by factors of 8 to 16 in the rows of the eigenvalues near 2^-7, too little
/// for another solve.
TYPED_TEST(GradedPencilTest, UnitsThatFitTheValuesFoundBetter) {
    using T = TypeParam;
    constexpr int k = 4;
    for (int trial = 0; trial < 5; ++trial) {
        const int n = std::uniform_int_distribution<int>(30, 90)(this->random);
        SCOPED_TRACE("trial " + std::to_string(trial) + ", " + std::to_string(n) + " rows");
        const auto uniform = [&](double low, double high) {
            return std::uniform_real_distribution<double>(low, high)(this->random);
        };
        std::vector<int> place(static_cast<std::size_t>(n));
        std::iota(place.begin(), place.end(), 0);
        std::shuffle(place.begin(), place.end(), this->random);
        typename GradedPencilTest<T>::Pencil pencil{
            DenseRows<T>(place.size(), std::vector<T>(place.size())),
            DenseRows<T>(place.size(), std::vector<T>(place.size())),
            {}};
        for (int i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(place[static_cast<std::size_t>(i)]);
            if (i < k) {
                pencil.a[at][at] = T(static_cast<real_t<T>>(std::ldexp(uniform(1, 1.5), -10)));
                continue;
            }
            // The first and the last mass are 2^12 apart.
            const double mass = std::exp2(-12.0 * (i - k) / (n - k - 1));
            const double value = i < 2 * k - 1    ? std::exp2(uniform(-7.2, -6.8))
                                 : i == 2 * k - 1 ? 1
                                                  : uniform(2, 8);
            pencil.b[at][at] = T(static_cast<real_t<T>>(mass));
            pencil.a[at][at] = T(static_cast<real_t<T>>(mass * value));
            pencil.spectrum.push_back(static_cast<double>(std::real(pencil.a[at][at])) /
                                      static_cast<double>(std::real(pencil.b[at][at])));
        }
        std::sort(pencil.spectrum.begin(), pencil.spectrum.end());
        for (const Which which : {Which::smallest, Which::smallest_magnitude}) {
            this->expect(pencil, this->wanted(Method::shift_invert, which, k));
        }
    }
}

/// In the units of the pencil, rounding errors of A exceed the entries of B.
TEST(ShiftInvert, ADiagonalPencilOverThirtyDecades) {
    Context ctx = test::make_context();
    constexpr int n = 120;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        std::mt19937_64 random(seed);
        std::vector<double> exact(n);
        std::vector<double> mass(n);
        for (int i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(i);
            exact[at] = std::uniform_real_distribution<double>(1, 6)(random);
            mass[at] = std::pow(10.0, -30.0 * i / (n - 1));
        }
        const auto diagonal = [&](bool with_values) {
            return test::matrix_from_rows<double>(ctx, n, [&](std::int64_t row, auto& entries) {
                const auto at = static_cast<std::size_t>(row);
                entries.add(row, mass[at] * (with_values ? exact[at] : 1));
            });
        };
        SparseMatrix<double> a = diagonal(true);
        SparseMatrix<double> b = diagonal(false);
        EigenOptions options;
        options.which = Which::target;
        options.target = 3.42;
        options.k = 4;
        EigenProblem<double> problem{a};
        problem.b = &b;
        options.method = Method::shift_invert;
        const auto result = eigensolve(ctx, problem, options);
        EXPECT_TRUE(result.converged) << seed << ' ' << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified) << seed;
        const std::vector<double> expected = test::wanted(exact, options);
        ASSERT_EQ(result.eigenvalues.size(), expected.size());
        for (std::size_t j = 0; j < expected.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], expected[j], 1e-13) << seed;
        }
    }
}

}  // namespace
}  // namespace quiver

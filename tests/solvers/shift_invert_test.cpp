// SPDX-License-Identifier: BSD-3-Clause
// Shift and invert: every selection of eigenvalues of random sparse matrices, compared with a dense
// solver; clusters with their exact multiplicities, spectra over many decades, zero pivots.
#include "solvers/eigen/shift_invert.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"
#include "solvers/eigen/shift_invert/mumps_factorisation.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/precond/sparse_ldlt.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/solvers/wanted_eigenvalues.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::as_oracle;
using test::DenseRows;
using test::random_matrix;
using test::stored;
using test::unwanted;
using test::wanted;

EigenOptions factorised(Which which, int k) {
    EigenOptions options;
    options.which = which;
    options.k = k;
    options.method = Method::shift_invert;
    return options;
}

EigenOptions window_of(double low, double high) {
    EigenOptions options = factorised(Which::smallest, 1);
    options.window = Window{low, high};
    return options;
}

template <class T>
class ShiftInvertTest : public ::testing::Test {
  protected:
    static constexpr double eps = static_cast<double>(epsilon_v<T>);

    /// Checks that the result is converged, verified and has the values `exact` up to rounding.
    void expect(const EigenResult<T>& result, const std::vector<double>& exact, double norm) {
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        EXPECT_EQ(result.method, Method::shift_invert);
        EXPECT_EQ(result.library,
                  to_string(factor_library(ctx, result.vectors.row_map().global_rows())));
        EXPECT_EQ(result.message, "");
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        const double n = static_cast<double>(result.vectors.row_map().global_rows());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], 4 * (8 + std::sqrt(n)) * eps * norm) << j;
        }
    }
    /// Checks the vectors: residuals by fresh products, orthonormality in the inner product of B.
    void expect_vectors(const EigenProblem<T>& problem, const EigenResult<T>& result, double norm) {
        const BlockView<const T> x = result.vectors.view();
        if (x.cols == 0) {
            return;
        }
        BlockVector<T> bx(ctx, result.vectors.row_map(), x.cols);
        if (problem.b != nullptr) {
            problem.b->apply(ctx, x, bx.view());
        } else {
            copy(ctx, x, bx.view());
        }
        const double n = static_cast<double>(result.vectors.row_map().global_rows());
        const double rounding = 4 * (8 + std::sqrt(n)) * eps * norm;
        SmallMatrix<T> gram(x.cols, x.cols);
        tsmttsm(ctx, T(1), x, std::as_const(bx).view(), T(0), gram);
        for (int i = 0; i < x.cols; ++i) {
            for (int j = 0; j < x.cols; ++j) {
                EXPECT_LE(std::abs(gram(i, j) - T(i == j ? 1 : 0)), rounding);
            }
        }
        BlockVector<T> r(ctx, result.vectors.row_map(), x.cols);
        problem.a.apply(ctx, x, r.view());
        std::vector<T> minus;
        for (const double value : result.eigenvalues) {
            minus.push_back(T(static_cast<real_t<T>>(-value)));
        }
        const std::vector<T> ones(minus.size(), T(1));
        axpby(ctx, minus, std::as_const(bx).view(), ones, r.view());
        std::vector<real_t<T>> lengths(minus.size());
        norms(ctx, std::as_const(r).view(), std::span<real_t<T>>(lengths));
        for (std::size_t j = 0; j < lengths.size(); ++j) {
            EXPECT_LE(lengths[j], result.tolerance * norm + rounding);
            EXPECT_LE(result.residuals[j], result.tolerance * norm);
        }
    }

    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(ShiftInvertTest, Scalars);

constexpr Which all_ends[] = {
    Which::smallest,           Which::largest,  Which::target, Which::largest_magnitude,
    Which::smallest_magnitude, Which::both_ends};

/// Compares the predicted fill with that of the factors.
TYPED_TEST(ShiftInvertTest, ThePredictedFillIsThatOfTheFactors) {
    using T = TypeParam;
    for (const int n : {1, 2, 30, 151}) {
        for (const bool with_b : {false, true}) {
            const auto local = [&](const DenseRows<T>& a) {
                return rows_from_callback<T>(
                    Comm(), n, is_complex_v<T> ? Symmetry::hermitian : Symmetry::symmetric,
                    [&](std::int64_t row, RowEntries<T>& entries) {
                        for (int j = 0; j < n; ++j) {
                            const T value =
                                a[static_cast<std::size_t>(row)][static_cast<std::size_t>(j)];
                            if (value != T(0)) {
                                entries.add(j, value);
                            }
                        }
                    });
            };
            const CsrRows<T> a = local(random_matrix<T>(this->random, n, 2, true));
            const CsrRows<T> b = local(random_matrix<T>(this->random, n, 1, true));
            const CsrRows<T>* const mass = with_b ? &b : nullptr;
            const CsrRows<T> factors = SparseLdlt<T>(a, mass, -1).factors(0, false);
            std::vector<double> below(static_cast<std::size_t>(n), 0);
            std::int64_t entries = 0;
            for (std::int64_t row = 0; row < n; ++row) {
                for (auto e = factors.row_start[static_cast<std::size_t>(row)];
                     e < factors.row_start[static_cast<std::size_t>(row) + 1]; ++e) {
                    const std::int64_t column = factors.column[static_cast<std::size_t>(e)];
                    if (column < row) {
                        ++entries;
                        ++below[static_cast<std::size_t>(column)];
                    }
                }
            }
            double products = 0;
            for (const double count : below) {
                products += count * (count + 1) / 2;
            }
            const LdltFill fill = predict_fill(a, mass, entries);
            EXPECT_EQ(fill.entries, entries) << n;
            EXPECT_EQ(fill.products, products) << n;
            if (entries > 1) {
                const LdltFill part = predict_fill(a, mass, entries / 2);
                EXPECT_GT(part.entries, entries / 2);
                EXPECT_LE(part.entries, entries);
            }
        }
    }
}

TYPED_TEST(ShiftInvertTest, EverySelectionOfRandomMatrices) {
    using T = TypeParam;
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (const int n : {1, 2, 5, 30, 97}) {
        for (const bool with_b : {false, true}) {
            const auto a = random_matrix<T>(this->random, n,
                                            1 + static_cast<int>(this->random() % 3), n % 2 == 0);
            const auto b = random_matrix<T>(this->random, n, 1, true);
            const Eigen::VectorXd exact =
                with_b ? test::oracle::eigenvalues(as_oracle(a), as_oracle(b))
                       : test::oracle::eigenvalues(as_oracle(a));
            const std::vector<double> spectrum(exact.begin(), exact.end());
            SparseMatrix<T> left = stored(this->ctx, a);
            SparseMatrix<T> right = stored(this->ctx, b);
            EigenProblem<T> problem{left};
            problem.b = with_b ? &right : nullptr;
            const double norm = 4 + 2 * std::max(-spectrum.front(), spectrum.back());
            for (const Which which : all_ends) {
                const int k = 1 + static_cast<int>(this->random() % static_cast<unsigned>(n));
                EigenOptions options = factorised(which, std::min(k, 20));
                options.target = uniform(this->random);
                options.tol = which == Which::smallest ? 1e-13 : 1e-10;
                SCOPED_TRACE(std::string(to_string(which)) + ", k = " + std::to_string(options.k) +
                             " of " + std::to_string(n) + (with_b ? " with B" : ""));
                const auto result = eigensolve(this->ctx, problem, options);
                this->expect(result, wanted(spectrum, options), norm);
                this->expect_vectors(problem, result, norm);
            }
            const double low = spectrum.front() + 0.3 * (spectrum.back() - spectrum.front());
            const EigenOptions window = window_of(low, low + 0.2 * norm);
            this->expect(eigensolve(this->ctx, problem, window), wanted(spectrum, window), norm);
            EigenOptions all = factorised(Which::smallest, n);
            this->expect(eigensolve(this->ctx, problem, all), spectrum, norm);
        }
    }
}

/// Every copy is found, for any block width. A cluster is cut if the next eigenvalue is a copy of
/// the last one.
TYPED_TEST(ShiftInvertTest, CubesHaveTriplets) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 7, 7, 7);
    const std::vector<double> spectrum = test::laplace3d_spectrum(7, 7, 7);
    EigenProblem<T> problem{a};
    for (const Which which : {Which::smallest, Which::largest, Which::target}) {
        for (const int k :
             test::is_host_repetition() ? std::vector{6, 20} : std::vector{1, 4, 6, 20}) {
            for (const int block : k == 6 ? std::vector<int>{1, 3} : std::vector<int>{0}) {
                EigenOptions options = factorised(which, k);
                options.target = 4.1;
                options.block = block;
                const auto result = eigensolve(this->ctx, problem, options);
                SCOPED_TRACE(std::string(to_string(which)) + ", k = " + std::to_string(k));
                this->expect(result, wanted(spectrum, options), 12);
                EigenOptions more = options;
                more.k = k + 1;
                std::vector<double> keys;
                for (const double value : wanted(spectrum, more)) {
                    keys.push_back(unwanted(value, options));
                }
                std::sort(keys.begin(), keys.end());
                EXPECT_EQ(result.cluster_cut, keys[static_cast<std::size_t>(k)] -
                                                      keys[static_cast<std::size_t>(k) - 1] <
                                                  100 * this->eps);
            }
        }
    }
    const EigenOptions window = window_of(2.5, 4.2);
    const auto result = eigensolve(this->ctx, problem, window);
    this->expect(result, wanted(spectrum, window), 12);
    EXPECT_GT(result.eigenvalues.size(), 40u);
}

/// A graph of equal components: every eigenvalue has one copy for each component, also 0, at which
/// a factorisation is singular.
TYPED_TEST(ShiftInvertTest, ComponentsOfAGraphGiveCopies) {
    using T = TypeParam;
    constexpr int copies = 9;
    constexpr int length = 11;
    SparseMatrix<T> a = test::matrix_from_rows<T>(
        this->ctx, copies * length, [](std::int64_t row, RowEntries<T>& entries) {
            const std::int64_t at = row % length;
            entries.add(row, T(static_cast<real_t<T>>((at > 0) + (at + 1 < length))));
            if (at > 0) {
                entries.add(row - 1, T(-1));
            }
            if (at + 1 < length) {
                entries.add(row + 1, T(-1));
            }
        });
    std::vector<double> spectrum;
    for (int j = 0; j < length; ++j) {
        spectrum.insert(spectrum.end(), copies, 2 - 2 * std::cos(std::numbers::pi * j / length));
    }
    EigenProblem<T> problem{a};
    for (const int k : {1, 9, 13, 27}) {
        for (const Which which : {Which::smallest, Which::largest, Which::smallest_magnitude}) {
            const EigenOptions options = factorised(which, k);
            const auto result = eigensolve(this->ctx, problem, options);
            SCOPED_TRACE(std::string(to_string(which)) + ", k = " + std::to_string(k));
            this->expect(result, wanted(spectrum, options), 4);
            EXPECT_EQ(result.cluster_cut, k % copies != 0);
        }
    }
    // 0 lies at an end of the window.
    this->expect(eigensolve(this->ctx, problem, window_of(0, 0.2)),
                 wanted(spectrum, window_of(-1e-3, 0.2)), 4);
    this->expect(eigensolve(this->ctx, problem, window_of(-2, -1)), {}, 4);
}

TYPED_TEST(ShiftInvertTest, OneEigenvalueAndNone) {
    using T = TypeParam;
    SparseMatrix<T> same = test::diagonal<T>(this->ctx, std::vector<double>(40, 3.0));
    SparseMatrix<T> zero = test::diagonal<T>(this->ctx, std::vector<double>(12, 0.0));
    for (const Which which : all_ends) {
        for (const int k : {1, 7, 40}) {
            const auto result = eigensolve(this->ctx, EigenProblem<T>{same}, factorised(which, k));
            this->expect(result, std::vector<double>(static_cast<std::size_t>(k), 3.0), 3);
            EXPECT_EQ(result.cluster_cut, k < 40);
        }
        const auto nothing = eigensolve(this->ctx, EigenProblem<T>{zero}, factorised(which, 5));
        this->expect(nothing, std::vector<double>(5, 0.0), 1e-30);
    }
}

/// Eigenvalues over 12 decades have small relative errors.
TEST(ShiftInvert, GradedSpectraKeepRelativeAccuracy) {
    using T = double;
    Context ctx = test::make_context();
    std::vector<double> spectrum(700);
    for (int i = 0; i < 700; ++i) {
        spectrum[static_cast<std::size_t>(i)] = std::pow(10.0, 12.0 * i / 699);
    }
    SparseMatrix<T> a = test::diagonal<T>(ctx, spectrum);
    const auto check = [&](const EigenOptions& options) {
        const auto result = eigensolve(ctx, EigenProblem<T>{a}, options);
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_FALSE(result.cluster_cut);
        const std::vector<double> exact = wanted(spectrum, options);
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e-8 * exact[j]);
        }
    };
    EigenOptions options = factorised(Which::target, 5);
    options.target = 1.14e6;
    check(options);
    check(factorised(Which::smallest, 10));
    check(factorised(Which::smallest, 150));
    check(factorised(Which::largest, 30));
    check(window_of(1e3, 1e5));
}

/// The same in every scalar over 10 decades, for one pair and for a third of the pairs.
TYPED_TEST(ShiftInvertTest, GradedSpectraOfAnyLength) {
    using T = TypeParam;
    std::vector<double> spectrum;
    for (int i = 0; i < 240; ++i) {
        const double value = std::pow(10.0, 10.0 * i / 239);
        spectrum.push_back(static_cast<double>(static_cast<real_t<T>>(value)));
    }
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, spectrum);
    for (const Which which : {Which::smallest, Which::largest, Which::target}) {
        for (const int k : {1, 80}) {
            SCOPED_TRACE(std::string(to_string(which)) + ", " + std::to_string(k));
            EigenOptions options = factorised(which, k);
            options.target = 1.14e6;
            const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
            EXPECT_TRUE(result.converged) << result.message;
            EXPECT_EQ(result.multiplicity, Multiplicity::verified);
            const std::vector<double> exact = wanted(spectrum, options);
            ASSERT_EQ(result.eigenvalues.size(), exact.size());
            for (std::size_t j = 0; j < exact.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e-8 * exact[j]);
            }
        }
    }
}

/// An end like a Landau level: more than max(2 k, k + 20) eigenvalues within 1e-10 ||A||, which no
/// shift separates, and a tail that leaves no gap behind them.
TYPED_TEST(ShiftInvertTest, AnEndOfManyNearlyEqualEigenvalues) {
    using T = TypeParam;
    std::vector<double> low(45);
    for (int i = 0; i < 45; ++i) {
        low[static_cast<std::size_t>(i)] = 1e-11 * (i % 9) + 3e-13 * i;
    }
    for (double value = 2e-10; value < 0.1; value *= 1.7) {
        low.push_back(value);
    }
    std::vector<double> spectrum;
    for (const double value : low) {
        spectrum.push_back(0.25 + value);
        spectrum.push_back(7.75 - value);
    }
    for (int i = 0; i < 200; ++i) {
        spectrum.push_back(0.5 + 0.035 * i);
    }
    std::sort(spectrum.begin(), spectrum.end());
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, spectrum);
    for (const Which which : {Which::smallest, Which::largest, Which::both_ends}) {
        for (const int k : test::is_host_repetition() ? std::vector{16} : std::vector{1, 10, 16}) {
            const EigenOptions options = factorised(which, k);
            SCOPED_TRACE(std::string(to_string(which)) + ", " + std::to_string(k));
            const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
            EXPECT_TRUE(result.converged) << result.message;
            EXPECT_TRUE(result.cluster_cut || k == 1);
            const std::vector<double> exact = wanted(spectrum, options);
            ASSERT_EQ(result.eigenvalues.size(), exact.size());
            for (std::size_t j = 0; j < exact.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], exact[j], 5 * result.tolerance * 8) << j;
            }
        }
    }
}

/// Over 14 decades the rounding errors of A hide the first decade. The pairs are then those of a
/// cluster, with residuals within the tolerance.
TEST(ShiftInvert, GradedBandsWithHiddenDecades) {
    Context ctx = test::make_context();
    constexpr std::size_t n = 1200;
    for (const unsigned seed : {1U, 14U}) {
        std::mt19937_64 random(seed);
        std::vector<double> spectrum;
        for (std::size_t i = 0; i < n; ++i) {
            spectrum.push_back(std::pow(10.0, 14.0 * static_cast<double>(i) / (n - 1)));
        }
        std::vector<double> shuffled = spectrum;
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        DenseRows<double> a(n, std::vector<double>(n));
        for (std::size_t i = 0; i < n; ++i) {
            a[i][i] = shuffled[i];
        }
        std::uniform_real_distribution<double> angle(0, 2 * std::numbers::pi);
        for (std::size_t sweep = 0; sweep < 3; ++sweep) {  // of rotations of neighbours
            for (std::size_t i = sweep % 2; i + 1 < n; i += 2) {
                const double phi = angle(random);
                const double c = std::cos(phi), s = std::sin(phi);
                const std::size_t from = i < 8 ? 0 : i - 8, to = std::min(n, i + 10);
                for (std::size_t j = from; j < to; ++j) {
                    const double x = a[i][j], y = a[i + 1][j];
                    a[i][j] = c * x + s * y;
                    a[i + 1][j] = c * y - s * x;
                }
                for (std::size_t j = from; j < to; ++j) {
                    const double x = a[j][i], y = a[j][i + 1];
                    a[j][i] = c * x + s * y;
                    a[j][i + 1] = c * y - s * x;
                }
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                a[i][j] = a[j][i];
            }
        }
        SparseMatrix<double> matrix = stored(ctx, a);
        for (const int k : {1, 5}) {
            const auto result =
                eigensolve(ctx, EigenProblem<double>{matrix}, factorised(Which::smallest, k));
            SCOPED_TRACE("seed " + std::to_string(seed) + ", k = " + std::to_string(k));
            EXPECT_TRUE(result.converged) << result.message;
            ASSERT_EQ(result.eigenvalues.size(), static_cast<std::size_t>(k));
            for (std::size_t j = 0; j < result.eigenvalues.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], spectrum[j], result.tolerance * spectrum.back());
            }
        }
    }
}

/// The diagonal lies in the middle of the spectrum: the search begins outside of it.
TEST(ShiftInvert, AConstantDiagonalTakesFewFactorisations) {
    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
    DenseRows<double> a = random_matrix<double>(random, 400, 2, false);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i][i] = 0;
    }
    for (const double centre : {0.0, 0.25, -4.0}) {
        for (std::size_t i = 0; i < a.size(); ++i) {
            a[i][i] = centre;
        }
        const Eigen::VectorXd exact = test::oracle::eigenvalues(as_oracle(a));
        const std::vector<double> spectrum(exact.begin(), exact.end());
        SparseMatrix<double> matrix = stored(ctx, a);
        for (const Which which : {Which::smallest, Which::largest, Which::both_ends}) {
            const EigenOptions options = factorised(which, 6);
            const auto result = eigensolve(ctx, EigenProblem<double>{matrix}, options);
            EXPECT_TRUE(result.converged) << result.message;
            // Without pivoting, more shifts move.
            const int most = which != Which::both_ends        ? 4
                             : mumps_is_available(ctx.comm()) ? 8
                                                              : 16;
            EXPECT_LE(result.iterations, most) << to_string(which);
            const std::vector<double> some = wanted(spectrum, options);
            ASSERT_EQ(result.eigenvalues.size(), some.size());
            for (std::size_t j = 0; j < some.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], some[j], 1e-12);
            }
        }
    }
}

/// A singular B, of half the rank: the finite eigenvalues are those of B x = mu A x with lambda =
/// 1 / mu. The other end is infinite, which the message says.
TYPED_TEST(ShiftInvertTest, ASingularMass) {
    using T = TypeParam;
    constexpr int n = 60;
    const DenseRows<T> a = random_matrix<T>(this->random, n, 2, true);
    const DenseRows<T> half = random_matrix<T>(this->random, n, 2, true);
    DenseRows<T> b(n, std::vector<T>(n));
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t l = 0; l < n / 2; ++l) {
                b[i][j] += half[i][l] * conjugate(half[j][l]);
            }
        }
    }
    for (std::size_t i = 0; i < n; ++i) {  // the sums round differently
        b[i][i] = T(std::real(b[i][i]));
        for (std::size_t j = 0; j < i; ++j) {
            b[i][j] = conjugate(b[j][i]);
        }
    }
    const Eigen::VectorXd inverse = test::oracle::eigenvalues(as_oracle(b), as_oracle(a));
    std::vector<double> finite;
    for (int i = n - 1; i >= n / 2; --i) {
        finite.push_back(1 / inverse(i));
    }
    SparseMatrix<T> left = stored(this->ctx, a);
    SparseMatrix<T> right = stored(this->ctx, b);
    EigenProblem<T> problem{left};
    problem.b = &right;
    EigenOptions options = factorised(Which::target, 4);
    options.target = 0.5 * (finite[6] + finite[7]);
    const EigenOptions window =
        window_of(0.5 * (finite[2] + finite[3]), 0.5 * (finite[8] + finite[9]));
    for (const EigenOptions& wish : {factorised(Which::smallest, 5), options, window}) {
        const auto result = eigensolve(this->ctx, problem, wish);
        EXPECT_TRUE(result.converged) << result.message;
        const std::vector<double> exact = wanted(finite, wish);
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e4 * this->eps * exact[j]);
        }
    }
    try {
        eigensolve(this->ctx, problem, factorised(Which::largest, 3));
        ADD_FAILURE() << "no InfiniteEigenvalueError";
    } catch (const InfiniteEigenvalueError& error) {
        EXPECT_NE(std::string(error.what()).find("request the smallest, or those nearest a target"),
                  std::string::npos)
            << error.what();
    }
}

/// Two Laplacians of paths through the same nodes have the null vector (1, ..., 1) in common: every
/// number is an eigenvalue.
TEST(ShiftInvert, ASingularPencilEndsSoon) {
    Context ctx = test::make_context();
    constexpr std::int64_t n = 300;
    // Node 7 i mod n follows node 7 (i - 1) mod n on the second path.
    const auto path = [&](std::int64_t step) {
        return test::matrix_from_rows<double>(ctx, n, [=](std::int64_t row, auto& entries) {
            const std::int64_t before = (row + n - step) % n;
            const std::int64_t after = (row + step) % n;
            double degree = 0;
            for (const auto& [other, edge] : {std::pair{before, row}, std::pair{after, after}}) {
                if (edge != 0) {
                    const double weight = 1 + 0.1 * static_cast<double>(edge % 5);
                    entries.add(other, -weight);
                    degree += weight;
                }
            }
            entries.add(row, degree);
        });
    };
    SparseMatrix<double> a = path(1);
    SparseMatrix<double> b = path(7);
    const EigenProblem<double> problem{a, &b};
    const auto result = eigensolve(ctx, problem, factorised(Which::smallest, 3));
    EXPECT_FALSE(result.converged);
    EXPECT_EQ(result.message.find("A and B have a common null vector v to rounding (||A v|| = "),
              0u)
        << result.message;
    EXPECT_LE(result.iterations, 100) << "factorisations";
}

/// The clamped beam has a condition of order n^4: six factorisations are enough.
TEST(ShiftInvert, ABeamTakesFewFactorisations) {
    Context ctx = test::make_context();
    const int n = 2000;
    SparseMatrix<double> a =
        test::matrix_from_rows<double>(ctx, n, [=](std::int64_t row, auto& entries) {
            const double weights[] = {1, -4, 6, -4, 1};
            for (int d = -2; d <= 2; ++d) {
                if (row + d >= 0 && row + d < n) {
                    entries.add(row + d, weights[d + 2]);
                }
            }
        });
    const auto result = eigensolve(ctx, EigenProblem<double>{a}, factorised(Which::smallest, 3));
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_LE(result.iterations, 6);
    const double beta[] = {4.730040745, 7.853204624, 10.995607838};
    for (std::size_t j = 0; j < 3; ++j) {
        const double exact = std::pow(beta[j] / (n + 3), 4);
        EXPECT_NEAR(result.eigenvalues[j], exact, 1e-2 * exact);
    }
}

/// The adjacency matrix of a ring has zeros on its diagonal: factorisations at 0 have zero pivots,
/// so the shift moves.
TYPED_TEST(ShiftInvertTest, PivotsOfZeroMoveTheShift) {
    using T = TypeParam;
    constexpr int n = 60;
    SparseMatrix<T> a =
        test::matrix_from_rows<T>(this->ctx, n, [](std::int64_t row, RowEntries<T>& entries) {
            entries.add((row + 1) % n, T(1));
            entries.add((row + n - 1) % n, T(1));
        });
    std::vector<double> spectrum(n);
    for (int j = 0; j < n; ++j) {
        spectrum[static_cast<std::size_t>(j)] = 2 * std::cos(2 * std::numbers::pi * j / n);
    }
    std::sort(spectrum.begin(), spectrum.end());
    int moves = 0;
    this->ctx.set_event_sink(
        [&](const Event& event) { moves += std::holds_alternative<FallbackEvent>(event) ? 1 : 0; });
    EigenOptions options = factorised(Which::target, 6);
    options.target = 0;
    this->expect(eigensolve(this->ctx, EigenProblem<T>{a}, options), wanted(spectrum, options), 2);
    EXPECT_GE(moves, 1);
    this->expect(eigensolve(this->ctx, EigenProblem<T>{a}, factorised(Which::smallest, 5)),
                 wanted(spectrum, factorised(Which::smallest, 5)), 2);
}

/// A line with free ends has the eigenvalues 4 sin^2(pi j / 2 n). The first shift is 0, an
/// eigenvalue: its pair is found first, by a few solves, and does not hide the others.
TYPED_TEST(ShiftInvertTest, AnEigenvalueAtTheShiftTakesFewSolves) {
    using T = TypeParam;
    constexpr int n = 1000;
    SparseMatrix<T> a =
        test::matrix_from_rows<T>(this->ctx, n, [](std::int64_t row, auto& entries) {
            const int neighbours = (row > 0 ? 1 : 0) + (row + 1 < n ? 1 : 0);
            entries.add(row, T(static_cast<real_t<T>>(neighbours)));
            for (const std::int64_t other : {row - 1, row + 1}) {
                if (other >= 0 && other < n) {
                    entries.add(other, T(-1));
                }
            }
        });
    std::vector<double> exact(10);
    for (std::size_t j = 0; j < exact.size(); ++j) {
        const double angle = 0.5 * std::numbers::pi * static_cast<double>(j) / n;
        exact[j] = 4 * std::sin(angle) * std::sin(angle);
    }
    const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, factorised(Which::smallest, 10));
    this->expect(result, exact, 4);
    EXPECT_LE(result.operator_applications, 115);
}

TYPED_TEST(ShiftInvertTest, NormsOfEverySize) {
    using T = TypeParam;
    const bool is_double = sizeof(real_t<T>) == sizeof(double);
    const auto a = random_matrix<T>(this->random, 50, 2, false);
    const Eigen::VectorXd exact = test::oracle::eigenvalues(as_oracle(a));
    for (const double size : {is_double ? 1e-160 : 1e-30, is_double ? 1e160 : 1e30}) {
        SparseMatrix<T> matrix = stored(this->ctx, a, size);
        EigenOptions options = factorised(Which::largest, 7);
        std::vector<double> spectrum(exact.begin(), exact.end());
        for (double& value : spectrum) {
            value *= size;
        }
        this->expect(eigensolve(this->ctx, EigenProblem<T>{matrix}, options),
                     wanted(spectrum, options), 5 * size);
    }
}

/// The same bits on every rank, and in every run.
TYPED_TEST(ShiftInvertTest, AllRanksHaveTheSameBits) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 6, 5, 4);
    const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, factorised(Which::smallest, 9));
    const auto again = eigensolve(this->ctx, EigenProblem<T>{a}, factorised(Which::smallest, 9));
    test::check_pairs(this->ctx, a, result, test::laplace3d_spectrum(6, 5, 4), 9, Which::smallest);
    EXPECT_EQ(result.eigenvalues, again.eigenvalues);
    for (const double value : result.eigenvalues) {
        EXPECT_EQ(this->ctx.comm().max(value), value);
        EXPECT_EQ(this->ctx.comm().max(-value), -value);
    }
}

TYPED_TEST(ShiftInvertTest, WhatItDoesNotTakeIsRefused) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 4, 4, 3);
    const EigenOptions options = factorised(Which::smallest, 3);
    ProtectedMatrix<T> guarded(this->ctx, a, {});
    EigenProblem<T> with_checksums{guarded};
    with_checksums.protection = &guarded;
    try {
        eigensolve(this->ctx, with_checksums, options);
        ADD_FAILURE() << "the factorisation has no checksums";
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("a method with checksums: lanczos"),
                  std::string::npos)
            << error.what();
    }
    test::Unstored<T> free(a);
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{free}, options), InputError);
    BlockVector<T> column(this->ctx, a.row_map(), 1);
    fill(this->ctx, T(1), column.view());
    EigenProblem<T> constrained{a};
    constrained.constraints = std::as_const(column).view();
    EXPECT_THROW(eigensolve(this->ctx, constrained, options), InputError);
    std::vector<double> signs(48, 1.0);
    signs[30] = -1;
    SparseMatrix<T> indefinite = test::diagonal<T>(this->ctx, signs);
    EigenProblem<T> pencil{a};
    pencil.b = &indefinite;
    EXPECT_THROW(eigensolve(this->ctx, pencil, options), IndefiniteError);
    SparseMatrix<T> skew =
        test::matrix_from_rows<T>(this->ctx, 20, [](std::int64_t row, RowEntries<T>& entries) {
            entries.add(row, T(1));
            if (row + 1 < 20) {
                entries.add(row + 1, T(1));
            }
        });
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{skew}, options), NumericalError);
}

TYPED_TEST(ShiftInvertTest, ACallbackOrALimitEndsTheSolve) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 6, 6, 6);
    EigenOptions options = window_of(0, 9);
    int calls = 0;
    options.keep_going = [&](const IterationEvent&) {
        // The last rank alone asks to stop.
        return ++calls < 4 || this->ctx.comm().rank() + 1 < this->ctx.comm().size();
    };
    const auto stopped = eigensolve(this->ctx, EigenProblem<T>{a}, options);
    EXPECT_TRUE(stopped.interrupted);
    EXPECT_FALSE(stopped.converged);
    EXPECT_EQ(calls, 4);
    EXPECT_NE(stopped.message.find("interrupted"), std::string::npos) << stopped.message;
    EXPECT_EQ(stopped.eigenvalues.size(), static_cast<std::size_t>(stopped.vectors.width()));
    EigenOptions limited = factorised(Which::smallest, 5);
    limited.max_iterations = 1;
    const auto one = eigensolve(this->ctx, EigenProblem<T>{a}, limited);
    EXPECT_FALSE(one.converged);
    EXPECT_EQ(one.iterations, 1);
    EXPECT_NE(one.message.find("stopped after 1 factorisation"), std::string::npos) << one.message;
    options = window_of(0, 9);
    options.method = Method::shift_invert;
    const std::size_t inside = 196;
    EXPECT_EQ(eigensolve(this->ctx, EigenProblem<T>{a}, options).eigenvalues.size(), inside);
    options.max_in_window = inside - 1;
    const auto many = eigensolve(this->ctx, EigenProblem<T>{a}, options);
    EXPECT_FALSE(many.converged);
    EXPECT_EQ(many.message.find("196 eigenvalues lie in the window or "), 0U) << many.message;
    EXPECT_LE(many.iterations, 4);
    options.max_in_window = inside;
    EXPECT_TRUE(eigensolve(this->ctx, EigenProblem<T>{a}, options).converged);
}

/// An end far beyond the spectrum is not factorised, because all digits would be lost there.
TYPED_TEST(ShiftInvertTest, WindowsWithAFarEnd) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 8, 7, 6);
    SparseMatrix<T> b = test::diagonal<T>(this->ctx, std::vector<double>(336, 2.0));
    const std::vector<double> spectrum = test::laplace3d_spectrum(8, 7, 6);
    for (const double mass : {1.0, 2.0}) {
        std::vector<double> values = spectrum;
        for (double& value : values) {
            value /= mass;
        }
        EigenProblem<T> problem{a};
        problem.b = mass > 1 ? &b : nullptr;
        std::int64_t near = 0;
        for (const double far : {13.0, 1e30}) {
            std::int64_t iterations = 0;
            for (EigenOptions options : {window_of(11 / mass, far), window_of(-far, 1 / mass)}) {
                options.method = Method::shift_invert;
                const auto result = eigensolve(this->ctx, problem, options);
                this->expect(result, wanted(values, options), 12);
                iterations += result.iterations;
            }
            if (near == 0) {
                near = iterations;
            }
            EXPECT_LE(iterations, near + 4);
        }
    }
}

/// The discs of Gershgorin do not show that B = 12 I - A is positive definite. A and B have the
/// same eigenvectors.
TYPED_TEST(ShiftInvertTest, WindowsWithAFarEndOfAConsistentMass) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 8, 7, 6);
    SparseMatrix<T> b = test::laplace3d<T>(this->ctx, 8, 7, 6, {}, 1);
    std::vector<double> values = test::laplace3d_spectrum(8, 7, 6);
    for (double& value : values) {
        value /= 12 - value;
    }
    EigenProblem<T> problem{a};
    problem.b = &b;
    for (EigenOptions options : {window_of(7, 1e30), window_of(-1e30, 0.1)}) {
        options.method = Method::shift_invert;
        const auto result = eigensolve(this->ctx, problem, options);
        this->expect(result, wanted(values, options), 1e4);
        EXPECT_LE(result.iterations, 12);
    }
}

}  // namespace
}  // namespace quiver

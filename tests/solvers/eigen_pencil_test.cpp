// SPDX-License-Identifier: BSD-3-Clause
// All iterations for an end of the spectrum of A x = lambda B x, with every scalar, on pencils with
// known spectra and on the cases of eigen_matrix_test.cpp. Those are transformed to A = S L S, B =
// S^2 with powers of two in S.
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T, Method method>
struct Solver {
    using Scalar = T;
    static constexpr Method the_method = method;
};

/// The diagonal of S: 1/2, 1, 2, so that B = S^2 lies between 1/4 and 4.
double weight(std::int64_t row) {
    return std::exp2(static_cast<double>(row % 3) - 1);
}
constexpr double least_weight = 0.25;
constexpr double most_weight = 4;

template <class T>
struct Pencil {
    SparseMatrix<T> a;
    SparseMatrix<T> b;
    /// Ascending.
    std::vector<double> spectrum;
    double norm_a = 0;
    double norm_b = most_weight;
    double least_b = least_weight;

    EigenProblem<T> problem() {
        EigenProblem<T> result{a};
        result.b = &b;
        return result;
    }
};

/// S L S and S^2, whose eigenvalues are those of L.
template <class T>
Pencil<T> weighted(Context& ctx, int n, std::vector<double> spectrum,
                   const std::function<void(std::int64_t, RowEntries<T>&)>& row_of_l) {
    std::sort(spectrum.begin(), spectrum.end());
    std::vector<double> squares;
    squares.reserve(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
        squares.push_back(weight(i) * weight(i));
    }
    const double norm =
        most_weight * std::max(std::abs(spectrum.front()), std::abs(spectrum.back()));
    return {test::matrix_from_rows<T>(ctx, n,
                                      [&](std::int64_t row, RowEntries<T>& entries) {
                                          row_of_l(row, entries);
                                          for (std::size_t e = 0; e < entries.column.size(); ++e) {
                                              const double scale =
                                                  weight(row) * weight(entries.column[e]);
                                              entries.value[e] *= static_cast<real_t<T>>(scale);
                                          }
                                      }),
            test::diagonal<T>(ctx, squares), std::move(spectrum), norm};
}

template <class T>
Pencil<T> weighted_diagonal(Context& ctx, const std::vector<double>& values) {
    return weighted<T>(ctx, static_cast<int>(values.size()), values,
                       [&](std::int64_t row, RowEntries<T>& entries) {
                           const double value = values[static_cast<std::size_t>(row)];
                           entries.add(row, T(static_cast<real_t<T>>(value)));
                       });
}

/// The normalised Laplacian of a ring.
template <class T>
Pencil<T> weighted_ring(Context& ctx, int n) {
    std::vector<double> spectrum;
    spectrum.reserve(static_cast<std::size_t>(n));
    for (int j = 0; j < n; ++j) {
        spectrum.push_back(1 - std::cos(2 * std::numbers::pi * j / n));
    }
    return weighted<T>(ctx, n, spectrum, [n](std::int64_t row, RowEntries<T>& entries) {
        entries.add(row, T(1));
        entries.add((row + 1) % n, T(real_t<T>(-0.5)));
        entries.add((row + n - 1) % n, T(real_t<T>(-0.5)));
    });
}

template <class S>
class EigenPencilTest : public ::testing::Test {
  protected:
    using T = typename S::Scalar;
    static constexpr double eps = static_cast<double>(epsilon_v<T>);
    /// True if the method needs the entries of B.
    static constexpr bool factors_b =
        S::the_method == Method::lanczos || S::the_method == Method::chebyshev;

    static EigenOptions options_for(int k, Which which = Which::smallest) {
        EigenOptions options;
        options.k = k;
        options.which = which;
        options.method = S::the_method;
        return options;
    }

    /// Checks: converged, verified, ||r|| <= tol (||A|| + max |lambda| ||B||) ||x||, errors of
    /// eigenvalues at most ||r|| / lambda_min(B), B-orthonormal.
    EigenResult<T> check(const EigenProblem<T>& problem, const Pencil<T>& pencil,
                         const EigenOptions& options) {
        SCOPED_TRACE("k = " + std::to_string(options.k) +
                     (options.which == Which::smallest ? " smallest" : " largest"));
        EigenResult<T> result = eigensolve(ctx, problem, options);
        EXPECT_EQ(result.method, S::the_method);
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        const auto k = static_cast<std::size_t>(options.k);
        EXPECT_EQ(result.eigenvalues.size(), k);
        if (result.eigenvalues.size() != k) {
            return result;
        }
        const auto& spectrum = pencil.spectrum;
        const double most = std::max(std::abs(spectrum.front()), std::abs(spectrum.back()));
        const double allowed =
            (result.tolerance + 30 * eps) * (pencil.norm_a + most * pencil.norm_b);
        const std::size_t first = options.which == Which::smallest ? 0 : spectrum.size() - k;
        const BlockView<const T> x = result.vectors.view();
        BlockVector<T> ax(ctx, problem.a.row_map(), x.cols);
        BlockVector<T> bx(ctx, problem.a.row_map(), x.cols);
        problem.a.apply(ctx, x, ax.view());
        problem.b->apply(ctx, x, bx.view());
        SmallMatrix<T> gram(x.cols, x.cols);
        tsmttsm(ctx, T(1), x, std::as_const(bx).view(), T(0), gram);
        std::vector<T> minus;
        for (const double value : result.eigenvalues) {
            minus.push_back(T(static_cast<real_t<T>>(-value)));
        }
        axpby(ctx, minus, std::as_const(bx).view(), std::vector<T>(k, T(1)), ax.view());
        std::vector<real_t<T>> residual(k);
        std::vector<real_t<T>> length(k);
        norms(ctx, BlockView<const T>(ax.view()), std::span<real_t<T>>(residual));
        norms(ctx, x, std::span<real_t<T>>(length));
        for (std::size_t j = 0; j < k; ++j) {
            EXPECT_LE(static_cast<double>(residual[j] / length[j]), allowed) << "residual " << j;
            EXPECT_NEAR(static_cast<double>(residual[j] / length[j]), result.residuals[j],
                        30 * eps * (pencil.norm_a + most * pencil.norm_b))
                << "residual " << j;
            EXPECT_NEAR(result.eigenvalues[j], spectrum[first + j], allowed / pencil.least_b)
                << "eigenvalue " << j;
            for (std::size_t i = 0; i < k; ++i) {
                EXPECT_LE(
                    std::abs(gram(static_cast<int>(i), static_cast<int>(j)) - T(i == j ? 1 : 0)),
                    100 * eps * pencil.norm_b / pencil.least_b)
                    << i << ", " << j;
            }
        }
        return result;
    }
    EigenResult<T> check(Pencil<T>& pencil, int k, Which which = Which::smallest) {
        return check(pencil.problem(), pencil, options_for(k, which));
    }
    void check_both_ends(Pencil<T>& pencil, int k) {
        check(pencil, k, Which::smallest);
        check(pencil, k, Which::largest);
    }

    Context ctx = test::make_context();
};

using Solvers = ::testing::Types<
    Solver<float, Method::lobpcg>, Solver<double, Method::lobpcg>,
    Solver<std::complex<float>, Method::lobpcg>, Solver<std::complex<double>, Method::lobpcg>,
    Solver<float, Method::jacobi_davidson>, Solver<double, Method::jacobi_davidson>,
    Solver<std::complex<float>, Method::jacobi_davidson>,
    Solver<std::complex<double>, Method::jacobi_davidson>, Solver<float, Method::lanczos>,
    Solver<double, Method::lanczos>, Solver<std::complex<float>, Method::lanczos>,
    Solver<std::complex<double>, Method::lanczos>, Solver<float, Method::chebyshev>,
    Solver<double, Method::chebyshev>, Solver<std::complex<float>, Method::chebyshev>,
    Solver<std::complex<double>, Method::chebyshev>>;
TYPED_TEST_SUITE(EigenPencilTest, Solvers);

/// Mikota's chain of springs and masses 1 / i has the eigenvalues i^2.
TYPED_TEST(EigenPencilTest, MikotaHasTheSquares) {
    using T = typename TypeParam::Scalar;
    using Real = real_t<T>;
    constexpr int n = 40;
    std::vector<double> masses;
    std::vector<double> spectrum;
    for (int i = 1; i <= n; ++i) {
        masses.push_back(1.0 / i);
        spectrum.push_back(static_cast<double>(i) * i);
    }
    Pencil<T> pencil{test::matrix_from_rows<T>(this->ctx, n,
                                               [](std::int64_t row, RowEntries<T>& entries) {
                                                   entries.add(row, T(Real(2 * (n - row) - 1)));
                                                   if (row > 0) {
                                                       entries.add(row - 1, T(Real(-(n - row))));
                                                   }
                                                   if (row + 1 < n) {
                                                       entries.add(row + 1,
                                                                   T(Real(-(n - row - 1))));
                                                   }
                                               }),
                     test::diagonal<T>(this->ctx, masses),
                     spectrum,
                     4.0 * n,
                     1,
                     1.0 / n};
    this->check_both_ends(pencil, 5);
}

TYPED_TEST(EigenPencilTest, AMultipleOfBAndNothing) {
    using T = typename TypeParam::Scalar;
    for (const double value : {1.0, 0.0}) {
        auto pencil = weighted_diagonal<T>(this->ctx, std::vector<double>(60, value));
        for (const int k : {1, 5, 59, 60}) {
            EXPECT_EQ(this->check(pencil, k).cluster_cut, k < 60) << k;
        }
    }
}

TYPED_TEST(EigenPencilTest, RankTwo) {
    using T = typename TypeParam::Scalar;
    constexpr int n = 50;
    std::vector<double> spectrum(n, 0.0);
    spectrum.front() = -7;
    spectrum.back() = 7;
    auto star = weighted<T>(this->ctx, n, spectrum, [](std::int64_t row, RowEntries<T>& entries) {
        for (std::int64_t other = row == 0 ? 1 : 0; other < (row == 0 ? n : 1); ++other) {
            entries.add(other, T(1));
        }
    });
    for (const int k : {1, 2, 10}) {
        this->check_both_ends(star, k);
    }
}

TYPED_TEST(EigenPencilTest, NormalisedLaplacianOfARing) {
    using T = typename TypeParam::Scalar;
    for (const int n : {20, 90}) {
        auto ring = weighted_ring<T>(this->ctx, n);
        for (const int k : {5, 6}) {
            this->check_both_ends(ring, k);
        }
    }
}

/// With B = c I the vectors have the length c^(-1/2), but residuals and eigenvalues keep their
/// relative accuracy.
TYPED_TEST(EigenPencilTest, MassesFarFromOne) {
    using T = typename TypeParam::Scalar;
    constexpr int n = 120;
    for (const double mass : {1e6, 1e-6}) {
        SCOPED_TRACE("B = " + std::to_string(mass) + " I");
        std::vector<double> spectrum;
        std::vector<double> values;
        spectrum.reserve(n);
        values.reserve(n);
        for (int j = 0; j < n; ++j) {
            values.push_back(j >= 4 ? 5 + 0.05 * j : j < 2 ? 1 : 2);
            spectrum.push_back(values.back() / mass);
        }
        Pencil<T> pencil{test::diagonal<T>(this->ctx, values),
                         test::diagonal<T>(this->ctx, std::vector<double>(n, mass)),
                         spectrum,
                         values.back(),
                         mass,
                         mass};
        for (const Which which : {Which::smallest, Which::largest}) {
            const auto result = this->check(pencil, 4, which);
            EXPECT_EQ(result.tolerance, attainable_tolerance<T>(EigenOptions{}.tol));
        }
    }
}

TYPED_TEST(EigenPencilTest, DiagonalWithManyEqualEntries) {
    using T = typename TypeParam::Scalar;
    auto pencil = weighted_diagonal<T>(this->ctx, {1.25, 1.5, 1.5, 1.25, 1.5, 1.25, 1.5, 0, 1.13,
                                                   1.13, 1.5, 1.13, 1.5, 1.5, 1.13});
    EXPECT_TRUE(this->check(pencil, 2).cluster_cut);
}

TYPED_TEST(EigenPencilTest, StartVectorsThatAreDependentOrExact) {
    using T = typename TypeParam::Scalar;
    auto ring = weighted_ring<T>(this->ctx, 90);
    const EigenOptions options = this->options_for(5);
    const auto plain = this->check(ring.problem(), ring, options);
    BlockVector<T> start(this->ctx, ring.a.row_map(), 8);
    const std::vector<int> order{0, 1, 2, 3, 0, 0, 3, 2};
    gather_columns(this->ctx, plain.vectors.view(), order, start.view());
    for (const int columns : {1, 4, 8}) {
        EigenProblem<T> problem = ring.problem();
        problem.start = std::as_const(start).columns(0, columns);
        this->check(problem, ring, options);
    }
    fill(this->ctx, T(0), start.view());
    EigenProblem<T> zero = ring.problem();
    zero.start = std::as_const(start).view();
    this->check(zero, ring, options);
}

TYPED_TEST(EigenPencilTest, NearlyAllPairs) {
    using T = typename TypeParam::Scalar;
    std::vector<double> values;
    values.reserve(31);
    for (int i = 0; i < 31; ++i) {
        values.push_back(i % 7 + (i < 20 ? 0 : 0.25));
    }
    auto pencil = weighted_diagonal<T>(this->ctx, values);
    for (const int k : {20, 29, 30, 31}) {
        this->check_both_ends(pencil, k);
    }
}

TYPED_TEST(EigenPencilTest, TheTightestToleranceOfTheScalar) {
    using T = typename TypeParam::Scalar;
    auto ring = weighted_ring<T>(this->ctx, 90);
    EigenOptions options = this->options_for(5);
    options.tol = 1e-20;
    const auto result = this->check(ring.problem(), ring, options);
    EXPECT_TRUE(result.tolerance_raised);
    EXPECT_GT(result.tolerance, this->eps);
}

TYPED_TEST(EigenPencilTest, GivingUpAndStoppingAreResults) {
    using T = typename TypeParam::Scalar;
    auto ring = weighted_ring<T>(this->ctx, 700);
    for (const bool by_callback : {false, true}) {
        EigenOptions options = this->options_for(6);
        if (by_callback) {
            options.keep_going = [](const IterationEvent&) { return false; };
        } else {
            options.max_iterations = 4;
        }
        const auto result = eigensolve(this->ctx, ring.problem(), options);
        EXPECT_FALSE(result.converged);
        EXPECT_EQ(result.interrupted, by_callback);
        EXPECT_EQ(result.multiplicity, Multiplicity::unverified);
        EXPECT_NE(result.message, "");
    }
}

/// An operator whose products, from the fifth on, have NaN in one column, or throw on the last
/// rank.
template <class T>
class Failing final : public Operator<T> {
  public:
    Failing(Operator<T>& a, bool throws) : a_(a), throws_(throws) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const bool now = ++applications_ >= 5;
        if (now && throws_ && row_map().rank() == row_map().ranks() - 1) {
            throw std::runtime_error("out of luck");
        }
        a_.apply(ctx, x, y);
        if (now && !throws_) {
            fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y.columns(0, 1));
        }
    }

  private:
    Operator<T>& a_;
    bool throws_;
    int applications_ = 0;
};

TYPED_TEST(EigenPencilTest, ABThatFailsEndsAllRanks) {
    using T = typename TypeParam::Scalar;
    auto ring = weighted_ring<T>(this->ctx, 97);
    EigenProblem<T> problem = ring.problem();
    Failing<T> nan(ring.b, false);
    problem.b = &nan;
    if constexpr (TestFixture::factors_b) {
        EXPECT_THROW(eigensolve(this->ctx, problem, this->options_for(3)), InputError);
        return;
    }
    EXPECT_THROW(eigensolve(this->ctx, problem, this->options_for(3)), NumericalError);
    Failing<T> throwing(ring.b, true);
    problem.b = &throwing;
    const bool here = ring.b.row_map().rank() == ring.b.row_map().ranks() - 1;
    try {
        eigensolve(this->ctx, problem, this->options_for(3));
        ADD_FAILURE() << "no error";
    } catch (const NumericalError& error) {
        EXPECT_FALSE(here) << error.what();
        EXPECT_TRUE(error.collective());
    } catch (const std::runtime_error& error) {
        EXPECT_TRUE(here) << error.what();
    }
}

TYPED_TEST(EigenPencilTest, IndefiniteMassesAndUnsymmetricStiffnessAreErrors) {
    using T = typename TypeParam::Scalar;
    auto ring = weighted_ring<T>(this->ctx, 90);
    std::vector<double> signs;
    signs.reserve(90);
    for (int i = 0; i < 90; ++i) {
        signs.push_back(i % 3 == 0 ? -1 : 1);
    }
    auto wrong = test::diagonal<T>(this->ctx, signs);
    EigenProblem<T> problem = ring.problem();
    problem.b = &wrong;
    EXPECT_THROW(eigensolve(this->ctx, problem, this->options_for(3)), NumericalError);
    auto skewed = test::matrix_from_rows<T>(this->ctx, 90, [](std::int64_t row, auto& entries) {
        entries.add(row, T(2));
        if (row + 1 < 90) {
            entries.add(row + 1, T(real_t<T>(-1.5)));
        }
        if (row > 0) {
            entries.add(row - 1, T(real_t<T>(-0.5)));
        }
    });
    EigenProblem<T> unsymmetric{skewed};
    unsymmetric.b = &ring.b;
    EXPECT_THROW(eigensolve(this->ctx, unsymmetric, this->options_for(3)), NumericalError);
}

TYPED_TEST(EigenPencilTest, SingularMassesEnd) {
    using T = typename TypeParam::Scalar;
    auto ring = weighted_ring<T>(this->ctx, 12);
    std::vector<double> masses{0, 0, 0};
    masses.reserve(12);
    for (int i = 1; i <= 9; ++i) {
        masses.push_back(i);
    }
    auto singular = test::diagonal<T>(this->ctx, masses);
    EigenProblem<T> problem = ring.problem();
    problem.b = &singular;
    const EigenOptions options = this->options_for(2);
    // LOBPCG may never use a direction in the null space of B; Jacobi-Davidson has no other
    // directions left, and the others factorise B.
    try {
        eigensolve(this->ctx, problem, options);
        EXPECT_EQ(options.method, Method::lobpcg);
    } catch (const NumericalError& error) {
        EXPECT_TRUE(error.collective()) << error.what();
    }
}

}  // namespace
}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Dense solves: every selection of eigenvalues is compared with spectra that are known by
// construction or computed by another dense solver. Also the rule by which eigensolve() chooses a
// dense solve.
#include "solvers/eigen/dense_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/dense/cusolver.hpp"
#include "solvers/dense/dense_pencil.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/solvers/dense_eigen_checks.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::all_ends;
using test::as_oracle;
using test::dense;
using test::stored;
using test::wanted;
using test::with_spectrum;
template <class T>
using Dense = test::DenseRows<T>;

/// A matrix as an operator without stored entries. On request its products are NaN, or throw on the
/// last rank.
template <class T>
class FreeOperator final : public Operator<T> {
  public:
    explicit FreeOperator(Operator<T>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        a_.apply(ctx, x, y);
        products += x.cols;
        if (has_nan) {
            scale(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y);
        }
        if (fails && ctx.comm().rank() == ctx.comm().size() - 1) {
            throw std::runtime_error("no product");
        }
    }
    bool fails = false;
    bool has_nan = false;
    std::int64_t products = 0;

  private:
    Operator<T>& a_;
};

template <class T>
class DenseEigenTest : public test::DenseEigenChecks<T> {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(DenseEigenTest, Scalars);

TYPED_TEST(DenseEigenTest, EverySelectionOfEverySize) {
    using T = TypeParam;
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (const int n : {1, 2, 3, 17, 66, 131}) {
        std::vector<double> spectrum;
        for (int i = 0; i < n; ++i) {  // a third of the values are copies
            const bool copy = i % 3 == 2;
            spectrum.push_back(copy ? spectrum.back() : uniform(this->random));
        }
        const Dense<T> a = with_spectrum<T>(this->random, spectrum);
        SparseMatrix<T> matrix = stored(this->ctx, a);
        std::sort(spectrum.begin(), spectrum.end());
        for (const Which which : all_ends) {
            for (const int k : {1, (n + 2) / 3, n}) {
                SCOPED_TRACE(std::string(to_string(which)) + ", k = " + std::to_string(k) + " of " +
                             std::to_string(n));
                EigenOptions options = dense(which, k);
                options.target = uniform(this->random);
                const auto result = eigensolve(this->ctx, EigenProblem<T>{matrix}, options);
                this->expect(result, wanted(spectrum, options), 1, &matrix);
                EXPECT_LE(result.norm_estimate, 1 + 1e-5);
            }
        }
        EigenOptions window = dense(Which::smallest, 1);
        window.window = Window{-0.4, 0.3};
        this->expect(eigensolve(this->ctx, EigenProblem<T>{matrix}, window),
                     wanted(spectrum, window), 1, &matrix);
        window.window = Window{2, 3};
        this->expect(eigensolve(this->ctx, EigenProblem<T>{matrix}, window), {}, 1);
    }
}

/// Spectra over up to 14 decades, of both signs, with copies.
TYPED_TEST(DenseEigenTest, ConditionsToTheEndOfDoublePrecision) {
    using T = TypeParam;
    for (const double decades : {3.0, 8.0, 14.0}) {
        std::vector<double> spectrum;
        for (int i = 0; i < 30; ++i) {
            const double size = std::pow(10.0, -decades * i / 29.0);
            spectrum.insert(spectrum.end(), 2, i % 3 == 0 ? -size : size);
        }
        SparseMatrix<T> matrix = stored(this->ctx, with_spectrum<T>(this->random, spectrum));
        std::sort(spectrum.begin(), spectrum.end());
        for (const Which which : all_ends) {
            const EigenOptions options = dense(which, 9);
            const auto result = eigensolve(this->ctx, EigenProblem<T>{matrix}, options);
            this->expect(result, wanted(spectrum, options), 1, &matrix);
        }
    }
}

TYPED_TEST(DenseEigenTest, TheLastCopyIsCut) {
    using T = TypeParam;
    const std::vector<double> spectrum{1, 2, 2, 2, 3, 5, 5};
    SparseMatrix<T> matrix = stored(this->ctx, with_spectrum<T>(this->random, spectrum));
    const auto cut = [&](Which which, int k, double target = 0) {
        EigenOptions options = dense(which, k);
        options.target = target;
        return eigensolve(this->ctx, EigenProblem<T>{matrix}, options).cluster_cut;
    };
    EXPECT_TRUE(cut(Which::smallest, 2));
    EXPECT_FALSE(cut(Which::smallest, 4));
    EXPECT_FALSE(cut(Which::smallest, 7));
    EXPECT_TRUE(cut(Which::largest, 1));
    EXPECT_FALSE(cut(Which::largest, 2));
    EXPECT_TRUE(cut(Which::target, 2, 1.9));
    EXPECT_TRUE(cut(Which::both_ends, 2));
    EXPECT_FALSE(cut(Which::both_ends, 3));
    EXPECT_FALSE(cut(Which::both_ends, 7));
    EXPECT_TRUE(cut(Which::largest_magnitude, 4));
    // Every copy of an eigenvalue at an end of a window is inside.
    EigenOptions window = dense(Which::smallest, 1);
    window.window = Window{2, 5};
    this->expect(eigensolve(this->ctx, EigenProblem<T>{matrix}, window), {2, 2, 2, 3, 5, 5}, 5);
}

/// Eigenvalues with the same bits on both sides of a cut are different pairs.
TYPED_TEST(DenseEigenTest, EqualBitsAtTheCut) {
    using T = TypeParam;
    const std::vector<double> twos(7, 2.0);
    SparseMatrix<T> matrix = test::diagonal<T>(this->ctx, twos);
    for (const Which which : all_ends) {
        for (int k = 1; k <= 7; ++k) {
            const std::vector<double> exact(static_cast<std::size_t>(k), 2.0);
            this->expect(eigensolve(this->ctx, EigenProblem<T>{matrix}, dense(which, k)), exact, 2,
                         &matrix);
        }
    }
}

/// Norms whose squares overflow or underflow.
TYPED_TEST(DenseEigenTest, NormsOfEverySize) {
    using T = TypeParam;
    const bool is_double = sizeof(real_t<T>) == sizeof(double);
    std::vector<double> spectrum(40);
    for (int i = 0; i < 40; ++i) {
        spectrum[static_cast<std::size_t>(i)] = (i < 20 ? -1 + 0.02 * i : 0.5 + 0.01 * i);
    }
    const Dense<T> a = with_spectrum<T>(this->random, spectrum);
    for (const double size : {is_double ? 1e-160 : 1e-30, is_double ? 1e160 : 1e30}) {
        SparseMatrix<T> matrix = stored(this->ctx, a, size);
        for (const Method method : {Method::dense, Method::automatic}) {
            EigenOptions options = dense(Which::largest, 12);
            options.method = method;
            const auto result = eigensolve(this->ctx, EigenProblem<T>{matrix}, options);
            std::vector<double> exact = wanted(spectrum, options);
            std::sort(exact.begin(), exact.end());
            for (double& value : exact) {
                value *= size;
            }
            this->expect(result, exact, size);
            for (const double residual : result.residuals) {
                EXPECT_LE(residual, this->rounding(result) * size);
                EXPECT_GT(residual, 0);
            }
        }
    }
    std::vector<double> zero(12, 0.0);
    SparseMatrix<T> nothing = test::diagonal<T>(this->ctx, zero);
    this->expect(eigensolve(this->ctx, EigenProblem<T>{nothing}, dense(Which::smallest, 12)), zero,
                 0, &nothing);
}

/// With eigenvectors as constraints the other pairs are found, also with B.
TYPED_TEST(DenseEigenTest, ConstraintsLeaveTheOtherPairs) {
    using T = TypeParam;
    std::vector<double> spectrum(30);
    for (int i = 0; i < 30; ++i) {
        spectrum[static_cast<std::size_t>(i)] = -1 + 0.06 * i;
    }
    SparseMatrix<T> a = stored(this->ctx, with_spectrum<T>(this->random, spectrum));
    SparseMatrix<T> b = test::diagonal<T>(this->ctx, std::vector<double>(30, 4.0));
    for (const bool with_b : {false, true}) {
        EigenProblem<T> problem{a};
        problem.b = with_b ? &b : nullptr;
        const auto first = eigensolve(this->ctx, problem, dense(Which::both_ends, 7));
        problem.constraints = first.vectors.view();
        const auto rest = eigensolve(this->ctx, problem, dense(Which::smallest, 23));
        std::vector<double> left(spectrum.begin() + 3, spectrum.end() - 4);
        for (double& value : left) {
            value /= with_b ? 4 : 1;
        }
        this->expect(rest, left, 2);
    }
}

/// A = diag(1, .., 20) and the constraint e_19 + e_20: the top of P A P is 19.5.
TYPED_TEST(DenseEigenTest, ConstraintsThatAreNoEigenvectorsProject) {
    using T = TypeParam;
    std::vector<double> values;
    for (int i = 1; i <= 20; ++i) {
        values.push_back(i);
    }
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, values);
    SmallMatrix<T> sum(static_cast<int>(a.row_map().local_rows()), 1);
    for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
        sum(static_cast<int>(i), 0) = T(a.row_map().first_row() + i >= 18 ? 3 : 0);
    }
    BlockVector<T> constraint(this->ctx, a.row_map(), 1);
    copy(this->ctx, sum.view(), constraint.view());
    EigenProblem<T> problem{a};
    problem.constraints = std::as_const(constraint).view();
    const auto result = eigensolve(this->ctx, problem, dense(Which::largest, 3));
    this->expect(result, {17, 18, 19.5}, 20);
    EXPECT_THROW(eigensolve(this->ctx, problem, dense(Which::largest, 20)), InputError);
}

/// The same bits on every rank, and in every run.
TYPED_TEST(DenseEigenTest, AllRanksHaveTheSameBits) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 6, 5, 4);
    const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, dense(Which::smallest, 120));
    const auto again = eigensolve(this->ctx, EigenProblem<T>{a}, dense(Which::smallest, 120));
    test::check_pairs(this->ctx, a, result, test::laplace3d_spectrum(6, 5, 4), 120,
                      Which::smallest);
    EXPECT_EQ(result.eigenvalues, again.eigenvalues);
    EXPECT_EQ(result.residuals, again.residuals);
    for (const double value : result.eigenvalues) {
        EXPECT_EQ(this->ctx.comm().max(value), value);
        EXPECT_EQ(this->ctx.comm().max(-value), -value);
    }
}

/// Projected matrices of small orders go to Eigen, those of large ones to LAPACK on rank 0. Both
/// read the lower triangle only.
TYPED_TEST(DenseEigenTest, ProjectedMatricesOfEveryOrder) {
    using T = TypeParam;
    for (const int n : {0, 1, 31, 255, 256, 300}) {
        std::vector<double> spectrum(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < spectrum.size(); ++i) {
            const std::size_t pair = i / 2;
            spectrum[i] = static_cast<double>(pair) - 20;
        }
        Dense<T> a = with_spectrum<T>(this->random, spectrum);
        SmallMatrix<T> h(n, n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                h(i, j) = j <= i ? a[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]
                                 : T(std::numeric_limits<real_t<T>>::quiet_NaN());
            }
        }
        const HermitianEigen<T> eigen = projected_eigen(this->ctx, h);
        ASSERT_TRUE(eigen.converged);
        ASSERT_EQ(eigen.values.size(), spectrum.size());
        ASSERT_EQ(eigen.vectors.rows(), n);
        const double bound = 100 * static_cast<double>(epsilon_v<T>) * (n + 20);
        double worst = 0;
        double sum = 0;
        for (int j = 0; j < n; ++j) {
            const auto value = static_cast<double>(eigen.values[static_cast<std::size_t>(j)]);
            EXPECT_NEAR(value, spectrum[static_cast<std::size_t>(j)], bound);
            for (int i = 0; i < n; ++i) {
                T image = 0;
                T inner = 0;
                for (int l = 0; l < n; ++l) {
                    const auto row = static_cast<std::size_t>(i);
                    const auto column = static_cast<std::size_t>(l);
                    image += a[row][column] * eigen.vectors(l, j);
                    inner += conjugate(eigen.vectors(l, i)) * eigen.vectors(l, j);
                }
                const T difference =
                    image - eigen.values[static_cast<std::size_t>(j)] * eigen.vectors(i, j);
                worst = std::max({worst, static_cast<double>(std::abs(difference)),
                                  static_cast<double>(std::abs(inner - T(i == j ? 1 : 0)))});
                sum += static_cast<double>(std::abs(eigen.vectors(i, j)));
            }
        }
        EXPECT_LE(worst, bound) << n << " rows";
        EXPECT_EQ(this->ctx.comm().max(sum), sum);
        EXPECT_EQ(this->ctx.comm().max(-sum), -sum);
    }
}

/// cuSOLVER, called for small matrices: A x = lambda x with orthonormal x.
template <class W>
class CusolverTest : public ::testing::Test {};
using WideScalars = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(CusolverTest, WideScalars);

TYPED_TEST(CusolverTest, EigenpairsOfSmallMatrices) {
    using W = TypeParam;
    Context ctx = test::make_context();
    if (ctx.place() != Place::device || !ctx.service<Cusolver>().is_available()) {
        GTEST_SKIP() << "no GPU or no cuSOLVER";
    }
    std::mt19937_64 random = test::make_generator();
    for (const int n : {1, 2, 33, 200}) {
        std::vector<double> spectrum(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < spectrum.size(); ++i) {
            const std::size_t pair = i / 2;
            spectrum[i] = static_cast<double>(pair) - 20;
        }
        const Dense<W> a = with_spectrum<W>(random, spectrum);
        SmallMatrix<W> x(n, n);
        for (int i = 0; i < n; ++i) {
            std::copy_n(a[static_cast<std::size_t>(i)].data(), n, &x(i, 0));
        }
        std::vector<double> values;
        ASSERT_EQ(ctx.service<Cusolver>().eigen(ctx, x, values), 0);
        ASSERT_EQ(values.size(), spectrum.size());
        const double bound = 1e-13 * (n + 20);
        for (int j = 0; j < n; ++j) {
            EXPECT_NEAR(values[static_cast<std::size_t>(j)], spectrum[static_cast<std::size_t>(j)],
                        bound);
            for (int i = 0; i < n; ++i) {
                W image = 0;
                W inner = 0;
                for (int l = 0; l < n; ++l) {
                    image += a[static_cast<std::size_t>(i)][static_cast<std::size_t>(l)] *
                             conjugate(x(j, l));
                    inner += conjugate(x(j, l)) * x(i, l);
                }
                EXPECT_LE(
                    std::abs(image - values[static_cast<std::size_t>(j)] * conjugate(x(j, i))),
                    bound);
                EXPECT_LE(std::abs(inner - W(i == j ? 1 : 0)), bound);
            }
        }
    }
}

TEST(Cusolver, AFileThatTheUserNamesMustWork) {
    const test::Environment chosen("QUIVER_CUSOLVER", "/no/libcusolver.so.12");
    Context ctx = test::make_context();
    if (ctx.place() == Place::device) {
        EXPECT_THROW(ctx.service<Cusolver>(), UnsupportedError);
    } else {
        EXPECT_FALSE(ctx.service<Cusolver>().is_available()) << "on the host no library is opened";
    }
}

/// On a GPU large matrices go to cuSOLVER, whose pairs must agree with those of LAPACK.
TEST(Cusolver, LargeMatricesWithB) {
    Context ctx = test::make_context();
    const int n = DensePencil<double>::least_device_order + 3;
    if (!DensePencil<double>::uses_cusolver(ctx, n)) {
        GTEST_SKIP() << "no GPU, no LAPACK or no cuSOLVER";
    }
    const auto solve = [&](Context& place) {
        SparseMatrix<double> a = test::laplace3d<double>(place, n, 1, 1);
        std::vector<double> of_b(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < of_b.size(); ++i) {
            of_b[i] = 1 + static_cast<double>(i % 7);
        }
        SparseMatrix<double> b = test::diagonal<double>(place, of_b);
        return eigensolve(place, EigenProblem<double>{a, &b}, dense(Which::largest, 40));
    };
    const EigenResult<double> on_gpu = solve(ctx);
    const test::Environment none("QUIVER_CUSOLVER", "none");
    Context other = test::make_context();
    EXPECT_FALSE(DensePencil<double>::uses_cusolver(other, n));
    const EigenResult<double> on_host = solve(other);
    EXPECT_TRUE(on_gpu.converged) << on_gpu.message;
    ASSERT_EQ(on_gpu.eigenvalues.size(), on_host.eigenvalues.size());
    for (std::size_t j = 0; j < on_host.eigenvalues.size(); ++j) {
        EXPECT_NEAR(on_gpu.eigenvalues[j], on_host.eigenvalues[j], 1e-12);
    }
}

/// Without LAPACK, Eigen computes the result. A Context loads LAPACK once.
TYPED_TEST(DenseEigenTest, WithoutLapack) {
    using T = TypeParam;
    std::optional<test::Environment> none(std::in_place, "QUIVER_LAPACK", "none");
    Context other = test::make_context();
    std::vector<double> of_b(40);
    for (std::size_t i = 0; i < of_b.size(); ++i) {
        of_b[i] = 1 + static_cast<double>(i % 7);
    }
    std::vector<double> spectrum(40);
    for (std::size_t i = 0; i < spectrum.size(); ++i) {
        const std::size_t pair = i / 2;
        spectrum[i] = static_cast<double>(pair) - 10;
    }
    const Dense<T> dense_a = with_spectrum<T>(this->random, spectrum);
    SparseMatrix<T> a = stored(other, dense_a);
    SparseMatrix<T> b = test::diagonal<T>(other, of_b);
    const auto plain = eigensolve(other, EigenProblem<T>{a}, dense(Which::both_ends, 11));
    this->expect(plain, wanted(spectrum, dense(Which::both_ends, 11)), 10);
    EigenProblem<T> pencil{a};
    pencil.b = &b;
    const auto by_eigen = eigensolve(other, pencil, dense(Which::largest, 40));
    pencil.constraints = by_eigen.vectors.view().columns(0, 10);
    const auto rest_by_eigen = eigensolve(other, pencil, dense(Which::largest, 30));
    none.reset();
    SparseMatrix<T> same_a = stored(this->ctx, dense_a);
    SparseMatrix<T> same_b = test::diagonal<T>(this->ctx, of_b);
    EigenProblem<T> same{same_a};
    same.b = &same_b;
    const auto by_lapack = eigensolve(this->ctx, same, dense(Which::largest, 40));
    this->expect(by_eigen, by_lapack.eigenvalues, 70);
    this->expect(rest_by_eigen, {by_lapack.eigenvalues.begin() + 10, by_lapack.eigenvalues.end()},
                 70);
}

TYPED_TEST(DenseEigenTest, ErrorsReachAllRanks) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 4, 4, 3);
    EigenProblem<T> pencil{a};
    std::vector<double> signs(48, 1.0);
    signs[30] = -1;
    SparseMatrix<T> indefinite = test::diagonal<T>(this->ctx, signs);
    pencil.b = &indefinite;
    EXPECT_THROW(eigensolve(this->ctx, pencil, dense(Which::smallest, 3)), IndefiniteError);

    FreeOperator<T> failing(a);
    failing.fails = true;
    const bool is_last = this->ctx.comm().rank() == this->ctx.comm().size() - 1;
    try {
        eigensolve(this->ctx, EigenProblem<T>{failing}, dense(Which::smallest, 3));
        FAIL();
    } catch (const NumericalError&) {
        EXPECT_FALSE(is_last);
    } catch (const std::runtime_error& error) {
        EXPECT_TRUE(is_last);
        EXPECT_STREQ(error.what(), "no product");
    }

    FreeOperator<T> nan(a);
    nan.has_nan = true;
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{nan}, dense(Which::smallest, 3)),
                 NumericalError);
}

TYPED_TEST(DenseEigenTest, ACallbackEndsTheSolveBeforeItsArithmetic) {
    using T = TypeParam;
    SparseMatrix<T> a = test::laplace3d<T>(this->ctx, 4, 4, 3);
    EigenOptions options = dense(Which::smallest, 5);
    int calls = 0;
    options.keep_going = [&](const IterationEvent& event) {
        ++calls;
        EXPECT_EQ(event.iteration, 1);
        return this->ctx.comm().rank() != this->ctx.comm().size() - 1;
    };
    const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(result.interrupted);
    EXPECT_FALSE(result.converged);
    EXPECT_EQ(result.eigenvalues.size(), 0u);
    EXPECT_EQ(result.vectors.width(), 0);
}

TEST(DenseRule, AutomaticChoosesByShape) {
    using T = double;
    Context ctx = test::make_context();
    const auto chosen = [&](std::int64_t n, Which which, int k, bool window = false) {
        SparseMatrix<T> a =
            test::diagonal<T>(ctx, std::vector<double>(static_cast<std::size_t>(n), 1.0));
        EigenOptions options = dense(which, k);
        options.method = Method::automatic;
        if (window) {
            options.window = Window{0, 1};
        }
        return choose_method(ctx, EigenProblem<T>{a}, options);
    };
    EXPECT_EQ(chosen(1024, Which::smallest, 4).method, Method::dense);
    EXPECT_EQ(chosen(1024, Which::both_ends, 4).reason,
              "1024 rows are few enough for a dense solve");
    EXPECT_EQ(chosen(1025, Which::smallest, 4).method, Method::chebyshev);
    EXPECT_EQ(chosen(1024, Which::target, 4).method, Method::dense);
    EXPECT_EQ(chosen(1024, Which::smallest, 4, true).method, Method::dense);
    EXPECT_EQ(chosen(4096, Which::smallest, 512).method, Method::dense);
    EXPECT_EQ(chosen(4096, Which::smallest, 511).method, Method::chebyshev);
    const int more = DensePencil<double>::uses_cusolver(ctx, 4097) ? 2 : 1;
    EXPECT_EQ(chosen(more * 4096 + 1, Which::smallest, 4000).method, Method::chebyshev);
}

TEST(DenseRule, OperatorsWithoutEntriesAndProtectedOnes) {
    using T = double;
    Context ctx = test::make_context();
    EigenOptions options = dense(Which::smallest, 4);
    options.method = Method::automatic;
    SparseMatrix<T> small = test::laplace3d<T>(ctx, 8, 8, 8);
    SparseMatrix<T> larger = test::laplace3d<T>(ctx, 9, 8, 8);
    FreeOperator<T> few(small);
    FreeOperator<T> many(larger);
    const auto result = eigensolve(ctx, EigenProblem<T>{few}, options);
    EXPECT_EQ(result.method, Method::dense);
    EXPECT_NE(result.method_reason.find("512 rows are few; products with the columns"),
              std::string::npos);
    EXPECT_EQ(result.operator_applications, 512 + 4);
    EXPECT_EQ(few.products, 512 + 4);
    EXPECT_EQ(choose_method(ctx, EigenProblem<T>{many}, options).method, Method::chebyshev);
    AbftOptions protection;
    protection.mode = AbftMode::correct;
    ProtectedMatrix<T> guarded(ctx, small, protection);
    EigenProblem<T> problem{guarded};
    problem.protection = &guarded;
    EXPECT_EQ(choose_method(ctx, problem, options).method, Method::lanczos);
    options.method = Method::dense;
    test::check_pairs<T>(ctx, small, eigensolve(ctx, problem, options),
                         test::laplace3d_spectrum(8, 8, 8), 4, Which::smallest);
}

}  // namespace
}  // namespace quiver

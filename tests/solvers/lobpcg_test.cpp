// SPDX-License-Identifier: BSD-3-Clause
// LOBPCG: blocks of all widths, its polynomial, preconditioners. Cases that all solvers share are
// in eigen_matrix_test.cpp.
#include "solvers/eigen/lobpcg.hpp"

#include <algorithm>
#include <complex>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/lobpcg/chebyshev_inverse.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class LobpcgTest : public ::testing::Test {
  protected:
    EigenResult<T> check(const EigenProblem<T>& problem, const std::vector<double>& spectrum,
                         const EigenOptions& options) {
        EigenResult<T> result = lobpcg(ctx, problem, options);
        EXPECT_EQ(result.method, Method::lobpcg);
        test::check_pairs(ctx, problem.a, result, spectrum, options.k, options.which);
        return result;
    }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(LobpcgTest, Scalars);

EigenOptions options_for(int k, Which which = Which::smallest, int block = 0) {
    EigenOptions options;
    options.k = k;
    options.which = which;
    options.block = block;
    return options;
}

TYPED_TEST(LobpcgTest, EveryCopyOfTheLaplacianAtBothEnds) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 12, 12, 12);
    const auto spectrum = test::laplace3d_spectrum(12, 12, 12);
    EXPECT_FALSE(this->check({a}, spectrum, options_for(10)).cluster_cut);
    EXPECT_FALSE(this->check({a}, spectrum, options_for(10, Which::largest)).cluster_cut);
}

TYPED_TEST(LobpcgTest, BlocksNarrowerThanTheWantedSetLockAndContinue) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 8, 8, 8);
    const auto spectrum = test::laplace3d_spectrum(8, 8, 8);
    for (const int block : {1, 2, 5, 20, 64}) {
        SCOPED_TRACE(block);
        const auto result = this->check({a}, spectrum, options_for(11, Which::smallest, block));
        EXPECT_EQ(result.block, block);
    }
    // k = 8 cuts a threefold eigenvalue (1, 3, 3, then 1 of 3).
    EXPECT_TRUE(this->check({a}, spectrum, options_for(8, Which::smallest, 3)).cluster_cut);
    this->check({a}, spectrum, options_for(1));
}

TYPED_TEST(LobpcgTest, DiagonalWithManyEqualEntries) {
    std::vector<double> values{1.25, 1.5,  1.5, 1.25, 1.5, 1.25, 1.5, 0,
                               1.13, 1.13, 1.5, 1.13, 1.5, 1.5,  1.13};
    auto a = test::diagonal<TypeParam>(this->ctx, values);
    std::sort(values.begin(), values.end());
    for (const int block : {0, 1, 2, 3}) {
        EXPECT_TRUE(this->check({a}, values, options_for(2, Which::smallest, block)).cluster_cut);
    }
}

TYPED_TEST(LobpcgTest, AlmostAllPairs) {
    std::vector<double> values;
    for (int i = 0; i < 40; ++i) {
        const int turn = i / 3;
        values.push_back(i % 3 + 0.25 * turn);
    }
    auto a = test::diagonal<TypeParam>(this->ctx, values);
    std::sort(values.begin(), values.end());
    for (const int k : {13, 14, 38, 39, 40}) {
        this->check({a}, values, options_for(k));
        this->check({a}, values, options_for(k, Which::largest, 4));
    }
    auto one = test::diagonal<TypeParam>(this->ctx, {2.5});
    this->check({one}, {2.5}, options_for(1));
}

TYPED_TEST(LobpcgTest, StartVectorsDependentExactOrMany) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 9, 8, 7);
    const auto spectrum = test::laplace3d_spectrum(9, 8, 7);
    const EigenOptions options = options_for(6);
    const auto plain = this->check({a}, spectrum, options);
    const BlockView<const T> x = plain.vectors.view();
    BlockVector<T> many(this->ctx, a.row_map(), 40);
    fill_random(this->ctx, 5, many);
    const std::vector<int> order{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5};
    gather_columns(this->ctx, x, order, many.columns(0, 12));
    for (const BlockView<const T> start :
         {x, x.columns(0, 1), std::as_const(many).columns(0, 12), std::as_const(many).columns(5, 3),
          std::as_const(many).view()}) {
        EigenProblem<T> problem{a};
        problem.start = start;
        const auto result = this->check(problem, spectrum, options);
        if (start.cols >= 6) {
            EXPECT_LT(result.operator_applications, plain.operator_applications);
        }
    }
    fill(this->ctx, T(0), many.view());
    EigenProblem<T> zero{a};
    zero.start = std::as_const(many).view();
    this->check(zero, spectrum, options);
}

TYPED_TEST(LobpcgTest, ConstraintsShiftTheWantedSet) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 9, 8, 7);
    const auto spectrum = test::laplace3d_spectrum(9, 8, 7);
    for (const Which which : {Which::smallest, Which::largest}) {
        const auto first = this->check({a}, spectrum, options_for(5, which));
        EigenProblem<T> rest{a};
        rest.constraints = first.vectors.view();
        std::vector<double> left = spectrum;
        const auto begin = which == Which::smallest ? left.begin() : left.end() - 5;
        left.erase(begin, begin + 5);
        for (const int block : {0, 2}) {
            this->check(rest, left, options_for(4, which, block));
        }
    }
}

/// The result has pairs of P A P: for A = diag(1, .., 60) and the constraint e_0 + e_1 the smallest
/// eigenvalue is 1.5, with the vector (e_0 - e_1) / sqrt(2).
TYPED_TEST(LobpcgTest, ConstraintsThatAreNoEigenvectorsProject) {
    using T = TypeParam;
    constexpr int n = 60;
    std::vector<double> values(n);
    std::iota(values.begin(), values.end(), 1.0);
    auto a = test::diagonal<T>(this->ctx, values);
    BlockVector<T> host(this->ctx, a.row_map(), 1, 0, Place::host);
    for (std::int64_t i = 0; i < host.rows(); ++i) {
        host.view()(i, 0) = T(a.row_map().first_row() + i < 2 ? 3 : 0);
    }
    BlockVector<T> constraint(this->ctx, a.row_map(), 1);
    copy(this->ctx, host.view(), constraint.view());
    EigenProblem<T> problem{a};
    problem.constraints = std::as_const(constraint).view();
    for (const int block : {0, 1, 2}) {
        const auto result = lobpcg(this->ctx, problem, options_for(3, Which::smallest, block));
        EXPECT_TRUE(result.converged) << result.message;
        const std::vector<double> exact{1.5, 3, 4};
        ASSERT_EQ(result.eigenvalues.size(), 3u);
        for (std::size_t j = 0; j < 3; ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j],
                        n * (result.tolerance + 10 * static_cast<double>(epsilon_v<T>)));
        }
    }
}

TYPED_TEST(LobpcgTest, PreconditionersSaveProducts) {
    using T = TypeParam;
    // Eigenvalues from 1 to 1000, equidistant in the logarithm. The preconditioner is the inverse,
    // exact or up to a factor of two.
    constexpr int n = 600;
    std::vector<double> values;
    std::vector<double> inverse;
    std::vector<double> rough;
    for (int i = 0; i < n; ++i) {
        values.push_back(std::pow(1000, (i * 7 % n) / (n - 1.0)));
        inverse.push_back(1 / values.back());
        rough.push_back((i % 2 + 1) / values.back());
    }
    auto a = test::diagonal<T>(this->ctx, values);
    auto exact = test::diagonal<T>(this->ctx, inverse);
    auto diagonal = test::diagonal<T>(this->ctx, rough);
    std::vector<double> spectrum = values;
    std::sort(spectrum.begin(), spectrum.end());
    EigenOptions options = options_for(5);
    options.tol = 1e-6;
    const auto plain = this->check({a}, spectrum, options);
    EigenProblem<T> problem{a};
    for (Operator<T>* preconditioner : {&exact, &diagonal}) {
        problem.preconditioner = preconditioner;
        const auto result = this->check(problem, spectrum, options);
        EXPECT_LT(result.operator_applications, plain.operator_applications);
    }
}

/// W <- (1 - c(A)) / (A - sigma) W with the Chebyshev polynomial c of chebyshev_inverse.hpp.
TYPED_TEST(LobpcgTest, ThePolynomialIsAsDocumented) {
    using T = TypeParam;
    std::vector<double> values;
    values.reserve(50);
    for (int i = 0; i < 50; ++i) {
        values.push_back(1 + 0.14 * i + 0.003 * i * i);
    }
    auto a = test::diagonal<T>(this->ctx, values);
    GuardedOperator<T> guarded(a);
    for (const int degree : {2, 3, 6, 7}) {
        for (const bool smallest : {true, false}) {
            const double sigma = smallest ? 0.9 : 15.9;
            const double far = smallest ? 15.5 : 0.8;
            const double low = std::abs(far - sigma) * 1.44 / (degree * degree);
            BlockVector<T> w(this->ctx, a.row_map(), 3);
            fill(this->ctx, T(2), w.view());
            BlockVector<T> y(this->ctx, a.row_map(), 3);
            BlockVector<T> z(this->ctx, a.row_map(), 3);
            apply_chebyshev_inverse(this->ctx, guarded, degree, sigma, far, w.view(), y.view(),
                                    z.view());
            BlockVector<T> host(this->ctx, a.row_map(), 3, 0, Place::host);
            copy(this->ctx, w.view(), host.view());
            const auto chebyshev = [&](double distance) {
                const double high = std::abs(far - sigma);
                const double l = (high + low - 2 * distance) / (high - low);
                return std::abs(l) <= 1 ? std::cos(degree * std::acos(l))
                                        : std::cosh(degree * std::acosh(l));
            };
            for (std::int64_t i = 0; i < host.rows(); ++i) {
                const double distance =
                    values[static_cast<std::size_t>(a.row_map().first_row() + i)] - sigma;
                const double exact =
                    2 * (1 - chebyshev(std::abs(distance)) / chebyshev(0)) / std::abs(distance);
                for (int j = 0; j < 3; ++j) {
                    EXPECT_NEAR(std::abs(host.view()(i, j)), exact,
                                100 * degree * static_cast<double>(epsilon_v<T>) * (1 + 2 / low))
                        << degree << ' ' << i;
                }
            }
        }
    }
}

TYPED_TEST(LobpcgTest, CopiesHiddenByABulkOfEqualEigenvalues) {
    using T = TypeParam;
    std::vector<double> values(20000, 1.0);
    std::fill_n(values.begin() + 100, 5, 0.0);
    values[7] = 0.1;
    auto a = test::diagonal<T>(this->ctx, values);
    std::sort(values.begin(), values.end());
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        EigenOptions options = options_for(5);
        options.seed = seed;
        EXPECT_FALSE(this->check({a}, values, options).cluster_cut);
        for (const int block : {1, 2}) {
            options = options_for(2, Which::smallest, block);
            options.seed = seed;
            EXPECT_TRUE(this->check({a}, values, options).cluster_cut);
        }
    }
}

TYPED_TEST(LobpcgTest, ALooseToleranceDoesNotHideAnEigenvalueInABulk) {
    std::vector<double> values(5000, 1.0);
    values[11] = 0.99;
    auto a = test::diagonal<TypeParam>(this->ctx, values);
    std::sort(values.begin(), values.end());
    for (const int block : {0, 1, 3}) {
        EigenOptions options = options_for(1, Which::smallest, block);
        options.tol = 1e-3;
        this->check({a}, values, options);
    }
}

TYPED_TEST(LobpcgTest, GivingUpIsAResult) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 12, 12, 12);
    const auto expect_unfinished = [&](const EigenResult<T>& result, const char* why) {
        EXPECT_FALSE(result.converged);
        EXPECT_EQ(result.multiplicity, Multiplicity::unverified);
        EXPECT_EQ(result.eigenvalues.size(), 10u);
        EXPECT_NE(result.message.find(why), std::string::npos) << result.message;
        const auto residuals = test::fresh_residuals(this->ctx, a, result);
        for (std::size_t j = 0; j < residuals.size(); ++j) {
            EXPECT_NEAR(residuals[j], result.residuals[j],
                        1e-3 * residuals[j] + 300 * epsilon_v<T>);
        }
    };
    EigenOptions options = options_for(10);
    options.max_iterations = 7;
    const auto result = lobpcg<T>(this->ctx, {a}, options);
    EXPECT_EQ(result.iterations, 7);
    expect_unfinished(result, "stopped after 7 iterations");

    options = options_for(10);
    int calls = 0;
    options.keep_going = [&](const IterationEvent&) { return ++calls < 4; };
    const auto interrupted = lobpcg<T>(this->ctx, {a}, options);
    EXPECT_TRUE(interrupted.interrupted);
    expect_unfinished(interrupted, "interrupted after 3 iterations");
}

/// An operator whose product number `when` has NaN in one column.
template <class T>
class Wrong final : public Operator<T> {
  public:
    Wrong(Operator<T>& a, int when, int column) : a_(a), when_(when), column_(column) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        a_.apply(ctx, x, y);
        if (++applications_ == when_) {
            fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y.columns(column_, 1));
        }
    }

  private:
    Operator<T>& a_;
    int when_;
    int column_;
    int applications_ = 0;
};

template <class Call>
void expect_numerical_error(Call&& call, const std::vector<std::string>& words) {
    try {
        call();
        ADD_FAILURE() << "no error";
    } catch (const NumericalError& error) {
        for (const std::string& word : words) {
            EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
        }
    }
}

TYPED_TEST(LobpcgTest, NaNIsAnErrorThatNamesIterationAndColumn) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 9, 8, 7);
    // 6 products estimate the norm, one more starts the search, and each iteration makes 6.
    for (const int when : {20, 25}) {
        Wrong<T> wrong(a, when, 2);
        expect_numerical_error([&] { lobpcg<T>(this->ctx, {wrong}, options_for(3)); },
                               {"iteration 3", "column 2"});
    }
    Wrong<T> late(a, 4, 1);  // the first iteration also checks T X
    EigenProblem<T> problem{a};
    problem.preconditioner = &late;
    expect_numerical_error([&] { lobpcg<T>(this->ctx, problem, options_for(3)); },
                           {"iteration 3", "column 1"});
}

/// T = A^-1 of an indefinite A: with this preconditioner the search would stagnate.
TYPED_TEST(LobpcgTest, AnIndefinitePreconditionerIsNamed) {
    using T = TypeParam;
    std::vector<double> values;
    std::vector<double> inverse;
    for (int i = 0; i < 60; ++i) {
        values.push_back(i - 20.5);
        inverse.push_back(1 / values.back());
    }
    auto a = test::diagonal<T>(this->ctx, values);
    auto t = test::diagonal<T>(this->ctx, inverse);
    EigenProblem<T> problem{a};
    problem.preconditioner = &t;
    try {
        lobpcg<T>(this->ctx, problem, options_for(3));
        ADD_FAILURE() << "no error";
    } catch (const IndefiniteError& error) {
        EXPECT_EQ(error.operand(), IndefiniteError::Operand::preconditioner);
        EXPECT_TRUE(error.collective());
        EXPECT_NE(std::string(error.what()).find("T is not positive definite"), std::string::npos)
            << error.what();
    }
}

TYPED_TEST(LobpcgTest, ImpossibleOptionsAreInputErrors) {
    using T = TypeParam;
    auto a = test::diagonal<T>(this->ctx, std::vector<double>(9, 1.0));
    EXPECT_THROW(lobpcg<T>(this->ctx, {a}, options_for(0)), InputError);
    EXPECT_THROW(lobpcg<T>(this->ctx, {a}, options_for(10)), InputError);
    EXPECT_THROW(lobpcg<T>(this->ctx, {a}, options_for(3, Which::smallest, 65)), InputError);
    BlockVector<T> twice(this->ctx, a.row_map(), 2);
    fill(this->ctx, T(1), twice.view());
    EigenProblem<T> problem{a};
    problem.constraints = std::as_const(twice).view();
    EXPECT_THROW(lobpcg<T>(this->ctx, problem, options_for(2)), InputError);
}

}  // namespace
}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Block Jacobi-Davidson: interior eigenvalues, pencils, preconditioners, verification. Cases that
// all solvers share are in eigen_matrix_test.cpp.
#include "solvers/eigen/jacobi_davidson.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/small_dense.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

template <class T>
class JacobiDavidsonTest : public ::testing::Test {
  protected:
    static constexpr double eps = static_cast<double>(epsilon_v<T>);

    static EigenOptions options_for(int k, Which which, double target = 0) {
        EigenOptions options;
        options.k = k;
        options.which = which;
        options.target = target;
        options.method = Method::jacobi_davidson;
        options.tol = 1e-9;
        return options;
    }

    /// The k of `spectrum` nearest the target, ascending.
    static std::vector<double> nearest(std::vector<double> spectrum, int k, double target) {
        std::sort(spectrum.begin(), spectrum.end(),
                  [&](double a, double b) { return std::abs(a - target) < std::abs(b - target); });
        spectrum.resize(static_cast<std::size_t>(k));
        std::sort(spectrum.begin(), spectrum.end());
        return spectrum;
    }

    void check_interior(Operator<T>& a, const std::vector<double>& spectrum, int k, double target,
                        int block) {
        SCOPED_TRACE("target " + std::to_string(target) + ", block " + std::to_string(block));
        EigenOptions options = options_for(k, Which::target, target);
        options.block = block;
        const auto result = eigensolve(ctx, EigenProblem<T>{a}, options);
        EXPECT_TRUE(result.converged) << result.message;
        const std::vector<double> exact = nearest(spectrum, k, target);
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        const double norm = std::max(std::abs(spectrum.front()), std::abs(spectrum.back()));
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], (result.tolerance + 20 * eps) * norm);
        }
        const auto residuals = test::fresh_residuals(ctx, a, result);
        for (const double residual : residuals) {
            EXPECT_LE(residual, (result.tolerance * (1 + 1e-3) + 20 * eps) * norm);
        }
        EXPECT_LE(test::orthonormality_defect(ctx, BlockView<const T>(result.vectors.view())),
                  100 * eps * std::sqrt(static_cast<double>(k)));
    }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(JacobiDavidsonTest, Scalars);

/// Entry (i, j) of the Hermitian matrix of a ring of `n` sites with random potentials and
/// neighbours at distances 1 and 5.
template <class T>
Wide<T> disorder(std::int64_t n, std::int64_t i, std::int64_t j) {
    const std::int64_t d = (j - i + n) % n;
    if (d == 0) {
        return Wide<T>(4 * uniform(11, i, 0) - 2);
    }
    if (d != 1 && d != 5 && d != n - 1 && d != n - 5) {
        return Wide<T>(0);
    }
    const double size = d == 1 || d == n - 1 ? -1 : 0.5;
    if constexpr (is_complex_v<T>) {
        const double angle = d < n / 2 ? 0.7 : -0.7;
        return {size * std::cos(angle), size * std::sin(angle)};
    } else {
        return size;
    }
}

/// Entry (i, j) of a tridiagonal, positive definite matrix with a condition of about 4.
template <class T>
Wide<T> mass(std::int64_t n, std::int64_t i, std::int64_t j) {
    if (i == j) {
        return Wide<T>(2 + uniform(12, i, 0));
    }
    if (std::abs(i - j) != 1 || std::max(i, j) >= n) {
        return Wide<T>(0);
    }
    if constexpr (is_complex_v<T>) {
        return {0.0, j > i ? 0.6 : -0.6};
    } else {
        return 0.6;
    }
}

template <class T, class Entry>
SparseMatrix<T> sparse(Context& ctx, std::int64_t n, Entry entry) {
    return test::matrix_from_rows<T>(ctx, n, [=](std::int64_t row, RowEntries<T>& entries) {
        for (std::int64_t j = 0; j < n; ++j) {
            if (entry(n, row, j) != Wide<T>(0)) {
                entries.add(j, static_cast<T>(entry(n, row, j)));
            }
        }
    });
}

/// The dense form of the matrix of sparse(): rounded to T, in double precision.
template <class T, class Entry>
SmallMatrix<Wide<T>> dense(int n, Entry entry) {
    SmallMatrix<Wide<T>> result(n, n);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            result(i, j) = static_cast<Wide<T>>(static_cast<T>(entry(n, i, j)));
        }
    }
    return result;
}

/// Eigenvalues of the dense pencil by a factorisation of B.
template <class W>
std::vector<double> pencil_spectrum(const SmallMatrix<W>& a, const SmallMatrix<W>& b) {
    const SmallMatrix<W> inverse = inverse_of_upper(cholesky(b).r);
    SmallMatrix<W> adjoint(inverse.cols(), inverse.rows());
    for (int i = 0; i < inverse.rows(); ++i) {
        for (int j = 0; j < inverse.cols(); ++j) {
            adjoint(j, i) = conjugate(inverse(i, j));
        }
    }
    return hermitian_eigen(product(adjoint, product(a, inverse))).values;
}

TYPED_TEST(JacobiDavidsonTest, InteriorOfTheLaplacianEveryCopy) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 8, 8, 7);
    const auto spectrum = test::laplace3d_spectrum(8, 8, 7);
    this->check_interior(a, spectrum, 5, 2.03, 1);
    this->check_interior(a, spectrum, 6, 9.7, 3);
}

TYPED_TEST(JacobiDavidsonTest, InteriorOfADisorderedRing) {
    using T = TypeParam;
    auto a = sparse<T>(this->ctx, 180, disorder<T>);
    const auto spectrum = hermitian_eigen(dense<T>(180, disorder<T>)).values;
    for (const int block : {1, 2, 4}) {
        this->check_interior(a, spectrum, 7, 0.1, block);
    }
    // A target outside of the spectrum selects the nearest end.
    this->check_interior(a, spectrum, 4, -6, 2);
}

// Eigenvalues +-E around the target, as for a bipartite lattice.
TYPED_TEST(JacobiDavidsonTest, InteriorOfASpectrumSymmetricAboutTheTarget) {
    using T = TypeParam;
    std::vector<double> values;
    for (int i = 1; i <= 90; ++i) {
        values.push_back(0.3 * i);
        values.push_back(-values.back());
    }
    auto a = test::diagonal<T>(this->ctx, values);
    std::sort(values.begin(), values.end());
    this->check_interior(a, values, 6, 0, 2);
}

// Copies of tau - d and tau + d share a folded value, and the better half of the search space must
// not end between them.
TYPED_TEST(JacobiDavidsonTest, CopiesEquallyFarOnBothSidesOfTheTarget) {
    using T = TypeParam;
    for (const int others : {0, 1, 30}) {
        std::vector<double> values;
        for (int i = 0; i < 5; ++i) {
            values.push_back(1);
            values.push_back(-1);
        }
        for (int i = 0; i < others; ++i) {
            values.push_back((i % 2 == 0 ? 1 : -1) * (1.5 + 0.5 * i));
        }
        auto a = test::diagonal<T>(this->ctx, values);
        for (const int k : {3, 5, 10}) {
            SCOPED_TRACE(std::to_string(others) + " others, k = " + std::to_string(k));
            const EigenOptions options = this->options_for(k, Which::target, 0);
            const auto result = eigensolve(this->ctx, EigenProblem<T>{a}, options);
            EXPECT_TRUE(result.converged) << result.message;
            ASSERT_EQ(result.eigenvalues.size(), static_cast<std::size_t>(k));
            int above = 0;
            for (const double value : result.eigenvalues) {
                EXPECT_NEAR(std::abs(value), 1, 1e-5);
                above += value > 0 ? 1 : 0;
            }
            EXPECT_LE(above, 5);
            EXPECT_LE(k - above, 5);
        }
    }
}

TYPED_TEST(JacobiDavidsonTest, OtherMethodsRefuseATarget) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 5, 4, 3);
    EigenOptions options = this->options_for(2, Which::target, 1.5);
    options.method = Method::lanczos;
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<TypeParam>{a}, options), InputError);
    options.method = Method::automatic;
    EXPECT_EQ(eigensolve(this->ctx, EigenProblem<TypeParam>{a}, options).method, Method::dense);
    options.target = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<TypeParam>{a}, options), InputError);
}

TYPED_TEST(JacobiDavidsonTest, PencilsAtEndsAndInside) {
    using T = TypeParam;
    constexpr int n = 150;
    auto a = sparse<T>(this->ctx, n, disorder<T>);
    auto b = sparse<T>(this->ctx, n, mass<T>);
    const auto spectrum = pencil_spectrum(dense<T>(n, disorder<T>), dense<T>(n, mass<T>));
    for (const Which which : {Which::smallest, Which::largest, Which::target}) {
        const EigenOptions options = this->options_for(6, which, 0.05);
        EigenProblem<T> problem{a};
        problem.b = &b;
        const auto result = eigensolve(this->ctx, problem, options);
        EXPECT_TRUE(result.converged) << result.message;
        const double beyond = which == Which::smallest  ? -1e3
                              : which == Which::largest ? 1e3
                                                        : 0.05;
        const auto exact = this->nearest(spectrum, 6, beyond);
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        // ||r|| <= tol norm and |theta - lambda| <= ||r|| ||x|| / (x^H B x); the least eigenvalue
        // of B is about 1.
        const double bound = (result.tolerance + 100 * this->eps) * result.norm_estimate;
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], bound) << j;
        }
        const BlockView<const T> x = result.vectors.view();
        BlockVector<T> ax(this->ctx, a.row_map(), 6);
        BlockVector<T> bx(this->ctx, a.row_map(), 6);
        a.apply(this->ctx, x, ax.view());
        b.apply(this->ctx, x, bx.view());
        SmallMatrix<T> gram(6, 6);
        tsmttsm(this->ctx, T(1), x, std::as_const(bx).view(), T(0), gram);
        std::vector<T> minus;
        for (int i = 0; i < 6; ++i) {
            minus.push_back(
                T(static_cast<real_t<T>>(-result.eigenvalues[static_cast<std::size_t>(i)])));
            for (int j = 0; j < 6; ++j) {
                EXPECT_LE(std::abs(gram(i, j) - T(i == j ? 1 : 0)), 300 * epsilon_v<T>);
            }
        }
        axpby<T>(this->ctx, minus, bx.view(), std::vector<T>(6, T(1)), ax.view());
        std::vector<real_t<T>> residual(6);
        std::vector<real_t<T>> length(6);
        norms(this->ctx, ax.view(), std::span<real_t<T>>(residual));
        norms(this->ctx, x, std::span<real_t<T>>(length));
        for (std::size_t j = 0; j < 6; ++j) {
            EXPECT_LE(static_cast<double>(residual[j] / length[j]), bound) << j;
        }
    }
}

// Mikota's pair: a chain of springs and masses 1/i, with the eigenvalues i^2.
TYPED_TEST(JacobiDavidsonTest, MikotasPair) {
    using T = TypeParam;
    using Real = real_t<T>;
    constexpr int n = 20;
    auto a = test::matrix_from_rows<T>(this->ctx, n, [](std::int64_t row, RowEntries<T>& entries) {
        entries.add(row, T(Real(2 * (n - row) - 1)));
        if (row > 0) {
            entries.add(row - 1, T(Real(-(n - row))));
        }
        if (row + 1 < n) {
            entries.add(row + 1, T(Real(-(n - row - 1))));
        }
    });
    std::vector<double> masses;
    for (int i = 1; i <= n; ++i) {
        masses.push_back(1.0 / i);
    }
    auto b = test::diagonal<T>(this->ctx, masses);
    EigenProblem<T> problem{a};
    problem.b = &b;
    const auto result = eigensolve(this->ctx, problem, this->options_for(5, Which::smallest));
    EXPECT_TRUE(result.converged) << result.message;
    ASSERT_EQ(result.eigenvalues.size(), 5u);
    for (int i = 1; i <= 5; ++i) {
        // ||x||^2 / (x^H B x) is at most n.
        EXPECT_NEAR(result.eigenvalues[static_cast<std::size_t>(i - 1)], i * i,
                    n * (result.tolerance + 10 * this->eps) * result.norm_estimate);
    }
}

TYPED_TEST(JacobiDavidsonTest, PreconditionersSaveProducts) {
    using T = TypeParam;
    constexpr int n = 600;
    std::vector<double> values;
    std::vector<double> rough;
    std::vector<double> inverse;
    for (int i = 0; i < n; ++i) {
        values.push_back(std::pow(100.0, static_cast<double>(i) / n));
        inverse.push_back(1 / values.back());
        rough.push_back(inverse.back() * (1 + 0.5 * uniform(3, i, 0)));
    }
    auto a = test::diagonal<T>(this->ctx, values);
    EigenOptions options = this->options_for(5, Which::smallest);
    options.tol = 1e-6;
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (const std::vector<double>& factors : {std::vector<double>{}, rough, inverse}) {
        EigenProblem<T> problem{a};
        SparseMatrix<T> k = test::diagonal<T>(this->ctx, factors.empty() ? values : factors);
        if (!factors.empty()) {
            problem.preconditioner = &k;
        }
        const auto result = eigensolve(this->ctx, problem, options);
        test::check_pairs(this->ctx, a, result, values, 5, Which::smallest);
        EXPECT_LT(result.operator_applications, before);
        before = result.operator_applications;
    }
}

TYPED_TEST(JacobiDavidsonTest, EachInnerSolverFindsBothEnds) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 8, 8, 7);
    const auto spectrum = test::laplace3d_spectrum(8, 8, 7);
    for (const InnerSolver inner :
         {InnerSolver::minres, InnerSolver::cg, InnerSolver::gmres, InnerSolver::jdqmr}) {
        for (const Which which : {Which::smallest, Which::largest}) {
            SCOPED_TRACE(std::string(to_string(inner)) + ", " + to_string(which));
            EigenOptions options = this->options_for(6, which);
            options.inner = inner;
            test::check_pairs(this->ctx, a, eigensolve(this->ctx, EigenProblem<T>{a}, options),
                              spectrum, 6, which);
        }
    }
}

TYPED_TEST(JacobiDavidsonTest, EachInnerSolverFindsEndsOfAPencil) {
    using T = TypeParam;
    constexpr int n = 150;
    auto a = sparse<T>(this->ctx, n, disorder<T>);
    auto b = sparse<T>(this->ctx, n, mass<T>);
    const auto spectrum = pencil_spectrum(dense<T>(n, disorder<T>), dense<T>(n, mass<T>));
    EigenProblem<T> problem{a};
    problem.b = &b;
    for (const InnerSolver inner : {InnerSolver::cg, InnerSolver::gmres, InnerSolver::jdqmr}) {
        for (const Which which : {Which::smallest, Which::largest}) {
            SCOPED_TRACE(std::string(to_string(inner)) + ", " + to_string(which));
            EigenOptions options = this->options_for(4, which);
            options.inner = inner;
            const auto result = eigensolve(this->ctx, problem, options);
            EXPECT_TRUE(result.converged) << result.message;
            const auto exact = this->nearest(spectrum, 4, which == Which::smallest ? -1e3 : 1e3);
            ASSERT_EQ(result.eigenvalues.size(), exact.size());
            for (std::size_t j = 0; j < exact.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], exact[j],
                            (result.tolerance + 100 * this->eps) * result.norm_estimate);
            }
        }
    }
}

/// Without the estimate of the pair's residual these solves took 1889 and 9260 products, and 2025
/// block products at the target.
TEST(JacobiDavidson, ColumnsStopWhenTheirPairsNoLongerImprove) {
    Context ctx = test::make_context();
    EigenOptions options;
    options.method = Method::jacobi_davidson;
    options.inner = InnerSolver::jdqmr;
    options.k = 10;
    options.which = Which::largest;
    auto end = test::laplace3d<double>(ctx, 20, 20, 20);
    const auto largest = eigensolve(ctx, EigenProblem<double>{end}, options);
    test::check_pairs(ctx, end, largest, test::laplace3d_spectrum(20, 20, 20), 10, Which::largest);
    EXPECT_LT(largest.operator_applications, 1700);
    options.which = Which::target;
    options.target = 1.5;
    auto inside = test::laplace3d<double>(ctx, 12, 11, 10);
    const auto near = eigensolve(ctx, EigenProblem<double>{inside}, options);
    EXPECT_TRUE(near.converged) << near.message;
    auto spectrum = test::laplace3d_spectrum(12, 11, 10);
    std::sort(spectrum.begin(), spectrum.end(),
              [](double x, double y) { return std::abs(x - 1.5) < std::abs(y - 1.5); });
    std::sort(spectrum.begin(), spectrum.begin() + 10);
    ASSERT_EQ(near.eigenvalues.size(), 10u);
    for (std::size_t j = 0; j < 10; ++j) {
        EXPECT_NEAR(near.eigenvalues[j], spectrum[j], 2e-9);
    }
    EXPECT_LT(near.operator_applications, 7800);
    EXPECT_LT(near.iterations, 1900);
}

TYPED_TEST(JacobiDavidsonTest, CgRefusesATarget) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 5, 4, 3);
    EigenOptions options = this->options_for(2, Which::target, 1.5);
    options.inner = InnerSolver::cg;
    try {
        eigensolve(this->ctx, EigenProblem<TypeParam>{a}, options);
        ADD_FAILURE() << "no error";
    } catch (const InputError& error) {
        EXPECT_TRUE(error.collective());
        EXPECT_NE(std::string(error.what()).find("use minres or gmres"), std::string::npos);
    }
}

/// At a target only gmres accepts an approximate inverse of the indefinite A - target, and it saves
/// products.
TYPED_TEST(JacobiDavidsonTest, GmresTakesAnIndefinitePreconditioner) {
    using T = TypeParam;
    constexpr double target = 0.01;
    std::vector<double> values;
    std::vector<double> rough;
    for (int i = 0; i < 600; ++i) {
        values.push_back(0.05 * (i - 300) * (1 + 0.3 * uniform(5, i, 0)));
        rough.push_back((1 + 0.3 * uniform(3, i, 0)) / (values.back() - target));
    }
    auto a = test::diagonal<T>(this->ctx, values);
    auto m = test::diagonal<T>(this->ctx, rough);
    EigenOptions options = this->options_for(5, Which::target, target);
    options.tol = 1e-6;
    EigenProblem<T> problem{a};
    const auto exact = this->nearest(values, 5, target);
    std::int64_t before = 0;
    for (const bool with_m : {false, true}) {
        options.inner = InnerSolver::gmres;
        problem.preconditioner = with_m ? &m : nullptr;
        const auto result = eigensolve(this->ctx, problem, options);
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j],
                        (result.tolerance + 20 * this->eps) * result.norm_estimate);
        }
        EXPECT_TRUE(!with_m || 2 * result.operator_applications < before)
            << result.operator_applications << " and " << before;
        before = result.operator_applications;
    }
    options.inner = InnerSolver::minres;
    EXPECT_THROW(eigensolve(this->ctx, problem, options), IndefiniteError);
}

TYPED_TEST(JacobiDavidsonTest, IndefinitePreconditionersAndMassesAreNamed) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 9, 8, 7);
    std::vector<double> signs(9 * 8 * 7, 1.0);
    for (std::size_t i = 0; i < signs.size(); i += 3) {
        signs[i] = -1;
    }
    auto wrong = test::diagonal<T>(this->ctx, signs);
    EigenProblem<T> problem{a};
    const auto message = [&] {
        try {
            eigensolve(this->ctx, problem, this->options_for(4, Which::smallest));
        } catch (const IndefiniteError& error) {
            EXPECT_TRUE(error.collective());
            EXPECT_EQ(error.operand() == IndefiniteError::Operand::mass, problem.b != nullptr);
            return std::string(error.what());
        }
        return std::string("no error");
    };
    problem.preconditioner = &wrong;
    EXPECT_NE(message().find("preconditioner is not positive definite"), std::string::npos)
        << message();
    problem.preconditioner = nullptr;
    problem.b = &wrong;
    EXPECT_NE(message().find("positive definite"), std::string::npos) << message();
    // One negative direction, which no vector of the basis sees: the smallest eigenvalue is below
    // -1e3, but the search would converge to positive ones.
    std::vector<double> ones(signs.size(), 1.0);
    ones[7] = -1e-3;
    auto hidden = test::diagonal<T>(this->ctx, ones);
    problem.b = &hidden;
    EXPECT_NE(message().find("B is not positive definite: -"), std::string::npos) << message();
}

/// The search starts from all exact eigenvectors except one and ends at once without the missing
/// one, which the verification must find.
TYPED_TEST(JacobiDavidsonTest, VerificationFindsPairsThatTheSearchMissed) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 9, 9, 8);
    const auto spectrum = test::laplace3d_spectrum(9, 9, 8);
    const EigenOptions options = this->options_for(6, Which::smallest);
    const auto all =
        eigensolve(this->ctx, EigenProblem<T>{a}, this->options_for(8, Which::smallest));
    ASSERT_TRUE(all.converged) << all.message;
    for (const int missing : {0, 2, 5}) {
        std::vector<int> order;
        for (int j = 0; j < 8; ++j) {
            if (j != missing) {
                order.push_back(j);
            }
        }
        BlockVector<T> start(this->ctx, a.row_map(), 7);
        gather_columns(this->ctx, all.vectors.view(), order, start.view());
        EigenProblem<T> problem{a};
        problem.start = std::as_const(start).view();
        test::check_pairs(this->ctx, a, eigensolve(this->ctx, problem, options), spectrum, 6,
                          Which::smallest);
    }
}

TYPED_TEST(JacobiDavidsonTest, ConstraintsOfAPencilLeaveTheFollowingPairs) {
    using T = TypeParam;
    constexpr int n = 150;
    auto a = sparse<T>(this->ctx, n, disorder<T>);
    auto b = sparse<T>(this->ctx, n, mass<T>);
    EigenProblem<T> problem{a};
    problem.b = &b;
    const auto seven = eigensolve(this->ctx, problem, this->options_for(7, Which::smallest));
    ASSERT_TRUE(seven.converged) << seven.message;
    problem.constraints = seven.vectors.columns(0, 3);
    const auto four = eigensolve(this->ctx, problem, this->options_for(4, Which::smallest));
    EXPECT_TRUE(four.converged) << four.message;
    ASSERT_EQ(four.eigenvalues.size(), 4u);
    for (std::size_t j = 0; j < 4; ++j) {
        EXPECT_NEAR(four.eigenvalues[j], seven.eigenvalues[j + 3],
                    2 * (four.tolerance + 100 * this->eps) * four.norm_estimate);
    }
}

}  // namespace
}  // namespace quiver

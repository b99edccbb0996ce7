// SPDX-License-Identifier: BSD-3-Clause
// LOBPCG for A x = lambda B x against Eigen's dense solver and closed forms.
#include <algorithm>
#include <complex>
#include <filesystem>
#include <string>
#include <utility>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "blockvec/eigen_interop.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
using Dense = Eigen::Matrix<std::conditional_t<is_complex_v<T>, std::complex<double>, double>,
                            Eigen::Dynamic, Eigen::Dynamic>;

template <class T>
SparseMatrix<T> sparse(Context& ctx, const Dense<T>& a) {
    return test::matrix_from_rows<T>(ctx, a.rows(), [&](std::int64_t row, RowEntries<T>& entries) {
        for (Eigen::Index j = 0; j < a.cols(); ++j) {
            if (a(row, j) != typename Dense<T>::Scalar(0)) {
                entries.add(j, static_cast<T>(a(row, j)));
            }
        }
    });
}

/// Rounds to T, so that LOBPCG and the oracle get the same pencil.
template <class T>
Dense<T> rounded(const Dense<T>& a) {
    return a.template cast<T>().template cast<typename Dense<T>::Scalar>();
}

template <class T>
class LobpcgPencilTest : public ::testing::Test {
  protected:
    /// A pencil and its eigenvalues by a dense solver.
    struct Pencil {
        Dense<T> dense_a;
        Dense<T> dense_b;
        std::vector<double> spectrum;
        double norm_a = 0;
        double norm_b = 0;
        double least_b = 0;

        Pencil(const Dense<T>& a, const Dense<T>& b)
            : dense_a(rounded<T>(a)), dense_b(rounded<T>(b)) {
            const Eigen::VectorXd values = test::oracle::eigenvalues(dense_a, dense_b);
            spectrum.assign(values.begin(), values.end());
            const Eigen::VectorXd of_b = test::oracle::eigenvalues(dense_b);
            norm_a = test::oracle::eigenvalues(dense_a).cwiseAbs().maxCoeff();
            norm_b = of_b.maxCoeff();
            least_b = of_b.minCoeff();
        }
    };

    EigenResult<T> solve(const EigenProblem<T>& problem, const EigenOptions& options) {
        EigenOptions by_lobpcg = options;
        by_lobpcg.method = Method::lobpcg;
        return eigensolve(ctx, problem, by_lobpcg);
    }

    /// Checks |lambda - theta| <= ||r|| / lambda_min(B) for ||x||_2 = 1, where r is the allowed
    /// residual plus rounding; B-orthonormality up to rounding; and the residuals by products of
    /// this test.
    void check(const EigenResult<T>& result, const EigenProblem<T>& problem, const Pencil& pencil,
               const std::vector<double>& spectrum, const EigenOptions& options) {
        EXPECT_EQ(result.method, Method::lobpcg);
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        const auto k = static_cast<std::size_t>(options.k);
        ASSERT_EQ(result.eigenvalues.size(), k);
        const std::size_t first = options.which == Which::smallest ? 0 : spectrum.size() - k;
        const double eps = static_cast<double>(epsilon_v<T>);
        const BlockView<const T> x = result.vectors.view();
        BlockVector<T> ax(ctx, problem.a.row_map(), options.k);
        BlockVector<T> bx(ctx, problem.a.row_map(), options.k);
        problem.a.apply(ctx, x, ax.view());
        problem.b->apply(ctx, x, bx.view());
        SmallMatrix<T> gram(options.k, options.k);
        tsmttsm(ctx, T(1), x, bx.view(), T(0), gram);
        std::vector<T> minus;
        for (const double value : result.eigenvalues) {
            minus.push_back(T(static_cast<real_t<T>>(-value)));
        }
        axpby(ctx, minus, bx.view(), std::vector<T>(k, T(1)), ax.view());
        std::vector<real_t<T>> length(k);
        std::vector<real_t<T>> residual(k);
        norms(ctx, x, std::span<real_t<T>>(length));
        norms(ctx, ax.view(), std::span<real_t<T>>(residual));
        const double condition = pencil.norm_b / pencil.least_b;
        for (std::size_t j = 0; j < k; ++j) {
            const double scale = pencil.norm_a + std::abs(result.eigenvalues[j]) * pencil.norm_b;
            const double allowed = (result.tolerance + 30 * eps) * scale;
            EXPECT_LE(static_cast<double>(residual[j] / length[j]), allowed) << "residual " << j;
            EXPECT_NEAR(result.eigenvalues[j], spectrum[first + j], allowed / pencil.least_b)
                << "eigenvalue " << j;
            for (std::size_t i = 0; i < k; ++i) {
                EXPECT_LE(std::abs(gram(static_cast<int>(i), static_cast<int>(j)) -
                                   (i == j ? T(1) : T(0))),
                          100 * eps * condition)
                    << i << ", " << j;
            }
        }
    }

    void check(const Pencil& pencil, const EigenOptions& options) {
        auto a = sparse<T>(ctx, pencil.dense_a);
        auto b = sparse<T>(ctx, pencil.dense_b);
        EigenProblem<T> problem{a, &b};
        check(solve(problem, options), problem, pencil, pencil.spectrum, options);
    }

    Dense<T> random_hermitian(std::mt19937_64& generator, int n) {
        const Dense<T> a = Dense<T>::NullaryExpr(n, n, [&] {
            return static_cast<typename Dense<T>::Scalar>(test::random_value<T>(generator));
        });
        return a + a.adjoint();
    }

    /// A random pencil with eigenvalues of B between 1 and about 3.
    Pencil random_pencil(std::mt19937_64& generator, int n) {
        const Dense<T> c = random_hermitian(generator, n) / (2 * std::sqrt(n));
        return Pencil(random_hermitian(generator, n),
                      test::oracle::product(c, c) + Dense<T>::Identity(n, n));
    }

    Context ctx = test::make_context();
};
TYPED_TEST_SUITE(LobpcgPencilTest, test::Scalars);

EigenOptions options_for(int k, Which which = Which::smallest, int block = 0) {
    EigenOptions options;
    options.k = k;
    options.which = which;
    options.block = block;
    return options;
}

TYPED_TEST(LobpcgPencilTest, RandomPencils) {
    auto generator = test::make_generator();
    for (const int n : {9, 40, 110}) {
        const auto pencil = this->random_pencil(generator, n);
        for (const int k : {1, 4}) {
            for (const Which which : {Which::smallest, Which::largest}) {
                for (const int block : {0, 2}) {
                    SCOPED_TRACE(testing::Message() << n << ' ' << k << ' ' << block);
                    this->check(pencil, options_for(k, which, block));
                }
            }
        }
    }
}

/// A = D L and B = D with diagonal D and L: the eigenvalues are the diagonal of L.
TYPED_TEST(LobpcgPencilTest, EveryCopyOfMultipleEigenvalues) {
    using T = TypeParam;
    constexpr int n = 400;
    Dense<T> a = Dense<T>::Zero(n, n);
    Dense<T> b = Dense<T>::Zero(n, n);
    for (int i = 0; i < n; ++i) {
        const double weight = std::exp2(i % 5 - 2);
        b(i, i) = weight;
        a(i, i) = weight * (i % 80 == 7 ? 0.25 : i % 100 == 11 ? 0.5 : 1.0);
    }
    const typename LobpcgPencilTest<T>::Pencil pencil(a, b);
    for (const int k : {5, 9}) {
        this->check(pencil, options_for(k));
    }
    for (const int block : {0, 2}) {
        this->check(pencil, options_for(3, Which::smallest, block));
    }
    this->check(pencil, options_for(4, Which::largest));
}

TYPED_TEST(LobpcgPencilTest, StartVectorsConstraintsAndAPreconditioner) {
    using T = TypeParam;
    auto generator = test::make_generator();
    auto pencil = this->random_pencil(generator, 90);
    pencil = {pencil.dense_a + 25 * Dense<T>::Identity(90, 90), pencil.dense_b};
    auto a = sparse<T>(this->ctx, pencil.dense_a);
    auto b = sparse<T>(this->ctx, pencil.dense_b);
    auto inverse = sparse<T>(this->ctx, test::oracle::inverse(pencil.dense_a));
    const EigenOptions options = options_for(4);
    EigenProblem<T> problem{a, &b};
    const auto plain = this->solve(problem, options);
    this->check(plain, problem, pencil, pencil.spectrum, options);

    problem.preconditioner = &inverse;
    const auto fast = this->solve(problem, options);
    this->check(fast, problem, pencil, pencil.spectrum, options);
    EXPECT_LT(fast.iterations, plain.iterations);
    problem.preconditioner = nullptr;

    problem.start = plain.vectors.view();
    const auto again = this->solve(problem, options);
    this->check(again, problem, pencil, pencil.spectrum, options);
    EXPECT_LT(again.operator_applications, plain.operator_applications);
    problem.start = {};

    problem.constraints = plain.vectors.view();
    const std::vector<double> rest(pencil.spectrum.begin() + 4, pencil.spectrum.end());
    for (const int block : {0, 2}) {
        const EigenOptions next = options_for(3, Which::smallest, block);
        this->check(this->solve(problem, next), problem, pencil, rest, next);
    }
}

TYPED_TEST(LobpcgPencilTest, IndefiniteBIsAnError) {
    using T = TypeParam;
    auto generator = test::make_generator();
    const auto pencil = this->random_pencil(generator, 80);
    auto a = sparse<T>(this->ctx, pencil.dense_a);
    for (const double shift : {0.5, -5.0}) {
        auto b = sparse<T>(this->ctx, pencil.dense_a / 12 + shift * Dense<T>::Identity(80, 80));
        EigenProblem<T> problem{a, &b};
        EXPECT_THROW(this->solve(problem, options_for(3)), IndefiniteError) << shift;
    }
}

/// Stiffness and mass matrix of a building, 147 rows. Skipped if the data folder of
/// real_matrices_test.cpp is missing.
TEST(LobpcgPencil, LundAAndB) {
    if (const std::string file = test::data_file("lund_a.mtx.gz"); !std::filesystem::exists(file)) {
        GTEST_SKIP() << "no " << file;
    }
    Context ctx = test::make_context();
    const auto load = [&](const char* name) {
        return read_matrix_market<double>(ctx.comm(), test::data_file(name), Partition::by_rows);
    };
    SparseMatrix<double> a(ctx, load("lund_a.mtx.gz"));
    SparseMatrix<double> b(ctx, load("lund_b.mtx.gz"));
    const int n = static_cast<int>(a.row_map().global_rows());
    const auto dense = [&](SparseMatrix<double>& matrix) {
        // I^T A I, summed over all ranks.
        BlockVector<double> unit(ctx, matrix.row_map(), n);
        BlockVector<double> product(ctx, matrix.row_map(), n);
        BlockVector<double> host(ctx, matrix.row_map(), n, 0, Place::host);
        for (std::int64_t i = 0; i < host.rows(); ++i) {
            for (int j = 0; j < n; ++j) {
                host.view()(i, j) = matrix.row_map().first_row() + i == j ? 1 : 0;
            }
        }
        copy(ctx, host.view(), unit.view());
        matrix.apply(ctx, unit.view(), product.view());
        SmallMatrix<double> result(n, n);
        tsmttsm(ctx, 1.0, unit.view(), product.view(), 0.0, result);
        return Eigen::MatrixXd(as_eigen(result.view()));
    };
    const Eigen::MatrixXd dense_a = dense(a);
    const Eigen::MatrixXd dense_b = dense(b);
    const Eigen::VectorXd values = test::oracle::eigenvalues(dense_a, dense_b);
    const Eigen::VectorXd of_b = test::oracle::eigenvalues(dense_b);
    const double norm_a = test::oracle::eigenvalues(dense_a).cwiseAbs().maxCoeff();
    for (const Which which : {Which::smallest, Which::largest}) {
        EigenOptions options = options_for(5, which);
        options.method = Method::lobpcg;
        EigenProblem<double> problem{a, &b};
        const auto result = eigensolve(ctx, problem, options);
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), 5u);
        for (int j = 0; j < 5; ++j) {
            const double exact = values(which == Which::smallest ? j : n - 5 + j);
            const double allowed =
                result.tolerance * (norm_a + std::abs(exact) * of_b.maxCoeff()) / of_b.minCoeff();
            EXPECT_NEAR(result.eigenvalues[static_cast<std::size_t>(j)], exact, 2 * allowed) << j;
        }
    }
}

}  // namespace
}  // namespace quiver

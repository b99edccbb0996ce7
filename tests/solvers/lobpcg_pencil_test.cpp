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

        /// The pencil of two diagonal matrices, whose elements T represents exactly.
        static Pencil of_diagonals(const Eigen::VectorXd& a, const Eigen::VectorXd& b) {
            using Scalar = typename Dense<T>::Scalar;
            Pencil pencil;
            pencil.dense_a = Dense<T>(a.cast<Scalar>().asDiagonal());
            pencil.dense_b = Dense<T>(b.cast<Scalar>().asDiagonal());
            const Eigen::VectorXd values = a.cwiseQuotient(b);
            pencil.spectrum.assign(values.begin(), values.end());
            std::sort(pencil.spectrum.begin(), pencil.spectrum.end());
            pencil.norm_a = a.cwiseAbs().maxCoeff();
            pencil.norm_b = b.maxCoeff();
            pencil.least_b = b.minCoeff();
            return pencil;
        }

      private:
        Pencil() = default;
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
    constexpr int n = 400;
    Eigen::VectorXd a(n);
    Eigen::VectorXd b(n);
    for (int i = 0; i < n; ++i) {
        b(i) = std::exp2(i % 5 - 2);
        a(i) = b(i) * (i % 80 == 7 ? 0.25 : i % 100 == 11 ? 0.5 : 1.0);
    }
    const auto pencil = LobpcgPencilTest<TypeParam>::Pencil::of_diagonals(a, b);
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

/// An operator of which only products are known.
template <class T>
class Products : public Operator<T> {
  public:
    explicit Products(Operator<T>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override { a_.apply(ctx, x, y); }

  private:
    Operator<T>& a_;
};

/// Units of the unknowns are powers of two, so that the eigenvalues are exactly those of the pencil
/// without units: no copy may be missing, and the vectors become those without units.
TYPED_TEST(LobpcgPencilTest, UnitsOfTheUnknowns) {
    using T = TypeParam;
    constexpr int n = 120;
    auto generator = test::make_generator();
    auto pencil = this->random_pencil(generator, n);
    // Two blocks, the second without coupling to the first.
    pencil.dense_a.topRightCorner(n / 2, n / 2).setZero();
    pencil.dense_a.bottomLeftCorner(n / 2, n / 2).setZero();
    pencil.dense_b.topRightCorner(n / 2, n / 2).setZero();
    pencil.dense_b.bottomLeftCorner(n / 2, n / 2).setZero();
    pencil = {pencil.dense_a + 30 * Dense<T>::Identity(n, n), pencil.dense_b};
    using Unit = double (*)(int);
    const Unit two_blocks = [](int row) { return row < n / 2 ? 1 : 0x1p-25; };
    const Unit graded = [](int row) { return std::ldexp(1.0, -(row * 7 % 26)); };
    for (const Unit unit : {two_blocks, graded}) {
        Dense<T> s = Dense<T>::Zero(n, n);
        for (int i = 0; i < n; ++i) {
            s(i, i) = unit(i);
        }
        auto a = sparse<T>(this->ctx, s * pencil.dense_a * s);
        auto b = sparse<T>(this->ctx, s * pencil.dense_b * s);
        auto back = sparse<T>(this->ctx, s);
        Products<T> a_products(a);
        Products<T> b_products(b);
        auto plain_a = sparse<T>(this->ctx, pencil.dense_a);
        auto plain_b = sparse<T>(this->ctx, pencil.dense_b);
        const EigenProblem<T> plain{plain_a, &plain_b};
        for (const EigenOptions& options :
             {options_for(1), options_for(5), options_for(5, Which::largest),
              options_for(7, Which::smallest, 3)}) {
            const bool hidden = options.k != 5;
            Operator<T>& of_a = hidden ? static_cast<Operator<T>&>(a_products) : a;
            Operator<T>& of_b = hidden ? static_cast<Operator<T>&>(b_products) : b;
            const EigenProblem<T> problem{of_a, &of_b};
            auto result = this->solve(problem, options);
            BlockVector<T> x(this->ctx, a.row_map(), options.k);
            back.apply(this->ctx, std::as_const(result.vectors).view(), x.view());
            result.vectors = std::move(x);
            // The units in which the tolerance holds make rows alike within a factor of 16.
            result.tolerance *= 16;
            this->check(result, plain, pencil, pencil.spectrum, options);
        }
    }
}

TYPED_TEST(LobpcgPencilTest, UnitsWithConstraintsAStartAndAPreconditioner) {
    using T = TypeParam;
    constexpr int n = 90;
    auto generator = test::make_generator();
    auto pencil = this->random_pencil(generator, n);
    pencil = {pencil.dense_a + 25 * Dense<T>::Identity(n, n), pencil.dense_b};
    Dense<T> s = Dense<T>::Zero(n, n);
    Dense<T> inverse_s = Dense<T>::Zero(n, n);
    for (int i = 0; i < n; ++i) {
        s(i, i) = std::ldexp(1.0, i % 2 == 0 ? 0 : -20);
        inverse_s(i, i) = 1.0 / s(i, i);
    }
    auto a = sparse<T>(this->ctx, s * pencil.dense_a * s);
    auto b = sparse<T>(this->ctx, s * pencil.dense_b * s);
    auto inverse =
        sparse<T>(this->ctx, inverse_s * test::oracle::inverse(pencil.dense_a) * inverse_s);
    EigenProblem<T> problem{a, &b};
    const auto first = this->solve(problem, options_for(4));
    problem.preconditioner = &inverse;
    const auto fast = this->solve(problem, options_for(4));
    EXPECT_LT(fast.iterations, first.iterations);
    problem.preconditioner = nullptr;
    problem.start = first.vectors.view();
    const auto again = this->solve(problem, options_for(4));
    EXPECT_LT(again.operator_applications, first.operator_applications);
    problem.start = {};
    problem.constraints = first.vectors.view();
    const auto rest = this->solve(problem, options_for(3));
    const auto expect = [&](const EigenResult<T>& result, std::size_t from) {
        EXPECT_TRUE(result.converged) << result.message;
        for (std::size_t j = 0; j < result.eigenvalues.size(); ++j) {
            const double exact = pencil.spectrum[from + j];
            const double scale = pencil.norm_a + std::abs(exact) * pencil.norm_b;
            EXPECT_NEAR(result.eigenvalues[j], exact, 4 * result.tolerance * scale) << j;
        }
    };
    expect(first, 0);
    expect(fast, 0);
    expect(again, 0);
    expect(rest, 4);
}

/// The units must suit A as well: with A = I and a graded B the smallest eigenvalues are found in
/// the largest rows of B, and the rounding errors of D A D would hide them.
TYPED_TEST(LobpcgPencilTest, AGradedMassAlone) {
    using T = TypeParam;
    std::vector<double> ones(150, 1.0);
    std::vector<double> weights;
    std::vector<double> exact;
    for (int i = 0; i < 150; ++i) {
        weights.push_back(std::ldexp(1 + 0.01 * (i * 37 % 150), -(i % 10) * 4));
        exact.push_back(1 / static_cast<double>(static_cast<real_t<T>>(weights.back())));
    }
    std::sort(exact.begin(), exact.end());
    auto a = test::diagonal<T>(this->ctx, ones);
    auto b = test::diagonal<T>(this->ctx, weights);
    const auto result = this->solve({a, &b}, options_for(4));
    EXPECT_TRUE(result.converged) << result.message;
    ASSERT_EQ(result.eigenvalues.size(), 4u);
    for (std::size_t j = 0; j < 4; ++j) {
        EXPECT_NEAR(result.eigenvalues[j], exact[j], 8 * result.tolerance);
    }
}

/// A B with a null vector: the eigenvalue at the upper end is infinite, those at the lower end are
/// right. The message names the cause and the cure.
TYPED_TEST(LobpcgPencilTest, AMassThatIsSingularToRounding) {
    using T = TypeParam;
    constexpr int n = 120;
    auto generator = test::make_generator();
    const Dense<T> c = this->random_hermitian(generator, n);
    Dense<T> v = c.col(0).normalized();
    const Dense<T> projection = Dense<T>::Identity(n, n) - v * v.adjoint();
    Dense<T> weights = Dense<T>::Zero(n, n);
    Dense<T> values = Dense<T>::Zero(n, n);
    for (int i = 0; i < n; ++i) {
        weights(i, i) = 1 + 0.01 * i;
        values(i, i) = 3 + i % 7;
    }
    const Dense<T> b = projection * weights * projection;
    const Dense<T> stiffness = values + 0.01 * c;
    auto left = sparse<T>(this->ctx, stiffness);
    auto right = sparse<T>(this->ctx, b);
    try {
        const auto result = this->solve({left, &right}, options_for(3, Which::largest));
        ADD_FAILURE() << "converged: " << result.converged << ' ' << result.message;
    } catch (const IndefiniteError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("not positive definite"), std::string::npos) << text;
        EXPECT_NE(text.find("shift-invert"), std::string::npos) << text;
    }
}

/// The message of a solve that is too slow names a method that helps, if it can take the operators.
TEST(LobpcgPencil, ASlowSolveNamesAnotherMethod) {
    Context ctx = test::make_context();
    auto a = test::laplace3d<double>(ctx, 12, 12, 8);
    auto b = test::diagonal<double>(ctx, std::vector<double>(12 * 12 * 8, 2.0));
    Products<double> products(a);
    EigenOptions options = options_for(5);
    options.method = Method::lobpcg;
    options.max_iterations = 4;
    const auto stored = eigensolve(ctx, EigenProblem<double>{a, &b}, options);
    EXPECT_FALSE(stored.converged);
    EXPECT_NE(stored.message.find("shift-invert"), std::string::npos) << stored.message;
    const auto hidden = eigensolve(ctx, EigenProblem<double>{products, &b}, options);
    EXPECT_FALSE(hidden.converged);
    EXPECT_EQ(hidden.message.find("shift-invert"), std::string::npos) << hidden.message;
    EXPECT_NE(hidden.message.find("preconditioner"), std::string::npos) << hidden.message;
}

TYPED_TEST(LobpcgPencilTest, ARowOfTheMassThatIsZero) {
    using T = TypeParam;
    std::vector<double> weights(40, 1.0);
    weights[33] = 0;
    auto a = test::diagonal<T>(this->ctx, std::vector<double>(40, 2.0));
    auto b = test::diagonal<T>(this->ctx, weights);
    try {
        this->solve({a, &b}, options_for(3));
        ADD_FAILURE() << "no error";
    } catch (const IndefiniteError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("its row 34 (counted from 1) is zero; shift-invert"), std::string::npos)
            << text;
    }
}

/// A and B have 10 common null vectors. Residuals have no component along these, so that the other
/// eigenvalues are found as if there were none, or the solve ends soon with an error.
TEST(LobpcgPencil, CommonNullVectors) {
    Context ctx = test::make_context();
    constexpr int n = 300;
    const auto blocks = [&](double first, double other) {
        return test::matrix_from_rows<double>(ctx, n, [=](std::int64_t row, auto& entries) {
            // Rows 2 i and 2 i + 1 are w [1, -1; -1, 1 + s], where s = 0 for 10 of the i.
            const std::int64_t pair = row / 2;
            const double w = std::exp2(-static_cast<double>(pair % 12)) *
                             (first + other * static_cast<double>(pair));
            const double s = pair % 15 == 4 ? 0 : 0.5;
            entries.add(row % 2 == 0 ? row + 1 : row - 1, -w);
            entries.add(row, row % 2 == 0 ? w : w * (1 + s));
        });
    };
    SparseMatrix<double> a = blocks(1, 0.02);
    SparseMatrix<double> b = blocks(1, 0);
    // Each pair of rows has the eigenvalue 1 + 0.02 i, twice if s > 0.
    std::vector<double> exact;
    for (int pair = 0; pair < n / 2; ++pair) {
        exact.insert(exact.end(), pair % 15 == 4 ? 1 : 2, 1 + 0.02 * pair);
    }
    EigenOptions options = options_for(20);
    options.method = Method::lobpcg;
    try {
        const auto result = eigensolve(ctx, EigenProblem<double>{a, &b}, options);
        EXPECT_TRUE(result.converged) << result.message;
        for (std::size_t j = 0; j < result.eigenvalues.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e-7);
        }
        EXPECT_LT(result.iterations, 1000);
    } catch (const IndefiniteError& error) {
        EXPECT_NE(std::string(error.what()).find("shift-invert"), std::string::npos);
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

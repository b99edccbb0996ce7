// SPDX-License-Identifier: BSD-3-Clause
// Linear solvers on systems that they cannot solve: a failure is a result with numbers; invalid use
// throws.
#include "kernels/random.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "tests/solvers/linear_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class LinearFailure : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();

    static LinearOptions usual() {
        LinearOptions options;
        options.tol = usual_tolerance<T>();
        return options;
    }
    /// diag(1, 2, ..., n - 1, last)
    static Global<T> diagonal(int n, double last) {
        Global<T> a(n, n);
        for (int i = 0; i < n; ++i) {
            a(i, i) = T(static_cast<real_t<T>>(i + 1 < n ? i + 1 : last));
        }
        return a;
    }
    /// Columns of ones; those in `without` have 0 in the last row.
    static Global<T> ones(int n, int columns, const std::vector<int>& without) {
        Global<T> b(n, columns, [] { return T(1); });
        for (const int j : without) {
            b(n - 1, j) = T(0);
        }
        return b;
    }
    static void expect_word(const std::string& text, const std::string& word) {
        EXPECT_NE(text.find(word), std::string::npos) << text;
    }
};
TYPED_TEST_SUITE(LinearFailure, Scalars, ScalarName);

/// The columns without a component of the negative eigenvalue converge; the message names the
/// others.
TYPED_TEST(LinearFailure, AnIndefiniteOperatorForCg) {
    using T = TypeParam;
    const int n = 6;
    LinearSystem<T> system(this->ctx, this->diagonal(n, -10), this->ones(n, 3, {0, 2}));
    for (const bool share : {true, false}) {
        LinearOptions options = this->usual();
        options.share_search_space = share;
        const LinearResult result = system.solve(LinearMethod::cg, options);
        EXPECT_FALSE(result.converged);
        EXPECT_EQ(result.columns[0].status, LinearStatus::converged) << result.columns[0].message;
        EXPECT_EQ(result.columns[2].status, LinearStatus::converged) << result.columns[2].message;
        ASSERT_EQ(result.columns[1].status, LinearStatus::breakdown);
        this->expect_word(result.message, "cg: right-hand side 2 of 3: iteration ");
        this->expect_word(result.message, "p^H (A - shift) p = -");
        this->expect_word(result.message, "not positive definite");
        EXPECT_TRUE(std::isfinite(result.columns[1].residual));
        EXPECT_NEAR(system.residual(1), result.columns[1].residual, system.residual_noise(1));
    }
}

TYPED_TEST(LinearFailure, AnIndefinitePreconditioner) {
    using T = TypeParam;
    const int n = 6;
    LinearSystem<T> system(this->ctx, this->diagonal(n, 10), this->ones(n, 3, {0, 2}));
    Global<T> inverse = this->diagonal(n, -1);
    SparseMatrix<T> m = sparse(this->ctx, inverse);
    system.use_preconditioner(&m);
    for (const LinearMethod method : {LinearMethod::cg, LinearMethod::minres}) {
        SCOPED_TRACE(to_string(method));
        LinearOptions options = this->usual();
        const LinearResult result = system.solve(method, options);
        EXPECT_FALSE(result.converged);
        EXPECT_EQ(result.columns[0].status, LinearStatus::converged) << result.columns[0].message;
        EXPECT_EQ(result.columns[2].status, LinearStatus::converged) << result.columns[2].message;
        ASSERT_EQ(result.columns[1].status, LinearStatus::breakdown);
        EXPECT_TRUE(result.columns[1].preconditioner_is_unfit);
        EXPECT_FALSE(result.columns[0].preconditioner_is_unfit);
        this->expect_word(result.message, "right-hand side 2 of 3");
        this->expect_word(result.message, "the preconditioner is not positive definite");
    }
    for (const LinearMethod method : {LinearMethod::gmres, LinearMethod::bicgstab}) {
        LinearOptions options = this->usual();
        system.expect_solved(system.solve(method, options), options);
    }
}

/// A second-difference matrix with M = 1 + 0.3 K, K^H = -K: x^H M x is positive, but conjugate
/// gradients do not converge.
TYPED_TEST(LinearFailure, APreconditionerThatIsNotHermitian) {
    using T = TypeParam;
    const int n = 120;
    Global<T> a(n, n);
    Global<T> skewed(n, n);
    for (int i = 0; i < n; ++i) {
        a(i, i) = T(2);
        skewed(i, i) = T(1);
        for (const int j : {i - 1, i + 1}) {
            if (j >= 0 && j < n) {
                a(i, j) = T(-1);
                skewed(i, j) = T(static_cast<real_t<T>>(j > i ? 0.3 : -0.3));
            }
        }
    }
    LinearSystem<T> system(this->ctx, a, random_global<T>(this->generator, n, 4));
    Watched<T> watched(system.matrix());
    system.use(watched);
    SparseMatrix<T> m = sparse(this->ctx, skewed);
    system.use_preconditioner(&m);
    LinearOptions options = this->usual();
    const LinearResult block = system.solve(LinearMethod::cg, options);
    EXPECT_FALSE(block.converged);
    EXPECT_LE(watched.products, 4 * 40);
    for (const LinearColumn& column : block.columns) {
        EXPECT_EQ(column.status, LinearStatus::breakdown);
        this->expect_word(column.message, "the preconditioner M is not Hermitian: ");
        this->expect_word(column.message, "use gmres");
    }
    options.share_search_space = false;
    options.max_iterations = 60;
    const LinearResult plain = system.solve(LinearMethod::cg, options);
    EXPECT_FALSE(plain.converged);
    this->expect_word(plain.message, "is not Hermitian");
    for (const LinearColumn& column : plain.columns) {
        this->expect_word(column.message, "is not Hermitian");
        this->expect_word(column.message, "use gmres");
    }
    // Few steps of a solve that was not to converge need no explanation.
    options.max_iterations = 3;
    EXPECT_EQ(system.solve(LinearMethod::cg, options).message.find("Hermitian"), std::string::npos);
    options = this->usual();
    options.restart = n;
    system.expect_solved(system.solve(LinearMethod::gmres, options), options);
}

TEST(LinearFailureComplex, APreconditionerWithAnImaginaryPart) {
    using T = std::complex<double>;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const int n = 20;
    LinearSystem<T> system(ctx, hermitian<T>(generator, spread(n, 1, 10)),
                           random_global<T>(generator, n, 2));
    Global<T> turned(n, n);
    for (int i = 0; i < n; ++i) {
        turned(i, i) = T(1, 2);
    }
    SparseMatrix<T> m = sparse(ctx, turned);
    system.use_preconditioner(&m);
    LinearOptions options;
    options.share_search_space = false;
    const LinearResult result = system.solve(LinearMethod::cg, options);
    for (const LinearColumn& column : result.columns) {
        EXPECT_EQ(column.status, LinearStatus::breakdown);
        EXPECT_NE(column.message.find("an imaginary part of size "), std::string::npos)
            << column.message;
    }
}

/// M without a small part of its upper triangle is not Hermitian, but conjugate gradients converge.
TYPED_TEST(LinearFailure, ANearlyHermitianPreconditioner) {
    using T = TypeParam;
    const int n = 60;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(n, 1, 10)),
                           random_global<T>(this->generator, n, 3));
    Global<T> m(n, n);
    for (int i = 0; i < n; ++i) {
        m(i, i) = T(1);
        if (i + 1 < n) {
            m(i, i + 1) = T(static_cast<real_t<T>>(0.02));
        }
    }
    SparseMatrix<T> nearly = sparse(this->ctx, m);
    system.use_preconditioner(&nearly);
    for (const bool share : {true, false}) {
        LinearOptions options = this->usual();
        options.tol = 1e-3;
        options.share_search_space = share;
        system.expect_solved(system.solve(LinearMethod::cg, options), options);
    }
}

TYPED_TEST(LinearFailure, OperatorsThatGiveNaN) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(20, 1, 30)),
                           random_global<T>(this->generator, 20, 3));
    for (const LinearMethod method : all_methods) {
        for (const int at : {1, 3}) {
            SCOPED_TRACE(to_string(method));
            Watched<T> watched(system.matrix());
            watched.nan_at = at;
            // A shared search space would fall back to separate columns, whose products are right.
            LinearOptions options = this->usual();
            options.share_search_space = false;
            system.use(watched);
            const LinearResult result = system.solve(method, options);
            EXPECT_FALSE(result.converged);
            this->expect_word(result.message, "NaN");
            for (const LinearColumn& column : result.columns) {
                EXPECT_EQ(column.status, LinearStatus::not_finite);
                this->expect_word(column.message, "iteration ");
            }
            EXPECT_TRUE(std::isfinite(dense(system.x()).norm()));
        }
    }
    Watched<T> watched(system.matrix());
    watched.nan_at = 2;
    system.use(watched);
    const LinearOptions options = this->usual();
    system.expect_solved(system.solve(LinearMethod::cg, options), options);
}

TYPED_TEST(LinearFailure, PreconditionersThatGiveNaN) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(20, 1, 30)),
                           random_global<T>(this->generator, 20, 3));
    SparseMatrix<T> identity = sparse(this->ctx, this->diagonal(20, 1));
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        Watched<T> watched(identity);
        watched.nan_at = 2;
        system.use_preconditioner(&watched);
        LinearOptions options = this->usual();
        options.share_search_space = false;
        const LinearResult result = system.solve(method, options);
        for (const LinearColumn& column : result.columns) {
            EXPECT_EQ(column.status, LinearStatus::not_finite);
        }
    }
}

TYPED_TEST(LinearFailure, RightHandSidesAndGuessesThatAreNaN) {
    using T = TypeParam;
    Global<T> b = random_global<T>(this->generator, 15, 3);
    b(4, 1) = poison<T>();
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(15, 1, 3)), b);
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        const LinearResult result = system.solve(method, this->usual());
        EXPECT_EQ(result.columns[0].status, LinearStatus::converged);
        EXPECT_EQ(result.columns[1].status, LinearStatus::not_finite);
        EXPECT_EQ(result.columns[2].status, LinearStatus::converged);
        this->expect_word(result.message, "right-hand side 2 of 3");
    }
}

TYPED_TEST(LinearFailure, OperatorsThatThrow) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(30, 1, 30)),
                           random_global<T>(this->generator, 30, 3));
    for (const LinearMethod method : all_methods) {
        for (const bool share : {true, false}) {
            for (const int at : {1, 4}) {
                SCOPED_TRACE(to_string(method));
                Watched<T> watched(system.matrix());
                watched.throw_at = at;
                system.use(watched);
                LinearOptions options = this->usual();
                options.share_search_space = share;
                EXPECT_THROW(system.solve(method, options), std::exception);
            }
        }
    }
}

/// y = 2 x, without communication; throws on `failing_rank` (-1: on no rank).
template <class T>
class Doubling final : public Operator<T> {
  public:
    Doubling(const RowMap& map, int failing_rank) : map_(map), failing_rank_(failing_rank) {}
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        if (ctx.comm().rank() == failing_rank_) {
            throw std::runtime_error("the user's operator fails");
        }
        axpby(ctx, T(2), x, T(0), y);
    }

  private:
    RowMap map_;
    int failing_rank_;
};

TYPED_TEST(LinearFailure, OneRankThatThrows) {
    using T = TypeParam;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 24);
    const int last = this->ctx.comm().size() - 1;
    Doubling<T> failing(map, last);
    Doubling<T> good(map, -1);
    BlockVector<T> b(this->ctx, map, 3);
    BlockVector<T> x(this->ctx, map, 3);
    fill_random(this->ctx, 1, b);
    for (const LinearMethod method : all_methods) {
        for (const bool share : {true, false}) {
            LinearOptions options = this->usual();
            options.share_search_space = share;
            for (Operator<T>* m :
                 {static_cast<Operator<T>*>(nullptr), static_cast<Operator<T>*>(&failing)}) {
                SCOPED_TRACE(to_string(method));
                Operator<T>& a = m == nullptr ? failing : good;
                try {
                    linear_solve(this->ctx, method, LinearProblem<T>{a, b.view(), {}, m}, x.view(),
                                 options);
                    ADD_FAILURE() << "no error";
                } catch (const std::exception& error) {
                    this->expect_word(error.what(), "the user's operator fails");
                }
            }
        }
    }
}

/// Tolerances below rounding: the residual ends at a small multiple of its rounding errors.
TYPED_TEST(LinearFailure, TolerancesBelowRounding) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(30, 1, 10)),
                           random_global<T>(this->generator, 30, 3));
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        LinearOptions options;
        options.tol = 1e-30;
        options.max_iterations = 3000;
        const LinearResult result = system.solve(method, options);
        EXPECT_FALSE(result.converged);
        for (int j = 0; j < 3; ++j) {
            const LinearColumn& column = result.columns[static_cast<std::size_t>(j)];
            EXPECT_NE(column.status, LinearStatus::converged);
            EXPECT_NE(column.status, LinearStatus::not_finite);
            EXPECT_TRUE(column.status != LinearStatus::out_of_iterations ||
                        column.iterations == options.max_iterations);
            EXPECT_LE(column.residual, 10 * system.residual_noise(j)) << column.message;
        }
    }
}

/// Singular operators and right-hand sides outside of their range: no method may report a solution,
/// and only CG may end with a larger residual than X = 0 has. MINRES and GMRES come close to the
/// least residual, for which A r = 0.
TYPED_TEST(LinearFailure, SingularSystemsWithoutASolution) {
    using T = TypeParam;
    std::vector<double> neumann;
    neumann.reserve(60);
    for (int i = 0; i < 60; ++i) {
        neumann.push_back(2 - 2 * std::cos(std::acos(-1.0) * i / 60));
    }
    std::vector<double> indefinite = spread(60, -3, 5);
    indefinite.front() = indefinite.back() = 0;
    for (const std::vector<double>& values : {neumann, indefinite}) {
        const Global<T> a = hermitian<T>(this->generator, values);
        LinearSystem<T> system(this->ctx, a, random_global<T>(this->generator, 60, 3));
        const oracle::Eigenpairs exact = oracle::eigenpairs(dense(a));
        for (const LinearMethod method : all_methods) {
            LinearOptions options = this->usual();
            options.restart = 60;
            options.max_iterations = 700;
            const LinearResult result = system.solve(method, options);
            EXPECT_FALSE(result.converged);
            for (int j = 0; j < 3; ++j) {
                SCOPED_TRACE(std::string(to_string(method)) + " " + std::to_string(j));
                const LinearColumn& column = result.columns[static_cast<std::size_t>(j)];
                EXPECT_NE(column.status, LinearStatus::converged);
                EXPECT_TRUE(column.status != LinearStatus::out_of_iterations ||
                            column.iterations == options.max_iterations)
                    << column.message;
                EXPECT_NEAR(system.residual(j), column.residual, system.residual_noise(j));
                // Conjugate gradients may raise the residual while the error falls.
                if (method != LinearMethod::cg ||
                    column.status != LinearStatus::out_of_iterations) {
                    EXPECT_LE(column.residual, column.b_norm);
                }
                if (method == LinearMethod::minres || method == LinearMethod::gmres) {
                    double squares = 0;
                    for (int k = 0; k < 60; ++k) {
                        const bool null =
                            std::abs(exact.values(k)) < 100 * epsilon_v<T> * exact.values.norm();
                        squares +=
                            null ? std::norm(exact.vectors.col(k).dot(dense(system.b()).col(j)))
                                 : 0;
                    }
                    // The steps end when rounding errors in X are this fraction of the residual.
                    const double share = std::pow(static_cast<double>(epsilon_v<T>), 0.25);
                    EXPECT_LE(column.residual, (1 + 10 * share) * std::sqrt(squares))
                        << column.message;
                }
            }
        }
    }
}

/// Columns of B are scaled by powers of two: X has the same digits, and squares of B underflow or
/// overflow.
TYPED_TEST(LinearFailure, RightHandSidesWithSquaresOutsideTheRange) {
    using T = TypeParam;
    using Real = real_t<T>;
    const int power = sizeof(Real) == sizeof(double) ? 600 : 80;
    const Global<T> a = hermitian<T>(this->generator, spread(20, 1, 3));
    Global<T> b = random_global<T>(this->generator, 20, 5);
    LinearSystem<T> plain(this->ctx, a, b);
    const std::vector<int> powers{0, -power, power, 0, -power};
    for (int i = 0; i < 20; ++i) {
        b(i, 3) = T(0);
        for (const int j : {1, 2, 4}) {
            b(i, j) *= std::ldexp(Real(1), powers[static_cast<std::size_t>(j)]);
        }
    }
    LinearSystem<T> system(this->ctx, a, b);
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        LinearOptions options = this->usual();
        const std::vector<double> tol(5, options.tol);
        options.column_tol = tol;
        plain.expect_solved(plain.solve(method, options), options);
        const LinearResult result = system.solve(method, options);
        EXPECT_TRUE(result.converged) << result.message;
        for (const int j : {0, 1, 2, 4}) {
            const auto at = static_cast<std::size_t>(j);
            const LinearColumn& column = result.columns[at];
            EXPECT_LE(column.residual, options.tol * column.b_norm);
            double least = 0;
            for (int i = 0; i < 20; ++i) {
                const auto scaled = system.x()(i, j) * std::ldexp(Real(1), -powers[at]);
                least = std::max(least, static_cast<double>(std::abs(scaled - plain.x()(i, j))));
            }
            EXPECT_LE(least, 2 * options.tol * std::ldexp(column.b_norm, -powers[at]));
        }
        options.max_iterations = 1;
        options.share_search_space = false;
        const LinearResult failed = system.solve(method, options);
        EXPECT_EQ(failed.columns[4].status, LinearStatus::out_of_iterations);
        this->expect_word(failed.columns[4].message, "right-hand side 5 of 5: residual ");
        this->expect_word(failed.message, std::string(to_string(method)) + ": right-hand side 1");
    }
}

/// ||b|| is far above the norm of the operator: MINRES must not compare the two. If squares of the
/// operator underflow, the message asks to scale it.
TYPED_TEST(LinearFailure, MinresOfOperatorsMuchSmallerThanTheRightHandSide) {
    using T = TypeParam;
    using Real = real_t<T>;
    const bool wide = sizeof(Real) == sizeof(double);
    for (const int power : {wide ? -300 : -30, wide ? -700 : -100}) {
        Global<T> a = hermitian<T>(this->generator, {-2, 1, 3, 4});
        for (T& value : a.values) {
            value *= std::ldexp(Real(1), power);
        }
        LinearSystem<T> system(this->ctx, a, this->ones(4, 1, {}));
        const LinearResult result = system.solve(LinearMethod::minres, this->usual());
        if (power > (wide ? -500 : -50)) {
            EXPECT_TRUE(result.converged) << result.message;
            EXPECT_LE(system.residual(0), 2 * this->usual().tol);
        } else {
            EXPECT_FALSE(result.converged);
            this->expect_word(result.message, "squares underflow: scale the operator");
        }
    }
}

/// B is a null vector of A, up to the rounding of A.
TYPED_TEST(LinearFailure, NullVectorsAsRightHandSides) {
    using T = TypeParam;
    const int n = 50;
    Global<T> a(n, n);
    std::uniform_real_distribution<double> uniform(0.1, 1);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < i; ++j) {
            a(i, j) = a(j, i) = T(static_cast<real_t<T>>(-uniform(this->generator)));
        }
    }
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            a(i, i) -= i == j ? T(0) : a(i, j);
        }
    }
    LinearSystem<T> system(this->ctx, a, this->ones(n, 1, {}));
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        const LinearResult result = system.solve(method, this->usual());
        EXPECT_FALSE(result.converged);
        EXPECT_LE(result.columns[0].residual, result.columns[0].b_norm);
        EXPECT_NEAR(system.residual(0), result.columns[0].residual, system.residual_noise(0));
    }
}

/// The first column reaches its least residual, 0.1, after a few steps, because B has few
/// components. The other column needs more steps than allowed.
TYPED_TEST(LinearFailure, ColumnsRunOutOfTheirOwnIterations) {
    using T = TypeParam;
    const int n = 60;
    Global<T> b = this->ones(n, 2, {1});
    for (int i = 3; i < n; ++i) {
        b(i, 0) = i + 1 < n ? T(0) : T(real_t<T>(0.1));
    }
    LinearSystem<T> system(this->ctx, this->diagonal(n, 0), b);
    for (const LinearMethod method : {LinearMethod::minres, LinearMethod::gmres}) {
        SCOPED_TRACE(to_string(method));
        LinearOptions options = this->usual();
        options.max_iterations = 20;
        const LinearResult result = system.solve(method, options);
        EXPECT_EQ(result.columns[0].status, LinearStatus::breakdown) << result.columns[0].message;
        EXPECT_LT(result.columns[0].iterations, 8);
        EXPECT_NEAR(result.columns[0].residual, 0.1, system.residual_noise(0));
        EXPECT_EQ(result.columns[1].status, LinearStatus::out_of_iterations);
        EXPECT_EQ(result.columns[1].iterations, 20);
        this->expect_word(result.columns[1].message, "after 20 iterations");
    }
}

/// On a cyclic shift the residual of GMRES does not fall before the last step: Nachtigal, Reddy,
/// Trefethen, SIAM J. Matrix Anal. Appl. 13 (1992) 778.
TYPED_TEST(LinearFailure, GmresWithARestartTooShort) {
    using T = TypeParam;
    const int n = 9;
    Global<T> a(n, n);
    for (int i = 0; i < n; ++i) {
        a(i, (i + 1) % n) = T(1);
    }
    Global<T> b(n, 1);
    b(2, 0) = T(1);
    LinearSystem<T> system(this->ctx, a, b);
    LinearOptions options = this->usual();
    options.restart = n - 1;
    const LinearResult stuck = system.solve(LinearMethod::gmres, options);
    EXPECT_EQ(stuck.columns[0].status, LinearStatus::stagnated);
    this->expect_word(stuck.message, "the residual stays at 1 ||b||");
    options.restart = n;
    const LinearResult solved = system.solve(LinearMethod::gmres, options);
    system.expect_solved(solved, options);
    EXPECT_EQ(solved.iterations, n);
}

/// r^H A r = 0 for a skew matrix: the first step breaks down.
TYPED_TEST(LinearFailure, BicgstabOnASkewMatrix) {
    using T = TypeParam;
    Global<T> a(2, 2);
    a(0, 1) = T(1);
    a(1, 0) = T(-1);
    Global<T> b(2, 2);
    b(0, 0) = b(1, 1) = T(1);
    LinearSystem<T> system(this->ctx, a, b);
    const LinearResult result = system.solve(LinearMethod::bicgstab, this->usual());
    for (const LinearColumn& column : result.columns) {
        EXPECT_EQ(column.status, LinearStatus::breakdown);
        this->expect_word(column.message, "iteration 1: the shadow residual is orthogonal");
    }
    const LinearOptions options = this->usual();
    system.expect_solved(system.solve(LinearMethod::gmres, options), options);
}

TYPED_TEST(LinearFailure, TooFewIterations) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(40, 1, 400)),
                           random_global<T>(this->generator, 40, 2));
    for (const LinearMethod method : all_methods) {
        LinearOptions options = this->usual();
        options.max_iterations = 3;
        const LinearResult result = system.solve(method, options);
        for (int j = 0; j < 2; ++j) {
            const LinearColumn& column = result.columns[static_cast<std::size_t>(j)];
            EXPECT_EQ(column.status, LinearStatus::out_of_iterations);
            EXPECT_EQ(column.iterations, 3);
            EXPECT_NEAR(system.residual(j), column.residual, system.residual_noise(j));
        }
        this->expect_word(result.message, "after 3 iterations");
    }
}

TYPED_TEST(LinearFailure, ArgumentsThatDoNotFit) {
    using T = TypeParam;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 20);
    Doubling<T> a(map, -1);
    BlockVector<T> b(this->ctx, map, 3);
    BlockVector<T> x(this->ctx, map, 3);
    fill(this->ctx, T(1), b.view());
    const std::vector<T> two_shifts(2);
    const std::vector<double> two_tols(2, 0.1);
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        const auto with = [&](auto&& change) {
            LinearOptions options;
            change(options);
            linear_solve(this->ctx, method, LinearProblem<T>{a, b.view()}, x.view(), options);
        };
        with([](LinearOptions&) {});
        EXPECT_THROW(with([](LinearOptions& o) { o.tol = 1; }), InputError);
        EXPECT_THROW(with([](LinearOptions& o) { o.tol = -1e-3; }), InputError);
        EXPECT_THROW(with([](LinearOptions& o) { o.tol = std::nan(""); }), InputError);
        EXPECT_THROW(with([](LinearOptions& o) { o.max_iterations = 0; }), InputError);
        EXPECT_THROW(with([](LinearOptions& o) { o.restart = 0; }), InputError);
        EXPECT_THROW(with([&](LinearOptions& o) { o.column_tol = two_tols; }), InputError);
        EXPECT_THROW(
            linear_solve(this->ctx, method, LinearProblem<T>{a, b.view(), two_shifts}, x.view()),
            InputError);
        EXPECT_THROW(
            linear_solve(this->ctx, method, LinearProblem<T>{a, b.columns(0, 2)}, x.view()),
            ShapeError);
        if (map.local_rows() > 0) {
            EXPECT_THROW(linear_solve(this->ctx, method, LinearProblem<T>{a, b.view()}, b.view()),
                         ShapeError);
        }
    }
}

TYPED_TEST(LinearFailure, OptionsThatDifferOverTheRanksAreNamed) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, this->diagonal(6, 10), this->ones(6, 2, {}));
    const bool last = this->ctx.comm().rank() == this->ctx.comm().size() - 1;
    const auto expect = [&](const std::string& words, auto&& change) {
        LinearOptions options = this->usual();
        options.tol = 0.5;
        LinearMethod method = LinearMethod::gmres;
        if (last) {
            change(options, method);
        }
        try {
            system.solve(method, options);
            EXPECT_EQ(this->ctx.comm().size(), 1) << words;
        } catch (const InputError& error) {
            EXPECT_TRUE(error.collective());
            EXPECT_GT(this->ctx.comm().size(), 1);
            this->expect_word(error.what(), "linear solver: the ranks disagree on " + words);
        }
    };
    const std::vector<double> one(2, 0.25);
    expect("tol: smallest 0.125, largest 0.5", [](auto& o, auto&) { o.tol = 0.125; });
    expect("max_iterations: smallest 7, largest 1000",
           [](auto& o, auto&) { o.max_iterations = 7; });
    expect("restart: smallest 5, largest 30", [](auto& o, auto&) { o.restart = 5; });
    expect("column_tol: smallest 0 values, largest 2 values",
           [&](auto& o, auto&) { o.column_tol = one; });
    expect("share_search_space: smallest no, largest yes",
           [](auto& o, auto&) { o.share_search_space = false; });
    expect("fresh_residuals: smallest no, largest yes",
           [](auto& o, auto&) { o.fresh_residuals = false; });
    expect("method: smallest cg, largest gmres", [](auto&, auto& m) { m = LinearMethod::cg; });
}

/// A protected matrix. Its audit at the end of a solve also doubles a column of X, like a fault in
/// memory after the convergence of this column.
template <class T>
class ForgetfulOperator final : public Operator<T> {
  public:
    ForgetfulOperator(ProtectedMatrix<T>& a, BlockView<T> x) : a_(a), x_(x) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override { a_.apply(ctx, x, y); }
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override {
        a_.apply_fused(ctx, x, y, options);
    }
    void audit(Context& ctx) override {
        a_.audit(ctx);
        scale(ctx, T(2), x_.columns(1, 1));
    }
    OperatorFaults faults() const override { return a_.faults(); }

  private:
    ProtectedMatrix<T>& a_;
    BlockView<T> x_;
};

TYPED_TEST(LinearFailure, AColumnThatChangedAfterItConvergedIsFaulty) {
    using T = TypeParam;
    constexpr int n = 12;
    Context& ctx = this->ctx;
    SparseMatrix<T> a = sparse(ctx, this->diagonal(n, n));
    TestBlock<T> b(ctx, this->ones(n, 3, {}), a.row_map(), {});
    for (const LinearMethod method : all_methods) {
        for (const bool changes : {false, true}) {
            TestBlock<T> x(ctx, Global<T>(n, 3), a.row_map(), {});
            ProtectedMatrix<T> guarded(ctx, a, {AbftMode::correct});
            ForgetfulOperator<T> forgetful(guarded, x.view());
            Operator<T>& used = changes ? static_cast<Operator<T>&>(forgetful) : guarded;
            LinearProblem<T> problem{used, b.const_view()};
            problem.protection = &guarded;
            const LinearResult result = linear_solve(ctx, method, problem, x.view(), this->usual());
            EXPECT_EQ(result.converged, !changes) << to_string(method);
            for (std::size_t j = 0; j < 3; ++j) {
                EXPECT_EQ(result.columns[j].status,
                          changes && j == 1 ? LinearStatus::faulty : LinearStatus::converged);
            }
            if (changes) {
                this->expect_word(result.message, "a vector has changed in memory: solve again");
                this->expect_word(result.message,
                                  std::string(to_string(method)) + ": right-hand side 2 of 3: ");
            }
        }
    }
}

}  // namespace
}  // namespace quiver::test

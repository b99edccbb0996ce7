// SPDX-License-Identifier: BSD-3-Clause
// Linear solvers against Eigen's dense solutions, on systems for which they are suited.
#include <array>

#include "kernels/random.hpp"
#include "tests/solvers/linear_support.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {
namespace {

template <class T>
class Linear : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();

    int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); }
    /// Diagonally dominant, neither Hermitian nor normal.
    Global<T> general(int n) {
        Global<T> a = random_global<T>(generator, n, n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                a(i, j) *= static_cast<real_t<T>>(1 / std::sqrt(static_cast<double>(n)));
            }
            a(i, i) += T(4);
        }
        return a;
    }
    LinearOptions usual() {
        LinearOptions options;
        options.tol = usual_tolerance<T>();
        options.max_iterations = 400;
        return options;
    }
    static T real(double value) { return T(static_cast<real_t<T>>(value)); }
};
TYPED_TEST_SUITE(Linear, Scalars, ScalarName);

TYPED_TEST(Linear, PositiveDefiniteSystemsOfRandomShape) {
    using T = TypeParam;
    for (int trial = 0; trial < 4; ++trial) {
        const int n = this->draw(1, 50);
        const int columns = this->draw(1, 9);
        SCOPED_TRACE(std::to_string(n) + " rows, " + std::to_string(columns) + " columns");
        LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(n, 0.5, 20)),
                               random_global<T>(this->generator, n, columns));
        for (const LinearMethod method : all_methods) {
            SCOPED_TRACE(to_string(method));
            const LinearOptions options = this->usual();
            system.expect_solved(system.solve(method, options), options);
        }
        LinearOptions plain = this->usual();
        plain.share_search_space = false;
        system.expect_solved(system.solve(LinearMethod::cg, plain), plain);
    }
}

/// The scalars that options.stop sees are those of the solution after as many steps, computed from
/// vectors; a column that it ends keeps that solution.
TYPED_TEST(Linear, StopSeesTheSolutionOfEachStep) {
    using T = TypeParam;
    constexpr int n = 30;
    constexpr int steps = 5;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(n, 0.5, 8)),
                           random_global<T>(this->generator, n, 3));
    system.use_shift({T(0), this->real(-0.5), T(-1)});
    auto m = sparse(this->ctx, hermitian<T>(this->generator, spread(n, 1, 2)));
    for (const LinearMethod method :
         {LinearMethod::cg, LinearMethod::minres, LinearMethod::gmres}) {
        for (const bool with_m : {false, true}) {
            SCOPED_TRACE(std::string(to_string(method)) + (with_m ? " with M" : ""));
            system.use_preconditioner(with_m ? &m : nullptr);
            std::vector<LinearStep> seen;
            LinearOptions options;
            options.tol = 0;
            options.share_search_space = false;
            options.fresh_residuals = false;
            options.max_iterations = steps;
            options.stop = [&](const LinearStep& step) {
                seen.push_back(step);
                return step.column == 1 && seen.size() == 5;  // its second step
            };
            const LinearResult result = system.solve(method, options);
            if (method == LinearMethod::gmres && with_m) {
                EXPECT_TRUE(seen.empty());  // its solution is known at the end only
                continue;
            }
            ASSERT_EQ(seen.size(), std::size_t{3 * steps - 3});
            EXPECT_EQ(result.columns[0].iterations, steps);
            EXPECT_EQ(result.columns[1].iterations, 2);
            EXPECT_EQ(result.columns[1].status, LinearStatus::out_of_iterations);
            const Dense ended = dense(system.x()).col(1);
            options.stop = {};
            std::vector<int> taken(3, 0);
            for (const LinearStep& step : seen) {
                const int j = step.column;
                options.max_iterations = ++taken[static_cast<std::size_t>(j)];
                system.solve(method, options);
                const Dense x = dense(system.x()).col(j);
                const Dense b = dense(system.b()).col(j);
                const Dense r = b - oracle::product(system.shifted(j), x);
                const double noise = 200 * epsilon_v<T> * (1 + x.norm()) * (1 + b.norm());
                EXPECT_NEAR(step.residual, r.norm(), noise);
                EXPECT_NEAR(step.bx, b.col(0).dot(x.col(0)).real(), noise);
                EXPECT_NEAR(step.xr, x.col(0).dot(r.col(0)).real(), noise);
                EXPECT_NEAR(step.xx, x.squaredNorm(), noise);
                if (j == 1 && options.max_iterations == 2) {
                    EXPECT_LE((x - ended).norm(), noise);
                }
            }
        }
    }
}

TYPED_TEST(Linear, IndefiniteSystems) {
    using T = TypeParam;
    std::vector<double> values = spread(20, 1, 6);
    for (const double value : spread(15, -8, -1)) {
        values.push_back(value);
    }
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, values),
                           random_global<T>(this->generator, 35, 5));
    for (const LinearMethod method : {LinearMethod::minres, LinearMethod::gmres}) {
        SCOPED_TRACE(to_string(method));
        LinearOptions options = this->usual();
        options.restart = 35;
        system.expect_solved(system.solve(method, options), options);
    }
}

TYPED_TEST(Linear, GeneralSystems) {
    using T = TypeParam;
    for (const int n : {1, 7, 40}) {
        SCOPED_TRACE(std::to_string(n) + " rows");
        LinearSystem<T> system(this->ctx, this->general(n),
                               random_global<T>(this->generator, n, 4));
        for (const LinearMethod method : {LinearMethod::gmres, LinearMethod::bicgstab}) {
            SCOPED_TRACE(to_string(method));
            LinearOptions options = this->usual();
            options.restart = 8;
            system.expect_solved(system.solve(method, options), options);
        }
    }
}

TYPED_TEST(Linear, AShiftForEachColumn) {
    using T = TypeParam;
    const int n = 30;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(n, 1, 10)),
                           random_global<T>(this->generator, n, 6));
    const LinearOptions options = this->usual();
    for (const bool many : {false, true}) {
        // Shifts below the spectrum for cg; for the others also between eigenvalues.
        system.use_shift(
            many ? std::vector<T>{T(-3), T(0), this->real(0.5), T(-1), T(-20), this->real(0.75)}
                 : std::vector<T>{T(-1)});
        system.expect_solved(system.solve(LinearMethod::cg, options), options);
        const double gap = 9.0 / (n - 1);
        const T inside = this->real(1 + 10.5 * gap);
        system.use_shift(
            many ? std::vector<T>{inside, T(0), this->real(1 + 0.5 * gap), T(12), inside, T(-1)}
                 : std::vector<T>{inside});
        for (const LinearMethod method : {LinearMethod::minres, LinearMethod::gmres}) {
            SCOPED_TRACE(to_string(method));
            LinearOptions long_restart = options;
            long_restart.restart = n;
            system.expect_solved(system.solve(method, long_restart), long_restart);
        }
    }
    if constexpr (is_complex_v<T>) {
        system.use_shift({T(0, 2), T(-1, 1), T(5, -3), T(0, 0), T(20, 1), T(-2, -2)});
        for (const LinearMethod method : {LinearMethod::gmres, LinearMethod::bicgstab}) {
            SCOPED_TRACE(to_string(method));
            system.expect_solved(system.solve(method, options), options);
        }
        for (const LinearMethod method : {LinearMethod::cg, LinearMethod::minres}) {
            EXPECT_THROW(system.solve(method, options), InputError);
        }
    }
}

/// In exact arithmetic the Krylov space of an operator with d distinct eigenvalues contains the
/// solution after d steps.
TYPED_TEST(Linear, AsManyStepsAsDistinctEigenvalues) {
    using T = TypeParam;
    const std::array distinct{1.0, 2.0, 3.5, 5.0, 6.0};
    std::vector<double> values(40);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = distinct[i % distinct.size()];
    }
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, values),
                           random_global<T>(this->generator, 40, 3));
    for (const LinearMethod method : all_methods) {
        for (const bool share : {true, false}) {
            SCOPED_TRACE(to_string(method));
            LinearOptions options = this->usual();
            options.share_search_space = share;
            const LinearResult result = system.solve(method, options);
            system.expect_solved(result, options);
            if (method != LinearMethod::bicgstab) {
                EXPECT_EQ(result.iterations, 5);
                for (const LinearColumn& column : result.columns) {
                    EXPECT_EQ(column.iterations, 5);
                }
            }
        }
    }
}

/// The same for P A with d distinct eigenvalues: the directions of cg stay conjugate with a
/// preconditioner, with a shared search space and with one for each column.
TYPED_TEST(Linear, AsManyStepsAsDistinctEigenvaluesWithAPreconditioner) {
    using T = TypeParam;
    const std::array distinct{1.0, 2.0, 3.5, 5.0, 6.0};
    std::vector<double> values(40);
    std::vector<double> inverse(40);
    std::uniform_real_distribution<double> uniform(0.25, 4);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = distinct[i % distinct.size()];
        inverse[i] = 1 / uniform(this->generator);
    }
    Global<T> a = hermitian<T>(this->generator, values);
    for (int i = 0; i < 40; ++i) {
        for (int j = 0; j < 40; ++j) {
            a(i, j) /= static_cast<real_t<T>>(std::sqrt(inverse[static_cast<std::size_t>(i)] *
                                                        inverse[static_cast<std::size_t>(j)]));
        }
    }
    SparseMatrix<T> preconditioner = diagonal<T>(this->ctx, inverse);
    LinearSystem<T> system(this->ctx, a, random_global<T>(this->generator, 40, 3));
    system.use_preconditioner(&preconditioner);
    for (const bool share : {true, false}) {
        LinearOptions options = this->usual();
        options.share_search_space = share;
        const LinearResult result = system.solve(LinearMethod::cg, options);
        system.expect_solved(result, options);
        EXPECT_LE(result.iterations, 6);  // one more: tol is for the residual without P
    }
}

/// With n rows and s columns the block Krylov space is the whole space after n / s steps.
TYPED_TEST(Linear, BlocksOfColumnsShareTheirSearchSpace) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(36, 1, 50)),
                           random_global<T>(this->generator, 36, 9));
    LinearOptions options = this->usual();
    const LinearResult block = system.solve(LinearMethod::cg, options);
    system.expect_solved(block, options);
    EXPECT_LE(block.iterations, 4);
    options.share_search_space = false;
    const LinearResult plain = system.solve(LinearMethod::cg, options);
    EXPECT_GT(plain.iterations, 2 * block.iterations);
}

TYPED_TEST(Linear, DependentAndZeroRightHandSides) {
    using T = TypeParam;
    const int n = 32;
    Global<T> b(n, 7);
    const Global<T> two = random_global<T>(this->generator, n, 2);
    for (int i = 0; i < n; ++i) {
        b(i, 0) = two(i, 0);
        b(i, 1) = T(-2) * two(i, 0);
        b(i, 2) = two(i, 1);
        b(i, 3) = T(0);
        b(i, 4) = two(i, 0) + two(i, 1);
        b(i, 5) = two(i, 1);
        b(i, 6) = T(0);
    }
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(n, 1, 9)), b);
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        Watched<T> watched(system.matrix());
        system.use(watched);
        const LinearOptions options = this->usual();
        const LinearResult result = system.solve(method, options);
        system.expect_solved(result, options);
        EXPECT_EQ(watched.products, result.operator_applications);
        for (const int zero : {3, 6}) {
            EXPECT_EQ(result.columns[static_cast<std::size_t>(zero)].iterations, 0);
            EXPECT_EQ(result.columns[static_cast<std::size_t>(zero)].residual, 0);
            for (int i = 0; i < n; ++i) {
                EXPECT_EQ(system.x()(i, zero), T(0));
            }
        }
        if (method == LinearMethod::cg) {
            EXPECT_EQ(watched.widths.front(), 2) << "two of five columns are independent";
        }
    }
}

TYPED_TEST(Linear, NothingButZeros) {
    using T = TypeParam;
    for (const int columns : {0, 3}) {
        LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(11, 1, 2)),
                               Global<T>(11, columns));
        system.use_guess(random_global<T>(this->generator, 11, columns));
        for (const LinearMethod method : all_methods) {
            const LinearResult result = system.solve(method, this->usual());
            EXPECT_TRUE(result.converged);
            EXPECT_EQ(result.iterations, 0);
            EXPECT_EQ(dense(system.x()).norm(), 0);
        }
    }
}

TYPED_TEST(Linear, SingularSystemsThatHaveASolution) {
    using T = TypeParam;
    const int n = 24;
    std::vector<double> values = spread(n, 1, 7);
    for (int i = 0; i < 4; ++i) {
        values[static_cast<std::size_t>(i)] = 0;
    }
    const Global<T> a = hermitian<T>(this->generator, values);
    const Dense in_range =
        oracle::product(dense(a), dense(random_global<T>(this->generator, n, 3)));
    LinearSystem<T> system(this->ctx, a, rounded<T>(in_range));
    LinearOptions options = this->usual();
    for (const LinearMethod method :
         {LinearMethod::cg, LinearMethod::minres, LinearMethod::gmres}) {
        SCOPED_TRACE(to_string(method));
        system.expect_solved(system.solve(method, options), options);
    }
}

/// The least residual is the component of b outside of the range.
TYPED_TEST(Linear, SingularSystemsWithoutASolution) {
    using T = TypeParam;
    Global<T> a(12, 12);
    for (int i = 2; i < 12; ++i) {
        a(i, i) = T(static_cast<real_t<T>>(1 + i % 3));
    }
    Global<T> b(12, 1, [] { return T(1); });
    LinearSystem<T> system(this->ctx, a, b);
    for (const LinearMethod method : {LinearMethod::minres, LinearMethod::gmres}) {
        SCOPED_TRACE(to_string(method));
        LinearOptions options = this->usual();
        const LinearResult result = system.solve(method, options);
        EXPECT_FALSE(result.converged);
        EXPECT_EQ(result.columns[0].status, LinearStatus::breakdown);
        EXPECT_NE(result.message.find("singular"), std::string::npos) << result.message;
        EXPECT_NEAR(result.columns[0].residual, std::sqrt(2.0),
                    std::sqrt(2.0) * 100 * std::sqrt(epsilon_v<T>));
        EXPECT_TRUE(std::isfinite(dense(system.x()).norm()));
    }
}

TYPED_TEST(Linear, GuessesAreTaken) {
    using T = TypeParam;
    const int n = 28;
    const Global<T> a = hermitian<T>(this->generator, spread(n, 1, 5));
    const Global<T> b = random_global<T>(this->generator, n, 3);
    const Dense exact = oracle::solution(dense(a), dense(b));
    LinearSystem<T> system(this->ctx, a, b);
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        const LinearOptions options = this->usual();
        system.use_guess(rounded<T>(exact));
        LinearResult result = system.solve(method, options);
        system.expect_solved(result, options);
        EXPECT_EQ(result.iterations, 0);
        EXPECT_EQ(result.operator_applications, 3);
        system.use_guess(random_global<T>(this->generator, n, 3));
        result = system.solve(method, options);
        system.expect_solved(result, options);
        EXPECT_GT(result.iterations, 0);
    }
}

TYPED_TEST(Linear, ConvergedColumnsAreSwappedOut) {
    using T = TypeParam;
    const int n = 40;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(n, 1, 60)),
                           random_global<T>(this->generator, n, 6));
    const double tight = usual_tolerance<T>();
    const std::vector<double> tols{0.5, tight, 0.1, tight, 1e-2, 0.3};
    for (const LinearMethod method : all_methods) {
        for (const bool share : {true, false}) {
            SCOPED_TRACE(to_string(method));
            Watched<T> watched(system.matrix());
            system.use(watched);
            LinearOptions options = this->usual();
            options.column_tol = tols;
            options.restart = 10;
            options.share_search_space = share;
            const LinearResult result = system.solve(method, options);
            system.expect_solved(result, options);
            EXPECT_EQ(watched.widths.front(), 6);
            EXPECT_LE(*std::min_element(watched.widths.begin(), watched.widths.end()), 3);
            EXPECT_EQ(watched.products, result.operator_applications);
            EXPECT_LT(result.columns[0].iterations, result.columns[1].iterations);
            system.use(system.matrix());
        }
    }
}

TYPED_TEST(Linear, FixedNumbersOfStepsForInnerSolves) {
    using T = TypeParam;
    const int n = 30;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(n, 1, 40)),
                           random_global<T>(this->generator, n, 4));
    for (const LinearMethod method : all_methods) {
        SCOPED_TRACE(to_string(method));
        for (const std::int64_t steps : {1, 3, 6}) {
            Watched<T> watched(system.matrix());
            system.use(watched);
            LinearOptions options;
            options.tol = 0;
            options.max_iterations = steps;
            options.fresh_residuals = false;
            const LinearResult result = system.solve(method, options);
            EXPECT_EQ(result.iterations, steps);
            EXPECT_EQ(watched.products, 4 * steps * (method == LinearMethod::bicgstab ? 2 : 1));
            EXPECT_FALSE(result.converged);
            for (int j = 0; j < 4; ++j) {
                const LinearColumn& column = result.columns[static_cast<std::size_t>(j)];
                EXPECT_EQ(column.status, LinearStatus::out_of_iterations);
                EXPECT_EQ(column.iterations, steps);
                EXPECT_NEAR(column.residual, system.residual(j), 10 * system.residual_noise(j));
            }
            system.use(system.matrix());
        }
    }
}

/// The residuals of minres and gmres never grow, from step to step and over restarts.
TYPED_TEST(Linear, MinimalResidualsFall) {
    using T = TypeParam;
    std::vector<double> values = spread(30, -4, 9);
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, values),
                           random_global<T>(this->generator, 30, 2));
    for (const LinearMethod method : {LinearMethod::minres, LinearMethod::gmres}) {
        std::vector<double> last(2, 1e300);
        for (std::int64_t steps = 1; steps <= 25; steps += 3) {
            LinearOptions options;
            options.tol = 0;
            options.max_iterations = steps;
            options.restart = 4;
            const LinearResult result = system.solve(method, options);
            for (std::size_t j = 0; j < 2; ++j) {
                EXPECT_LE(result.columns[j].residual,
                          last[j] + 10 * system.residual_noise(static_cast<int>(j)))
                    << to_string(method) << " " << steps;
                last[j] = result.columns[j].residual;
            }
        }
    }
}

/// After k steps GMRES and MINRES have the least residual over the whole Krylov space, which a
/// dense least-squares problem also gives.
TYPED_TEST(Linear, TheLeastResidualOverTheKrylovSpace) {
    using T = TypeParam;
    const int n = 25;
    const Global<T> a = hermitian<T>(this->generator, spread(n, -3, 5));
    const Global<T> b = random_global<T>(this->generator, n, 1);
    LinearSystem<T> system(this->ctx, a, b);
    for (int k = 1; k <= 6; ++k) {
        Dense krylov(n, k);
        krylov.col(0) = dense(b).normalized();
        for (int i = 1; i < k; ++i) {
            krylov.col(i) = oracle::product(dense(a), krylov.col(i - 1)).normalized();
        }
        const double least = oracle::least_residual(oracle::product(dense(a), krylov), dense(b));
        LinearOptions options;
        options.tol = 0;
        options.max_iterations = k;
        for (const LinearMethod method : {LinearMethod::minres, LinearMethod::gmres}) {
            const LinearResult result = system.solve(method, options);
            EXPECT_NEAR(result.columns[0].residual, least, 20 * system.residual_noise(0))
                << to_string(method) << ", " << k << " steps";
        }
    }
}

TYPED_TEST(Linear, OneWorkspaceServesManySolves) {
    using T = TypeParam;
    LinearWorkspace<T> workspace;
    const Global<T> a = hermitian<T>(this->generator, spread(26, 1, 8));
    SparseMatrix<T> matrix = sparse(this->ctx, a);
    workspace.reserve(this->ctx, matrix.row_map(), 10, 7, 7 * 31);
    const T* const first = workspace.block(0, 1).data;
    const T* const basis = workspace.basis(1).data;
    for (const int columns : {7, 2, 5}) {
        for (const LinearMethod method : all_methods) {
            BlockVector<T> b(this->ctx, matrix.row_map(), columns);
            BlockVector<T> x(this->ctx, matrix.row_map(), columns);
            fill_random(this->ctx, 1, b);
            LinearOptions options = this->usual();
            EXPECT_TRUE(linear_solve(this->ctx, method, LinearProblem<T>{matrix, b.view()},
                                     x.view(), options, workspace)
                            .converged);
        }
    }
    std::vector<const T*> blocks;
    blocks.reserve(11);
    for (int i = 0; i < 11; ++i) {
        blocks.push_back(workspace.block(i, 1).data);
    }
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), first), 1) << "moved, not allocated again";
    EXPECT_EQ(workspace.basis(1).data, basis);
}

TYPED_TEST(Linear, ReportsEveryStep) {
    using T = TypeParam;
    LinearSystem<T> system(this->ctx, hermitian<T>(this->generator, spread(20, 1, 9)),
                           random_global<T>(this->generator, 20, 3));
    for (const LinearMethod method : all_methods) {
        std::int64_t events = 0;
        int converged = 0;
        this->ctx.set_event_sink([&](const Event& event) {
            if (const auto* step = std::get_if<IterationEvent>(&event)) {
                EXPECT_EQ(step->iteration, ++events);
                EXPECT_EQ(step->wanted, 3);
                EXPECT_STREQ(step->solver, to_string(method));
                converged = step->converged;
            }
        });
        const LinearResult result = system.solve(method, this->usual());
        EXPECT_EQ(events, result.iterations);
        EXPECT_EQ(converged, 3);
    }
    this->ctx.set_event_sink({});
}

}  // namespace
}  // namespace quiver::test

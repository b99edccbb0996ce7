// SPDX-License-Identifier: BSD-3-Clause
// Method::automatic: the first method, by the size and fill of the matrix. Results are compared
// with spectra known by construction.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/context.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/dense_operator.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/dense/dense_pencil.hpp"
#include "solvers/dense/lapack.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/shift_invert.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/solvers/beams.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::at_end;
using test::automatic;
using test::beam;
using test::beam_spectrum;
using test::DenseMatrix;
using test::expect_result;

/// Q diag(values) Q^T, where Q consists of `rounds` rounds of rotations of random pairs of rows. A
/// row has up to 4^rounds entries, and the factors of the matrix have few zeros.
SparseMatrix<double> rotated(Context& ctx, const std::vector<double>& values, int rounds = 3) {
    const std::size_t n = values.size();
    std::vector<std::map<std::size_t, double>> a(n);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) {
        a[i][i] = values[i];
        order[i] = i;
    }
    // Rotates the rows p and q of A; its columns follow as the rows of the transpose.
    const auto rotate = [&](std::size_t p, std::size_t q, double c, double s) {
        const std::map<std::size_t, double> upper = std::exchange(a[p], {});
        const std::map<std::size_t, double> lower = std::exchange(a[q], {});
        for (const auto& [j, value] : upper) {
            a[p][j] += c * value;
            a[q][j] -= s * value;
        }
        for (const auto& [j, value] : lower) {
            a[p][j] += s * value;
            a[q][j] += c * value;
        }
    };
    std::mt19937_64 random(5);
    for (int round = 0; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        const auto all_rows = [&] {
            for (std::size_t i = 0; i + 1 < n; i += 2) {
                rotate(order[i], order[i + 1], 0.8, 0.6);
            }
        };
        all_rows();
        std::vector<std::map<std::size_t, double>> transposed(n);
        for (std::size_t i = 0; i < n; ++i) {
            for (const auto& [j, value] : a[i]) {
                transposed[j][i] = value;
            }
        }
        a = std::move(transposed);
        all_rows();
    }
    return test::matrix_from_rows<double>(
        ctx, static_cast<std::int64_t>(n), [&](std::int64_t row, auto& entries) {
            const auto i = static_cast<std::size_t>(row);
            for (const auto& [j, value] : a[i]) {
                entries.add(static_cast<std::int64_t>(j), 0.5 * (value + a[j].at(i)));
            }
        });
}

/// n values from 10^-decades to 1, ascending, equidistant in the logarithm.
std::vector<double> decades_of(int n, double decades) {
    std::vector<double> values(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
        values[static_cast<std::size_t>(i)] = std::pow(10.0, -decades * (n - 1 - i) / (n - 1));
    }
    return values;
}

/// True if matrices of more than 50,000 rows are factorised, which needs MUMPS and the host.
bool takes_large_matrices(const Context& ctx) {
    const char* const mumps = std::getenv("QUIVER_MUMPS");
    return *mumps_version() != '\0' && ctx.place() == Place::host &&
           (mumps == nullptr || std::string(mumps) != "none");
}

TEST(AutomaticRule, EndsBeginWithAnIteration) {
    Context ctx = test::make_context();
    const auto chosen = [&](std::int64_t n) {
        SparseMatrix<double> a =
            test::diagonal<double>(ctx, std::vector<double>(static_cast<std::size_t>(n), 1.0));
        return choose_method(ctx, EigenProblem<double>{a}, automatic(Which::smallest, 4));
    };
    for (const std::int64_t n : {2000, 3000, 3001, 50000}) {
        EXPECT_EQ(chosen(n).method, Method::chebyshev) << n;
        EXPECT_EQ(chosen(n).hand_over_after, 500) << n;
    }
    EXPECT_EQ(chosen(50001).method, Method::chebyshev);
    EXPECT_EQ(chosen(50001).hand_over_after, takes_large_matrices(ctx) ? 500 : 0);
}

/// On a host a cheap factorisation comes first at an end where eigenvalues are crowded. An
/// iteration comes first at the other end of the same matrix, and if the factorisation is
/// expensive.
TEST(AutomaticRule, ACrowdedEnd) {
    Context ctx = test::make_context();
    const auto chosen = [&](SparseMatrix<double>& a, Which which) {
        return choose_method(ctx, EigenProblem<double>{a}, automatic(which, 4)).method;
    };
    const Method direct = ctx.place() == Place::host ? Method::shift_invert : Method::chebyshev;
    std::vector<double> values = decades_of(2000, 8);
    SparseMatrix<double> crowded = test::diagonal<double>(ctx, values);
    EXPECT_EQ(chosen(crowded, Which::smallest), direct);
    EXPECT_EQ(chosen(crowded, Which::largest), Method::chebyshev);
    std::transform(values.begin(), values.end(), values.begin(), std::negate<>());
    SparseMatrix<double> negative = test::diagonal<double>(ctx, values);
    EXPECT_EQ(chosen(negative, Which::smallest), Method::chebyshev);
    EXPECT_EQ(chosen(negative, Which::largest), direct);
    SparseMatrix<double> large = beam<double>(ctx, 20001);
    EXPECT_EQ(chosen(large, Which::smallest), Method::chebyshev);
    SparseMatrix<double> full = rotated(ctx, decades_of(1100, 8), 4);
    EXPECT_EQ(chosen(full, Which::smallest), Method::chebyshev);
    SparseMatrix<double> grid = test::laplace3d<double>(ctx, 12, 12, 12);
    EXPECT_EQ(chosen(grid, Which::smallest), Method::chebyshev);
    SparseMatrix<double> line = test::laplace3d<double>(ctx, 5000, 1, 1);
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        EigenOptions options = automatic(Which::smallest, 4);
        options.seed = seed;
        EXPECT_EQ(choose_method(ctx, EigenProblem<double>{line}, options).method, direct) << seed;
    }
}

/// For many pairs an iteration makes more steps before another method follows.
TEST(AutomaticRule, PatienceGrowsWithThePairs) {
    Context ctx = test::make_context();
    SparseMatrix<double> grid = test::laplace3d<double>(ctx, 14, 13, 12);
    for (const auto& [k, steps] : {std::pair{4, 500}, std::pair{166, 500}, std::pair{200, 600}}) {
        EXPECT_EQ(choose_method(ctx, EigenProblem<double>{grid}, automatic(Which::smallest, k))
                      .hand_over_after,
                  steps);
    }
}

/// Only the part of a window inside the bounds of the spectrum is counted; a window that is not
/// finite is refused.
TEST(AutomaticRule, AWindowThatBeginsFarBelowTheSpectrum) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 4000, 1, 1);
    EigenOptions options;
    // The 12 smallest eigenvalues.
    options.window = Window{-1e5, test::laplace3d_spectrum(4000, 1, 1)[11] + 1e-7};
    const MethodChoice choice = choose_method(ctx, EigenProblem<double>{a}, options);
    EXPECT_EQ(choice.method, Method::shift_invert) << choice.reason;
    options.window->high = std::numeric_limits<double>::infinity();
    EXPECT_THROW(choose_method(ctx, EigenProblem<double>{a}, options), InputError);
}

/// A difference of rounding between entries (i, j) and (j, i) is accepted, a larger one is refused.
TEST(Automatic, AMatrixThatIsHermitianToRounding) {
    Context ctx = test::make_context();
    constexpr int n = 1300;
    const auto line = [&](double difference) {
        return test::matrix_from_rows<double>(ctx, n, [=](std::int64_t row, auto& entries) {
            entries.add(row, 2.0);
            if (row > 0) {
                entries.add(row - 1, row == 7 ? -1 - difference : -1.0);
            }
            if (row + 1 < n) {
                entries.add(row + 1, -1.0);
            }
        });
    };
    EigenOptions options = automatic(Which::smallest, 3);
    options.method = Method::shift_invert;
    SparseMatrix<double> rounded = line(1e-13);
    const auto result = eigensolve(ctx, EigenProblem<double>{rounded}, options);
    EXPECT_TRUE(result.converged) << result.message;
    ASSERT_EQ(result.eigenvalues.size(), 3U);
    for (int j = 0; j < 3; ++j) {
        const double root = std::sin(0.5 * std::numbers::pi * (j + 1) / (n + 1));
        EXPECT_NEAR(result.eigenvalues[static_cast<std::size_t>(j)], 4 * root * root, 1e-12);
    }
    SparseMatrix<double> skewed = line(1e-8);
    EXPECT_THROW(eigensolve(ctx, EigenProblem<double>{skewed}, options), NumericalError);
}

/// A problem with B or an inverse begins with a method that uses them; with constraints only a
/// dense solve can follow.
TEST(AutomaticRule, OperandsDecideWhatFollows) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 2000, 1, 1);
    SparseMatrix<double> b = test::diagonal<double>(ctx, std::vector<double>(2000, 2.0));
    const auto chosen = [&](const EigenProblem<double>& problem, Which which) {
        return choose_method(ctx, problem, automatic(which, 4));
    };
    EigenProblem<double> pencil{a};
    pencil.b = &b;
    EXPECT_EQ(chosen(pencil, Which::smallest).method,
              ctx.place() == Place::host ? Method::shift_invert : Method::lobpcg);
    EXPECT_EQ(chosen(pencil, Which::both_ends).method, chosen(pencil, Which::largest).method);
    EXPECT_EQ(chosen(pencil, Which::target).method, Method::shift_invert);
    pencil.preconditioner = &b;
    EXPECT_EQ(chosen(pencil, Which::smallest).method, Method::lobpcg);
    EXPECT_EQ(chosen(pencil, Which::smallest).hand_over_after, 500);
    EigenProblem<double> inverted{a};
    inverted.inverse = &b;
    EXPECT_EQ(chosen(inverted, Which::target).method, Method::jacobi_davidson);
    EXPECT_EQ(chosen(inverted, Which::target).hand_over_after, 500);
    BlockVector<double> ones(ctx, a.row_map(), 1);
    fill(ctx, 1.0, ones.view());
    EigenProblem<double> constrained{a};
    constrained.constraints = std::as_const(ones).view();
    EXPECT_EQ(chosen(constrained, Which::smallest).method, Method::chebyshev);
    EXPECT_EQ(chosen(constrained, Which::smallest).hand_over_after, 4000);
    EXPECT_EQ(chosen(constrained, Which::target).method, Method::dense);
}

/// The factor of the limits of dense solves for interior eigenvalues and for large k.
int more_dense_rows(Context& ctx) {
    return DensePencil<double>::uses_cusolver(ctx, 3001) ? 2 : 1;
}

TEST(AutomaticRule, DenseMatricesGetADenseSolve) {
    Context ctx = test::make_context();
    for (const int n : {1025, 3000, 3001, 6001}) {
        SparseMatrix<double> sparse = test::laplace3d<double>(ctx, n, 1, 1);
        DenseMatrix a(sparse);
        EigenProblem<double> problem{a};
        const auto chosen = [&](Which which, int k = 4) {
            return choose_method(ctx, problem, automatic(which, k));
        };
        const bool few = n <= 3000;
        EXPECT_EQ(chosen(Which::smallest).method, few ? Method::dense : Method::chebyshev) << n;
        const bool few_inside = n <= 3000 * more_dense_rows(ctx);
        EXPECT_EQ(chosen(Which::target).method,
                  few_inside ? Method::dense : Method::jacobi_davidson)
            << n;
        if (n <= 4096) {
            EXPECT_EQ(chosen(Which::both_ends, n / 8 + 1).method, Method::dense) << n;
        }
        // A dense B beside a sparse A counts as well; a function does not.
        EigenProblem<double> pencil{sparse};
        pencil.b = &a;
        const EigenOptions options = automatic(Which::smallest, 4);
        EXPECT_EQ(choose_method(ctx, pencil, options).method, few ? Method::dense : Method::lobpcg)
            << n;
        problem.inverse = &sparse;
        EXPECT_EQ(chosen(Which::target).method, Method::jacobi_davidson) << n;
        EXPECT_EQ(chosen(Which::target).hand_over_after, few_inside ? n * n / 1000 : 0) << n;
        problem.inverse = nullptr;
        problem.preconditioner = &sparse;
        EXPECT_EQ(chosen(Which::smallest).method, Method::lobpcg) << n;
    }
}

TEST(AutomaticRule, TheInteriorOfASparseMatrixIsFactorised) {
    Context ctx = test::make_context();
    EigenOptions target = automatic(Which::target, 4);
    target.target = 5.7;
    EigenOptions narrow = automatic(Which::smallest, 1);
    EigenOptions wide = narrow;
    wide.window = Window{0, 6};
    // A window with about two eigenvalues.
    const auto narrow_of = [&](int n) {
        narrow.window = Window{5.7, 5.7 + 10.0 / n};
        return narrow;
    };
    const auto chosen = [&](int n, const EigenOptions& options) {
        SparseMatrix<double> a = test::laplace3d<double>(ctx, n, 1, 1);
        return choose_method(ctx, EigenProblem<double>{a}, options);
    };
    for (const int n : {2000, 3000, 3001, 50000}) {
        EXPECT_EQ(chosen(n, target).method, Method::shift_invert) << n;
        EXPECT_EQ(chosen(n, narrow_of(n)).method, Method::shift_invert) << n;
    }
    const std::string reason = chosen(3000, target).reason;
    EXPECT_EQ(reason.find("eigenvalues nearest a target of a matrix with 3000 rows, factors of "),
              0U)
        << reason;
    for (const int n :
         test::is_host_repetition() ? std::vector{50001} : std::vector{50001, 100000}) {
        const bool factorises = takes_large_matrices(ctx);
        EXPECT_EQ(chosen(n, target).method,
                  factorises ? Method::shift_invert : Method::jacobi_davidson);
        EXPECT_EQ(chosen(n, narrow_of(n)).method,
                  factorises ? Method::shift_invert : Method::filter)
            << n << ": " << chosen(n, narrow_of(n)).reason;
    }
    EXPECT_EQ(chosen(200001, target).method, Method::jacobi_davidson);
    // The spectrum is [4, 8].
    for (const int n : {2000, 4096}) {
        EXPECT_EQ(chosen(n, wide).method, Method::dense) << n;
        EXPECT_NE(chosen(n, wide).reason.find("the window has "), std::string::npos);
    }
    EXPECT_EQ(chosen(4096 * more_dense_rows(ctx) + 1, wide).method, Method::filter);
}

/// A narrow window costs a filter many products for each of its eigenvalues. A window that holds a
/// twelfth of the eigenvalues costs shift-invert more, because it orthogonalises their vectors.
TEST(AutomaticRule, AWindowIsFactorisedIfAFilterTakesLonger) {
    Context ctx = test::make_context();
    EigenOptions options = automatic(Which::smallest, 1);
    // 26 eigenvalues; by the work of shift-invert alone, the rule would not choose it.
    options.window = Window{3, 3.005};
    SparseMatrix<double> square = test::laplace3d<double>(ctx, 200, 250, 1);
    const MethodChoice narrow = choose_method(ctx, EigenProblem<double>{square}, options);
    if (ctx.place() == Place::host && ctx.comm().size() * ctx.threads() == 1) {
        EXPECT_EQ(narrow.method, Method::shift_invert) << narrow.reason;
        EXPECT_NE(narrow.reason.find("a filter would take"), std::string::npos) << narrow.reason;
    }
    constexpr int copies = 60;
    constexpr int length = 67;
    SparseMatrix<double> paths = test::matrix_from_rows<double>(
        ctx, copies * length, [](std::int64_t row, RowEntries<double>& entries) {
            entries.add(row, 2);
            if (row % length > 0) {
                entries.add(row - 1, -1);
            }
            if (row % length + 1 < length) {
                entries.add(row + 1, -1);
            }
        });
    options.window = Window{1, 1.5};
    const MethodChoice wide = choose_method(ctx, EigenProblem<double>{paths}, options);
    // On a GPU cuSOLVER may make a dense solve cheaper.
    EXPECT_NE(wide.method, Method::shift_invert) << wide.reason;
    if (ctx.place() == Place::host) {
        EXPECT_EQ(wide.method, Method::filter) << wide.reason;
    }
}

/// If the factors are nearly full, a dense solve is cheaper.
TEST(AutomaticRule, TheInteriorOfAMatrixWithFullFactors) {
    Context ctx = test::make_context();
    EigenOptions target = automatic(Which::target, 4);
    target.target = 0.5;
    const auto chosen = [&](int n) {
        SparseMatrix<double> a = rotated(ctx, decades_of(n, 1));
        return choose_method(ctx, EigenProblem<double>{a}, target).method;
    };
    EXPECT_EQ(chosen(1500), Method::dense);
    EXPECT_EQ(chosen(3000), Method::dense);
    EXPECT_EQ(chosen(3000 * more_dense_rows(ctx) + 1), Method::jacobi_davidson);
}

/// A cube has larger factors than a line of as many rows.
TEST(FactorForecast, TheWorkFollowsTheFactors) {
    Context ctx = test::make_context();
    SparseMatrix<double> cube = test::laplace3d<double>(ctx, 17, 16, 15);
    SparseMatrix<double> line = test::laplace3d<double>(ctx, 17 * 16 * 15, 1, 1);
    const EigenOptions options = automatic(Which::smallest, 4);
    const FactorForecast of_cube = forecast_factorisation(ctx, EigenProblem<double>{cube}, options);
    const FactorForecast of_line = forecast_factorisation(ctx, EigenProblem<double>{line}, options);
    EXPECT_GT(of_cube.entries, 20 * of_line.entries);
    EXPECT_GT(of_cube.column_products, of_line.column_products);
    EXPECT_GT(of_cube.solve_products(4, false), 1.4 * of_line.solve_products(4, false));
    // A forecast includes the analysis, a factorisation for each shift and the solves of each pair.
    for (const FactorForecast& forecast : {of_cube, of_line}) {
        const double one = forecast.solve_products(1, false);
        EXPECT_GT(one, forecast.analysis_products + 2 * forecast.overhead_products +
                           2 * forecast.products);
        EXPECT_GT(forecast.solve_products(1, true), one + 10 * forecast.products);
        EXPECT_GT(forecast.solve_products(11, false), one + 100 * forecast.column_products);
    }
}

/// If a factorisation costs as much as a dense solve, the dense solve follows.
TEST(HandOver, ADenseSolveFollowsAnIterationThatStalls) {
    Context ctx = test::make_context();
    const int n = 1100;
    const std::vector<double> exact = decades_of(n, 8);
    SparseMatrix<double> a = rotated(ctx, exact, 4);
    const auto result = eigensolve(ctx, EigenProblem<double>{a}, automatic(Which::smallest, 3));
    EXPECT_EQ(result.method, Method::dense);
    EXPECT_EQ(result.method_reason.find("chebyshev had not converged after "), 0U)
        << result.method_reason;
    EXPECT_NE(result.method_reason.find("1100 rows are few enough for a dense solve"),
              std::string::npos)
        << result.method_reason;
    expect_result(ctx, a, result, at_end(exact, Which::smallest, 3), 1);
}

/// Laplace matrix of a path that visits every step-th row, whose edges have weights of 1 to 5.
Eigen::MatrixXd path_laplacian(int n, int step) {
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(n, n);
    for (int row = 1; row < n; ++row) {
        const int other = (row + n - step) % n;
        const double weight = 1 + row % 5;
        matrix(row, row) += weight;
        matrix(other, other) += weight;
        matrix(row, other) -= weight;
        matrix(other, row) -= weight;
    }
    return matrix;
}

/// Laplace matrices of two paths have the constant vector as a common null vector. Rounding decides
/// whether shift-invert has an answer; if it has none, the dense solve names the null vector,
/// before its costly part. Without row 0 and column 0 the pencil is regular and has the same finite
/// eigenvalues.
TEST(Automatic, ACommonNullVector) {
    using T = std::complex<double>;
    Context ctx = test::make_context();
    constexpr int n = 1100;
    const Eigen::MatrixXd paths[] = {path_laplacian(n, 1), path_laplacian(n, 7)};
    const auto stored = [&](const Eigen::MatrixXd& matrix) {
        return test::matrix_from_rows<T>(ctx, n, [&](std::int64_t row, auto& entries) {
            for (int column = 0; column < n; ++column) {
                if (matrix(row, column) != 0) {
                    entries.add(column, T(matrix(row, column)));
                }
            }
        });
    };
    SparseMatrix<T> a = stored(paths[0]);
    SparseMatrix<T> b = stored(paths[1]);
    const auto result = eigensolve(ctx, EigenProblem<T>{a, &b}, automatic(Which::smallest, 3));
    if (result.converged) {
        const auto finite = [&](const Eigen::MatrixXd& matrix) {
            return Eigen::MatrixXd(matrix.bottomRightCorner(n - 1, n - 1));
        };
        const Eigen::VectorXd expected =
            test::oracle::eigenvalues(finite(paths[0]), finite(paths[1]));
        for (int j = 0; j < 3; ++j) {
            EXPECT_NEAR(result.eigenvalues[static_cast<std::size_t>(j)], expected(j),
                        1e-6 * expected(2))
                << j;
        }
    } else if (ctx.service<Lapack>().is_available()) {
        EXPECT_NE(result.message.find("dense: A v and B v vanish"), std::string::npos)
            << result.message;
    }
}

/// The message of the InfiniteEigenvalueError that f() throws.
template <class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const InfiniteEigenvalueError& error) {
        return error.what();
    }
    return "no InfiniteEigenvalueError";
}

/// A and B are rotated alike, so that the eigenvalues are quotients of the values. Where the
/// Cholesky factorisation of B fails, or costs digits, shift-invert answers.
TEST(Automatic, AMassThatIsSingularToRounding) {
    Context ctx = test::make_context();
    const auto solve_pencil = [&](const std::vector<double>& stiffness,
                                  const std::vector<double>& mass, const EigenOptions& options) {
        const int rounds = stiffness.size() > 1000 ? 1 : 3;
        SparseMatrix<double> a = rotated(ctx, stiffness, rounds);
        SparseMatrix<double> b = rotated(ctx, mass, rounds);
        EigenProblem<double> problem{a};
        problem.b = &b;
        return eigensolve(ctx, problem, options);
    };
    for (const int n : {200, 1100}) {
        std::vector<double> stiffness;
        std::vector<double> half_zero;
        for (int i = 0; i < n; ++i) {
            stiffness.push_back(1 + 0.4 * i / n);
            // More rows: LOBPCG finds both eigenvalues of B in its first steps, and refuses B.
            half_zero.push_back(i % 2 == 0 ? 0 : n < 1000 ? 1 + 0.01 * i : 1);
        }
        std::vector<std::vector<double>> masses{half_zero};
        for (const double decades : {14.5, 16.0, 20.0}) {
            if (n < 1000) {
                masses.push_back(decades_of(n, decades));
            }
        }
        for (const std::vector<double>& mass : masses) {
            std::vector<double> spectrum;
            for (std::size_t i = 0; i < mass.size(); ++i) {
                if (mass[i] > 0) {
                    spectrum.push_back(stiffness[i] / mass[i]);
                }
            }
            std::sort(spectrum.begin(), spectrum.end());
            EigenOptions target = automatic(Which::target, 3);
            target.target = 0.51 * spectrum[20] + 0.49 * spectrum[21];
            for (const EigenOptions& options : {automatic(Which::smallest, 5), target}) {
                const auto result = solve_pencil(stiffness, mass, options);
                EXPECT_TRUE(result.converged) << result.message;
                if (n > 1000) {
                    EXPECT_EQ(result.method, Method::shift_invert);
                }
                std::vector<double> exact = spectrum;
                std::stable_sort(exact.begin(), exact.end(), [&](double x, double y) {
                    return options.which == Which::smallest
                               ? x < y
                               : std::abs(x - target.target) < std::abs(y - target.target);
                });
                exact.resize(static_cast<std::size_t>(options.k));
                std::sort(exact.begin(), exact.end());
                ASSERT_EQ(result.eigenvalues.size(), exact.size());
                for (std::size_t j = 0; j < exact.size(); ++j) {
                    EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e-10 * exact[j]);
                }
            }
        }
        // Only a B with a negative eigenvalue beyond rounding is refused.
        std::vector<double> negative(static_cast<std::size_t>(n), 1.0);
        negative[7] = n < 1000 ? -1e-9 : -1;
        EXPECT_THROW(solve_pencil(stiffness, negative, automatic(Which::smallest, 3)),
                     IndefiniteError);
        if (n < 1000) {
            const std::string text =
                error_of([&] { solve_pencil(stiffness, half_zero, automatic(Which::largest, 3)); });
            EXPECT_NE(text.find("infinite"), std::string::npos) << text;
            EXPECT_NE(text.find("request the smallest"), std::string::npos) << text;
        }
    }
    // Shift-invert takes the third unit vector for a common null vector, because A is large.
    SparseMatrix<double> a = test::diagonal<double>(ctx, {1e14, 1, 1});
    SparseMatrix<double> b = test::diagonal<double>(ctx, {1, 1, 0});
    const std::string text = error_of([&] {
        eigensolve(ctx, EigenProblem<double>{a, &b}, automatic(Which::smallest, 3));
    });
    EXPECT_NE(text.find("request at most 2"), std::string::npos) << text;
    EXPECT_EQ(text.find("common null"), std::string::npos) << text;
}

TEST(Automatic, InfiniteEndsAreRefused) {
    Context ctx = test::make_context();
    // Two rows of B are equal, so that none is zero but B is singular.
    SparseMatrix<double> stiff = test::diagonal<double>(ctx, {1, 2, 3, 5});
    const test::DenseRows<double> rows{{1, 1, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    SparseMatrix<double> equal_rows = test::stored(ctx, rows);
    const std::string of_dense = error_of([&] {
        eigensolve(ctx, EigenProblem<double>{stiff, &equal_rows}, automatic(Which::largest, 2));
    });
    EXPECT_NE(of_dense.find("infinite eigenvalues: 1 of 4"), std::string::npos) << of_dense;
    // The unit vector of a zero row of B shows the end at which eigenvalues are infinite.
    for (const double entry : {3.0, -3.0, 0.0}) {
        const test::DenseRows<double> entries{
            {1, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 3, 1}, {0, 0, 1, entry}};
        SparseMatrix<double> left = test::stored(ctx, entries);
        SparseMatrix<double> right = test::diagonal<double>(ctx, {1, 1, 1, 0});
        for (const Which which : {Which::smallest, Which::largest}) {
            const bool finite = which == Which::smallest ? entry > 0 : entry < 0;
            const std::string text = error_of([&] {
                eigensolve(ctx, EigenProblem<double>{left, &right}, automatic(which, 1));
            });
            EXPECT_EQ(text.find("B has 1 zero rows of 4") == std::string::npos, finite) << text;
        }
    }
}

}  // namespace
}  // namespace quiver

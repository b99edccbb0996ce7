// SPDX-License-Identifier: BSD-3-Clause
// Dense solves of A x = lambda B x: another solver, a B that is singular to rounding, common null
// vectors, and rows in different units.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/eigen/eigensolver.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/solvers/dense_eigen_checks.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/support/dense_oracle.hpp"
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

std::vector<double> values_between(std::mt19937_64& random, int count, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& value : values) {
        value = uniform(random);
    }
    return values;
}

/// The eigenvalues of A x = lambda B x for a diagonal B, as if the first `tiny` entries of it were
/// 0.
template <class T, class Matrix>
Eigen::VectorXd finite_values(const Matrix& a, const std::vector<double>& masses, int tiny) {
    const auto n = static_cast<Eigen::Index>(masses.size());
    const auto rest = n - tiny;
    const Matrix corner = a.topLeftCorner(tiny, tiny);
    const Matrix side = a.topRightCorner(tiny, rest);
    const Matrix schur =
        a.bottomRightCorner(rest, rest) - side.adjoint() * test::oracle::inverse(corner) * side;
    Matrix b = Matrix::Zero(rest, rest);
    for (Eigen::Index i = 0; i < rest; ++i) {
        b(i, i) = masses[static_cast<std::size_t>(tiny + i)];
    }
    return test::oracle::eigenvalues(schur, b);
}

template <class T>
class DensePencilTest : public test::DenseEigenChecks<T> {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(DensePencilTest, Scalars);

TYPED_TEST(DensePencilTest, PencilsAgreeWithAnotherSolver) {
    using T = TypeParam;
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (const int n : {2, 37, 80}) {
        std::vector<double> of_a;
        std::vector<double> of_b;
        for (int i = 0; i < n; ++i) {
            of_a.push_back(uniform(this->random));
            of_b.push_back(std::pow(10, uniform(this->random)));
        }
        const Dense<T> a = with_spectrum<T>(this->random, of_a);
        const Dense<T> b = with_spectrum<T>(this->random, of_b);
        const Eigen::VectorXd exact = test::oracle::eigenvalues(as_oracle(a), as_oracle(b));
        const std::vector<double> spectrum(exact.begin(), exact.end());
        SparseMatrix<T> left = stored(this->ctx, a);
        SparseMatrix<T> right = stored(this->ctx, b);
        EigenProblem<T> problem{left};
        problem.b = &right;
        for (const Which which : all_ends) {
            EigenOptions options = dense(which, (n + 1) / 2);
            options.target = 0.3;
            const auto result = eigensolve(this->ctx, problem, options);
            // Eigenvalues are of size up to 10; their errors may be 100, the condition of B, times
            // the rounding.
            this->expect(result, wanted(spectrum, options), 100);
            for (const double residual : result.residuals) {
                EXPECT_LE(residual, this->rounding(result) * 110);
            }
            const BlockView<const T> x = result.vectors.view();
            BlockVector<T> bx(this->ctx, left.row_map(), x.cols);
            right.apply(this->ctx, x, bx.view());
            SmallMatrix<T> gram(x.cols, x.cols);
            tsmttsm(this->ctx, T(1), x, std::as_const(bx).view(), T(0), gram);
            for (int i = 0; i < x.cols; ++i) {
                for (int j = 0; j < x.cols; ++j) {
                    EXPECT_LE(std::abs(gram(i, j) - T(i == j ? 1 : 0)),
                              100 * this->rounding(result));
                }
            }
        }
        EigenOptions window = dense(Which::smallest, 1);
        window.window = Window{-0.5, 0.5};
        this->expect(eigensolve(this->ctx, problem, window), wanted(spectrum, window), 100);
    }
}

/// B has a Cholesky factor, but a vector whose length in B is rounding: its eigenvalue, at the
/// upper end, is infinite.
TYPED_TEST(DensePencilTest, AMassThatIsSingularToRounding) {
    using T = TypeParam;
    constexpr int n = 30;
    Dense<double> a(n, std::vector<double>(n));
    Dense<double> b(n, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
        a[i][i] = 2 + static_cast<double>(i);
        b[i][i] = 1;
    }
    b[n - 1][n - 2] = b[n - 2][n - 1] = 1;  // the last two rows of B are equal to rounding
    b[n - 1][n - 1] = 1 + std::numeric_limits<double>::epsilon();
    const auto as_scalars = [](const Dense<double>& matrix) {
        Dense<T> result(n, std::vector<T>(n));
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                result[i][j] = T(static_cast<real_t<T>>(matrix[i][j]));
            }
        }
        return result;
    };
    SparseMatrix<T> left = stored(this->ctx, as_scalars(a));
    SparseMatrix<T> right = stored(this->ctx, as_scalars(b));
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{left, &right}, dense(Which::largest, 3)),
                 InfiniteEigenvalueError);
}

/// W^H diag(values) W.
template <class T>
Dense<T> congruent(const Dense<std::complex<double>>& w, const std::vector<double>& values) {
    const std::size_t n = w.size();
    Dense<T> result(n, std::vector<T>(n));
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            std::complex<double> sum = 0;
            for (std::size_t l = 0; l < n; ++l) {
                sum += std::conj(w[l][i]) * values[l] * w[l][j];
            }
            if constexpr (is_complex_v<T>) {
                result[i][j] = i == j ? T(static_cast<real_t<T>>(sum.real())) : T(sum);
            } else {
                result[i][j] = static_cast<T>(sum.real());
            }
            result[j][i] = conjugate(result[i][j]);
        }
    }
    return result;
}

/// A = W^H diag(lambda, s) W and B = W^H diag(1, 0) W have the finite eigenvalues lambda and, for
/// each s, an infinite one. Rounding gives B null vectors with slightly positive or negative
/// eigenvalues. With units, the unknowns differ in size by up to 2^12.
TYPED_TEST(DensePencilTest, FiniteEigenvaluesOfASemidefiniteMass) {
    using T = TypeParam;
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (const auto& [n, infinite] : {std::pair{2, 1}, {9, 1}, {23, 11}, {60, 4}, {60, 50}}) {
        for (const double sign : {1.0, -1.0}) {
            SCOPED_TRACE(std::to_string(n) + " rows, " + std::to_string(infinite) + " infinite");
            Dense<std::complex<double>> w(
                static_cast<std::size_t>(n),
                std::vector<std::complex<double>>(static_cast<std::size_t>(n)));
            const bool units = sign > 0;
            for (std::size_t i = 0; i < w.size(); ++i) {
                for (std::size_t j = 0; j < w.size(); ++j) {
                    const double size = 0.3 / std::sqrt(n);
                    w[i][j] = {size * normal(this->random) + (i == j ? 1 : 0),
                               is_complex_v<T> ? size * normal(this->random) : 0};
                    w[i][j] *= units ? std::ldexp(1.0, -static_cast<int>(j % 5) * 3) : 1.0;
                }
            }
            std::vector<double> of_a;
            std::vector<double> of_b(w.size(), 0);
            for (int i = 0; i < n; ++i) {
                of_a.push_back(i < n - infinite ? uniform(this->random)
                                                : sign * (1.5 + uniform(this->random)));
                of_b[static_cast<std::size_t>(i)] = i < n - infinite ? 1 : 0;
            }
            std::vector<double> spectrum(of_a.begin(), of_a.end() - infinite);
            std::sort(spectrum.begin(), spectrum.end());
            SparseMatrix<T> a = stored(this->ctx, congruent<T>(w, of_a));
            SparseMatrix<T> b = stored(this->ctx, congruent<T>(w, of_b));
            const EigenProblem<T> problem{a, &b};
            const int k = (n - infinite + 1) / 2;
            for (const Which which : all_ends) {
                const bool is_finite = which == Which::target ||
                                       which == Which::smallest_magnitude ||
                                       which == (sign > 0 ? Which::smallest : Which::largest) ||
                                       (which == Which::both_ends && k == 1 && sign < 0);
                EigenOptions options = dense(which, k);
                options.target = 0.1;
                if (!is_finite) {
                    // The entries of s and c are numbers that may make B positive definite.
                    if (sizeof(real_t<T>) < sizeof(double)) {
                        continue;
                    }
                    EXPECT_THROW(eigensolve(this->ctx, problem, options), IndefiniteError);
                    continue;
                }
                const auto result = eigensolve(this->ctx, problem, options);
                // The condition of W is about 10.
                this->expect(result, wanted(spectrum, options), 100);
                for (const double residual : result.residuals) {
                    EXPECT_LE(residual, 100 * this->rounding(result));
                }
            }
            EigenOptions window = dense(Which::smallest, 1);
            window.window = Window{-2, 2};
            const auto all = eigensolve(this->ctx, problem, window);
            this->expect(all, spectrum, 100);
            if (sizeof(real_t<T>) == sizeof(double)) {
                EXPECT_THROW(eigensolve(this->ctx, problem, dense(Which::target, n)),
                             IndefiniteError);
            }
            if (n - infinite > 4) {  // the first eigenvectors as constraints leave the others
                EigenProblem<T> rest{a, &b};
                rest.constraints = all.vectors.columns(0, 2);
                this->expect(eigensolve(this->ctx, rest, window),
                             {spectrum.begin() + 2, spectrum.end()}, 100);
            }
        }
    }
}

/// A = W^H diag(lambda, s) W and B = W^H diag(1, 4 eps) W: rounding often gives B a Cholesky
/// factor. The error names what to request then, as without a factor, and that request has an
/// answer.
TYPED_TEST(DensePencilTest, InfiniteEigenvaluesBesideACholeskyFactor) {
    using T = TypeParam;
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0.5, 1.5);
    int with_factor = 0;
    for (int trial = 0; trial < 6; ++trial) {
        const auto n = static_cast<std::size_t>(20 + 15 * trial);
        const int all = static_cast<int>(n);
        const bool both = trial % 3 == 2;  // an infinite eigenvalue at each end
        const double sign = trial % 3 == 0 ? 1 : -1;
        SCOPED_TRACE("trial " + std::to_string(trial));
        Dense<std::complex<double>> w(n, std::vector<std::complex<double>>(n));
        std::vector<double> of_a;
        std::vector<double> of_b(n, 1);
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                const double size = 0.3 / std::sqrt(n);
                w[i][j] = {size * normal(this->random) + (i == j ? 1 : 0),
                           is_complex_v<T> ? size * normal(this->random) : 0};
            }
            of_a.push_back(uniform(this->random));
        }
        of_a[0] *= sign;
        of_b[0] = 0.1 * static_cast<double>(epsilon_v<T>);
        if (both) {
            of_b[1] = of_b[0];
        }
        std::vector<double> finite(of_a.begin() + (both ? 2 : 1), of_a.end());
        std::sort(finite.begin(), finite.end());
        SparseMatrix<T> a = stored(this->ctx, congruent<T>(w, of_a));
        SparseMatrix<T> b = stored(this->ctx, congruent<T>(w, of_b));
        const EigenProblem<T> problem{a, &b};
        const auto expect_error = [&](const EigenOptions& options, const std::string& request) {
            SCOPED_TRACE(to_string(options.which));
            try {
                eigensolve(this->ctx, problem, options);
                ADD_FAILURE() << "no InfiniteEigenvalueError";
            } catch (const InfiniteEigenvalueError& error) {
                const std::string text = error.what();
                EXPECT_NE(text.find("infinite eigenvalues: "), std::string::npos) << text;
                EXPECT_EQ(text.substr(text.find("request")), request) << text;
                with_factor += text.find("of 3 wanted ones") != std::string::npos ? 1 : 0;
            } catch (const Error& error) {
                ADD_FAILURE() << error.what();
            }
        };
        const bool upper = sign > 0;
        const std::string other = both    ? "request those nearest a target"
                                  : upper ? "request the smallest, or those nearest a target"
                                          : "request the largest, or those nearest a target";
        const std::string fewer = "request at most " + std::to_string(finite.size());
        for (const Method method : {Method::dense, Method::automatic}) {
            const auto wish = [&](Which which, int k) {
                EigenOptions options = dense(which, k);
                options.method = method;
                options.target = 0.9;
                return options;
            };
            if (both || upper) {
                expect_error(wish(Which::largest, 3), other);
            }
            if (both || !upper) {
                expect_error(wish(Which::smallest, 3), other);
            }
            expect_error(wish(Which::target, all), fewer);
            EigenOptions options = wish(both    ? Which::target
                                        : upper ? Which::smallest
                                                : Which::largest,
                                        3);
            this->expect(eigensolve(this->ctx, problem, options), wanted(finite, options), 100);
            options = wish(Which::target, static_cast<int>(finite.size()));
            this->expect(eigensolve(this->ctx, problem, options), finite, 100);
        }
    }
    EXPECT_GT(with_factor, 0);
}

/// With eigenvalues of B down to 1e-18 rounding moves finite eigenvalues out of a narrow window.
/// The solve then must not report that it has found all of them.
TYPED_TEST(DensePencilTest, NoEigenvalueIsLostByANearlySingularMass) {
    using T = TypeParam;
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0, 1);
    for (int round = 0; round < 30; ++round) {
        const auto n = static_cast<std::size_t>(10 + 3 * round);
        Dense<std::complex<double>> w(n, std::vector<std::complex<double>>(n));
        std::vector<double> of_a;
        std::vector<double> of_b;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                const double size = 0.3 / std::sqrt(n);
                w[i][j] = {size * normal(this->random) + (i == j ? 1 : 0),
                           is_complex_v<T> ? size * normal(this->random) : 0};
            }
            const bool is_finite = i < 4;
            of_a.push_back(is_finite ? static_cast<double>(i) - 1.5 : -0.5 - uniform(this->random));
            of_b.push_back(is_finite ? 1 : std::pow(10, -9 - 9 * uniform(this->random)));
        }
        SparseMatrix<T> a = stored(this->ctx, congruent<T>(w, of_a));
        SparseMatrix<T> b = stored(this->ctx, congruent<T>(w, of_b));
        EigenOptions window = dense(Which::smallest, 1);
        window.window = Window{0.499, 0.501};
        try {
            const auto result = eigensolve(this->ctx, EigenProblem<T>{a, &b}, window);
            EXPECT_TRUE(!result.converged || result.eigenvalues.size() == 1) << n << " rows";
        } catch (const IndefiniteError& error) {
            EXPECT_EQ(sizeof(real_t<T>), 4U) << error.what();  // single entries make B indefinite
        }
    }
}

/// Of both ends with k = 1 only the upper one is wanted. If both ends are infinite, the error does
/// not propose the other one.
TYPED_TEST(DensePencilTest, InfiniteEigenvaluesOfOneEndOrBoth) {
    using T = TypeParam;
    SparseMatrix<T> b = test::diagonal<T>(this->ctx, {1, 1, 0, 0});
    SparseMatrix<T> low = test::diagonal<T>(this->ctx, {2, 5, -1, -3});
    const auto one = eigensolve(this->ctx, EigenProblem<T>{low, &b}, dense(Which::both_ends, 1));
    this->expect(one, {5}, 100);
    EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{low, &b}, dense(Which::both_ends, 2)),
                 InfiniteEigenvalueError);
    const auto error_of = [&](SparseMatrix<T>& a, Which which) -> std::string {
        try {
            eigensolve(this->ctx, EigenProblem<T>{a, &b}, dense(which, 1));
        } catch (const InfiniteEigenvalueError& error) {
            return error.what();
        }
        return "";
    };
    SparseMatrix<T> both = test::diagonal<T>(this->ctx, {2, 5, -1, 3});
    // v^H A v = 0 for both null vectors v of B: each has two infinite eigenvalues.
    Dense<T> rows(4, std::vector<T>(4));
    rows[0][0] = rows[1][1] = T(2);
    rows[0][2] = rows[2][0] = rows[1][3] = rows[3][1] = T(1);
    SparseMatrix<T> degenerate = stored(this->ctx, rows);
    EXPECT_NE(error_of(low, Which::smallest).find("request the largest, or those nearest a target"),
              std::string::npos);
    EXPECT_NE(error_of(low, Which::largest_magnitude).find("request the largest, or"),
              std::string::npos);
    for (const Which which : {Which::smallest, Which::largest}) {
        EXPECT_NE(error_of(both, which).find("2 of 4"), std::string::npos);
        EXPECT_NE(error_of(both, which).find("request those nearest a target"), std::string::npos);
        EXPECT_NE(error_of(degenerate, which).find("4 of 4"), std::string::npos);
        EXPECT_NE(error_of(degenerate, which).find("request those nearest"), std::string::npos);
    }
}

/// B has diagonal entries of 1e-8 to 1e-14, which make as many eigenvalues huge, with both signs,
/// so that the Cholesky factorisation of B loses the others. They differ by relative errors of 1e-8
/// from those of the Schur complement of the rows with small entries.
TYPED_TEST(DensePencilTest, ANearlySingularMassBesideAnIndefiniteMatrix) {
    using T = TypeParam;
    if constexpr (sizeof(real_t<T>) == 8) {
        std::uniform_real_distribution<double> uniform(0, 1);
        for (const int n : {9, 40, 90}) {
            const int tiny = n / 4;
            Dense<T> matrix =
                with_spectrum<T>(this->random, values_between(this->random, n, -1, 1));
            std::vector<double> masses = values_between(this->random, n, 0.5, 1.5);
            for (int i = 0; i < tiny; ++i) {
                masses[static_cast<std::size_t>(i)] = std::pow(10, -8 - 6 * uniform(this->random));
            }
            for (std::size_t i = 0; i < static_cast<std::size_t>(tiny); ++i) {
                matrix[i][i] += T(i % 2 == 0 ? 3 : -3);
            }
            const Eigen::VectorXd schur = finite_values<T>(as_oracle(matrix), masses, tiny);
            const std::vector<double> finite(schur.begin(), schur.end());
            SparseMatrix<T> a = stored(this->ctx, matrix);
            SparseMatrix<T> b = test::diagonal<T>(this->ctx, masses);
            const EigenProblem<T> problem{a, &b};
            EigenOptions target = dense(Which::target, 3);
            target.target = 0.4;
            EigenOptions window = dense(Which::smallest, 1);
            window.window = Window{finite.front() - 0.1, finite.back() + 0.1};
            for (const EigenOptions& options : {target, window}) {
                const auto result = eigensolve(this->ctx, problem, options);
                EXPECT_TRUE(result.converged) << n << " rows: " << result.message;
                const std::vector<double> exact = wanted(finite, options);
                ASSERT_EQ(result.eigenvalues.size(), exact.size());
                for (std::size_t j = 0; j < exact.size(); ++j) {
                    EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e-6 * (1 + std::abs(exact[j])));
                }
            }
            const auto ends = eigensolve(this->ctx, problem, dense(Which::both_ends, n));
            EXPECT_TRUE(ends.converged) << n << " rows: " << ends.message;
        }
    }
}

/// For a null vector v of B, v^H A v = 0 but A v is not 0: the finite eigenvalues are those of the
/// other rows, orthogonal to A v.
TYPED_TEST(DensePencilTest, ASaddlePointNearATargetAndInAWindow) {
    using T = TypeParam;
    for (const int n : {4, 30, 70}) {
        Dense<T> matrix = with_spectrum<T>(this->random, values_between(this->random, n, -2, 2));
        for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
            matrix[0][j] = matrix[j][0] = T(j == 1 ? 1 : 0);
        }
        std::vector<double> masses(static_cast<std::size_t>(n), 1.0);
        masses[0] = 0;
        auto rest = as_oracle(matrix);
        const Eigen::VectorXd exact_values =
            test::oracle::eigenvalues(rest.bottomRightCorner(n - 2, n - 2).eval());
        const std::vector<double> finite(exact_values.begin(), exact_values.end());
        SparseMatrix<T> a = stored(this->ctx, matrix);
        SparseMatrix<T> b = test::diagonal<T>(this->ctx, masses);
        EigenOptions target = dense(Which::target, 2);
        target.target = finite[static_cast<std::size_t>(n) / 2 - 1];  // an eigenvalue
        EigenOptions window = dense(Which::smallest, 1);
        window.window = Window{-0.7, 3};
        EigenOptions magnitude = dense(Which::smallest_magnitude, n - 2);
        for (const EigenOptions& options : {target, window, magnitude}) {
            const auto result = eigensolve(this->ctx, EigenProblem<T>{a, &b}, options);
            EXPECT_TRUE(result.converged) << n << " rows: " << result.message;
            this->expect(result, wanted(finite, options), 1000);
        }
        EXPECT_THROW(eigensolve(this->ctx, EigenProblem<T>{a, &b}, dense(Which::smallest, 1)),
                     InfiniteEigenvalueError);
    }
}

/// Saddle points: beside a tiny mass, with targets and windows far beyond the finite eigenvalues,
/// and with two null vectors of B that A maps to one image, so that A and B have a common null
/// vector.
TYPED_TEST(DensePencilTest, SaddlePointsAtTheLimits) {
    using T = TypeParam;
    if constexpr (sizeof(real_t<T>) == 8) {
        SparseMatrix<T> a =
            stored(this->ctx, Dense<T>{{1, 0, 0, 0}, {0, 1, 1, 0}, {0, 1, 0, 0}, {0, 0, 0, T(2)}});
        SparseMatrix<T> tiny = test::diagonal<T>(this->ctx, {1e-14, 1, 0, 1});
        EigenOptions options = dense(Which::target, 1);
        this->expect(eigensolve(this->ctx, EigenProblem<T>{a, &tiny}, options), {2}, 100);
        SparseMatrix<T> b = test::diagonal<T>(this->ctx, {1, 1, 0, 1});
        options.target = 1e9;
        this->expect(eigensolve(this->ctx, EigenProblem<T>{a, &b}, options), {2}, 100);
        options = dense(Which::smallest, 1);
        options.window = Window{0, 1e20};
        this->expect(eigensolve(this->ctx, EigenProblem<T>{a, &b}, options), {1, 2}, 100);
        options.window = Window{1e8, 1e9};
        this->expect(eigensolve(this->ctx, EigenProblem<T>{a, &b}, options), {}, 100);
    }
    SparseMatrix<T> equal =
        stored(this->ctx, Dense<T>{{1, 0, 1, 1}, {0, 2, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}});
    SparseMatrix<T> two = test::diagonal<T>(this->ctx, {1, 1, 0, 0});
    try {
        eigensolve(this->ctx, EigenProblem<T>{equal, &two}, dense(Which::target, 1));
        ADD_FAILURE() << "a singular pencil has eigenvalues";
    } catch (const SingularMassError& error) {
        EXPECT_NE(std::string(error.what()).find("common null vector"), std::string::npos)
            << error.what();
    }
}

/// Masses over 13 decades make A large in units of these masses, but the pencil is regular.
TYPED_TEST(DensePencilTest, MasslessRowsBesideTinyMasses) {
    using T = TypeParam;
    constexpr std::size_t n = 30;
    Dense<T> chain(n, std::vector<T>(n));
    std::vector<double> masses(n, 1.0);
    for (std::size_t i = 0; i < n; ++i) {
        chain[i][i] = T(2);
        if (i > 0) {
            chain[i][i - 1] = chain[i - 1][i] = T(-1);
        }
        masses[i] = i % 5 == 0 ? 1e-13 : i % 5 == 2 ? 0 : 1;
    }
    SparseMatrix<T> a = stored(this->ctx, chain);
    SparseMatrix<T> b = test::diagonal<T>(this->ctx, masses);
    const auto result =
        eigensolve(this->ctx, EigenProblem<T>{a, &b}, dense(Which::smallest_magnitude, 24));
    ASSERT_EQ(result.eigenvalues.size(), 24U);
    EXPECT_GT(result.eigenvalues.back(), 1e12);
    EXPECT_THROW(
        eigensolve(this->ctx, EigenProblem<T>{a, &b}, dense(Which::smallest_magnitude, 25)),
        InfiniteEigenvalueError);
}

/// Laplace matrices of two graphs have the constant vector as a common null vector; with A + I in
/// the place of A it is a null vector of B alone. Neither depends on the units of the unknowns.
TYPED_TEST(DensePencilTest, ACommonNullVector) {
    using T = TypeParam;
    constexpr int n = 60;
    const auto laplace = [&](int step, double shift, bool with_units) {
        Dense<T> a(n, std::vector<T>(n));
        for (int i = 0; i < n; ++i) {
            const int next = (i + step) % n;
            const auto weight = T(static_cast<real_t<T>>(next == 0 ? 0 : 1 + i % 5));  // no ring
            const auto from = static_cast<std::size_t>(i);
            const auto to = static_cast<std::size_t>(next);
            a[from][from] += weight;
            a[to][to] += weight;
            a[from][to] -= weight;
            a[to][from] -= weight;
        }
        for (std::size_t i = 0; i < n; ++i) {
            a[i][i] += T(static_cast<real_t<T>>(shift));
            for (std::size_t j = 0; j < n; ++j) {
                const int exponent = with_units ? static_cast<int>(i % 9 + j % 9) : 0;
                a[i][j] *= std::ldexp(real_t<T>(1), -2 * exponent);
            }
        }
        return stored(this->ctx, a);
    };
    for (const bool units : {false, true}) {
        SparseMatrix<T> b = laplace(7, 0, units);
        for (const double shift : {0.0, 1.0}) {
            SparseMatrix<T> a = laplace(1, shift, units);
            try {
                eigensolve(this->ctx, EigenProblem<T>{a, &b}, dense(Which::largest, 3));
                ADD_FAILURE() << "no error";
            } catch (const IndefiniteError& error) {
                const std::string text = error.what();
                const bool names_it = text.find("common null vector") != std::string::npos;
                EXPECT_EQ(names_it, shift == 0) << text;
            }
        }
    }
}

/// A pencil whose rows have very different units is regular, however small its rows are.
TYPED_TEST(DensePencilTest, GradedRowsOfAPencil) {
    using T = TypeParam;
    std::vector<double> of_a(30);
    std::vector<double> of_b(30);
    std::vector<double> exact(30);
    for (std::size_t i = 0; i < of_a.size(); ++i) {
        exact[i] = 2 + static_cast<double>(i);
        of_b[i] = std::ldexp(1.0, -4 * static_cast<int>(i));  // down to 2^-116
        of_a[i] = exact[i] * of_b[i];
    }
    SparseMatrix<T> a = test::diagonal<T>(this->ctx, of_a);
    SparseMatrix<T> b = test::diagonal<T>(this->ctx, of_b);
    for (const Which which : {Which::smallest, Which::largest}) {
        const auto result = eigensolve(this->ctx, EigenProblem<T>{a, &b}, dense(which, 30));
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j], 1e-12 * exact[j]);
        }
    }
}

/// With B a dense solve may need shifts. A sparse pencil of 1600 rows is therefore factorised, and
/// a smaller one if its masses differ much and few of the eigenvalues that a dense solve makes
/// inaccurate are wanted.
TEST(DensePencilRule, ASparsePencilIsWeighedAgainstAFactorisation) {
    Context ctx = test::make_context();
    const auto options_for = [](Which which, int k) {
        EigenOptions options;
        options.which = which;
        options.k = k;
        return options;
    };
    const auto chosen = [&](int n, const EigenOptions& options, double least_mass = 1e-14) {
        test::DenseRows<double> rows(static_cast<std::size_t>(n),
                                     std::vector<double>(static_cast<std::size_t>(n)));
        std::vector<double> masses;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            rows[i][i] = 2;
            if (i > 0) {
                rows[i][i - 1] = rows[i - 1][i] = -1;
            }
            masses.push_back(i % 3 == 0 ? least_mass : 1);
        }
        SparseMatrix<double> a = test::stored(ctx, rows);
        SparseMatrix<double> b = test::diagonal<double>(ctx, masses);
        return choose_method(ctx, EigenProblem<double>{a, &b}, options).method;
    };
    EigenOptions window = options_for(Which::smallest, 1);
    window.window = Window{0.5, 0.6};
    EigenOptions target = options_for(Which::target, 3);
    target.target = 0.5;
    for (const EigenOptions& options : {options_for(Which::smallest, 4), target, window}) {
        // On a GPU an iteration is tried before the factorisation of an end.
        const bool is_end = !options.window && options.which != Which::target;
        if (ctx.place() == Place::host || !is_end) {
            EXPECT_EQ(chosen(1600, options), Method::shift_invert);
        }
        EXPECT_EQ(chosen(500, options), Method::shift_invert);
        EXPECT_EQ(chosen(500, options, 0.1), Method::dense);
        EXPECT_EQ(chosen(500, options, 0), Method::dense);  // infinite eigenvalues
        EXPECT_EQ(chosen(200, options), Method::dense);
    }
    window.window = Window{0.5, 3};  // about a third of the eigenvalues
    for (const EigenOptions& options :
         {options_for(Which::smallest, 100), options_for(Which::largest, 4), window}) {
        EXPECT_EQ(chosen(500, options), Method::dense);
    }
}

}  // namespace
}  // namespace quiver

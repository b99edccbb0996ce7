// SPDX-License-Identifier: BSD-3-Clause
// A x = lambda B x by methods that solve a standard problem with a factor of B: block Lanczos, the
// Chebyshev subspace and the window filter, compared with dense solutions by Eigen.
#include "solvers/eigen/pencil/reduced_pencil.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "solvers/eigen/chebyshev_subspace.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/pencil/mass_factor.hpp"
#include "solvers/eigen/window_filter.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/memory_checkpoint.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::as_oracle;
using test::DenseRows;
using test::random_matrix;
using test::stored;

template <class T>
DenseRows<T> diagonal_rows(const std::vector<double>& values) {
    DenseRows<T> rows(values.size(), std::vector<T>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        rows[i][i] = T(static_cast<real_t<T>>(values[i]));
    }
    return rows;
}

/// n values from `least` to `most`, evenly spaced in their logarithms and shuffled.
std::vector<double> graded(int n, double least, double most) {
    std::vector<double> values;
    for (int i = 0; i < n; ++i) {
        const double share = static_cast<double>(i * 7 % n) / (n - 1);
        values.push_back(least * std::pow(most / least, share));
    }
    return values;
}

/// A pencil, its exact eigenvalues and norms.
template <class T>
struct Pencil {
    Pencil(Context& ctx, const DenseRows<T>& a_rows, const DenseRows<T>& b_rows)
        : a(stored(ctx, a_rows)),
          b(stored(ctx, b_rows)),
          dense_a(as_oracle(a_rows)),
          dense_b(as_oracle(b_rows)) {
        const Eigen::VectorXd values = test::oracle::eigenvalues(dense_a, dense_b);
        spectrum.assign(values.begin(), values.end());
        most = std::max(std::abs(spectrum.front()), std::abs(spectrum.back()));
        const Eigen::VectorXd of_a = test::oracle::eigenvalues(dense_a);
        const Eigen::VectorXd of_b = test::oracle::eigenvalues(dense_b);
        norm_a = of_a.cwiseAbs().maxCoeff();
        norm_b = of_b.maxCoeff();
        least_b = of_b.minCoeff();
    }

    EigenProblem<T> problem() {
        EigenProblem<T> result{a};
        result.b = &b;
        return result;
    }

    SparseMatrix<T> a;
    SparseMatrix<T> b;
    Eigen::MatrixXcd dense_a;
    Eigen::MatrixXcd dense_b;
    std::vector<double> spectrum;
    double most = 0;
    double norm_a = 0;
    double norm_b = 0;
    double least_b = 0;
};

EigenOptions options_of(Method method, int k, Which which = Which::smallest) {
    EigenOptions options;
    options.method = method;
    options.k = k;
    options.which = which;
    return options;
}

EigenOptions window_of(double low, double high) {
    EigenOptions options = options_of(Method::filter, 1);
    options.window = Window{low, high};
    return options;
}

template <class T>
class ReducedPencilTest : public ::testing::Test {
  protected:
    static constexpr double eps = static_cast<double>(epsilon_v<T>);
    static constexpr std::array<Method, 2> ends{Method::lanczos, Method::chebyshev};

    bool is_alone() const { return ctx.comm().size() == 1; }

    /// Checks that the result is converged and verified and that it has these eigenvalues, that its
    /// residuals are those of the pencil and within the tolerance, and that its vectors are
    /// B-orthonormal.
    void check(Pencil<T>& pencil, const EigenResult<T>& result, const std::vector<double>& wanted) {
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        ASSERT_EQ(result.eigenvalues.size(), wanted.size());
        const double norm = pencil.norm_a + pencil.most * pencil.norm_b;
        // The solver resolves eigenvalues relative to the largest |lambda|; rounding of A and B
        // moves them by eps ||A|| / lambda_min(B).
        const double allowed =
            (result.tolerance + 4 * eps) * pencil.most + 10 * eps * pencil.norm_a / pencil.least_b;
        const BlockView<const T> x = result.vectors.view();
        BlockVector<T> ax(ctx, pencil.a.row_map(), x.cols);
        BlockVector<T> bx(ctx, pencil.a.row_map(), x.cols);
        pencil.a.apply(ctx, x, ax.view());
        pencil.b.apply(ctx, x, bx.view());
        SmallMatrix<T> gram(x.cols, x.cols);
        tsmttsm(ctx, T(1), x, std::as_const(bx).view(), T(0), gram);
        std::vector<T> minus;
        for (const double value : result.eigenvalues) {
            minus.push_back(T(static_cast<real_t<T>>(-value)));
        }
        axpby(ctx, minus, std::as_const(bx).view(), std::vector<T>(minus.size(), T(1)), ax.view());
        std::vector<real_t<T>> residual(minus.size());
        std::vector<real_t<T>> length(minus.size());
        norms(ctx, std::as_const(ax).view(), std::span<real_t<T>>(residual));
        norms(ctx, x, std::span<real_t<T>>(length));
        for (std::size_t j = 0; j < wanted.size(); ++j) {
            const double fresh = static_cast<double>(residual[j] / length[j]);
            EXPECT_NEAR(result.eigenvalues[j], wanted[j], allowed) << "eigenvalue " << j;
            EXPECT_LE(fresh, (result.tolerance + 10 * eps) * norm) << "residual " << j;
            EXPECT_NEAR(fresh, result.residuals[j], 10 * eps * norm) << "residual " << j;
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                EXPECT_LE(
                    std::abs(gram(static_cast<int>(i), static_cast<int>(j)) - T(i == j ? 1 : 0)),
                    20 * eps * std::max(10.0, pencil.norm_b / pencil.least_b))
                    << i << ", " << j;
            }
        }
        EXPECT_LE(result.norm_estimate, norm * (1 + 100 * eps));
    }

    /// The k first or last eigenvalues.
    static std::vector<double> at_end(const Pencil<T>& pencil, const EigenOptions& options) {
        const auto k = static_cast<std::ptrdiff_t>(options.k);
        const auto& all = pencil.spectrum;
        return options.which == Which::largest ? std::vector<double>(all.end() - k, all.end())
                                               : std::vector<double>(all.begin(), all.begin() + k);
    }

    void check_all(Pencil<T>& pencil, int k) {
        for (const Method method : ends) {
            for (const Which which : {Which::smallest, Which::largest}) {
                SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(which));
                const EigenOptions options = options_of(method, k, which);
                check(pencil, eigensolve(ctx, pencil.problem(), options), at_end(pencil, options));
            }
        }
        check_window(pencil, 4);
    }

    /// `count` eigenvalues, from an even position near the middle of the spectrum on, by the
    /// filter. The gaps beside them are the largest possible.
    void check_window(Pencil<T>& pencil, std::size_t count) {
        SCOPED_TRACE("window");
        const auto& all = pencil.spectrum;
        const auto gap = [&](std::size_t at) {
            return std::min(all[at] - all[at - 1], all[at + count] - all[at + count - 1]);
        };
        std::size_t first = all.size() / 3 / 2 * 2;
        for (std::size_t at = first; at < all.size() * 2 / 3; at += 2) {
            first = gap(at) > gap(first) ? at : first;
        }
        const EigenOptions options = window_of((all[first - 1] + all[first]) / 2,
                                               (all[first + count - 1] + all[first + count]) / 2);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        check(pencil, eigensolve(ctx, pencil.problem(), options),
              {begin, begin + static_cast<std::ptrdiff_t>(count)});
    }

    /// The message of the error E that all ranks throw.
    template <class E>
    std::string error_of(const EigenProblem<T>& problem, const EigenOptions& options) {
        try {
            eigensolve(ctx, problem, options);
        } catch (const E& error) {
            EXPECT_TRUE(error.collective() || is_alone()) << error.what();
            return error.what();
        }
        ADD_FAILURE() << to_string(options.method) << ": no error";
        return "";
    }
    void expect_words(const std::string& text, const std::vector<std::string>& words) {
        for (const std::string& word : words) {
            EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
        }
    }

    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};

TYPED_TEST_SUITE(ReducedPencilTest, test::Scalars);

TYPED_TEST(ReducedPencilTest, DiagonalMasses) {
    using T = TypeParam;
    const int n = 70;
    Pencil<T> pencil(this->ctx, random_matrix<T>(this->random, n, 3, false),
                     diagonal_rows<T>(graded(n, 0.05, 20)));
    this->check_all(pencil, 5);
    // Without stored entries of A.
    test::Unstored<T> hidden(pencil.a);
    EigenProblem<T> problem{hidden};
    problem.b = &pencil.b;
    for (const Method method : this->ends) {
        const EigenOptions options = options_of(method, 5, Which::largest);
        this->check(pencil, eigensolve(this->ctx, problem, options), this->at_end(pencil, options));
    }
}

TYPED_TEST(ReducedPencilTest, SparseMassesOnOneRank) {
    using T = TypeParam;
    const int n = 70;
    Pencil<T> pencil(this->ctx, random_matrix<T>(this->random, n, 3, false),
                     random_matrix<T>(this->random, n, 2, true));
    if (this->is_alone()) {
        this->check_all(pencil, 5);
        return;
    }
    for (const Method method : this->ends) {
        this->expect_words(
            this->template error_of<InputError>(pencil.problem(), options_of(method, 5)),
            {to_string(method), "diagonal B only", "lobpcg, jd or shift-invert"});
    }
    this->expect_words(this->template error_of<InputError>(pencil.problem(), window_of(0, 1)),
                       {"filter: ", "shift-invert or dense"});
}

TYPED_TEST(ReducedPencilTest, TheMethodsThemselvesTakeB) {
    using T = TypeParam;
    const int n = 60;
    Pencil<T> pencil(this->ctx, random_matrix<T>(this->random, n, 3, false),
                     diagonal_rows<T>(graded(n, 0.5, 2)));
    EigenOptions options = options_of(Method::automatic, 3);
    this->check(pencil, block_lanczos(this->ctx, pencil.problem(), options),
                this->at_end(pencil, options));
    this->check(pencil, chebyshev_subspace(this->ctx, pencil.problem(), options),
                this->at_end(pencil, options));
    const auto& all = pencil.spectrum;
    options.window = Window{all.front() - 1, (all[2] + all[3]) / 2};
    this->check(pencil, window_filter(this->ctx, pencil.problem(), options),
                {all.begin(), all.begin() + 3});
}

TYPED_TEST(ReducedPencilTest, MultiplesOfTheIdentity) {
    using T = TypeParam;
    const int n = 60;
    const DenseRows<T> a = random_matrix<T>(this->random, n, 3, false);
    for (const double mass : {1e6, 1e-6}) {
        SCOPED_TRACE(mass);
        Pencil<T> pencil(this->ctx, a, diagonal_rows<T>(std::vector<double>(n, mass)));
        this->check_all(pencil, 4);
    }
}

/// Squares of these norms overflow or underflow.
TYPED_TEST(ReducedPencilTest, NormsOfAnySize) {
    using T = TypeParam;
    const int n = 60;
    const DenseRows<T> a = random_matrix<T>(this->random, n, 3, false);
    const DenseRows<T> b = this->is_alone() ? random_matrix<T>(this->random, n, 2, true)
                                            : diagonal_rows<T>(graded(n, 0.2, 5));
    Pencil<T> pencil(this->ctx, a, b);
    const double size = std::is_same_v<real_t<T>, float> ? 1e15 : 1e150;
    for (const double factor : {size, 1 / size}) {
        auto left = stored(this->ctx, a, 1 / factor);
        auto right = stored(this->ctx, b, factor);
        EigenProblem<T> problem{left};
        problem.b = &right;
        const EigenOptions options = options_of(Method::lanczos, 3);
        const auto result = eigensolve(this->ctx, problem, options);
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), 3U);
        for (std::size_t j = 0; j < 3; ++j) {
            EXPECT_NEAR(result.eigenvalues[j] * factor * factor, pencil.spectrum[j],
                        (result.tolerance + 20 * this->eps) * pencil.norm_a / pencil.least_b);
        }
    }
}

TYPED_TEST(ReducedPencilTest, BothEndsAndLargestMagnitude) {
    using T = TypeParam;
    const int n = 100;
    Pencil<T> pencil(this->ctx, random_matrix<T>(this->random, n, 3, false),
                     diagonal_rows<T>(graded(n, 0.1, 10)));
    const auto& all = pencil.spectrum;
    for (const Method method : this->ends) {
        SCOPED_TRACE(to_string(method));
        this->check(
            pencil,
            eigensolve(this->ctx, pencil.problem(), options_of(method, 4, Which::both_ends)),
            {all[0], all[1], all[n - 2], all[n - 1]});
        std::vector<double> wanted = all;
        std::sort(wanted.begin(), wanted.end(),
                  [](double x, double y) { return std::abs(x) > std::abs(y); });
        wanted.resize(5);
        std::sort(wanted.begin(), wanted.end());
        this->check(pencil,
                    eigensolve(this->ctx, pencil.problem(),
                               options_of(method, 5, Which::largest_magnitude)),
                    wanted);
    }
}

/// Two uncoupled copies of a pencil: every eigenvalue is double.
TYPED_TEST(ReducedPencilTest, MultipleEigenvaluesAndACutPair) {
    using T = TypeParam;
    const std::size_t half = 30;
    const auto twice = [&](const DenseRows<T>& one) {
        DenseRows<T> two(2 * half, std::vector<T>(2 * half));
        for (std::size_t i = 0; i < half; ++i) {
            for (std::size_t j = 0; j < half; ++j) {
                two[i][j] = two[half + i][half + j] = one[i][j];
            }
        }
        return two;
    };
    const DenseRows<T> a = twice(random_matrix<T>(this->random, half, 3, false));
    std::vector<DenseRows<T>> masses{twice(diagonal_rows<T>(graded(half, 0.2, 5)))};
    if (this->is_alone()) {
        masses.push_back(twice(random_matrix<T>(this->random, half, 2, true)));
    }
    for (const DenseRows<T>& b : masses) {
        Pencil<T> pencil(this->ctx, a, b);
        for (const Method method : this->ends) {
            for (const int k : {3, 4}) {
                SCOPED_TRACE(std::string(to_string(method)) + ", k = " + std::to_string(k));
                const EigenOptions options = options_of(method, k);
                const auto result = eigensolve(this->ctx, pencil.problem(), options);
                this->check(pencil, result, this->at_end(pencil, options));
                EXPECT_EQ(result.cluster_cut, k == 3);
            }
        }
        this->check_window(pencil, 4);
    }
}

/// The constraint B^-1 e_0 leaves the vectors whose first element is 0: the pencil without its
/// first row and column.
TYPED_TEST(ReducedPencilTest, Constraints) {
    using T = TypeParam;
    const int n = 80;
    const DenseRows<T> a = random_matrix<T>(this->random, n, 3, false);
    std::vector<DenseRows<T>> masses{diagonal_rows<T>(graded(n, 0.2, 5))};
    if (this->is_alone()) {
        masses.push_back(random_matrix<T>(this->random, n, 2, true));
    }
    for (const DenseRows<T>& b : masses) {
        Pencil<T> pencil(this->ctx, a, b);
        const Eigen::MatrixXcd first = Eigen::MatrixXcd::Identity(n, 1);
        const Eigen::MatrixXcd given = test::oracle::solution(pencil.dense_b, first);
        SmallMatrix<T> rows(n, 1);
        for (int i = 0; i < n; ++i) {
            if constexpr (is_complex_v<T>) {
                rows(i, 0) = T(given(i, 0));
            } else {
                rows(i, 0) = T(given(i, 0).real());
            }
        }
        const RowMap& map = pencil.a.row_map();
        BlockVector<T> constraint(this->ctx, map, 1);
        copy(this->ctx, std::as_const(rows).view().row_range(map.first_row(), map.local_rows()),
             constraint.view());
        EigenProblem<T> problem = pencil.problem();
        problem.constraints = std::as_const(constraint).view();
        const Eigen::MatrixXcd inner_a = pencil.dense_a.bottomRightCorner(n - 1, n - 1);
        const Eigen::MatrixXcd inner_b = pencil.dense_b.bottomRightCorner(n - 1, n - 1);
        const Eigen::VectorXd exact = test::oracle::eigenvalues(inner_a, inner_b);
        for (const Method method : this->ends) {
            SCOPED_TRACE(to_string(method));
            const auto result = eigensolve(this->ctx, problem, options_of(method, 4));
            EXPECT_TRUE(result.converged) << result.message;
            ASSERT_EQ(result.eigenvalues.size(), 4U);
            const double allowed =
                (result.tolerance + 20 * this->eps) * pencil.norm_a / pencil.least_b;
            for (int j = 0; j < 4; ++j) {
                EXPECT_NEAR(result.eigenvalues[static_cast<std::size_t>(j)], exact(j), allowed);
            }
        }
        // Constraints that are eigenvectors leave the next eigenvalues.
        const auto found = eigensolve(this->ctx, pencil.problem(), options_of(Method::lanczos, 3));
        problem.constraints = found.vectors.view();
        for (const Method method : this->ends) {
            const auto next = eigensolve(this->ctx, problem, options_of(method, 2));
            ASSERT_TRUE(next.converged) << next.message;
            for (std::size_t j = 0; j < 2; ++j) {
                EXPECT_NEAR(next.eigenvalues[j], pencil.spectrum[3 + j],
                            (next.tolerance + 20 * this->eps) * pencil.norm_a / pencil.least_b);
            }
        }
    }
}

/// Exact start vectors take fewer products.
TYPED_TEST(ReducedPencilTest, StartVectors) {
    using T = TypeParam;
    const int n = 300;
    DenseRows<T> a = diagonal_rows<T>(std::vector<double>(n, 2));
    for (std::size_t i = 1; i < a.size(); ++i) {
        a[i][i - 1] = a[i - 1][i] = T(-1);
    }
    auto matrix = stored(this->ctx, a);
    auto mass = stored(this->ctx, diagonal_rows<T>(graded(n, 0.5, 2)));
    EigenProblem<T> problem{matrix};
    problem.b = &mass;
    EigenOptions options = options_of(Method::lanczos, 2, Which::largest);
    options.tol = 1e-5;
    const auto plain = eigensolve(this->ctx, problem, options);
    ASSERT_TRUE(plain.converged) << plain.message;
    problem.start = plain.vectors.view();
    const auto again = eigensolve(this->ctx, problem, options);
    EXPECT_TRUE(again.converged) << again.message;
    EXPECT_LT(again.operator_applications, plain.operator_applications);
}

TYPED_TEST(ReducedPencilTest, MassesOverTwelveDecades) {
    using T = TypeParam;
    const int n = 100;
    Pencil<T> pencil(this->ctx, random_matrix<T>(this->random, n, 3, true),
                     diagonal_rows<T>(graded(n, 1e-6, 1e6)));
    for (const Method method : this->ends) {
        SCOPED_TRACE(to_string(method));
        const EigenOptions options = options_of(method, 4, Which::largest);
        const auto result = eigensolve(this->ctx, pencil.problem(), options);
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), 4U);
        const std::vector<double> wanted = this->at_end(pencil, options);
        for (std::size_t j = 0; j < 4; ++j) {
            EXPECT_NEAR(result.eigenvalues[j], wanted[j],
                        (result.tolerance + 20 * this->eps) * pencil.most);
        }
    }
}

/// B = I - (1 - delta) v v^H has one eigenvalue delta that no diagonal scaling removes. The result
/// is right, or its message names the cause and the cure.
TYPED_TEST(ReducedPencilTest, AnIllConditionedSparseB) {
    using T = TypeParam;
    if (!this->is_alone()) {
        return;
    }
    const int n = 60;
    const double delta = this->eps * 4e3;
    DenseRows<T> b = diagonal_rows<T>(std::vector<double>(n, 1));
    for (auto& row : b) {
        for (T& value : row) {
            value -= T(static_cast<real_t<T>>((1 - delta) / n));
        }
    }
    const DenseRows<T> a = random_matrix<T>(this->random, n, 3, false);
    Pencil<T> pencil(this->ctx, a, b);
    for (const Method method : this->ends) {
        for (const Which which : {Which::smallest, Which::largest}) {
            SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(which));
            EigenOptions options = options_of(method, 3, which);
            options.max_iterations = 300;
            const auto result = eigensolve(this->ctx, pencil.problem(), options);
            if (result.converged) {
                this->check(pencil, result, this->at_end(pencil, options));
            } else {
                EXPECT_EQ(result.multiplicity, Multiplicity::unverified);
                this->expect_words(result.message, {"condition number of B", "lobpcg"});
            }
        }
    }
}

TYPED_TEST(ReducedPencilTest, MassesThatAreNotPositiveDefinite) {
    using T = TypeParam;
    const int n = 50;
    auto a = stored(this->ctx, random_matrix<T>(this->random, n, 3, false));
    std::vector<DenseRows<T>> masses{diagonal_rows<T>(std::vector<double>(n, 1))};
    masses[0][17][17] = T(-1e-3F);
    masses.push_back(diagonal_rows<T>(std::vector<double>(n, 1)));
    masses[1][49][49] = T(0);
    if (this->is_alone()) {
        masses.push_back(random_matrix<T>(this->random, n, 2, true));  // indefinite
        masses[2][20][20] = T(-1);
        masses.push_back(diagonal_rows<T>(std::vector<double>(n, 1)));  // singular
        masses[3][3][4] = masses[3][4][3] = T(1);
        // Singular but for rounding: (1 + eps) 1 - 1.
        masses.push_back(masses[3]);
        masses[4][4][4] = T(1 + epsilon_v<T>);
    }
    for (const DenseRows<T>& rows : masses) {
        auto b = stored(this->ctx, rows);
        EigenProblem<T> problem{a};
        problem.b = &b;
        for (const Method method : {Method::lanczos, Method::chebyshev, Method::filter}) {
            EigenOptions options = options_of(method, 2);
            if (method == Method::filter) {
                options.window = Window{0, 1};
            }
            this->expect_words(this->template error_of<IndefiniteError>(problem, options),
                               {to_string(method), "B is not positive definite"});
        }
    }
}

TYPED_TEST(ReducedPencilTest, RefusalsNameWhatHelps) {
    using T = TypeParam;
    const int n = 50;
    Pencil<T> pencil(this->ctx, random_matrix<T>(this->random, n, 3, false),
                     diagonal_rows<T>(graded(n, 0.5, 2)));
    const EigenOptions lanczos = options_of(Method::lanczos, 2);
    const auto error = [&](const EigenProblem<T>& problem, const EigenOptions& options) {
        return this->template error_of<InputError>(problem, options);
    };
    test::Unstored<T> hidden(pencil.b);
    EigenProblem<T> unstored = pencil.problem();
    unstored.b = &hidden;
    this->expect_words(error(unstored, lanczos),
                       {"lanczos: B has no stored entries", "lobpcg or jd"});
    test::MemoryCheckpoint<T> checkpoint;
    EigenProblem<T> saved = pencil.problem();
    saved.checkpoint = &checkpoint;
    this->expect_words(error(saved, lanczos), {"without a checkpoint", "lobpcg and jd"});
    ProtectedMatrix<T> guarded(this->ctx, pencil.a, {});
    EigenProblem<T> checked{guarded};
    checked.b = &pencil.b;
    checked.protection = &guarded;
    this->expect_words(error(checked, options_of(Method::chebyshev, 2)),
                       {"chebyshev: ", "without protection", "lobpcg and jd"});
    EXPECT_THROW(eigensolve(this->ctx, pencil.problem(), options_of(Method::lanczos, n + 1)),
                 InputError);
    auto smaller = stored(this->ctx, diagonal_rows<T>(graded(n - 1, 0.5, 2)));
    EigenProblem<T> misshaped = pencil.problem();
    misshaped.b = &smaller;
    EXPECT_THROW(eigensolve(this->ctx, misshaped, lanczos), ShapeError);
    if (this->ctx.place() == Place::host) {
        *static_cast<T*>(pencil.b.arrays().front().data) =
            T(std::numeric_limits<real_t<T>>::quiet_NaN());
        EXPECT_THROW(eigensolve(this->ctx, pencil.problem(), lanczos), NumericalError);
    }
}

/// G^-1 B G^-H = I, and G^H undoes G^-H.
TYPED_TEST(ReducedPencilTest, TheFactorOfB) {
    using T = TypeParam;
    const int n = 40;
    std::vector<DenseRows<T>> masses{diagonal_rows<T>(graded(n, 1e-3, 10))};
    if (this->is_alone()) {
        masses.push_back(random_matrix<T>(this->random, n, 3, true));
    }
    for (const DenseRows<T>& rows : masses) {
        auto b = stored(this->ctx, rows);
        const auto factor = factor_mass<T>(this->ctx, b, Method::lanczos);
        BlockVector<T> blocks[4];
        for (BlockVector<T>& block : blocks) {
            block = BlockVector<T>(this->ctx, b.row_map(), 3);
        }
        auto& [x, y, z, w] = blocks;
        fill_random(this->ctx, 5, x);
        factor->solve_adjoint(this->ctx, std::as_const(x).view(), y.view());
        b.apply(this->ctx, std::as_const(y).view(), z.view());
        factor->solve(this->ctx, std::as_const(z).view(), w.view());
        // Compares with 2^e x.
        axpby(this->ctx, T(std::ldexp(real_t<T>(1), factor->exponent())), std::as_const(x).view(),
              T(-1), w.view());
        std::vector<real_t<T>> length(3);
        std::vector<real_t<T>> defect(3);
        norms(this->ctx, std::as_const(x).view(), std::span<real_t<T>>(length));
        norms(this->ctx, std::as_const(w).view(), std::span<real_t<T>>(defect));
        for (std::size_t j = 0; j < 3; ++j) {
            EXPECT_LE(std::ldexp(static_cast<double>(defect[j]), -factor->exponent()),
                      100 * this->eps * static_cast<double>(length[j]));
        }
        factor->multiply_adjoint(this->ctx, std::as_const(y).view(), z.view());
        std::vector<T> ratio(3);
        std::vector<T> squares(3);
        dots(this->ctx, std::as_const(x).view(), std::as_const(z).view(), std::span<T>(ratio));
        dots(this->ctx, std::as_const(x).view(), std::as_const(x).view(), std::span<T>(squares));
        const T factor_of_all = ratio[0] / squares[0];
        EXPECT_GT(std::real(factor_of_all), 0);
        axpby(this->ctx, -factor_of_all, std::as_const(x).view(), T(1), z.view());
        norms(this->ctx, std::as_const(z).view(), std::span<real_t<T>>(defect));
        for (std::size_t j = 0; j < 3; ++j) {
            EXPECT_LE(static_cast<double>(defect[j]),
                      100 * this->eps * std::abs(factor_of_all) * static_cast<double>(length[j]));
        }
    }
}

}  // namespace
}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Every eigensolver with every scalar on cases in which other programs failed: many equal
// eigenvalues, singular matrices, start vectors that are dependent or exact, k close to the order.
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T, Method method>
struct Solver {
    using Scalar = T;
    static constexpr Method the_method = method;
};

/// The method is known at run time only, so that the tests are compiled once for each scalar.
template <class T>
class EigenMatrix : public ::testing::Test {
  public:
    explicit EigenMatrix(Method the_method) : method(the_method) {}
    static constexpr double eps = static_cast<double>(epsilon_v<T>);
    const Method method;

    EigenOptions options_for(int k, Which which) const {
        EigenOptions options;
        options.k = k;
        options.which = which;
        options.method = method;
        return options;
    }

    /// The filter has a window and no k: the window ends in the gap after all copies of the k-th
    /// eigenvalue.
    const bool by_window = method == Method::filter;
    /// `small` for windows, which multiply far wider blocks, and for several ranks, which share the
    /// cores of a test machine; `large` otherwise and in nightly tests. For problems whose order
    /// does not matter.
    int size_of(int large, int small) const {
        const bool is_nightly = std::getenv("QUIVER_TEST_ALL_CASES") != nullptr;
        return !is_nightly && (by_window || ctx.comm().size() > 1) ? small : large;
    }

    /// Solves and compares with the k wanted eigenvalues of `spectrum`.
    EigenResult<T> check(const EigenProblem<T>& problem, std::vector<double> spectrum,
                         EigenOptions options) {
        std::sort(spectrum.begin(), spectrum.end());
        if (by_window) {
            set_window(spectrum, options);
        }
        EigenResult<T> result = eigensolve(ctx, problem, options);
        EXPECT_EQ(result.method, method);
        test::check_pairs(ctx, problem.a, result, spectrum, options.k, options.which);
        return result;
    }
    /// Sets a window with the k wanted eigenvalues and all that are not clearly separated from
    /// them, and sets k to their number.
    static void set_window(const std::vector<double>& spectrum, EigenOptions& options) {
        const bool smallest = options.which == Which::smallest;
        const std::size_t n = spectrum.size();
        const auto at = [&](std::size_t j) { return spectrum[smallest ? j : n - 1 - j]; };
        const double norm = std::max({std::abs(at(0)), std::abs(at(n - 1)), 1.0});
        auto count = static_cast<std::size_t>(options.k);
        while (count < n && std::abs(at(count) - at(count - 1)) < 1e-3 * norm) {
            ++count;
        }
        const double gap = count == n ? norm : std::abs(at(count) - at(count - 1));
        options.window = smallest ? Window{at(0) - gap / 2, at(count - 1) + gap / 2}
                                  : Window{at(count - 1) - gap / 2, at(0) + gap / 2};
        options.k = static_cast<int>(count);
        options.max_basis = 0;
    }
    void expect_cut(const EigenResult<T>& result, bool cut) const {
        EXPECT_EQ(result.cluster_cut, cut && !by_window);
    }
    EigenResult<T> check(Operator<T>& a, const std::vector<double>& spectrum, int k, Which which) {
        SCOPED_TRACE("k = " + std::to_string(k) +
                     (which == Which::smallest ? " smallest" : " largest"));
        return check(EigenProblem<T>{a}, spectrum, options_for(k, which));
    }
    void check_both_ends(Operator<T>& a, const std::vector<double>& spectrum, int k) {
        check(a, spectrum, k, Which::smallest);
        check(a, spectrum, k, Which::largest);
    }

    Context ctx = test::make_context();
};

template <class S>
class EigenMatrixTest : public EigenMatrix<typename S::Scalar> {
  protected:
    using T = typename S::Scalar;
    EigenMatrixTest() : EigenMatrix<T>(S::the_method) {}
    void SetUp() override {
        const bool always = std::is_same_v<T, double> || std::is_same_v<T, std::complex<float>>;
        const bool is_nightly = std::getenv("QUIVER_TEST_ALL_CASES") != nullptr;
        const bool by_chance = this->ctx.comm().size() == 1 && test::make_generator()() % 3 == 0;
        if (!always && !is_nightly && !by_chance) {
            GTEST_SKIP() << "s and z: a third of the tests on one rank; nightly tests have all";
        }
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): Name is a name
/// Begins the body of a test that runs for every solver; T is the scalar.
#define EVERY_SOLVER(Name)                       \
    template <class T>                           \
    void Name(EigenMatrix<T>& fixture);          \
    TYPED_TEST(EigenMatrixTest, Name) {          \
        Name<typename TypeParam::Scalar>(*this); \
    }                                            \
    template <class T>                           \
    void Name(EigenMatrix<T>& fixture)
// NOLINTEND(bugprone-macro-parentheses)

using Solvers = ::testing::Types<
    Solver<float, Method::lanczos>, Solver<double, Method::lanczos>,
    Solver<std::complex<float>, Method::lanczos>, Solver<std::complex<double>, Method::lanczos>,
    Solver<float, Method::chebyshev>, Solver<double, Method::chebyshev>,
    Solver<std::complex<float>, Method::chebyshev>, Solver<std::complex<double>, Method::chebyshev>,
    Solver<float, Method::lobpcg>, Solver<double, Method::lobpcg>,
    Solver<std::complex<float>, Method::lobpcg>, Solver<std::complex<double>, Method::lobpcg>,
    Solver<float, Method::filter>, Solver<double, Method::filter>,
    Solver<std::complex<float>, Method::filter>, Solver<std::complex<double>, Method::filter>,
    Solver<float, Method::jacobi_davidson>, Solver<double, Method::jacobi_davidson>,
    Solver<std::complex<float>, Method::jacobi_davidson>,
    Solver<std::complex<double>, Method::jacobi_davidson>>;
TYPED_TEST_SUITE(EigenMatrixTest, Solvers);

EVERY_SOLVER(IdentityAndZero) {
    for (const int n : {30, fixture.size_of(400, 120)}) {
        for (const double value : {1.0, 0.0}) {
            const std::vector<double> values(static_cast<std::size_t>(n), value);
            auto a = test::diagonal<T>(fixture.ctx, values);
            for (const int k : {1, 5, 29, 30}) {
                if (fixture.by_window && k > 1) {
                    continue;  // the same window
                }
                fixture.expect_cut(fixture.check(a, values, k, Which::smallest), k < n);
            }
        }
    }
}

// cupy issue 5001.
EVERY_SOLVER(RankTwo) {
    for (const int n : {50, 197}) {
        auto star = test::matrix_from_rows<T>(fixture.ctx, n, [n](std::int64_t row, auto& entries) {
            if (row > 0) {
                entries.add(0, T(1));
                return;
            }
            for (std::int64_t leaf = 1; leaf < n; ++leaf) {
                entries.add(leaf, T(1));
            }
        });
        std::vector<double> spectrum(static_cast<std::size_t>(n), 0.0);
        spectrum.front() = -std::sqrt(n - 1.0);
        spectrum.back() = std::sqrt(n - 1.0);
        for (const int k : {1, 2, 10, 40}) {
            fixture.check_both_ends(star, spectrum, k);
        }
    }
}

/// The normalised Laplacian of a ring.
template <class T>
SparseMatrix<T> ring(Context& ctx, int n) {
    return test::matrix_from_rows<T>(ctx, n, [n](std::int64_t row, RowEntries<T>& entries) {
        entries.add(row, T(1));
        entries.add((row + 1) % n, T(real_t<T>(-0.5)));
        entries.add((row + n - 1) % n, T(real_t<T>(-0.5)));
    });
}

// Spectra issue 144: copies were lost for k = 5.
EVERY_SOLVER(NormalisedLaplacianOfARing) {
    for (const int n : {20, 90}) {
        auto a = ring<T>(fixture.ctx, n);
        std::vector<double> spectrum;
        spectrum.reserve(static_cast<std::size_t>(n));
        for (int j = 0; j < n; ++j) {
            spectrum.push_back(1 - std::cos(2 * std::numbers::pi * j / n));
        }
        for (const int k : {5, 6}) {
            fixture.check_both_ends(a, spectrum, k);
        }
    }
}

// IterativeSolvers.jl issue 246: a wrong second eigenvalue 0.
EVERY_SOLVER(DiagonalWithManyEqualEntries) {
    std::vector<double> values{1.25, 1.5,  1.5, 1.25, 1.5, 1.25, 1.5, 0,
                               1.13, 1.13, 1.5, 1.13, 1.5, 1.5,  1.13};
    for (const int copies : {1, 20}) {
        auto a = test::diagonal<T>(fixture.ctx, values);
        fixture.expect_cut(fixture.check(a, values, 2, Which::smallest), true);
        while (copies == 1 && values.size() < 300) {
            values.push_back(1.5);
        }
    }
}

EVERY_SOLVER(CopiesHiddenByABulkOfEqualEigenvalues) {
    std::vector<double> values(static_cast<std::size_t>(fixture.size_of(20000, 5000)), 1.0);
    std::fill_n(values.begin() + 100, 5, 0.0);
    values[7] = 0.1;
    auto a = test::diagonal<T>(fixture.ctx, values);
    for (const std::uint64_t seed : {1, 2, 3}) {
        EigenOptions options = fixture.options_for(5, Which::smallest);
        options.seed = seed;
        fixture.expect_cut(fixture.check(EigenProblem<T>{a}, values, options), false);
        if (fixture.by_window) {
            continue;  // the same window
        }
        options.k = 2;
        fixture.expect_cut(fixture.check(EigenProblem<T>{a}, values, options), true);
    }
}

EVERY_SOLVER(ALooseToleranceDoesNotHideAnEigenvalueInABulk) {
    std::vector<double> values(5000, 1.0);
    values[11] = 0.99;
    auto a = test::diagonal<T>(fixture.ctx, values);
    EigenOptions options = fixture.options_for(1, Which::smallest);
    options.tol = 1e-3;
    if (fixture.by_window) {
        options.window = Window{0.985, 0.995};
        options.max_basis = 200;
        const auto result = eigensolve(fixture.ctx, EigenProblem<T>{a}, options);
        ASSERT_EQ(result.eigenvalues.size(), 1u) << result.message;
        EXPECT_NEAR(result.eigenvalues[0], 0.99, 1e-3);
        EXPECT_EQ(result.multiplicity, Multiplicity::verified) << result.message;
        // An error: the filter would pass the bulk of the spectrum.
        options.window->high = 1 - 1e-9;
        EXPECT_THROW(eigensolve(fixture.ctx, EigenProblem<T>{a}, options), InputError);
        return;
    }
    fixture.check(EigenProblem<T>{a}, values, options);
}

EVERY_SOLVER(EveryCopyOfALaplacian) {
    const int n = fixture.size_of(13, 9);
    auto a = test::laplace3d<T>(fixture.ctx, n, n, n);
    const auto spectrum = test::laplace3d_spectrum(n, n, n);
    fixture.expect_cut(fixture.check(a, spectrum, 10, Which::smallest), false);
    fixture.check(a, spectrum, 10, Which::largest);
    fixture.expect_cut(fixture.check(a, spectrum, 8, Which::smallest), true);
}

// SciPy issue 10258.
EVERY_SOLVER(StartVectorsThatAreDependentOrExact) {
    auto a = test::laplace3d<T>(fixture.ctx, 9, 8, 7);
    const auto spectrum = test::laplace3d_spectrum(9, 8, 7);
    const EigenOptions options = fixture.options_for(4, Which::smallest);
    const auto plain = fixture.check(EigenProblem<T>{a}, spectrum, options);
    BlockVector<T> start(fixture.ctx, a.row_map(), 8);
    const std::vector<int> order{0, 1, 2, 3, 0, 0, 3, 2};
    gather_columns(fixture.ctx, plain.vectors.view(), order, start.view());
    for (const int columns : {1, 4, 8}) {
        EigenProblem<T> problem{a};
        problem.start = std::as_const(start).columns(0, columns);
        fixture.check(problem, spectrum, options);
    }
    fill(fixture.ctx, T(0), start.view());
    EigenProblem<T> zero{a};
    zero.start = std::as_const(start).view();
    fixture.check(zero, spectrum, options);
}

/// A graph of paths of some lengths with weights; its normalised Laplacian has the eigenvalues
/// weight (1 - cos(pi i / (length - 1))), and null vectors of sqrt(degree) on each path.
struct WeightedPaths {
    std::vector<int> length;
    std::vector<double> weight;
    std::vector<int> path_of;
    std::vector<double> degree;

    WeightedPaths(std::mt19937_64& generator, int paths) {
        for (int c = 0; c < paths; ++c) {
            length.push_back(static_cast<int>(11 + generator() % 30));
            weight.push_back(0.5 + static_cast<double>(generator() % 1000) / 1000);
            for (int i = 0; i < length.back(); ++i) {
                path_of.push_back(c);
                degree.push_back(i == 0 || i + 1 == length.back() ? 1 : 2);
            }
        }
    }
    std::vector<double> spectrum() const {
        std::vector<double> values;
        for (std::size_t c = 0; c < length.size(); ++c) {
            for (int i = 0; i < length[c]; ++i) {
                values.push_back(weight[c] *
                                 (1 - std::cos(std::numbers::pi * i / (length[c] - 1))));
            }
        }
        return values;
    }
    template <class T>
    SparseMatrix<T> laplacian(Context& ctx) const {
        const auto rows = static_cast<std::int64_t>(degree.size());
        return test::matrix_from_rows<T>(ctx, rows, [=, this](std::int64_t row, RowEntries<T>& e) {
            const auto r = static_cast<std::size_t>(row);
            const double w = weight[static_cast<std::size_t>(path_of[r])];
            e.add(row, T(static_cast<real_t<T>>(w)));
            for (const std::int64_t to : {row - 1, row + 1}) {
                const auto t = static_cast<std::size_t>(to);
                if (to >= 0 && to < rows && path_of[t] == path_of[r]) {
                    e.add(to, T(static_cast<real_t<T>>(-w / std::sqrt(degree[r] * degree[t]))));
                }
            }
        });
    }
    /// Random combinations of all null vectors.
    template <class T>
    BlockVector<T> null_vectors(Context& ctx, const RowMap& map, std::mt19937_64& generator,
                                int columns) const {
        std::normal_distribution<double> normal;
        SmallMatrix<T> here(static_cast<int>(map.local_rows()), columns);
        for (int j = 0; j < columns; ++j) {
            std::vector<double> of_path;
            for (std::size_t c = 0; c < length.size(); ++c) {
                of_path.push_back(normal(generator));
            }
            for (int i = 0; i < here.rows(); ++i) {
                const auto r = static_cast<std::size_t>(map.first_row() + i);
                here(i, j) = T(static_cast<real_t<T>>(
                    std::sqrt(degree[r]) * of_path[static_cast<std::size_t>(path_of[r])]));
            }
        }
        BlockVector<T> vectors(ctx, map, columns);
        copy(ctx, here.view(), vectors.view());
        return vectors;
    }
};

// Products with null vectors are rounding errors, which say nothing about the norm or the symmetry
// of the matrix.
EVERY_SOLVER(NullVectorsAsStartOrConstraints) {
    auto generator = test::make_generator();
    const int paths = 9;
    const WeightedPaths graph(generator, paths);
    auto a = graph.laplacian<T>(fixture.ctx);
    for (const int columns : {1, 4, paths}) {
        SCOPED_TRACE(columns);
        const auto start = graph.null_vectors<T>(fixture.ctx, a.row_map(), generator, columns);
        for (const int block : {0, 2}) {
            EigenProblem<T> problem{a};
            problem.start = start.view();
            EigenOptions options = fixture.options_for(paths, Which::smallest);
            options.block = block;
            fixture.check(problem, graph.spectrum(), options);
        }
    }
    const auto all = graph.null_vectors<T>(fixture.ctx, a.row_map(), generator, paths);
    std::vector<double> rest = graph.spectrum();
    std::sort(rest.begin(), rest.end());
    rest.erase(rest.begin(), rest.begin() + paths);
    EigenProblem<T> problem{a};
    problem.constraints = all.view();
    fixture.check(problem, rest, fixture.options_for(3, Which::smallest));
}

// Thousands of copies fill every block of fresh columns, at a tolerance of rounding.
EVERY_SOLVER(ThousandsOfCopiesAtTheLeastTolerance) {
    if (fixture.by_window) {
        return;  // a window would contain all copies
    }
    auto generator = test::make_generator();
    std::vector<double> values;
    for (int i = 0; i < 3000; ++i) {
        values.push_back(static_cast<double>(1 + generator() % 3));
    }
    auto a = test::diagonal<T>(fixture.ctx, values);
    for (const Which which : {Which::smallest, Which::largest}) {
        EigenOptions options = fixture.options_for(6, which);
        options.tol = fixture.eps;
        options.max_iterations = 3000;
        fixture.expect_cut(fixture.check(EigenProblem<T>{a}, values, options), true);
    }
}

EVERY_SOLVER(ConstraintsLeaveTheFollowingPairs) {
    auto a = test::laplace3d<T>(fixture.ctx, 9, 8, 7);
    std::vector<double> spectrum = test::laplace3d_spectrum(9, 8, 7);
    const auto first = fixture.check(a, spectrum, 3, Which::smallest);
    EigenProblem<T> rest{a};
    rest.constraints = first.vectors.view();
    const auto found = static_cast<std::ptrdiff_t>(first.eigenvalues.size());
    spectrum.erase(spectrum.begin(), spectrum.begin() + found);
    fixture.check(rest, spectrum, fixture.options_for(4, Which::smallest));
}

EVERY_SOLVER(NearlyAllPairs) {
    std::vector<double> values;
    values.reserve(61);
    for (int i = 0; i < 61; ++i) {
        const int quarters = i / 20;
        values.push_back(i % 7 + 0.25 * quarters);
    }
    auto a = test::diagonal<T>(fixture.ctx, values);
    for (const int k : {40, 58, 60, 61}) {
        fixture.check_both_ends(a, values, k);
    }
    for (const int n : {1, 2, 3}) {
        const std::vector<double> few(values.begin(), values.begin() + n);
        auto small = test::diagonal<T>(fixture.ctx, few);
        fixture.check_both_ends(small, few, n);
        fixture.check_both_ends(small, few, 1);
    }
}

// cupy issue 7355: orthogonality with many pairs.
EVERY_SOLVER(ManyPairsStayOrthonormal) {
    const int nx = fixture.size_of(11, 9);
    auto a = test::laplace3d<T>(fixture.ctx, nx, 11, 10);
    const auto spectrum = test::laplace3d_spectrum(nx, 11, 10);
    EigenOptions options = fixture.options_for(fixture.size_of(50, 40), Which::largest);
    options.max_basis = fixture.size_of(110, 90);
    fixture.check(EigenProblem<T>{a}, spectrum, options);
}

// SciPy pull request 10621.
EVERY_SOLVER(TheTightestToleranceOfTheScalar) {
    auto a = test::laplace3d<T>(fixture.ctx, 8, 7, 7);
    EigenOptions options = fixture.options_for(5, Which::smallest);
    options.tol = 1e-20;
    const auto result =
        fixture.check(EigenProblem<T>{a}, test::laplace3d_spectrum(8, 7, 7), options);
    EXPECT_TRUE(result.tolerance_raised);
    EXPECT_GT(result.tolerance, fixture.eps);
    EXPECT_LT(result.tolerance, 100 * fixture.eps);
}

EVERY_SOLVER(NarrowAndWideBlocks) {
    const int n = fixture.size_of(9, 7);
    auto a = test::laplace3d<T>(fixture.ctx, n, n, n);
    const auto spectrum = test::laplace3d_spectrum(n, n, n);
    for (const int block : {1, 3, 64}) {
        EigenOptions options = fixture.options_for(7, Which::smallest);
        options.block = block;
        options.max_basis = block == 64 ? 210 : 0;
        fixture.check(EigenProblem<T>{a}, spectrum, options);
    }
}

EVERY_SOLVER(TheSameBitsEveryTime) {
    auto a = test::laplace3d<T>(fixture.ctx, 8, 7, 6);
    EigenOptions options = fixture.options_for(6, Which::smallest);
    if (fixture.by_window) {
        options.window = Window{0, 1.2};
    }
    const auto first = eigensolve(fixture.ctx, EigenProblem<T>{a}, options);
    const auto second = eigensolve(fixture.ctx, EigenProblem<T>{a}, options);
    EXPECT_EQ(first.eigenvalues, second.eigenvalues);
    EXPECT_EQ(first.residuals, second.residuals);
    EXPECT_EQ(first.operator_applications, second.operator_applications);
}

EVERY_SOLVER(GivingUpAndStoppingAreResults) {
    auto a = test::laplace3d<T>(fixture.ctx, 12, 12, 12);
    for (const bool by_callback : {false, true}) {
        EigenOptions options = fixture.options_for(10, Which::smallest);
        if (by_callback) {
            options.keep_going = [&](const IterationEvent&) { return false; };
        } else {
            options.max_iterations = fixture.by_window ? 2 : 12;
        }
        if (fixture.by_window) {
            options.window = Window{0, 1};
        }
        const auto result = eigensolve(fixture.ctx, EigenProblem<T>{a}, options);
        EXPECT_FALSE(result.converged);
        EXPECT_EQ(result.interrupted, by_callback);
        EXPECT_EQ(result.multiplicity, Multiplicity::unverified);
        if (!fixture.by_window) {
            EXPECT_EQ(result.eigenvalues.size(), 10u);
        }
        EXPECT_NE(result.message, "");
        const auto residuals = test::fresh_residuals(fixture.ctx, a, result);
        for (std::size_t j = 0; j < residuals.size(); ++j) {
            EXPECT_NEAR(residuals[j], result.residuals[j], 1e-3 * residuals[j] + 600 * fixture.eps);
        }
    }
}

/// Gives NaN in one column of one product, or throws in that product on the last rank only.
template <class T>
class Failing final : public Operator<T> {
  public:
    /// Products with `matrix`, or if it is null with a diagonal that differs in each product.
    Failing(const RowMap& map, bool throws, int product, Operator<T>* matrix = nullptr)
        : map_(map), throws_(throws), product_(product), matrix_(matrix) {}
    bool has_failed() const { return applications_ >= product_; }
    int applications() const { return applications_; }
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const bool now = ++applications_ == product_;
        if (now && throws_ && map_.rank() == map_.ranks() - 1) {
            throw std::runtime_error("out of luck");
        }
        if (matrix_ != nullptr) {
            matrix_->apply(ctx, x, y);
        } else {
            copy(ctx, x, y);
            scale(ctx, T(real_t<T>(applications_)), y.columns(0, 1));
        }
        if (now && !throws_) {
            fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y.columns(0, 1));
        }
    }

  private:
    RowMap map_;
    bool throws_;
    int product_;
    Operator<T>* matrix_;
    int applications_ = 0;
};

/// The rank whose operator throws gets its exception, the others a collective NumericalError.
template <class T>
void expect_that_all_ranks_end(Context& ctx, Failing<T>& throwing, const EigenOptions& options) {
    const bool here = throwing.row_map().rank() == throwing.row_map().ranks() - 1;
    try {
        eigensolve(ctx, EigenProblem<T>{throwing}, options);
        EXPECT_FALSE(throwing.has_failed()) << "no error";
    } catch (const NumericalError& error) {
        EXPECT_FALSE(here && throwing.has_failed());
        EXPECT_TRUE(error.collective() || !throwing.has_failed());
    } catch (const std::runtime_error& error) {
        EXPECT_TRUE(here) << error.what();
    }
}

EVERY_SOLVER(AnOperatorThatFailsEndsAllRanks) {
    const RowMap map = RowMap::by_rows(fixture.ctx.comm(), 97);
    EigenOptions options = fixture.options_for(3, Which::smallest);
    if (fixture.by_window) {
        options.window = Window{0.5, 1.5};
    }
    Failing<T> nan(map, false, 5);
    EXPECT_THROW(eigensolve(fixture.ctx, EigenProblem<T>{nan}, options), NumericalError);
    // Early products estimate bounds; the window filter then counts eigenvalues and filters.
    for (const int product : {5, 15, 25, 35, 60}) {
        SCOPED_TRACE(product);
        Failing<T> throwing(map, true, product);
        expect_that_all_ranks_end(fixture.ctx, throwing, options);
    }
}

/// The last products of a solve that converges compute residuals and correct the eigenvalues.
EVERY_SOLVER(AnOperatorThatFailsInItsLastProductsEndsAllRanks) {
    std::vector<double> values(97);
    std::iota(values.begin(), values.end(), 1.0);
    SparseMatrix<T> a = test::diagonal<T>(fixture.ctx, values);
    EigenOptions options = fixture.options_for(3, Which::smallest);
    if (fixture.by_window) {
        options.window = Window{0.5, 3.5};
    }
    Failing<T> sound(a.row_map(), true, std::numeric_limits<int>::max(), &a);
    ASSERT_TRUE(eigensolve(fixture.ctx, EigenProblem<T>{sound}, options).converged);
    for (int before_end = 0; before_end < 4; ++before_end) {
        SCOPED_TRACE(before_end);
        Failing<T> throwing(a.row_map(), true, sound.applications() - before_end, &a);
        expect_that_all_ranks_end(fixture.ctx, throwing, options);
        EXPECT_TRUE(throwing.has_failed());
    }
}

EVERY_SOLVER(UnsymmetricOperatorsAreErrors) {
    auto a = test::matrix_from_rows<T>(fixture.ctx, 100, [](std::int64_t row, RowEntries<T>& e) {
        e.add(row, T(2));
        if (row + 1 < 100) {
            e.add(row + 1, T(real_t<T>(-1.5)));
        }
        if (row > 0) {
            e.add(row - 1, T(real_t<T>(-0.5)));
        }
    });
    EigenOptions options = fixture.options_for(3, Which::smallest);
    if (fixture.by_window) {
        options.window = Window{0, 0.5};
    }
    EXPECT_THROW(eigensolve(fixture.ctx, EigenProblem<T>{a}, options), NumericalError);
}

}  // namespace
}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Multiplicity::verified: the rule of this decision, and for every method a search that cannot find
// a wanted copy by itself.
#include "solvers/eigen/search/verification.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/search/verified_search.hpp"
#include "tests/support/memory_checkpoint.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// The verdict on a key that lies `gap` beyond the last wanted key, 3.
ComplementVerdict verdict_at(double gap, double rho, double threshold, double settled,
                             std::int64_t dimensions) {
    return judge_complement(3, 3 + gap, rho, threshold, settled, dimensions);
}

/// The bound of the raised tolerance is not below the residual, not even by one ulp: a Chebyshev
/// search would then repeat its loop almost endlessly without a product.
TEST(LockingTolerance, LocksTheAcceptedResidual) {
    std::mt19937_64 generator = test::make_generator();
    std::uniform_real_distribution<double> mantissa(1, 2);
    std::uniform_int_distribution<int> exponent(-60, 60);
    for (int i = 0; i < 100000; ++i) {
        const double norm = std::ldexp(mantissa(generator), exponent(generator));
        const double residual = std::ldexp(norm * mantissa(generator), -20);
        const double tolerance = locking_tolerance(residual, norm);
        ASSERT_GE(lockable_residual(tolerance, norm), residual) << norm;
        ASSERT_LE(lockable_residual(tolerance, norm), residual * (1 + 1e-14)) << norm;
    }
}

constexpr double above = 1 + 1e-3;
constexpr double below = 1 - 1e-3;

/// A residual above rounding decides only if the gap is 100 sqrt(n) times as large.
TEST(JudgeComplement, AGapMustExceedTheResidualByTheRootOfTheDimension) {
    constexpr double threshold = 1e-9;
    constexpr double settled = 1e-13;
    for (const std::int64_t dimensions : {1, 4, 100, 10000, 1000000}) {
        for (const double rho : {1e-6, 1e-9, 1e-10}) {
            SCOPED_TRACE("n = " + std::to_string(dimensions) + ", rho = " + std::to_string(rho));
            const double least = 100 * std::sqrt(static_cast<double>(dimensions)) * rho;
            EXPECT_EQ(verdict_at(above * least, rho, threshold, settled, dimensions),
                      ComplementVerdict::outside);
            EXPECT_EQ(verdict_at(below * least, rho, threshold, settled, dimensions),
                      ComplementVerdict::open);
            EXPECT_EQ(verdict_at(-1e3 * least, rho, threshold, settled, dimensions),
                      ComplementVerdict::open);
        }
    }
}

/// However small the residual is, a gap below the threshold decides nothing until the residual is
/// settled.
TEST(JudgeComplement, AGapMustExceedTheThreshold) {
    constexpr double threshold = 1e-6;
    constexpr double settled = 1e-15;
    constexpr double rho = 1e-14;
    EXPECT_EQ(verdict_at(above * threshold, rho, threshold, settled, 100),
              ComplementVerdict::outside);
    EXPECT_EQ(verdict_at(below * threshold, rho, threshold, settled, 100), ComplementVerdict::open);
    EXPECT_EQ(verdict_at(-2 * threshold, rho, threshold, settled, 100), ComplementVerdict::open);
}

/// A settled residual decides for every gap; the limits of `tied` are +-(threshold + rho).
TEST(JudgeComplement, ASettledResidualDecides) {
    constexpr double threshold = 1e-6;
    for (const double rho : {0.0, 1e-8, 1e-6}) {
        const double resolution = threshold + rho;
        const auto verdict = [&](double gap) {
            return verdict_at(gap, rho, threshold, rho, 1000000);
        };
        EXPECT_EQ(verdict(-above * resolution), ComplementVerdict::inside);
        EXPECT_EQ(verdict(-below * resolution), ComplementVerdict::tied);
        EXPECT_EQ(verdict(0), ComplementVerdict::tied);
        EXPECT_EQ(verdict(below * resolution), ComplementVerdict::tied);
        EXPECT_EQ(verdict(above * resolution), ComplementVerdict::outside);
        EXPECT_EQ(verdict_at(-above * resolution, rho + 1e-12, threshold, rho, 1000000),
                  ComplementVerdict::open);
    }
}

/// A gap of 1 with finite numbers is outside; one number that is not finite leaves it open.
TEST(JudgeComplement, NumbersThatAreNotFiniteDecideNothing) {
    enum : std::size_t { last, theta, rho, threshold, settled, numbers };
    const std::array<double, numbers> finite{3, 4, 1e-13, 1e-9, 1e-12};
    const auto verdict = [](const std::array<double, numbers>& with) {
        return judge_complement(with[last], with[theta], with[rho], with[threshold], with[settled],
                                100);
    };
    EXPECT_EQ(verdict(finite), ComplementVerdict::outside);
    for (const std::size_t which : {last, theta, rho, threshold}) {
        for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
            for (const double level : {0.0, 1e-12, 1.0}) {
                std::array<double, numbers> with = finite;
                with[settled] = level;
                with[which] = value;
                EXPECT_EQ(verdict(with), ComplementVerdict::open)
                    << "number " << which << " is " << value << ", settled " << level;
            }
        }
    }
    EXPECT_EQ(judge_complement(3, 4, 1, 1e-9, std::nan(""), 100), ComplementVerdict::open);
}

/// With five columns one found copy may hide beside a missing one, with six columns two.
TEST(MissingGrowth, TellsWhatASpaceCannotHaveSeen) {
    const std::vector<double> exact(4, 0);
    EXPECT_EQ(missing_growth({1, 2, 3, 4}, exact, 5, 3), 0);
    EXPECT_EQ(missing_growth({1, 2, 2, 4}, exact, 5, 5), 0);
    EXPECT_GT(missing_growth({1, 2, 2, 4}, exact, 5, 6), 0);
    EXPECT_EQ(missing_growth({1, 2, 2, 2}, exact, 5, 6), 0);
    EXPECT_EQ(missing_growth({1, 2}, {0, 0}, 4, 6), 1);
    // The least of 1/4, 1/3 and 1/4 * 1/3 ..., by the distances from 2 to 1 and 3.
    EXPECT_NEAR(missing_growth({1, 2, 3}, {0, 0, 0}, 5, 5), std::pow(0.25 * 0.5, 0.25), 1e-15);
    // Residuals shorten the distances.
    EXPECT_NEAR(missing_growth({1, 2}, {0.25, 0.5}, 3, 5), std::pow(0.25 / 2, 0.25), 1e-15);
    EXPECT_EQ(missing_growth({1, 2}, {0.5, 0.5}, 3, 5), 0);
}

/// Simple eigenvalues need no second search. Copies need one, or another column; all are found.
TEST(LanczosSearch, SeesEveryCopyOrSearchesTheComplement) {
    Context ctx = test::make_context();
    std::mt19937_64 generator = test::make_generator();
    std::uniform_real_distribution<double> bulk(0, 1);
    for (int repeat = 0; repeat < 12; ++repeat) {
        const int copies = repeat % 6 + 1;
        const int k = 5 + static_cast<int>(generator() % 6);
        const int block = 5 + static_cast<int>(generator() % 2);
        const double distance = repeat < 6 ? 0 : std::pow(10, -2 - 10 * bulk(generator));
        SCOPED_TRACE(std::to_string(copies) + " copies at a distance of " +
                     std::to_string(distance) + ", k = " + std::to_string(k) + ", block " +
                     std::to_string(block));
        // k + 1 values above the bulk, of which `copies` are nearly equal.
        std::vector<double> values;
        const int at = static_cast<int>(generator() % static_cast<unsigned>(k + 1));
        for (int j = 0; j < k + 1; ++j) {
            const int distinct = j <= at ? j : std::max(at, j - copies + 1);
            values.push_back(3 - 0.15 * distinct - distance * (j - distinct));
        }
        const std::vector<double> wanted(values.rbegin() + 1, values.rend());
        while (values.size() < 800) {
            values.push_back(bulk(generator));
        }
        std::shuffle(values.begin(), values.end(), generator);
        SparseMatrix<double> a = test::diagonal<double>(ctx, values);
        EigenOptions options;
        options.k = k;
        options.block = block;
        options.which = Which::largest;
        options.method = Method::lanczos;
        options.seed = generator();
        bool searched = false;
        options.keep_going = [&](const IterationEvent& event) {
            searched = searched || std::string(event.stage) == "verify";
            return true;
        };
        const EigenResult<double> result = eigensolve(ctx, EigenProblem<double>{a}, options);
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), wanted.size());
        std::vector<double> sorted = wanted;
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t j = 0; j < wanted.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], sorted[j], 4 * result.tolerance * 3) << j;
        }
        if (copies == 1) {
            EXPECT_FALSE(searched);
        } else if (copies >= block && at + copies <= k && distance == 0) {
            EXPECT_TRUE(searched);
        }
    }
}

constexpr std::int64_t rows = 900;
/// The row of the hidden copy: the start vectors are zero there, and A couples it to no other row.
constexpr std::int64_t hidden_row = 571;
constexpr double hidden_value = 1.5;

/// The eigenvalue of a row of the diagonal problem: 1, 1.5, 2, the hidden 1.5, and others in
/// [4, 10].
double value_of(std::int64_t row) {
    return row == hidden_row ? hidden_value
           : row < 3         ? 1 + 0.5 * static_cast<double>(row)
                             : 4 + 6 * static_cast<double>(row) / rows;
}
double mass_of(std::int64_t row) {
    return 1 + 0.25 * static_cast<double>(row % 5);
}

struct Search {
    std::string name;
    EigenOptions options;
    /// The wanted eigenvalues without the hidden copy, and with it.
    std::vector<double> without;
    std::vector<double> with;
    bool with_b = false;
    double sign = 1;
    /// Enough start columns for the start block of every method.
    int start = 100;
};

std::vector<Search> searches() {
    std::vector<Search> all;
    const auto add = [&](const char* name, Method method) -> Search& {
        all.push_back({name, {}, {1, 1.5, 2}, {1, 1.5, 1.5}});
        all.back().options.method = method;
        all.back().options.k = 3;
        all.back().options.block = 6;
        return all.back();
    };
    const auto add_ends = [&](const char* name, Method method, int basis) {
        add(name, method).options.max_basis = basis;
        Search& largest = add(name, method);
        largest.name += ", largest";
        largest.options.max_basis = basis;
        largest.options.which = Which::largest;
        largest.sign = -1;
        largest.without = {-2, -1.5, -1};
        largest.with = {-1.5, -1.5, -1};
    };
    add_ends("lanczos", Method::lanczos, 60);
    add_ends("chebyshev", Method::chebyshev, 21);
    add_ends("lobpcg", Method::lobpcg, 0);
    add_ends("jd", Method::jacobi_davidson, 0);
    add("lobpcg with B", Method::lobpcg).with_b = true;
    add("jd with B", Method::jacobi_davidson).with_b = true;
    Search& target = add("jd at a target", Method::jacobi_davidson);
    target.options.which = Which::target;
    target.options.target = 1.4;
    for (Search& search : all) {
        // More columns would leave no room in the basis of Jacobi-Davidson.
        search.start = search.options.method == Method::jacobi_davidson ? 6 : search.start;
    }
    Search& window = add("filter", Method::filter);
    window.options.k = 1;
    window.options.window = Window{0.8, 2.2};
    window.start = 440;  // as many columns as the filter can choose
    window.with = {1, 1.5, 1.5, 2};
    return all;
}

template <class T>
class MissingCopyTest : public ::testing::Test {
  protected:
    /// The diagonal matrix with `sign` times the values; with B also times the masses, so that the
    /// eigenvalues stay.
    SparseMatrix<T> matrix(double sign, bool with_b) {
        return test::matrix_from_rows<T>(ctx, rows, [=](std::int64_t row, RowEntries<T>& entries) {
            const double value = sign * value_of(row) * (with_b ? mass_of(row) : 1);
            entries.add(row, T(static_cast<real_t<T>>(value)));
        });
    }

    /// Random columns that are exactly zero in the hidden row. As A is diagonal, no product and no
    /// linear combination of products leaves this subspace, and rounding does not either.
    BlockVector<T> blind_columns(const RowMap& map, int columns) {
        BlockVector<T> start(ctx, map, columns);
        fill_random(ctx, 5, start);
        const std::int64_t local = hidden_row - map.first_row();
        if (local >= 0 && local < map.local_rows()) {
            fill(ctx, T(0), start.view().row_range(local, 1));
        }
        return start;
    }

    static void expect_values(const EigenResult<T>& result, const std::vector<double>& exact) {
        ASSERT_EQ(result.eigenvalues.size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(result.eigenvalues[j], exact[j],
                        2 * result.tolerance * result.norm_estimate)
                << "eigenvalue " << j;
        }
    }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<double, std::complex<float>>;
TYPED_TEST_SUITE(MissingCopyTest, Scalars);

/// The search alone ends with the wrong pairs: a solve that stops when its verification begins
/// shows them. The whole solve has the hidden copy, so only the verification can have found it.
TYPED_TEST(MissingCopyTest, OnlyTheSearchOfTheComplementFindsIt) {
    using T = TypeParam;
    for (const Search& search : searches()) {
        SCOPED_TRACE(search.name);
        if (search.options.window && sizeof(real_t<T>) < sizeof(double)) {
            // The filtered columns are dependent up to rounding. Random columns replace some of
            // them, and may find the copy during the search.
            continue;
        }
        SparseMatrix<T> a = this->matrix(search.sign, search.with_b);
        SparseMatrix<T> b = test::matrix_from_rows<T>(
            this->ctx, rows, [](std::int64_t row, RowEntries<T>& entries) {
                entries.add(row, T(static_cast<real_t<T>>(mass_of(row))));
            });
        const BlockVector<T> start = this->blind_columns(a.row_map(), search.start);
        EigenProblem<T> problem{a};
        problem.b = search.with_b ? &b : nullptr;
        problem.start = start.view();

        EigenOptions options = search.options;
        int found = 0;
        options.keep_going = [&](const IterationEvent& event) {
            const bool verifies = std::string(event.stage) == "verify";
            found = verifies ? found : event.converged;
            return !verifies;
        };
        const EigenResult<T> alone = eigensolve(this->ctx, problem, options);
        EXPECT_EQ(alone.multiplicity, Multiplicity::unverified);
        EXPECT_FALSE(alone.converged);
        if (search.options.window) {
            // The result also has pairs that the first step of the verification has added, so only
            // the number of pairs before it is checked.
            EXPECT_EQ(found, static_cast<int>(search.without.size()));
        } else {
            this->expect_values(alone, search.without);
        }

        const EigenResult<T> whole = eigensolve(this->ctx, problem, search.options);
        EXPECT_EQ(whole.multiplicity, Multiplicity::verified);
        EXPECT_TRUE(whole.converged) << whole.message;
        this->expect_values(whole, search.with);
    }
}

/// The verification also completes candidates of the caller.
TYPED_TEST(MissingCopyTest, CandidatesThatMissACopyAreCompleted) {
    using T = TypeParam;
    SparseMatrix<T> a = this->matrix(1, false);
    const std::int64_t first = a.row_map().first_row();
    BlockVector<T> candidates(this->ctx, a.row_map(), 3);
    fill(this->ctx, T(0), candidates.view());
    for (int j = 0; j < 3; ++j) {
        if (j >= first && j < first + a.row_map().local_rows()) {
            fill(this->ctx, T(1), candidates.view().row_range(j - first, 1).columns(j, 1));
        }
    }
    EigenOptions options;
    options.k = 3;
    const EigenResult<T> result = verify_pairs<T>(this->ctx, EigenProblem<T>{a}, options,
                                                  std::as_const(candidates).view(), 10);
    EXPECT_EQ(result.multiplicity, Multiplicity::verified);
    EXPECT_TRUE(result.converged) << result.message;
    this->expect_values(result, {1, 1.5, 1.5});
}

/// If nothing is missing and the guard vectors have converged, the verifying filter damps fresh
/// columns to half of the limit, so that the first attempt succeeds: no sweep of a second attempt
/// is reported. A filter that is too weak would only cost products, which results do not show.
TEST(ChebyshevVerification, NeedsOneAttempt) {
    Context ctx = test::make_context();
    std::vector<double> values;
    values.reserve(4000);
    for (int i = 0; i < 4000; ++i) {
        values.push_back(i < 30 ? 1 + i : 40 + 0.01 * i);
    }
    SparseMatrix<double> a = test::diagonal<double>(ctx, values);
    for (const std::uint64_t seed : {1, 2, 3}) {
        EigenOptions options;
        options.method = Method::chebyshev;
        options.k = 4;
        options.max_basis = 16;
        options.seed = seed;
        int verifying = 0;
        options.keep_going = [&](const IterationEvent& event) {
            verifying += std::string(event.stage) == "verify" ? 1 : 0;
            return true;
        };
        const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(verifying, 0);
    }
}

/// The interval of the filter reaches beyond the far end of the spectrum: eigenvectors outside
/// would grow like the wanted ones and take their columns.
TEST(ChebyshevBound, IsBeyondTheFarEnd) {
    Context ctx = test::make_context();
    std::vector<double> values;
    values.reserve(3000);
    for (int i = 0; i < 3000; ++i) {
        values.push_back(-3 + 0.002 * i);
    }
    SparseMatrix<double> line = test::diagonal<double>(ctx, values);
    SparseMatrix<double> grid = test::laplace3d<double>(ctx, 13, 12, 11);
    const std::vector<double> of_grid = test::laplace3d_spectrum(13, 12, 11);
    for (const std::uint64_t seed : {1, 2, 3}) {
        for (const Which which : {Which::smallest, Which::largest}) {
            for (const bool is_line : {true, false}) {
                SCOPED_TRACE((is_line ? "line, seed " : "grid, seed ") + std::to_string(seed));
                const std::vector<double>& spectrum = is_line ? values : of_grid;
                EigenOptions options;
                options.method = Method::chebyshev;
                options.k = 4;
                options.which = which;
                options.seed = seed;
                options.keep_going = [](const IterationEvent&) { return false; };
                test::MemoryCheckpoint<double> checkpoint;
                EigenProblem<double> problem{is_line ? line : grid};
                problem.checkpoint = &checkpoint;
                eigensolve(ctx, problem, options);
                ASSERT_TRUE(checkpoint.kept.has_value());
                const double bound = checkpoint.kept->numbers.at("bound").at(0);
                const double end = which == Which::smallest ? spectrum.back() : -spectrum.front();
                EXPECT_GE(bound, end);
                EXPECT_LE(bound, end + 0.1 * (spectrum.back() - spectrum.front()));
            }
        }
    }
}

}  // namespace
}  // namespace quiver

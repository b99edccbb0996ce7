// SPDX-License-Identifier: BSD-3-Clause
// A solver that is stopped at any iteration and resumes from its state finds the same result as one
// that was not stopped, without repeating the earlier work.
#include "solvers/eigen/solver_state.hpp"

#include <algorithm>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/memory_checkpoint.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// Counts the columns that are multiplied.
template <class T>
class Counted : public Operator<T> {
  public:
    explicit Counted(Operator<T>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        columns += x.cols;
        a_.apply(ctx, x, y);
    }
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override {
        columns += x.cols;
        a_.apply_fused(ctx, x, y, options);
    }
    std::int64_t columns = 0;

  private:
    Operator<T>& a_;
};

struct Case {
    std::string name;
    EigenOptions options;
    bool with_b = false;
    /// True if the unknowns have units from 1 to 2^-30.
    bool has_units = false;
    /// True if the state is complete: resumed runs then make the same steps with the same bits.
    bool exact = true;
    /// Tested in double only.
    bool rare = false;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    const auto add = [&](const std::string& name, Method method, int k, bool exact) -> Case& {
        all.push_back({name, {}, false, false, exact, false});
        all.back().options.method = method;
        all.back().options.k = k;
        return all.back();
    };
    add("lanczos", Method::lanczos, 6, true);
    add("lanczos, largest", Method::lanczos, 7, true).options.which = Which::largest;
    add("chebyshev", Method::chebyshev, 6, true);
    Case& window = add("filter", Method::filter, 1, true);
    window.options.window = Window{3.0, 3.2};
    add("lobpcg", Method::lobpcg, 6, false);
    Case& locking = add("lobpcg that locks", Method::lobpcg, 12, false);
    locking.options.block = 5;
    add("lobpcg with B", Method::lobpcg, 5, false).with_b = true;
    Case& units = add("lobpcg with units", Method::lobpcg, 5, false);
    units.with_b = units.has_units = true;
    add("jd", Method::jacobi_davidson, 6, false);
    Case& target = add("jd at a target", Method::jacobi_davidson, 4, false);
    target.options.which = Which::target;
    target.options.target = 3.1;
    add("jd with B", Method::jacobi_davidson, 5, false).with_b = true;
    for (Case& which : all) {
        which.rare = which.name.find(' ') != std::string::npos;
    }
    return all;
}

template <class T>
class SolverStateTest : public ::testing::Test {
  protected:
    static constexpr int nx = 11;
    static constexpr int ny = 9;
    static constexpr int nz = 8;

    EigenResult<T> solve(const Case& which, Checkpoint<T>* checkpoint, std::int64_t reports) {
        EigenOptions options = which.options;
        std::int64_t seen = 0;
        std::int64_t last = 0;
        // If products are slow, the filter also reports within an iteration: ignores such events.
        options.keep_going = [&](const IterationEvent& event) {
            seen += std::exchange(last, event.iteration) != event.iteration ? 1 : 0;
            return seen < reports;
        };
        Counted<T> in_units(a_in_units);
        EigenProblem<T> problem{which.has_units ? in_units : counted};
        problem.checkpoint = checkpoint;
        if (which.with_b) {
            problem.b = which.has_units ? &b_in_units : &b;
        }
        counted.columns = 0;
        EigenResult<T> result = eigensolve(ctx, problem, options);
        reports_ = seen;
        counted.columns += in_units.columns;
        return result;
    }

    static double weight(std::int64_t row) { return 1 + 0.25 * static_cast<double>(row % 5); }
    static double unit(std::int64_t row) { return std::ldexp(1.0, -static_cast<int>(row % 31)); }

    void check(const Case& which, const EigenResult<T>& full, const EigenResult<T>& resumed) {
        EXPECT_TRUE(resumed.converged) << resumed.message;
        ASSERT_EQ(resumed.eigenvalues.size(), full.eigenvalues.size());
        for (std::size_t j = 0; j < full.eigenvalues.size(); ++j) {
            if (which.exact) {
                EXPECT_EQ(resumed.eigenvalues[j], full.eigenvalues[j]);
            } else {
                EXPECT_NEAR(resumed.eigenvalues[j], full.eigenvalues[j],
                            2 * full.tolerance * full.norm_estimate);
            }
        }
        if (which.exact) {
            EXPECT_EQ(resumed.iterations, full.iterations);
            EXPECT_EQ(resumed.operator_applications, full.operator_applications);
        }
        if (!which.with_b && !which.options.window && which.options.which != Which::target) {
            test::check_pairs(ctx, a, resumed, spectrum, which.options.k, which.options.which);
        }
    }

    static constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
    Context ctx = test::make_context();
    SparseMatrix<T> a = test::laplace3d<T>(ctx, nx, ny, nz);
    SparseMatrix<T> b =
        test::matrix_from_rows<T>(ctx, nx* ny* nz, [](std::int64_t row, RowEntries<T>& entries) {
            entries.add(row, T(static_cast<real_t<T>>(weight(row))));
        });
    SparseMatrix<T> a_in_units =
        test::matrix_from_rows<T>(ctx, nx* ny* nz, [](std::int64_t row, RowEntries<T>& entries) {
            for (const std::int64_t other : {row - 40, row - 1, row, row + 1, row + 40}) {
                if (other >= 0 && other < nx * ny * nz) {
                    const double value = other == row ? 4.1 : -1;
                    entries.add(other, T(static_cast<real_t<T>>(value * unit(row) * unit(other))));
                }
            }
        });
    SparseMatrix<T> b_in_units =
        test::matrix_from_rows<T>(ctx, nx* ny* nz, [](std::int64_t row, RowEntries<T>& entries) {
            entries.add(row, T(static_cast<real_t<T>>(weight(row) * unit(row) * unit(row))));
        });
    Counted<T> counted{a};
    std::vector<double> spectrum = test::laplace3d_spectrum(nx, ny, nz);
    std::int64_t reports_ = 0;
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SolverStateTest, Scalars, test::ScalarName);

TYPED_TEST(SolverStateTest, ResumesWhereItEnded) {
    using T = TypeParam;
    std::mt19937_64 generator = test::make_generator();
    for (const Case& which : cases()) {
        if (which.rare && !std::is_same_v<T, double>) {
            continue;
        }
        test::MemoryCheckpoint<T> never_used;
        const auto full = this->solve(which, &never_used, this->no_end);
        const std::int64_t reports = this->reports_;
        const std::int64_t columns = this->counted.columns;
        ASSERT_TRUE(full.converged) << which.name << ": " << full.message;
        ASSERT_GT(reports, 1) << which.name;
        EXPECT_GT(never_used.saves, 0) << which.name;
        std::uniform_int_distribution<std::int64_t> anywhere(1, reports - 1);
        for (const std::int64_t end : {anywhere(generator), reports - 1}) {
            SCOPED_TRACE(which.name + ", ends after report " + std::to_string(end) + " of " +
                         std::to_string(reports));
            test::MemoryCheckpoint<T> first;
            const auto cut = this->solve(which, &first, end);
            const std::int64_t before = this->counted.columns;
            if (cut.converged) {
                continue;  // the pairs found were sufficient
            }
            EXPECT_TRUE(cut.interrupted);
            ASSERT_TRUE(first.kept.has_value());
            test::MemoryCheckpoint<T> second(*first.kept);
            const auto resumed = this->solve(which, &second, this->no_end);
            this->check(which, full, resumed);
            // If all work were repeated, the two parts would need an additional whole run.
            EXPECT_LE(before + this->counted.columns, columns + columns / 2);
        }
    }
}

/// Interrupts a solve again and again, each time after 2 to 4 reports.
TYPED_TEST(SolverStateTest, ResumesFromAStateOfAResumedRun) {
    using T = TypeParam;
    if (!std::is_same_v<T, double>) {
        GTEST_SKIP() << "tested in double only";
    }
    for (const Case& which : cases()) {
        SCOPED_TRACE(which.name);
        const auto full = this->solve(which, nullptr, this->no_end);
        std::optional<test::KeptState<T>> kept;
        constexpr int most = 1000;
        for (int life = 0; life < most; ++life) {
            auto checkpoint = kept ? std::make_unique<test::MemoryCheckpoint<T>>(*kept)
                                   : std::make_unique<test::MemoryCheckpoint<T>>();
            const auto result = this->solve(which, checkpoint.get(), 2 + life % 3);
            if (result.converged) {
                this->check(which, full, result);
                break;
            }
            ASSERT_TRUE(checkpoint->kept.has_value()) << "life " << life;
            kept = std::move(checkpoint->kept);
            ASSERT_LT(life, most - 1);
        }
    }
}

TYPED_TEST(SolverStateTest, RefusesTheStateOfAnotherSolver) {
    using T = TypeParam;
    const std::vector<Case> all = cases();
    test::MemoryCheckpoint<T> first;
    this->solve(all[0], &first, 2);
    ASSERT_TRUE(first.kept.has_value());
    for (const Case& which : all) {
        if (which.options.method != Method::lanczos && which.options.method != Method::lobpcg) {
            test::MemoryCheckpoint<T> second(*first.kept);
            EXPECT_THROW(this->solve(which, &second, this->no_end), InputError) << which.name;
        }
    }
}

/// Keeps every state.
class EveryState : public test::MemoryCheckpoint<double> {
  public:
    using test::MemoryCheckpoint<double>::MemoryCheckpoint;
    void save(Context& ctx, const SolverState<double>& state) override {
        test::MemoryCheckpoint<double>::save(ctx, state);
        all.push_back(*kept);
    }
    std::vector<test::KeptState<double>> all;
};

class SavedAgainTest : public SolverStateTest<double> {
  protected:
    using Kept = test::KeptState<double>;

    /// The largest distance of a column of x, scaled to length 1, from the span of y.
    double distance(const Kept::Block& x, const Kept::Block& y) {
        const auto load = [&](const Kept::Block& from, BlockVector<double>& to) {
            to = BlockVector<double>(ctx, a.row_map(), from.cols);
            copy(ctx,
                 BlockView<const double>(from.values.data(), to.view().rows, from.cols, from.cols),
                 to.view());
        };
        BlockVector<double> columns;
        BlockVector<double> span;
        load(x, columns);
        load(y, span);
        std::vector<double> before(static_cast<std::size_t>(x.cols));
        std::vector<double> after(static_cast<std::size_t>(x.cols));
        norms(ctx, std::as_const(columns).view(), std::span<double>(before));
        block_gram_schmidt<double>(ctx, a.row_map(), span.view().columns(0, 0), span.view(), {});
        for (int pass = 0; pass < 2; ++pass) {
            SmallMatrix<double> share(y.cols, x.cols);
            tsmttsm<double>(ctx, 1, span.view(), columns.view(), 0, share);
            tsmm<double>(ctx, -1, span.view(), share.view(), 1, columns.view());
        }
        norms(ctx, std::as_const(columns).view(), std::span<double>(after));
        double worst = 0;
        for (std::size_t j = 0; j < before.size(); ++j) {
            worst = std::max(worst, after[j] / before[j]);
        }
        return worst;
    }

    void compare_blocks(const Case& which, const Kept& first, const Kept& second) {
        ASSERT_EQ(first.blocks.size(), second.blocks.size());
        for (const auto& [name, block] : first.blocks) {
            SCOPED_TRACE("block " + name);
            const auto other = second.blocks.find(name);
            ASSERT_NE(other, second.blocks.end());
            if (which.exact || name.starts_with("pencil_")) {
                EXPECT_EQ(block.cols, other->second.cols);
                EXPECT_EQ(block.values, other->second.values);
                continue;
            }
            const int dropped = drops_p(first) && name == "basis" ? number(first, "p") : 0;
            ASSERT_EQ(block.cols - dropped, other->second.cols);
            if (other->second.cols > 0) {
                // A restored block is orthonormalised again: its space is the same up to rounding.
                EXPECT_LE(distance(other->second, block), 1e-11);
            }
        }
    }

    static int number(const Kept& state, const std::string& name) {
        return static_cast<int>(state.numbers.at(name).at(0));
    }
    /// During its verification LOBPCG needs no P and does not restore it.
    static bool drops_p(const Kept& state) {
        return state.solver == "lobpcg" && number(state, "verifying") == 1;
    }
    /// LOBPCG saves after it has locked pairs; restoring fills X from [X P].
    static bool refills_x(const Kept& state) {
        return state.solver == "lobpcg" && number(state, "x") < number(state, "width");
    }
    /// Streams of random numbers and counts of products may grow only if restoring uses random
    /// columns or products.
    static bool may_grow(const Case& which, const std::string& name) {
        return !which.exact && (name == "random_streams" || name == "spaces" ||
                                name == "verifications" || name == "lobpcg_applications");
    }
    void compare_number(const Case& which, const Kept& first, const std::string& name,
                        const std::vector<double>& before, const std::vector<double>& after) {
        SCOPED_TRACE("number " + name);
        if (may_grow(which, name)) {
            EXPECT_GE(after.at(0), before.at(0));
        } else if (!which.exact && name.ends_with("norm")) {
            // A lower bound of a norm: products of the restored columns may raise it.
            EXPECT_GE(after.at(0), before.at(0));
            EXPECT_LE(after.at(0), 1.05 * before.at(0));
        } else if (name == "p" && drops_p(first)) {
            EXPECT_EQ(after, std::vector<double>{0});
        } else if ((name == "x" || name == "p") && refills_x(first)) {
            return;  // compare() checks their sum
        } else {
            EXPECT_EQ(after, before);
        }
    }
    void compare(const Case& which, const Kept& first, const Kept& second) {
        EXPECT_EQ(first.solver, second.solver);
        EXPECT_EQ(first.numbers.size(), second.numbers.size());
        for (const auto& [name, values] : first.numbers) {
            const auto other = second.numbers.find(name);
            ASSERT_NE(other, second.numbers.end()) << name;
            compare_number(which, first, name, values, other->second);
        }
        if (refills_x(first) && !drops_p(first)) {
            EXPECT_EQ(number(first, "x") + number(first, "p"),
                      number(second, "x") + number(second, "p"));
        }
        ASSERT_EQ(first.matrices.size(), second.matrices.size());
        for (const auto& [name, matrix] : first.matrices) {
            SCOPED_TRACE("matrix " + name);
            const auto other = second.matrices.find(name);
            ASSERT_NE(other, second.matrices.end());
            ASSERT_EQ(matrix.rows(), other->second.rows());
            ASSERT_EQ(matrix.cols(), other->second.cols());
            for (int i = 0; i < matrix.rows(); ++i) {
                for (int j = 0; j < matrix.cols(); ++j) {
                    EXPECT_EQ(matrix(i, j), other->second(i, j)) << i << ", " << j;
                }
            }
        }
        compare_blocks(which, first, second);
    }
};

/// A solve of at most one iteration restores a state and saves it again: every field must be the
/// same.
TEST_F(SavedAgainTest, EveryFieldIsAsItWas) {
    for (const Case& which : cases()) {
        EveryState states;
        const auto full = solve(which, &states, no_end);
        // The filter converges in the two sweeps that always follow each other.
        ASSERT_GE(states.all.size(), which.options.window ? 1u : 2u) << which.name;
        const std::size_t last = states.all.size() - 1;
        std::vector<std::size_t> places{last / 3, 2 * last / 3, last};
        // A solve out of iterations may also end between two Ritz procedures.
        for (const std::int64_t part : {3, 2}) {
            Case cut = which;
            cut.options.max_iterations = std::max<std::int64_t>(1, full.iterations / part);
            EveryState cut_states;
            solve(cut, &cut_states, no_end);
            ASSERT_FALSE(cut_states.all.empty()) << which.name;
            states.all.push_back(std::move(cut_states.all.back()));
            places.push_back(states.all.size() - 1);
        }
        Case at_once = which;
        at_once.options.max_iterations = 1;
        for (const std::size_t place : places) {
            SCOPED_TRACE(which.name + ", state " + std::to_string(place) + " of " +
                         std::to_string(last));
            EveryState again(states.all[place]);
            solve(at_once, &again, no_end);
            ASSERT_FALSE(again.all.empty());
            compare(which, states.all[place], again.all.front());
        }
    }
}

/// Restores numbers that the solves of the test above leave at their initial values, or that later
/// steps hardly need.
TEST_F(SavedAgainTest, ChebyshevKeepsItsReachAndItsFailedAttempts) {
    Case which{"chebyshev", {}};
    which.options.method = Method::chebyshev;
    which.options.k = 6;
    EveryState states;
    solve(which, &states, no_end);
    ASSERT_FALSE(states.all.empty());
    Kept state = states.all.back();
    ASSERT_TRUE(state.numbers.contains("reach") && state.numbers.contains("failed_attempts"));
    state.numbers["reach"] = {0.25};
    state.numbers["failed_attempts"] = {7};
    which.options.max_iterations = 1;
    EveryState again(state);
    solve(which, &again, no_end);
    ASSERT_FALSE(again.all.empty());
    compare(which, state, again.all.front());
}

/// A solve out of iterations may end between two Ritz procedures. The resumed solve makes the next
/// Ritz procedure at the same step as a solve without interruption.
TEST_F(SavedAgainTest, RitzProceduresStayAtTheirSteps) {
    for (const Case& which : cases()) {
        if (which.options.method != Method::lanczos) {
            continue;
        }
        const auto full = solve(which, nullptr, no_end);
        ASSERT_GT(full.iterations, 10) << which.name;
        for (std::int64_t end = 1; end < full.iterations; ++end) {
            SCOPED_TRACE(which.name + ", ends after step " + std::to_string(end));
            Case cut = which;
            cut.options.max_iterations = end;
            test::MemoryCheckpoint<double> first;
            solve(cut, &first, no_end);
            ASSERT_TRUE(first.kept.has_value());
            test::MemoryCheckpoint<double> second(*first.kept);
            check(which, full, solve(which, &second, no_end));
        }
    }
}

/// A state with meaningless numbers is refused, or the solver ends regularly: it does not hang or
/// access invalid memory.
TEST(SolverState, SurvivesAnyNumber) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 11, 9, 8);
    int refused = 0;
    for (const Case& which : cases()) {
        if (which.with_b) {
            continue;
        }
        EigenOptions options = which.options;
        std::int64_t seen = 0;
        options.keep_going = [&](const IterationEvent&) { return ++seen < 5; };
        EigenProblem<double> problem{a};
        test::MemoryCheckpoint<double> first;
        problem.checkpoint = &first;
        eigensolve(ctx, problem, options);
        ASSERT_TRUE(first.kept.has_value()) << which.name;
        for (const auto& [name, values] : first.kept->numbers) {
            for (const double value : {-7.0, 0.5, 3.0, 1e300}) {
                SCOPED_TRACE(which.name + ": " + name + " = " + std::to_string(value));
                test::KeptState<double> changed = *first.kept;
                changed.numbers[name] = {value};
                test::MemoryCheckpoint<double> second(changed);
                problem.checkpoint = &second;
                seen = 0;
                try {
                    eigensolve(ctx, problem, options);
                } catch (const Error& error) {
                    EXPECT_TRUE(error.collective()) << error.what();
                    ++refused;
                }
            }
        }
    }
    EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace quiver

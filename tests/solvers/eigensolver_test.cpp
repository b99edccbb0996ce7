// SPDX-License-Identifier: BSD-3-Clause
// The common features of all eigensolvers: start and constraint vectors, early stops, candidates of
// one solver verified by another.
#include "solvers/eigen/eigensolver.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/search/block_memory.hpp"
#include "solvers/eigen/search/verification.hpp"
#include "solvers/eigen/search/verified_search.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class EigensolverTest : public ::testing::Test {
  protected:
    EigenResult<T> solve(EigenProblem<T> problem, EigenOptions options) {
        return eigensolve(ctx, problem, options);
    }

    Context ctx = test::make_context();
    SparseMatrix<T> a = test::laplace3d<T>(ctx, 11, 9, 8);
    std::vector<double> spectrum = test::laplace3d_spectrum(11, 9, 8);
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(EigensolverTest, Scalars);

EigenOptions smallest(int k, Method method = Method::automatic) {
    EigenOptions options;
    options.k = k;
    options.method = method;
    return options;
}

TYPED_TEST(EigensolverTest, AutomaticReportsItsChoiceAndTheReason) {
    const auto result = this->solve({this->a}, smallest(6));
    test::check_pairs(this->ctx, this->a, result, this->spectrum, 6, Which::smallest);
    EXPECT_NE(result.method, Method::automatic);
    EXPECT_NE(result.method_reason, "");
}

TYPED_TEST(EigensolverTest, ConstraintsShiftTheWantedSet) {
    using T = TypeParam;
    for (const Which which : {Which::smallest, Which::largest}) {
        EigenOptions options = smallest(7, Method::lanczos);
        options.which = which;
        const auto first = this->solve({this->a}, options);
        EigenProblem<T> rest{this->a};
        rest.constraints = first.vectors.view();
        options.k = 5;
        const auto second = this->solve(rest, options);
        std::vector<double> left = this->spectrum;
        const auto begin = which == Which::smallest ? left.begin() : left.end() - 7;
        left.erase(begin, begin + 7);
        test::check_pairs(this->ctx, this->a, second, left, 5, which);
        SmallMatrix<T> overlap(7, 5);
        tsmttsm(this->ctx, T(1), BlockView<const T>(first.vectors.view()),
                BlockView<const T>(second.vectors.view()), T(0), overlap);
        for (int i = 0; i < 7; ++i) {
            for (int j = 0; j < 5; ++j) {
                EXPECT_LE(std::abs(overlap(i, j)), 100 * epsilon_v<T>) << i << ", " << j;
            }
        }
    }
}

/// With constraints that are not eigenvectors the result has pairs of P A P, whose spectrum
/// interlaces with that of A. For A = diag(1, .., 20) and the constraint e_19 + e_20 the largest
/// eigenvalue is 19.5, with the vector (e_19 - e_20) / sqrt(2).
TYPED_TEST(EigensolverTest, ConstraintsThatAreNoEigenvectorsProject) {
    using T = TypeParam;
    std::vector<double> values;
    for (int i = 1; i <= 20; ++i) {
        values.push_back(i);
    }
    auto a = test::diagonal<T>(this->ctx, values);
    SmallMatrix<T> sum(static_cast<int>(a.row_map().local_rows()), 1);
    for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
        sum(static_cast<int>(i), 0) = T(a.row_map().first_row() + i >= 18 ? 3 : 0);
    }
    BlockVector<T> constraint(this->ctx, a.row_map(), 1);
    copy(this->ctx, sum.view(), constraint.view());
    EigenProblem<T> problem{a};
    problem.constraints = std::as_const(constraint).view();
    EigenOptions options = smallest(3, Method::lanczos);
    options.which = Which::largest;
    const auto result = this->solve(problem, options);
    EXPECT_TRUE(result.converged) << result.message;
    const std::vector<double> exact{17, 18, 19.5};
    ASSERT_EQ(result.eigenvalues.size(), 3u);
    for (std::size_t j = 0; j < 3; ++j) {
        EXPECT_NEAR(result.eigenvalues[j], exact[j], 20 * result.tolerance + 200 * epsilon_v<T>);
    }
}

TYPED_TEST(EigensolverTest, StartVectorsDependentExactOrMany) {
    using T = TypeParam;
    const EigenOptions options = smallest(6, Method::lanczos);
    const auto plain = this->solve({this->a}, options);
    const BlockView<const T> x = std::as_const(plain.vectors).view();
    BlockVector<T> twice(this->ctx, this->a.row_map(), 12);
    const std::vector<int> order{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5};
    gather_columns(this->ctx, x, order, twice.view());
    for (const BlockView<const T> start :
         {x, x.columns(0, 1), std::as_const(twice).view(), std::as_const(twice).columns(5, 3)}) {
        EigenProblem<T> problem{this->a};
        problem.start = start;
        const auto result = this->solve(problem, options);
        test::check_pairs(this->ctx, this->a, result, this->spectrum, 6, Which::smallest);
    }
    fill(this->ctx, T(0), twice.view());
    EigenProblem<T> zero{this->a};
    zero.start = std::as_const(twice).view();
    test::check_pairs(this->ctx, this->a, this->solve(zero, options), this->spectrum, 6,
                      Which::smallest);
}

TYPED_TEST(EigensolverTest, ExactStartVectorsSaveProducts) {
    using T = TypeParam;
    EigenOptions options = smallest(4, Method::lanczos);
    options.block = 4;
    const auto plain = this->solve({this->a}, options);
    EigenProblem<T> problem{this->a};
    problem.start = plain.vectors.view();
    EXPECT_LT(this->solve(problem, options).operator_applications, plain.operator_applications);
}

TYPED_TEST(EigensolverTest, AnEarlyStopIsAResultOnAllRanks) {
    for (const int asks : {0, this->ctx.comm().size() - 1}) {
        EigenOptions options = smallest(9, Method::lanczos);
        int calls = 0;
        options.keep_going = [&](const IterationEvent& event) {
            EXPECT_GT(event.iteration, 0);
            ++calls;
            return calls < 2 || this->ctx.comm().rank() != asks;
        };
        const auto result = this->solve({this->a}, options);
        EXPECT_EQ(calls, 2);
        EXPECT_TRUE(result.interrupted);
        EXPECT_FALSE(result.converged);
        EXPECT_NE(result.message.find("interrupted after"), std::string::npos) << result.message;
        EXPECT_EQ(result.eigenvalues.size(), result.residuals.size());
        EXPECT_EQ(static_cast<std::size_t>(result.vectors.width()), result.eigenvalues.size());
        const auto residuals = test::fresh_residuals(this->ctx, this->a, result);
        for (std::size_t j = 0; j < residuals.size(); ++j) {
            EXPECT_NEAR(residuals[j], result.residuals[j],
                        1e-3 * residuals[j] + 300 * epsilon_v<TypeParam>);
        }
    }
}

TYPED_TEST(EigensolverTest, ACallbackThatThrowsEndsAllRanks) {
    const int failing = this->ctx.comm().size() - 1;
    EigenOptions options = smallest(5);
    options.keep_going = [&](const IterationEvent&) -> bool {
        if (this->ctx.comm().rank() == failing) {
            throw std::runtime_error("enough");
        }
        return true;
    };
    EXPECT_THROW(this->solve({this->a}, options), std::runtime_error);
}

TYPED_TEST(EigensolverTest, CandidatesAreVerifiedAndMissingCopiesFound) {
    using T = TypeParam;
    auto cube = test::laplace3d<T>(this->ctx, 9, 9, 9);
    const auto exact = test::laplace3d_spectrum(9, 9, 9);
    EigenOptions options = smallest(11, Method::lanczos);
    const auto all = this->solve({cube}, options);
    const BlockView<const T> x = std::as_const(all.vectors).view();
    const double norm = all.norm_estimate;
    // Candidates: all pairs; a copy of the second eigenvalue replaced by an unwanted vector; only a
    // few pairs.
    BlockVector<T> wrong(this->ctx, cube.row_map(), 11);
    const std::vector<int> order{0, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    gather_columns(this->ctx, x, order, wrong.view());
    fill_random(this->ctx, 7, cube.row_map().first_row(), 0, wrong.columns(1, 1));
    options.k = 8;
    options.method = Method::automatic;
    for (const BlockView<const T> candidates :
         {x, std::as_const(wrong).view(), x.columns(0, 3), x.columns(1, 9)}) {
        const auto result =
            verify_pairs(this->ctx, EigenProblem<T>{cube}, options, candidates, norm);
        test::check_pairs(this->ctx, cube, result, exact, 8, Which::smallest);
        EXPECT_TRUE(result.cluster_cut);
    }
}

TYPED_TEST(EigensolverTest, InvalidInputIsAnInputError) {
    using T = TypeParam;
    const auto some = this->solve({this->a}, smallest(3));
    BlockVector<T> twice(this->ctx, this->a.row_map(), 4);
    const std::vector<int> order{0, 1, 2, 1};
    gather_columns(this->ctx, std::as_const(some.vectors).view(), order, twice.view());
    EigenProblem<T> dependent{this->a};
    dependent.constraints = std::as_const(twice).view();
    EXPECT_THROW(this->solve(dependent, smallest(2, Method::lanczos)), InputError);

    EigenProblem<T> shapes{this->a};
    shapes.start = std::as_const(twice).view().row_range(0, twice.rows() > 0 ? 1 : 0);
    EXPECT_THROW(this->solve(shapes, smallest(2)), ShapeError);

    EigenProblem<T> narrow{this->a};
    narrow.constraints = std::as_const(some.vectors).view();
    const auto rows = static_cast<int>(this->a.row_map().global_rows());
    EXPECT_THROW(this->solve(narrow, smallest(rows - 2)), InputError);
}

/// Expects an error on all ranks with the text `words` if the last rank changes its options or
/// problem.
template <class Change>
void expect_disagreement(const char* words, Method method, Change&& change) {
    using T = double;
    Context ctx = test::make_context();
    SparseMatrix<T> a = test::laplace3d<T>(ctx, 5, 4, 3);
    BlockVector<T> start(ctx, a.row_map(), 2);
    fill_random(ctx, 3, start);
    EigenProblem<T> problem{a};
    EigenOptions options = smallest(4, method);
    if (ctx.comm().rank() == ctx.comm().size() - 1) {
        change(options, problem, start);
    }
    try {
        eigensolve(ctx, problem, options);
        EXPECT_EQ(ctx.comm().size(), 1) << words;
    } catch (const InputError& error) {
        EXPECT_TRUE(error.collective());
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        EXPECT_GT(ctx.comm().size(), 1);
    }
}

TEST(Eigensolver, OptionsThatDifferOverTheRanksAreNamed) {
    using Start = BlockVector<double>;
    using Problem = EigenProblem<double>;
    const auto expect = [](const char* words, auto&& set) {
        for (const Method method : {Method::automatic, Method::lanczos, Method::chebyshev}) {
            expect_disagreement(words, method, [&](EigenOptions& o, Problem&, Start&) { set(o); });
        }
    };
    expect("disagree on k: smallest 4, largest 6", [](EigenOptions& o) { o.k = 6; });
    expect("disagree on block: smallest 0, largest 2", [](EigenOptions& o) { o.block = 2; });
    expect("disagree on tol: smallest 1e-10, largest 1e-08", [](EigenOptions& o) { o.tol = 1e-8; });
    expect("disagree on which: smallest smallest, largest largest",
           [](EigenOptions& o) { o.which = Which::largest; });
    expect("disagree on seed: smallest 1, largest 18446744073709551615",
           [](EigenOptions& o) { o.seed = ~std::uint64_t{0}; });
    expect("disagree on target: smallest -0.5, largest 0",
           [](EigenOptions& o) { o.target = -0.5; });
    expect("disagree on max_iterations: smallest 0, largest 9000",
           [](EigenOptions& o) { o.max_iterations = 9000; });
    expect("disagree on max_seconds: smallest 0, largest 1.5",
           [](EigenOptions& o) { o.max_seconds = 1.5; });
    expect("disagree on max_basis: smallest 0, largest 30",
           [](EigenOptions& o) { o.max_basis = 30; });
    expect_disagreement("disagree on method: smallest lanczos, largest lobpcg", Method::lanczos,
                        [](EigenOptions& o, Problem&, Start&) { o.method = Method::lobpcg; });
    expect_disagreement("disagree on keep_going (whether it is given): smallest no, largest yes",
                        Method::automatic, [](EigenOptions& o, Problem&, Start&) {
                            o.keep_going = [](const IterationEvent&) { return true; };
                        });
    expect_disagreement("disagree on start (its columns): smallest 0, largest 2", Method::lanczos,
                        [](EigenOptions&, Problem& problem, Start& start) {
                            problem.start = std::as_const(start).view();
                        });
    // The other ranks have no window; a single rank has one, so that its solve is valid.
    EigenOptions window = smallest(4, Method::filter);
    window.window = Window{0, 1};
    expect_disagreement("disagree on window (whether it is given): smallest no, largest yes",
                        Method::filter, [&](EigenOptions& o, Problem&, Start&) { o = window; });
}

/// A search that finds nothing: `progress` gives the number of pairs and the residual of each step.
class Idle final : public VerifiedSearch<double> {
  public:
    using Progress = std::function<std::pair<int, double>(std::int64_t)>;
    Idle(Context& ctx, const EigenProblem<double>& problem, const EigenOptions& options,
         Method method, Progress progress)
        : VerifiedSearch(ctx, problem, options, {method, "steps"}),
          progress_(std::move(progress)) {}

  private:
    void begin() override {}
    bool found() override { return false; }
    void extend() override {
        const auto [pairs, residual] = progress_(++steps_);
        report(pairs, residual, "search");
    }
    int give_up() override { return 0; }
    std::vector<RitzPair> pairs() override { return {}; }
    void extract(const std::vector<int>& /*order*/, BlockView<double> /*y*/) override {}
    void refine_pairs() override {}
    bool search_again() override { return false; }
    void begin_complement() override {}
    ComplementVerdict complement() override { return ComplementVerdict::outside; }
    void extend_complement() override {}
    void save(SolverState<double>& /*state*/) override {}
    void restore(const SavedState<double>& /*state*/) override {}
    std::int64_t iterations() const override { return steps_; }
    void describe(EigenResult<double>& /*result*/) const override {}
    double norm() const override { return 1; }

    Progress progress_;
    std::int64_t steps_ = 0;
};

TEST(VerifiedSearch, WithoutALimitItEndsWithoutProgress) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 9, 1, 1);
    const EigenProblem<double> problem{a};
    const auto steps = [&](const Idle::Progress& progress, Method method = Method::lanczos,
                           std::int64_t most = 0) {
        EigenOptions options = smallest(4, method);
        options.max_iterations = most;
        const auto result = Idle(ctx, problem, options, method, progress).run();
        EXPECT_FALSE(result.converged);
        EXPECT_FALSE(result.interrupted);
        EXPECT_EQ(result.message.find("without progress") == std::string::npos, most > 0)
            << result.message;
        return result.iterations;
    };
    const auto still = [](std::int64_t) { return std::pair(0, 0.1); };
    EXPECT_EQ(steps(still), 5001);
    EXPECT_EQ(steps(still, Method::filter), 51);
    EXPECT_EQ(steps(still, Method::lanczos, 7), 7);
    // Three pairs converge, one every 4900 steps; the residual grows meanwhile.
    EXPECT_EQ(steps([](std::int64_t step) {
                  return std::pair(static_cast<int>(std::min<std::int64_t>(3, step / 4900)),
                                   static_cast<double>(step));
              }),
              14700 + 14700 / 2);
    // The residual halves every 4000 steps, six times.
    EXPECT_EQ(steps([](std::int64_t step) {
                  return std::pair(0, std::exp2(-std::min<double>(
                                          6, std::floor(static_cast<double>(step) / 4000))));
              }),
              24000 + 12000);
    EXPECT_EQ(
        steps([](std::int64_t step) { return std::pair(0, 1 + 1.0 / static_cast<double>(step)); }),
        5001);
}

/// Appends the texts of all notices to `notes`.
void collect_notices(Context& ctx, std::vector<std::string>& notes) {
    ctx.set_event_sink([&notes](const Event& event) {
        if (const auto* notice = std::get_if<NoticeEvent>(&event)) {
            notes.push_back(notice->text);
        }
    });
}

TEST(VerifiedSearch, BlocksOfAGigabyteAreAnnounced) {
    std::vector<std::string> notes;
    Context ctx = test::make_context();
    collect_notices(ctx, notes);
    const int ranks = ctx.comm().size();
    const RowMap map = RowMap::by_local_rows(ctx.comm(), 1000000);
    claim_block_memory<double>(ctx, map, 124, "the test: blocks");
    EXPECT_TRUE(notes.empty());
    claim_block_memory<double>(ctx, map, 126, "the test: blocks");
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0], std::string("the test: blocks of 126 columns take 1008 MB") +
                            (ranks > 1 ? " on a rank" : ""));
    if (ctx.place() == Place::host) {
        EXPECT_THROW(claim_block_memory<double>(ctx, map, 2000000000, "the test: blocks"),
                     MemoryError);
    }
}

TEST(Eigensolver, OptionsThatAMethodDoesNotUseAreAnnounced) {
    std::vector<std::string> notes;
    Context ctx = test::make_context();
    collect_notices(ctx, notes);
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 5, 4, 3);
    EigenOptions options = smallest(2, Method::dense);
    options.block = 2;
    options.max_basis = 20;
    options.inner = InnerSolver::gmres;
    eigensolve<double>(ctx, {a}, options);
    options.method = Method::lobpcg;
    eigensolve<double>(ctx, {a}, options);
    options.method = Method::lanczos;
    eigensolve<double>(ctx, {a}, options);
    options.method = Method::jacobi_davidson;
    options.which = Which::largest;
    eigensolve<double>(ctx, {a}, options);
    EXPECT_EQ(notes, (std::vector<std::string>{"dense does not use max_basis, block, inner",
                                               "lobpcg does not use max_basis, inner",
                                               "lanczos does not use inner"}));
}

TEST(VerifiedSearch, LaterSolvesGetTheRestOfTheSeconds) {
    Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    EigenOptions options;
    EXPECT_EQ(remaining_seconds(comm, options, 5), 0);
    options.max_seconds = 3;
    EXPECT_EQ(remaining_seconds(comm, options, comm.rank() == comm.size() - 1 ? 1 : 0.9), 2);
    EXPECT_GT(remaining_seconds(comm, options, 5), 0);
    EXPECT_LT(remaining_seconds(comm, options, 5), 0.01);
}

/// Every rank has a clock of its own, but the solvers accept one limit only.
TEST(VerifiedSearch, AllRanksGiveLaterSolvesTheSameSeconds) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 9, 1, 1);
    EigenOptions options = smallest(2, Method::lanczos);
    options.which = Which::both_ends;
    options.max_seconds = 1000;
    const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.eigenvalues.size(), 2u);
}

TEST(VerifiedSearch, SecondsEndASolveOnAllRanks) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 9, 1, 1);
    EigenOptions options = smallest(4, Method::lanczos);
    options.max_seconds = 0.05;
    const auto result =
        Idle(ctx, EigenProblem<double>{a}, options, Method::lanczos, [](std::int64_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return std::pair(0, 0.1);
        }).run();
    EXPECT_TRUE(result.interrupted);
    EXPECT_LE(result.iterations, 51);
    EXPECT_NE(result.message.find("ended by the limit of time (max_seconds) after"),
              std::string::npos)
        << result.message;
}

}  // namespace
}  // namespace quiver

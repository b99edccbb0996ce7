// SPDX-License-Identifier: BSD-3-Clause
// Reordered matrices: the permutation of entries and blocks, the counted halos, the choices of
// plan_reordering(), and solves whose results have the user's numbering.
#include "kernels/sparse/reordering.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/row_graph.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

bool has_scotch() {
    return std::string(scotch_version()) != "";
}

std::vector<std::int64_t> random_permutation(std::mt19937_64& generator, std::int64_t rows) {
    std::vector<std::int64_t> permutation(static_cast<std::size_t>(rows));
    std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
    std::shuffle(permutation.begin(), permutation.end(), generator);
    return permutation;
}

/// The part of a global vector that this rank owns.
std::vector<std::int64_t> own_part(const RowMap& map, const std::vector<std::int64_t>& all) {
    return {all.begin() + map.first_row(), all.begin() + map.first_row() + map.local_rows()};
}

/// The Dirichlet Laplacian of an nx x ny grid in which grid point i is row number[i].
struct ShuffledGrid {
    int nx;
    int ny;
    std::vector<std::int64_t> number;
    std::vector<std::int64_t> point;

    ShuffledGrid(int nx_, int ny_, std::mt19937_64& generator)
        : nx(nx_),
          ny(ny_),
          number(random_permutation(generator, std::int64_t{nx_} * ny_)),
          point(number.size()) {
        for (std::size_t i = 0; i < number.size(); ++i) {
            point[static_cast<std::size_t>(number[i])] = static_cast<std::int64_t>(i);
        }
    }
    std::int64_t rows() const { return std::ssize(number); }

    template <class T>
    CsrRows<T> make(const Comm& comm, Partition partition = Partition::by_nonzeros) const {
        return rows_from_callback<T>(
            comm, rows(), is_complex_v<T> ? Symmetry::hermitian : Symmetry::symmetric,
            [&](std::int64_t row, RowEntries<T>& entries) {
                const std::int64_t at = point[static_cast<std::size_t>(row)];
                const std::int64_t x = at % nx;
                const std::int64_t y = at / nx;
                const auto add = [&](std::int64_t to, bool inside) {
                    if (inside) {
                        entries.add(number[static_cast<std::size_t>(to)], T(-1));
                    }
                };
                entries.add(row, T(4));
                add(at - 1, x > 0);
                add(at + 1, x + 1 < nx);
                add(at - nx, y > 0);
                add(at + nx, y + 1 < ny);
            },
            partition);
    }
    std::vector<double> spectrum() const {
        std::vector<double> values;
        const auto line = [](int n, int i) {
            const double s = std::sin(0.5 * std::numbers::pi * (i + 1) / (n + 1));
            return 4 * s * s;
        };
        for (int i = 0; i < nx; ++i) {
            for (int j = 0; j < ny; ++j) {
                values.push_back(line(nx, i) + line(ny, j));
            }
        }
        std::sort(values.begin(), values.end());
        return values;
    }
};

template <class T>
class ReorderedRows : public ::testing::Test {};
TYPED_TEST_SUITE(ReorderedRows, test::Scalars, test::ScalarName);

TYPED_TEST(ReorderedRows, HaveThePermutedEntries) {
    using T = TypeParam;
    const Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    constexpr std::int64_t n = 83;
    test::Dense dense(n, n);
    for (std::complex<double>& value : dense.values) {
        value = generator() % 7 == 0 ? test::integer_value<std::complex<double>>(generator) : 0;
        value = is_complex_v<T> ? value : value.real();
    }
    // Some ranks have no rows before, others have none afterwards.
    std::vector<double> weights(static_cast<std::size_t>(comm.size()), 1.0);
    weights.back() = comm.size() > 1 ? 0.0 : 1.0;
    const CsrRows<T> rows =
        rows_from_callback<T>(comm, n, Symmetry::general,
                              [&](std::int64_t row, RowEntries<T>& entries) {
                                  for (std::int64_t column = 0; column < n; ++column) {
                                      if (dense(row, column) != 0.0) {
                                          entries.add(column, test::narrow<T>(dense(row, column)));
                                      }
                                  }
                              },
                              {Partition::by_rows, weights});
    const std::vector<std::int64_t> to = random_permutation(generator, n);
    const Reordering reordering(comm, rows.map, test::uneven_map(ctx, n), own_part(rows.map, to));
    EXPECT_TRUE(reordering.moves_rows());
    const CsrRows<T> moved = reordering.permute(comm, rows);
    EXPECT_EQ(moved.map, reordering.solver_map());
    EXPECT_EQ(moved.symmetry, Symmetry::general);
    const test::Dense result = test::gather_dense(comm, moved);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            ASSERT_EQ(result(to[static_cast<std::size_t>(i)], to[static_cast<std::size_t>(j)]),
                      dense(i, j))
                << i << ' ' << j;
        }
    }
}

TYPED_TEST(ReorderedRows, MoveTheRowsOfBlocksThereAndBack) {
    using T = TypeParam;
    Context ctx = test::make_context();
    auto generator = test::make_generator();
    constexpr std::int64_t n = 113;
    const std::vector<std::int64_t> to = random_permutation(generator, n);
    // With two ranks, rank 1 has no rows before.
    const RowMap map = test::uneven_map(ctx, n);
    const Reordering reordering(ctx.comm(), map, RowMap::by_rows(ctx.comm(), n), own_part(map, to));
    for (const int width : {1, 5}) {
        const auto values = test::random_global<T>(generator, n, width);
        test::TestBlock<T> x(ctx, values, map, test::any_layout(generator));
        test::TestBlock<T> y(ctx, test::poisoned_global<T>(n, width), reordering.solver_map(),
                             test::any_layout(generator));
        reordering.to_solver(ctx, x.const_view(), y.view());
        x.expect_unchanged();
        const test::Global<T> moved = y.result();
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t row = to[static_cast<std::size_t>(i)];
            for (int j = 0; j < width && reordering.solver_map().owner(row) == map.rank(); ++j) {
                ASSERT_EQ(moved(row - reordering.solver_map().first_row(), j), values(i, j));
            }
        }
        test::TestBlock<T> back(ctx, test::poisoned_global<T>(n, width), map,
                                test::any_layout(generator));
        reordering.to_user(ctx, y.const_view(), back.view());
        const BlockVector<T> block = reordering.to_user<T>(ctx, y.const_view());
        EXPECT_EQ(block.place(), Place::host);
        EXPECT_EQ(block.row_map(), map);
        const test::Global<T> result = back.result();
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            for (int j = 0; j < width; ++j) {
                ASSERT_EQ(result(i, j), values(map.first_row() + i, j));
                ASSERT_EQ(block.view()(i, j), values(map.first_row() + i, j));
            }
        }
    }
}

TEST(Reordering, RefusesWhatIsNoBijection) {
    Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    constexpr std::int64_t n = 20;
    const RowMap map = RowMap::by_rows(comm, n);
    std::vector<std::int64_t> twice(n);
    std::iota(twice.begin(), twice.end(), std::int64_t{0});
    twice[3] = 17;
    EXPECT_NE(test::message_of<InputError>(
                  comm, [&] { const Reordering made(comm, map, map, own_part(map, twice)); })
                  .find("same position"),
              std::string::npos);
    twice[3] = n;
    EXPECT_NE(test::message_of<InputError>(
                  comm, [&] { const Reordering made(comm, map, map, own_part(map, twice)); })
                  .find("position 20 of 20 rows"),
              std::string::npos);
    EXPECT_THROW(Reordering(comm, map, map, {}), ShapeError);
    const Reordering none(map);
    EXPECT_FALSE(none.moves_rows());
    BlockVector<double> wide(ctx, map, 2);
    BlockVector<double> narrow(ctx, map, 1);
    EXPECT_THROW(none.to_user(ctx, wide.view(), narrow.view()), ShapeError);
    CsrRows<double> tall{map, n + 1, Symmetry::general, {}, {}, {}};
    tall.row_start.assign(static_cast<std::size_t>(map.local_rows()) + 1, 0);
    EXPECT_THROW(plan_reordering(comm, tall), ShapeError);
    EXPECT_THROW(none.permute(comm, tall), ShapeError);
    // Columns of a square matrix that the ranks share differently.
    tall.global_cols = n;
    tall.column_map = RowMap::by_local_rows(comm, comm.rank() == 0 ? n : 0);
    const std::string expected =
        comm.size() == 1 ? ""
                         : "reordering: the columns of the matrix are distributed in another way";
    EXPECT_EQ(test::message_of<ShapeError>(comm, [&] { plan_reordering(comm, tall); }), expected);
    EXPECT_EQ(test::message_of<ShapeError>(comm, [&] { none.permute(comm, tall); }), expected);
}

void expect_counts(const HaloCounts& counts, Context& ctx, const CsrRows<double>& rows) {
    const Comm& comm = ctx.comm();
    const SparseMatrix<double> matrix(ctx, rows);
    EXPECT_EQ(counts.sum, comm.sum(matrix.halo_size()));
    EXPECT_EQ(counts.most, comm.max(matrix.halo_size()));
    EXPECT_EQ(counts.boundary_rows, comm.sum(matrix.boundary_rows()));
    EXPECT_EQ(counts.imbalance, static_cast<double>(comm.max(rows.nonzeros())) * comm.size() /
                                    static_cast<double>(comm.sum(rows.nonzeros())));
}

TEST(CountedHalos, AreThoseOfTheRanks) {
    Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    const ShuffledGrid grid(31, 17, generator);
    const CsrRows<double> alone = grid.make<double>(Comm());
    const RowPattern pattern = pattern_of(alone);
    const std::vector<std::int64_t> order = reverse_cuthill_mckee(graph_of(pattern));
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), order.size());
    const CsrRows<double> given = grid.make<double>(comm);
    expect_counts(count_halos(pattern, place_by_ranges(pattern, {}, comm.size(), {})), ctx, given);
    const RowPattern gathered = pattern_on_rank_0(comm, pattern_of(given));
    if (comm.rank() == 0) {
        EXPECT_EQ(gathered.column, pattern.column);
        EXPECT_EQ(gathered.row_start, pattern.row_start);
    }
    const auto expect_plan = [&](const ReorderingOptions& options) {
        const Reordering plan = plan_reordering(comm, given, options);
        ASSERT_TRUE(plan.facts().before && plan.facts().after);
        expect_counts(*plan.facts().before, ctx, given);
        const CsrRows<double> moved = plan.permute(comm, given);
        expect_counts(*plan.facts().after, ctx, moved);
        // The same call gives the same numbering.
        EXPECT_EQ(plan_reordering(comm, given, options).permute(comm, given).column, moved.column);
        if (comm.size() > 1) {
            EXPECT_LT(plan.facts().after->most, plan.facts().before->most / 2);
        }
        EXPECT_LT(plan.facts().after->imbalance, 1.15);
    };
    expect_plan({RowPartition::rows, RowOrder::rcm, {}});
    if (has_scotch() && comm.size() > 1) {
        expect_plan({RowPartition::graph, RowOrder::natural, {}});
        expect_plan({RowPartition::graph, RowOrder::rcm, {}});
    }
}

TEST(GraphPartition, FollowsTheWeightsAndCoversEveryPattern) {
    if (!has_scotch()) {
        GTEST_SKIP() << "built without SCOTCH";
    }
    auto generator = test::make_generator();
    const ShuffledGrid grid(40, 30, generator);
    const RowPattern graph = graph_of(pattern_of(grid.make<double>(Comm())));
    const std::vector<double> weights{1, 0, 3, 1};
    const std::vector<int> parts = partition_graph(graph, 4, weights);
    std::vector<double> share(4, 0.0);
    for (const int part : parts) {
        share[static_cast<std::size_t>(part)] += 1.0 / static_cast<double>(parts.size());
    }
    EXPECT_EQ(share[1], 0);
    EXPECT_NEAR(share[2], 0.6, 0.05);
    EXPECT_NEAR(share[0], 0.2, 0.03);
    EXPECT_EQ(partition_graph(graph, 4, weights), parts);
    // More ranks than rows, rows without neighbours, no rows.
    const RowPattern isolated{{0, 0, 0, 0}, {}};
    for (const int part : partition_graph(isolated, 5, {})) {
        EXPECT_TRUE(part >= 0 && part < 5) << part;
    }
    EXPECT_TRUE(partition_graph(RowPattern(), 3, {}).empty());
}

TEST(GraphPartition, OfAnUnsymmetricPatternUsesBothTriangles) {
    // Entries (0, 1), (2, 0), (2, 2).
    const RowPattern graph = graph_of({{0, 1, 1, 3}, {1, 0, 2}});
    EXPECT_EQ(graph.row_start, (std::vector<std::int64_t>{0, 2, 3, 4}));
    EXPECT_EQ(graph.column, (std::vector<std::int64_t>{1, 2, 0, 0}));
}

TEST(ReverseCuthillMcKee, RestoresBandsOfSeveralComponents) {
    auto generator = test::make_generator();
    // Two shuffled paths, and two rows without neighbours.
    constexpr std::int64_t n = 102;
    const std::vector<std::int64_t> number = random_permutation(generator, n);
    const CsrRows<double> rows = [&] {
        std::vector<Entry<double>> entries;
        for (std::int64_t i = 0; i + 1 < 100; ++i) {
            if (i != 39) {
                entries.push_back({number[static_cast<std::size_t>(i)],
                                   number[static_cast<std::size_t>(i) + 1], 1.0});
            }
        }
        return rows_from_entries<double>(Comm(), n, n, Symmetry::general, entries);
    }();
    const RowPattern graph = graph_of(pattern_of(rows));
    const std::vector<std::int64_t> order = reverse_cuthill_mckee(graph);
    std::vector<std::int64_t> place(n, -1);
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    }
    EXPECT_EQ(std::count(place.begin(), place.end(), -1), 0);
    for (std::int64_t row = 0; row < n; ++row) {
        for (const std::int64_t column : graph.columns(row)) {
            EXPECT_EQ(std::abs(place[static_cast<std::size_t>(row)] -
                               place[static_cast<std::size_t>(column)]),
                      1);
        }
    }
}

TEST(AutomaticPartition, DecidesByTheCountedHalos) {
    const Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    const ShuffledGrid grid(40, 20, generator);
    const CsrRows<double> shuffled = grid.make<double>(comm);
    if (comm.size() == 1) {
        const Reordering plan = plan_reordering(comm, shuffled);
        EXPECT_FALSE(plan.moves_rows());
        EXPECT_FALSE(plan.facts().before);
        return;
    }
    // Of a shuffled grid nearly every row is in the halo, so that a long solve pays for the
    // partitioner and a single product does not.
    ReorderingOptions options;
    options.expected_products = 1;
    const Reordering shortly = plan_reordering(comm, shuffled, options);
    EXPECT_FALSE(shortly.moves_rows());
    EXPECT_EQ(shortly.facts().partition, RowPartition::rows);
    EXPECT_NE(shortly.facts().reason.find("of the solve, the partition "), std::string::npos);
    options.expected_products = 1e6;
    options.halo_bytes_per_second = 1e15;
    EXPECT_FALSE(plan_reordering(comm, shuffled, options).moves_rows());
    options.halo_bytes_per_second = 1e9;
    const Reordering plan = plan_reordering(comm, shuffled, options);
    EXPECT_EQ(plan.moves_rows(), has_scotch());
    // A band has the smallest halo already.
    const CsrRows<double> band = rows_from_callback<double>(
        comm, 400, Symmetry::symmetric, [](std::int64_t row, RowEntries<double>& entries) {
            for (std::int64_t to = std::max<std::int64_t>(row - 1, 0);
                 to <= std::min<std::int64_t>(row + 1, 399); ++to) {
                entries.add(to, 1.0);
            }
        });
    const Reordering kept = plan_reordering(comm, band, options);
    EXPECT_FALSE(kept.moves_rows());
    EXPECT_EQ(kept.solver_map(), band.map);
    if (has_scotch()) {
        EXPECT_EQ(plan.facts().partition, RowPartition::graph);
        EXPECT_NE(kept.facts().reason.find("only reduces the halo"), std::string::npos);
        EXPECT_FALSE(kept.facts().after);
    }
}

TEST(GraphPartition, MissingIsAnErrorWithItsCureAndRowsForAutomatic) {
    const Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    const ShuffledGrid grid(20, 20, generator);
    const CsrRows<double> rows = grid.make<double>(comm);
    const test::Environment none("QUIVER_SCOTCH", "none");
    EXPECT_THROW(require_graph_partitioner(), UnsupportedError);
    if (comm.size() == 1) {
        return;
    }
    const std::string message = test::message_of<UnsupportedError>(comm, [&] {
        plan_reordering(comm, rows, {RowPartition::graph, RowOrder::natural, {}});
    });
    EXPECT_NE(message.find(has_scotch() ? "unset it" : "install libscotch-dev"), std::string::npos)
        << message;
    ReorderingOptions options;
    options.expected_products = 1e6;
    const Reordering plan = plan_reordering(comm, rows, options);
    EXPECT_FALSE(plan.moves_rows());
    EXPECT_NE(plan.facts().reason.find("SCOTCH is missing"), std::string::npos);
}

/// The plans of this build whose results must have the user's numbering.
std::vector<ReorderingOptions> all_plans() {
    std::vector<ReorderingOptions> plans{{RowPartition::rows, RowOrder::rcm, {}}};
    if (has_scotch()) {
        plans.push_back({RowPartition::graph, RowOrder::natural, {}});
        plans.push_back({RowPartition::graph, RowOrder::rcm, {}});
    }
    return plans;
}

TEST(ReorderedSolve, HasTheEigenpairsOfTheGivenMatrix) {
    Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    const ShuffledGrid grid(19, 16, generator);
    const CsrRows<double> given = grid.make<double>(comm);
    SparseMatrix<double> a(ctx, given);
    for (const ReorderingOptions& options : all_plans()) {
        const Reordering plan = plan_reordering(comm, given, options);
        SparseMatrix<double> moved(ctx, plan.permute(comm, given));
        EigenOptions solver;
        solver.k = 5;
        EigenResult<double> result = eigensolve(ctx, EigenProblem<double>{moved}, solver);
        BlockVector<double> vectors(ctx, given.map, result.vectors.width());
        plan.to_user(ctx, result.vectors.view(), vectors.view());
        result.vectors = std::move(vectors);
        // Residuals with the matrix that was not permuted.
        test::check_pairs(ctx, a, result, grid.spectrum(), solver.k, Which::smallest);
    }
}

TEST(ReorderedSolve, HasTheEigenpairsOfAPencil) {
    Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    const ShuffledGrid grid(13, 12, generator);
    const CsrRows<double> given = grid.make<double>(comm, Partition::by_rows);
    // B = D^2 and S = D A D have the eigenvalues of A; B also couples no rows.
    const auto root = [](std::int64_t row) { return 1.0 + 0.25 * static_cast<double>(row % 3); };
    CsrRows<double> scaled = given;
    for (std::int64_t i = 0; i < given.map.local_rows(); ++i) {
        for (std::int64_t e = given.row_start[static_cast<std::size_t>(i)];
             e < given.row_start[static_cast<std::size_t>(i) + 1]; ++e) {
            const auto entry = static_cast<std::size_t>(e);
            scaled.value[entry] *= root(given.map.first_row() + i) * root(given.column[entry]);
        }
    }
    const CsrRows<double> mass = rows_from_callback<double>(
        comm, grid.rows(), Symmetry::symmetric, [&](std::int64_t row, RowEntries<double>& entries) {
            entries.add(row, root(row) * root(row));
        });
    SparseMatrix<double> a(ctx, scaled);
    SparseMatrix<double> b(ctx, mass);
    const std::vector<double> spectrum = grid.spectrum();
    for (const ReorderingOptions& options : all_plans()) {
        const Reordering plan = plan_reordering(comm, scaled, options, &mass);
        SparseMatrix<double> moved_a(ctx, plan.permute(comm, scaled));
        SparseMatrix<double> moved_b(ctx, plan.permute(comm, mass));
        EigenProblem<double> pencil{moved_a};
        pencil.b = &moved_b;
        EigenOptions solver;
        solver.k = 4;
        solver.method = Method::lobpcg;
        solver.tol = 1e-9;
        const EigenResult<double> result = eigensolve(ctx, pencil, solver);
        ASSERT_TRUE(result.converged);
        BlockVector<double> x(ctx, given.map, 4);
        BlockVector<double> ax(ctx, given.map, 4);
        BlockVector<double> bx(ctx, given.map, 4);
        plan.to_user(ctx, result.vectors.view(), x.view());
        a.apply(ctx, x.view(), ax.view());
        b.apply(ctx, x.view(), bx.view());
        std::vector<double> minus;
        for (std::size_t j = 0; j < 4; ++j) {
            EXPECT_NEAR(result.eigenvalues[j], spectrum[j], 1e-8);
            minus.push_back(-spectrum[j]);
        }
        const std::vector<double> ones(4, 1.0);
        axpby(ctx, minus, bx.view(), ones, ax.view());
        std::vector<double> residual(4);
        norms(ctx, ax.view(), std::span<double>(residual));
        for (const double value : residual) {
            EXPECT_LT(value, 1e-6);
        }
    }
}

TEST(ReorderedSolve, HasTheSolutionOfTheGivenSystem) {
    Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    const ShuffledGrid grid(15, 14, generator);
    const CsrRows<double> given = grid.make<double>(comm);
    SparseMatrix<double> a(ctx, given);
    const auto exact = test::random_global<double>(generator, grid.rows(), 2);
    test::TestBlock<double> x(ctx, exact, given.map, {});
    BlockVector<double> b(ctx, given.map, 2);
    a.apply(ctx, x.const_view(), b.view());
    for (const ReorderingOptions& options : all_plans()) {
        const Reordering plan = plan_reordering(comm, given, options);
        SparseMatrix<double> moved(ctx, plan.permute(comm, given));
        BlockVector<double> c(ctx, plan.solver_map(), 2);
        BlockVector<double> y(ctx, plan.solver_map(), 2);
        plan.to_solver(ctx, b.view(), c.view());
        LinearOptions solver;
        solver.tol = 1e-12;
        const LinearResult result =
            linear_solve<double>(ctx, LinearMethod::cg, {moved, c.view()}, y.view(), solver);
        ASSERT_TRUE(result.converged) << result.message;
        const BlockVector<double> solution = plan.to_user<double>(ctx, y.view());
        for (std::int64_t i = 0; i < given.map.local_rows(); ++i) {
            for (int j = 0; j < 2; ++j) {
                ASSERT_NEAR(solution.view()(i, j), exact(given.map.first_row() + i, j), 1e-8);
            }
        }
    }
}

}  // namespace
}  // namespace quiver

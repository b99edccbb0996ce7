// SPDX-License-Identifier: BSD-3-Clause
// Compares products of a distributed sparse matrix and blocks with dense sums in long double.
#include "kernels/sparse/sparse_matrix.hpp"

#include <cstring>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/gathered_rows.hpp"
#include "tests/kernels/sparse/sparse_products.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

/// A matrix that every rank has in full, and its rows on this rank.
template <class T>
struct Problem {
    Dense dense;
    CsrRows<T> rows;
};

/// A random n x n matrix. Rank `empty_rank`, if it exists, has no rows. About every fifth row is
/// empty.
template <class T>
Problem<T> random_problem(const Comm& comm, std::mt19937_64& generator, std::int64_t n,
                          double density, bool integers, int empty_rank = -1) {
    Problem<T> problem{Dense(n, n), {}};
    for (std::int64_t i = 0; i < n; ++i) {
        const bool empty = generator() % 5 == 0;
        for (std::int64_t j = 0; j < n; ++j) {
            const double pick = static_cast<double>(generator() % 1024) / 1024;
            const auto value = random_value(generator, integers);
            if (!empty && pick < density) {
                problem.dense(i, j) = widen(narrow<T>(value));
            }
        }
    }
    std::vector<double> weights(static_cast<std::size_t>(comm.size()), 1.0);
    if (empty_rank >= 0 && empty_rank < comm.size() && comm.size() > 1) {
        weights[static_cast<std::size_t>(empty_rank)] = 0;
    }
    const RowMap map = RowMap::by_rows(comm, n, weights);
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;
    std::vector<T> value;
    for (std::int64_t i = map.first_row(); i < map.first_row() + map.local_rows(); ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            if (problem.dense(i, j) != 0.0) {
                column.push_back(j);
                value.push_back(narrow<T>(problem.dense(i, j)));
            }
        }
        row_start.push_back(static_cast<std::int64_t>(column.size()));
    }
    problem.rows =
        rows_from_csr<T, std::int64_t>(comm, map, Symmetry::general, row_start, column, value);
    return problem;
}

template <class T>
class SparseMatrixTest : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SparseMatrixTest, Scalars);

TYPED_TEST(SparseMatrixTest, MatchesDenseProductForAllWidthsAndOptions) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const auto other = [&] { return narrow<T>(random_value(generator, false)); };
    int empty_rank = -1;
    for (const std::int64_t n : {1, 3, 37, 131}) {
        auto problem =
            random_problem<T>(ctx.comm(), generator, n, n < 10 ? 0.7 : 0.1, false, empty_rank++);
        SparseMatrix<T> a(ctx, std::move(problem.rows));
        for (const int width : {1, 2, 3, 4, 5, 8, 17, 33}) {
            const std::vector<Case<T>> cases{{width, T(1), T(0), 0, false, false},
                                             {width, other(), T(0), 1, true, false},
                                             {width, other(), T(1), 2, false, true},
                                             {width, T(1), other(), 0, true, true},
                                             {width, T(1), T(0), 0, false, false, true},
                                             {width, other(), other(), 2, true, true, true},
                                             {width, T(0), other(), 1, true, true}};
            for (const Case<T>& test : cases) {
                check_product(ctx, a, problem.dense, generator, test, false);
            }
        }
    }
}

TYPED_TEST(SparseMatrixTest, IsExactOnSmallIntegers) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    for (const std::int64_t n : {2, 5, 64, 97}) {
        auto problem = random_problem<T>(ctx.comm(), generator, n, 0.2, true, 1);
        SparseMatrix<T> a(ctx, std::move(problem.rows));
        for (const int width : {1, 3, 4, 6, 16, 31}) {
            check_product(ctx, a, problem.dense, generator,
                          {width, T(2), T(-3), 2, true, true, true}, true);
            check_product(ctx, a, problem.dense, generator, {width, T(1), T(0), 0, true, true},
                          true);
        }
    }
}

TYPED_TEST(SparseMatrixTest, RepeatsItselfBitForBit) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const std::int64_t n = 501;
    const int width = 5;
    auto problem = random_problem<T>(ctx.comm(), generator, n, 0.05, false);
    SparseMatrix<T> a(ctx, std::move(problem.rows));
    const auto x_global = random_block<T>(generator, n, width, false);
    PaddedBlock<T> x(ctx, a.row_map(), width, x_global, T(0));
    std::vector<T> yy[2];
    std::vector<T> bytes[2];
    for (int run : {0, 1}) {
        PaddedBlock<T> y(ctx, a.row_map(), width, x_global, T(poison));
        yy[run].resize(width);
        spmmv(ctx, a, x.view(), y.view(), {.alpha = T(2), .dot_yy = yy[run]});
        EXPECT_TRUE(y.download(T(poison)));
        bytes[run] = y.bytes();
    }
    EXPECT_EQ(yy[0], yy[1]);
    EXPECT_NE(yy[0][0], T(0));
    EXPECT_EQ(bytes[0], bytes[1]);
}

// Enough rows for several threads, each of which gets at least 64 KiB, also of the rows that are
// sent to other ranks.
TYPED_TEST(SparseMatrixTest, ManyThreadsGiveTheSameValues) {
    using T = TypeParam;
    Context ctx(Comm(MPI_COMM_WORLD), Device::host(3));
    auto generator = make_generator();
    const std::int64_t n = 20000;
    const int width = 5;
    const auto rows = rows_from_callback<T>(ctx.comm(), n, Symmetry::general,
                                            [&](std::int64_t row, RowEntries<T>& entries) {
                                                entries.add(row, T(2));
                                                entries.add(n - 1 - row, T(-1));
                                            });
    const auto x_global = random_block<T>(generator, n, width, true);
    for (const auto kind : {SparseFormat::compressed_rows, SparseFormat::sell}) {
        SparseMatrix<T> a(ctx, rows, {.kind = kind});
        PaddedBlock<T> x(ctx, a.row_map(), width, x_global, T(0));
        PaddedBlock<T> y(ctx, a.row_map(), width, x_global, T(poison));
        std::vector<T> yy(width);
        std::vector<T> expected(width);
        spmmv(ctx, a, x.view(), y.view(), {.dot_yy = yy});
        EXPECT_TRUE(y.download(T(poison)));
        for (int j = 0; j < width; ++j) {
            const auto entry = [&](std::int64_t row) {
                return x_global[static_cast<std::size_t>(row * width + j)];
            };
            for (std::int64_t row = 0; row < n; ++row) {
                const T value = T(2) * entry(row) - entry(n - 1 - row);
                expected[static_cast<std::size_t>(j)] += abs_squared(value);
                const std::int64_t i = row - a.row_map().first_row();
                if (i >= 0 && i < a.row_map().local_rows() && !(y(i, j) == value)) {
                    ADD_FAILURE() << "row " << row << ", column " << j << ": " << y(i, j)
                                  << " instead of " << value;
                    break;
                }
            }
        }
        EXPECT_EQ(yy, expected);
    }
}

TYPED_TEST(SparseMatrixTest, MatrixWithoutRowsOrEntriesWorks) {
    using T = TypeParam;
    Context ctx = make_context();
    for (const std::int64_t n : {0, 7}) {
        SparseMatrix<T> a(ctx, rows_from_entries<T>(ctx.comm(), n, n, Symmetry::general, {}));
        EXPECT_EQ(a.global_nonzeros(), 0);
        EXPECT_EQ(a.halo_size(), 0);
        const std::vector<T> ones(static_cast<std::size_t>(3 * n), T(1));
        PaddedBlock<T> x(ctx, a.row_map(), 3, ones, T(0));
        PaddedBlock<T> y(ctx, a.row_map(), 3, ones, T(poison));
        std::vector<T> xy(3, T(9));
        spmmv(ctx, a, x.view(), y.view(), {.beta = T(2), .dot_xy = xy});
        EXPECT_TRUE(y.download(T(poison)));
        for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
            EXPECT_EQ(y(i, 1), T(2));
        }
        EXPECT_EQ(xy, std::vector<T>(3, T(static_cast<real_t<T>>(2 * n))));
        BlockVector<T> none(ctx, a.row_map(), 0, 1);
        a.apply(ctx, none.view(), none.view());
    }
}

TEST(SparseMatrix, PlansTheHaloThatItsRowsNeed) {
    Context ctx = make_context();
    constexpr std::int64_t n = 40;
    // Every row needs the next three rows, cyclically, and the last row. All ranks have neighbours.
    SparseMatrix<double> a(
        ctx, rows_from_callback<double>(ctx.comm(), n, Symmetry::general,
                                        [](std::int64_t row, RowEntries<double>& entries) {
                                            for (std::int64_t k = 1; k <= 3; ++k) {
                                                entries.add((row + k) % n, double(k));
                                            }
                                            entries.add(n - 1, 0.5);
                                        }));
    const int ranks = ctx.comm().size();
    std::int64_t expected = 0;
    if (ranks > 1) {
        expected = ctx.comm().rank() == ranks - 1 ? 3 : 4;
    }
    EXPECT_EQ(a.halo_size(), expected);
    BlockVector<double> x(ctx, a.row_map(), 2), y(ctx, a.row_map(), 2);
    std::vector<double> host(static_cast<std::size_t>(2 * a.row_map().local_rows()));
    const auto view = [&] {
        return BlockView<double>(host.data(), a.row_map().local_rows(), 2, 2);
    };
    for (int step = 0; step < 3; ++step) {
        for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
            view()(i, 0) = static_cast<double>(a.row_map().first_row() + i + step);
            view()(i, 1) = -view()(i, 0);
        }
        copy(ctx, BlockView<const double>(view()), x.view());
        a.apply(ctx, x.view(), y.view());
        copy(ctx, BlockView<const double>(y.view()), view());
        for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
            double sum = 0.5 * static_cast<double>(n - 1 + step);
            for (std::int64_t k = 1; k <= 3; ++k) {
                sum += static_cast<double>(k * ((a.row_map().first_row() + i + k) % n + step));
            }
            EXPECT_EQ(view()(i, 0), sum);
            EXPECT_EQ(view()(i, 1), -sum);
        }
    }
}

TEST(SparseMatrix, TwoMatricesAndChangingWidthsDoNotDisturbEachOther) {
    Context ctx = make_context();
    auto generator = make_generator();
    auto first = random_problem<double>(ctx.comm(), generator, 61, 0.2, true);
    auto second = random_problem<double>(ctx.comm(), generator, 61, 0.3, true);
    SparseMatrix<double> a(ctx, std::move(first.rows));
    SparseMatrix<double> b(ctx, std::move(second.rows));
    SparseMatrix<double> moved = std::move(a);
    for (const int width : {2, 9, 1, 16, 3}) {
        check_product(ctx, moved, first.dense, generator, {width, 1.0, 0.0, 0, true, false}, true);
        check_product(ctx, b, second.dense, generator, {width, 1.0, 2.0, 1, false, true}, true);
    }
}

TEST(SparseMatrix, CountsItsCallsInTheLedger) {
    Context ctx = make_context();
    auto generator = make_generator();
    auto problem = random_problem<double>(ctx.comm(), generator, 30, 0.3, true);
    SparseMatrix<double> a(ctx, std::move(problem.rows));
    BlockVector<double> x(ctx, a.row_map(), 4), y(ctx, a.row_map(), 4);
    fill(ctx, 1.0, x.view());
    ctx.ledger().clear();
    a.apply(ctx, x.view(), y.view());
    a.apply(ctx, x.view(), y.view());
    const auto records = ctx.ledger().records();
    ASSERT_EQ(records.size(), 1U);
    EXPECT_STREQ(records[0].call.name, "spmmv");
    EXPECT_EQ(records[0].calls, 2);
    EXPECT_EQ(records[0].flops, 2.0 * 2 * 4 * static_cast<double>(a.local_nonzeros()));
    EXPECT_EQ(records[0].bytes,
              2.0 * (12.0 * static_cast<double>(a.local_nonzeros()) +
                     8.0 * 4 * 2 * static_cast<double>(a.row_map().local_rows())));
}

TEST(SparseMatrix, RefusesWrongShapes) {
    Context ctx = make_context();
    auto generator = make_generator();
    auto problem = random_problem<double>(ctx.comm(), generator, 40, 0.1, true);
    SparseMatrix<double> a(ctx, std::move(problem.rows));
    BlockVector<double> x(ctx, a.row_map(), 4, 8), y(ctx, a.row_map(), 4);
    std::vector<double> three(3);
    EXPECT_THROW(a.apply(ctx, x.columns(0, 3), y.view()), ShapeError);
    EXPECT_THROW(a.apply(ctx, x.view(), x.view()), ShapeError);
    EXPECT_THROW(a.apply(ctx, x.columns(0, 4), x.columns(3, 4)), ShapeError);
    EXPECT_THROW(
        a.apply(ctx, x.view().row_range(0, x.rows() - 1), y.view().row_range(0, y.rows() - 1)),
        ShapeError);
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.shift = three}), ShapeError);
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.dot_yy = three}), ShapeError);
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.dot_xy = three}), ShapeError);
    a.apply(ctx, x.columns(0, 4), x.columns(4, 4));  // neighbours in one block do not overlap
}

TEST(SparseMatrix, RefusesBadRowsOnAllRanks) {
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    const auto rows = [&](std::int64_t cols) {
        return rows_from_entries<double>(comm, 6, cols, Symmetry::general,
                                         {{0, 1, 1.0}, {5, 2, 1.0}}, Partition::by_rows);
    };
    CsrRows<double> bad = rows(6);
    if (comm.rank() == comm.size() - 1) {
        bad.column.back() = 6;
    }
    EXPECT_EQ(message_of<InputError>(comm, [&] { SparseMatrix<double>(ctx, bad); }),
              "sparse matrix: row 5 has column 6, but the matrix has columns 0 .. 5");
    CsrRows<double> torn = rows(6);
    if (comm.rank() == 0) {
        torn.value.push_back(1.0);
    }
    EXPECT_NE(message_of<ShapeError>(comm, [&] { SparseMatrix<double>(ctx, torn); }), "");
}

// NOLINTBEGIN(bugprone-use-after-move): tests the state after a move
TEST(SparseMatrix, RefusesToWorkOnceMovedFrom) {
    Context ctx = make_context();
    const auto rows = rows_from_entries<double>(ctx.comm(), 6, 6, Symmetry::general,
                                                {{0, 1, 1.0}, {5, 2, 1.0}}, Partition::by_rows);
    SparseMatrix<double> first(ctx, rows);
    const RowMap map = first.row_map();
    SparseMatrix<double> second(std::move(first));
    BlockVector<double> x(ctx, map, 2);
    BlockVector<double> y(ctx, map, 2);
    fill(ctx, 1.0, x.view());
    EXPECT_NO_THROW(second.apply(ctx, x, y));
    const std::vector<int> widths{2};
    EXPECT_THROW(first.apply(ctx, x, y), InputError);
    EXPECT_THROW(first.repeat(ctx, x, y), InputError);
    EXPECT_THROW(first.row_map(), InputError);
    EXPECT_THROW(first.global_nonzeros(), InputError);
    EXPECT_THROW(first.halo_size(), InputError);
    EXPECT_THROW(first.padding(), InputError);
    EXPECT_THROW(first.format(), InputError);
    EXPECT_THROW(first.arrays(), InputError);
    EXPECT_THROW(first.received(1), InputError);
    EXPECT_THROW(first.diagonal_block(ctx), InputError);
    EXPECT_THROW(storage_of(CsrRows<double>{map, 6, Symmetry::general, {}, {}, {}}, Place::host),
                 ShapeError);
    first = std::move(second);
    EXPECT_NO_THROW(first.apply(ctx, x, y));
    EXPECT_THROW(second.symmetry(), InputError);
}
// NOLINTEND(bugprone-use-after-move)

/// Single precision has no number 2^24 + 1001, the column of an entry of rank 0 on several ranks.
TEST(GatheredRows, ColumnsBeyondTheIntegersOfSinglePrecision) {
    Context ctx = make_context();
    const std::int64_t n = (std::int64_t{1} << 24) + 1002;
    std::vector<Entry<float>> entries;
    if (ctx.comm().rank() == 0) {
        entries = {{0, n - 1, 3.0F}, {n - 1, 0, 3.0F}};
    }
    SparseMatrix<float> a(ctx, rows_from_entries<float>(ctx.comm(), n, n, Symmetry::symmetric,
                                                        std::move(entries), Partition::by_rows));
    BlockVector<float> ones(ctx, a.row_map(), 1);
    fill(ctx, 1.0F, ones.view());
    const CsrRows<float> rows = scaled_rows<float>(ctx, a, std::as_const(ones).view());
    std::vector<std::int64_t> expected;
    if (a.row_map().first_row() == 0 && a.row_map().local_rows() > 0) {
        expected.push_back(n - 1);
    }
    if (a.row_map().first_row() + a.row_map().local_rows() == n) {
        expected.push_back(0);
    }
    EXPECT_EQ(rows.column, expected);
}

}  // namespace
}  // namespace quiver::test

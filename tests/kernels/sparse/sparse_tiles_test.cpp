// SPDX-License-Identifier: BSD-3-Clause
// Tests tiles of rows, which read few rows of X twice, and runs of rows.
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/sparse/sparse_layout.hpp"
#include "tests/kernels/sparse/grid.hpp"

namespace quiver::test {
namespace {

/// The number of different rows of X that each tile of `tile` slots reads, summed over the tiles
/// and divided by the number of rows.
double rows_read(const Grid& grid, const SparseLayout& layout, std::int64_t tile) {
    std::size_t read = 0;
    for (std::int64_t begin = 0; begin < grid.rows(); begin += tile) {
        std::set<std::int64_t> rows;
        for (std::int64_t slot = begin; slot < std::min(begin + tile, grid.rows()); ++slot) {
            const auto row = static_cast<std::size_t>(layout.row_of(slot));
            rows.insert(grid.column.begin() + grid.row_start[row],
                        grid.column.begin() + grid.row_start[row + 1]);
        }
        read += rows.size();
    }
    return static_cast<double>(read) / static_cast<double>(grid.rows());
}

TEST(SparseTiles, OfAGridReadLittleMoreThanTheirOwnRows) {
    const Grid grid(32);
    const auto layout = [&](const SparseFormat& format) {
        return SparseLayout({format, Place::device, sizeof(double), false}, grid.row_start, {},
                            grid.rows(), grid.columns());
    };
    const SparseLayout lines = layout({.tile = 1});
    const SparseLayout tiles = layout({});
    EXPECT_EQ(lines.format.tile, 1);
    EXPECT_TRUE(lines.row.empty());
    EXPECT_EQ(tiles.format.tile, 512);
    EXPECT_LE(static_cast<double>(tiles.stored()), 1.02 * static_cast<double>(lines.stored()));
    // 512 consecutive rows (16 lines of 32 points) read their own rows, 512 rows of each
    // neighbouring plane, and two lines; fewer at the faces. Bricks of 16 x 4 x 8 points read at
    // best 1 + 2 / 16 + 2 / 4 + 2 / 8 rows per row.
    EXPECT_GT(rows_read(grid, lines, 512), 2.9);
    EXPECT_LT(rows_read(grid, tiles, 512), 2.1);

    std::vector<std::int64_t> rows = tiles.row;
    for (std::int64_t slot = 0; slot < grid.rows(); ++slot) {
        const auto begin = static_cast<std::size_t>(slot - slot % tiles.part[0].run);
        EXPECT_EQ(tiles.row_of(slot), rows[begin] + slot % tiles.part[0].run);
    }
    std::sort(rows.begin(), rows.end());
    for (std::int64_t row = 0; row < grid.rows(); ++row) {
        ASSERT_EQ(rows[static_cast<std::size_t>(row)], row);
    }
}

TEST(SparseTiles, OfOddSizesAreRefused) {
    for (const int tile : {-1, 2, 16, 33, 8192}) {
        EXPECT_THROW(check_format({.tile = tile}), InputError) << tile;
    }
    for (const int tile : {0, 1, 32, 4096}) {
        EXPECT_NO_THROW(check_format({.tile = tile})) << tile;
    }
}

TEST(SparseTiles, AreNotMadeWhereTheySaveNothing) {
    // In a band matrix a row reads only its neighbours in memory.
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;
    const std::int64_t n = 4096;
    for (std::int64_t row = 0; row < n; ++row) {
        for (std::int64_t c = std::max<std::int64_t>(row - 2, 0); c < std::min(row + 3, n); ++c) {
            column.push_back(c);
        }
        row_start.push_back(std::ssize(column));
    }
    const SparseLayout layout({{}, Place::device, sizeof(double), false}, row_start, {}, n,
                              [&] { return std::span<const std::int64_t>(column); });
    EXPECT_EQ(layout.tile, 0);
    EXPECT_TRUE(layout.row.empty());
    EXPECT_TRUE(layout.list().empty());
}

TEST(SparseTiles, OfNarrowColumnsAreTheSame) {
    const Grid grid(33);
    const std::vector<std::int32_t> narrow(grid.column.begin(), grid.column.end());
    const FormatChoice choice{{}, Place::device, sizeof(double), false};
    const SparseLayout wide(choice, grid.row_start, {}, grid.rows(), grid.columns());
    const SparseLayout same(choice, grid.row_start, {}, grid.rows(),
                            [&] { return std::span<const std::int32_t>(narrow); });
    EXPECT_EQ(wide.format.tile, 512);
    EXPECT_EQ(wide.row, same.row);
    EXPECT_EQ(wide.start, same.start);
}

/// A line of 60 points is no multiple of the 16 rows of a group, so most groups cover parts of two
/// lines. Tiles of such groups read almost as many rows of X as tiles of consecutive rows.
TEST(SparseTiles, AreNotMadeForLinesThatGroupsOfRowsDoNotDivide) {
    const Grid grid(60);
    const ChunkRows groups{grid.row_start, grid.columns()(), 0, {}, 0, grid.rows() / 16, 16};
    const ChunkSampler sampler = sampler_of(groups);
    const double natural = rows_read_per_row(sampler, {}, 32);
    const std::vector<std::int64_t> order = tiled_order(groups, 32);
    EXPECT_GT(rows_read_per_row(sampler, order, 32), 0.75 * natural);
    // The estimate agrees with the tiles themselves.
    EXPECT_NEAR(rows_read_by_free_tiles(sampler, 32), rows_read_per_row(sampler, order, 32), 0.1);
    const SparseLayout layout({{}, Place::device, sizeof(double), false}, grid.row_start, {},
                              grid.rows(), grid.columns());
    EXPECT_TRUE(layout.row.empty());
}

TEST(SparseTiles, KeepRunsOfRowsOnSeveralRanks) {
    // The first 120 and the last 100 rows have halo entries.
    const Grid grid(11);
    std::vector<std::int64_t> order;
    std::vector<std::int64_t> boundary;
    for (std::int64_t row = 0; row < grid.rows(); ++row) {
        (row < 120 || row >= grid.rows() - 100 ? boundary : order).push_back(row);
    }
    const auto interior = std::ssize(order);
    order.insert(order.end(), boundary.begin(), boundary.end());
    for (const int tile : {1, 64}) {
        const SparseLayout layout(
            {{.kind = SparseFormat::sell, .chunk = 32, .sigma = 1, .tile = tile},
             Place::device,
             sizeof(double),
             false},
            grid.row_start, order, interior, grid.columns());
        const std::vector<std::int64_t> list = layout.list();
        EXPECT_EQ(layout.part[0].run, tile == 1 ? 1 << 30 : 16);
        EXPECT_EQ(layout.part[1].run, 8);  // 8 divides the 120 consecutive rows, 16 does not
        for (const SparseLayout::Part& part : layout.part) {
            for (std::int64_t s = 0; s < part.rows; ++s) {
                const auto run = static_cast<std::size_t>(part.first_run + s / part.run);
                ASSERT_EQ(list.at(run) + s % part.run, layout.row_of(part.first_slot + s));
            }
        }
    }
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// Tests which rows wait for the halo, their stages, and the order in which the halo arrives.
#include "kernels/sparse/row_split.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/sparse/sparse_layout.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

constexpr int ranks = 3;

/// The rows of rank 1 of three ranks with equally many rows.
struct Rows {
    std::int64_t own;
    CsrRows<double> rows;

    template <class Columns>
    Rows(std::int64_t own_rows, Columns&& columns)
        : own(own_rows),
          rows{RowMap(1, {0, own, 2 * own, 3 * own}), ranks * own, Symmetry::general, {}, {}, {}} {
        rows.row_start.push_back(0);
        for (std::int64_t i = 0; i < own; ++i) {
            columns(i, rows.column);
            rows.row_start.push_back(std::ssize(rows.column));
        }
        rows.value.assign(rows.column.size(), 1.0);
    }
    bool far(std::int64_t column) const { return column < own || column >= 2 * own; }
};

TEST(RowSplit, EveryStageFindsItsHaloAmongWhatHasCome) {
    if (test::is_host_repetition()) {
        GTEST_SKIP() << "one process splits the rows; the test on one rank does the same";
    }
    auto generator = test::make_generator();
    const std::int64_t own = 1'300'000;
    const Rows matrix(own, [&](std::int64_t row, std::vector<std::int64_t>& columns) {
        columns.push_back(own + row);
        if (row % 10 != 0) {
            columns.push_back(row);  // a row of rank 0, in ascending order
            columns.push_back(static_cast<std::int64_t>(generator() % (ranks * own)));
        }
    });
    const RowSplit split = split_rows(matrix.rows, true);
    EXPECT_EQ(split.stages, 2);
    EXPECT_EQ(split_rows(matrix.rows, false).stages, 1);
    const RowSplit by_threads = split_rows(matrix.rows, true, 3);
    EXPECT_EQ(by_threads.order, split.order);
    EXPECT_EQ(by_threads.interior, split.interior);
    ASSERT_EQ(std::ssize(split.order), own);
    const NeededRows needed = needed_rows(matrix.rows, split);
    const std::size_t count = needed.ascending.size();
    ASSERT_EQ(needed.rows.size(), count);
    ASSERT_EQ(needed.stage.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(needed.place_of(needed.rows[i]), static_cast<std::int64_t>(i));
        const int owner = matrix.rows.map.owner(needed.rows[i]);
        if (i > 0 && owner == matrix.rows.map.owner(needed.rows[i - 1])) {
            ASSERT_LE(needed.stage[i - 1], needed.stage[i]);
        } else if (i > 0) {
            ASSERT_LT(matrix.rows.map.owner(needed.rows[i - 1]), owner);
        }
    }
    std::vector<std::int64_t> sorted = needed.rows;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, needed.ascending);

    const SparseLayout layout({{}, Place::device, sizeof(double), false}, matrix.rows.row_start,
                              split.order, split.interior, {}, own, split.stages);
    ASSERT_EQ(layout.part.size(), 3u);
    std::int64_t rows_seen = 0;
    std::int64_t first_use[2] = {std::numeric_limits<std::int64_t>::max(), 0};
    for (std::size_t p = 0; p < layout.part.size(); ++p) {
        const SparseLayout::Part& part = layout.part[p];
        EXPECT_EQ(part.first_slot, rows_seen);
        rows_seen += part.rows;
        for (std::int64_t s = 0; s < part.rows; ++s) {
            const auto row = static_cast<std::size_t>(layout.row_of(part.first_slot + s));
            for (auto k = matrix.rows.row_start[row]; k < matrix.rows.row_start[row + 1]; ++k) {
                const std::int64_t column = matrix.rows.column[static_cast<std::size_t>(k)];
                if (!matrix.far(column)) {
                    continue;
                }
                ASSERT_GT(p, 0u) << "row " << row << " needs column " << column;
                const std::int64_t place = needed.place_of(column);
                ASSERT_LE(needed.stage[static_cast<std::size_t>(place)] + 1u, p);
                first_use[p - 1] =
                    p == 1 ? std::min(first_use[0], place) : std::max(first_use[1], place);
            }
        }
    }
    EXPECT_EQ(rows_seen, own);
    EXPECT_GT(first_use[1], first_use[0]);
    // Some rows wait for the second stage.
    EXPECT_GT(std::count(needed.stage.begin(), needed.stage.end(), 1), 0);
}

TEST(RowSplit, OneStageTakesTheHaloAsItAscends) {
    const Rows matrix(1000, [](std::int64_t row, std::vector<std::int64_t>& columns) {
        columns.push_back(1000 + row);
        if (row % 3 == 0) {
            columns.push_back((row * 7 + 2500) % 3000);
        }
    });
    const RowSplit split = split_rows(matrix.rows, true);
    EXPECT_EQ(split.stages, 1);
    const NeededRows needed = needed_rows(matrix.rows, split);
    EXPECT_EQ(needed.rows, needed.ascending);
    EXPECT_TRUE(std::is_sorted(needed.rows.begin(), needed.rows.end()));
    EXPECT_EQ(needed.place_of(needed.rows.back()), std::ssize(needed.rows) - 1);
}

TEST(RowSplit, RowsWithoutAHaloHaveNoOrder) {
    const Rows matrix(50, [](std::int64_t row, std::vector<std::int64_t>& columns) {
        columns.push_back(50 + row);
    });
    const RowSplit split = split_rows(matrix.rows, true);
    EXPECT_TRUE(split.order.empty());
    EXPECT_EQ(split.interior, 50);
    EXPECT_TRUE(needed_rows(matrix.rows, split).rows.empty());
}

TEST(RowSplit, StagesAreWholeWindows) {
    for (const std::int64_t rows : {0, 1, 4095, 4096, 10'000, 3'000'001}) {
        for (int stages = 1; stages <= most_stages; ++stages) {
            const std::vector<std::int64_t> each = stage_rows(rows, stages);
            ASSERT_EQ(std::ssize(each), stages);
            EXPECT_EQ(std::accumulate(each.begin(), each.end(), std::int64_t{0}), rows);
            for (int s = 0; s + 1 < stages; ++s) {
                const auto at = static_cast<std::size_t>(s);
                EXPECT_TRUE(each[at] % 4096 == 0 || each[at + 1] == 0) << rows << " " << stages;
                EXPECT_GE(each[at], 0);
            }
        }
    }
}

}  // namespace
}  // namespace quiver

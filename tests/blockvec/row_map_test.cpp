// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/row_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

Comm world() {
    return Comm(MPI_COMM_WORLD);
}

TEST(RowMap, ByRowsDealsRowsAsEquallyAsCanBe) {
    const Comm comm = world();
    for (const std::int64_t rows : {0, 1, 2, 3, 5, 100, 1001}) {
        const RowMap map = RowMap::by_rows(comm, rows);
        ASSERT_EQ(map.ranks(), comm.size());
        ASSERT_EQ(map.rank(), comm.rank());
        ASSERT_EQ(map.global_rows(), rows);
        ASSERT_EQ(map.first_row(0), 0);
        for (int r = 0; r < map.ranks(); ++r) {
            const double equal = static_cast<double>(rows) / comm.size();
            ASSERT_EQ(map.first_row(r) + map.local_rows(r), map.first_row(r + 1));
            ASSERT_LT(std::abs(static_cast<double>(map.local_rows(r)) - equal), 1.0);
        }
    }
}

TEST(RowMap, ByRowsFollowsWeights) {
    const Comm comm = world();
    std::vector<double> weights(static_cast<std::size_t>(comm.size()));
    std::iota(weights.begin(), weights.end(), 0.0);
    weights.back() += 1.0;
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const std::int64_t rows = 997;
    const RowMap map = RowMap::by_rows(comm, rows, weights);
    // Only the ratios of the weights matter, even if their sum is far below 1.
    std::vector<double> small = weights;
    for (double& weight : small) {
        weight /= 1024;
    }
    EXPECT_EQ(RowMap::by_rows(comm, rows, small), map);
    ASSERT_EQ(map.global_rows(), rows);
    for (int r = 0; r < comm.size(); ++r) {
        const double wanted =
            weights[static_cast<std::size_t>(r)] / total * static_cast<double>(rows);
        EXPECT_LE(std::abs(static_cast<double>(map.local_rows(r)) - wanted), 1.0) << r;
    }
    if (comm.size() > 1) {
        EXPECT_EQ(map.local_rows(0), 0);
    }
}

TEST(RowMap, OwnerAgreesWithASearchThroughAllRanks) {
    const RowMap map(2, {0, 0, 3, 3, 4, 9, 9});
    for (std::int64_t row = 0; row < map.global_rows(); ++row) {
        int expected = 0;
        while (row < map.first_row(expected) ||
               row >= map.first_row(expected) + map.local_rows(expected)) {
            ++expected;
        }
        EXPECT_EQ(map.owner(row), expected) << row;
    }
    EXPECT_EQ(map.first_row(), 3);
    EXPECT_EQ(map.local_rows(), 0);
}

TEST(RowMap, ByLocalRowsGathersEveryRanksCount) {
    const Comm comm = world();
    const auto count = [](int rank) { return static_cast<std::int64_t>((rank * 7 + 5) % 6); };
    const RowMap map = RowMap::by_local_rows(comm, count(comm.rank()));
    std::int64_t first = 0;
    for (int r = 0; r < comm.size(); ++r) {
        EXPECT_EQ(map.local_rows(r), count(r));
        EXPECT_EQ(map.first_row(r), first);
        first += count(r);
    }
    EXPECT_EQ(map.global_rows(), first);
}

/// The first row of each rank by definition: the rows before it have at least the share of work of
/// all lower ranks. The work of a row is its number of nonzeros + 1.
std::vector<std::int64_t> cuts_by_definition(const std::vector<std::int64_t>& nonzeros,
                                             const std::vector<double>& weights) {
    std::int64_t total = 0;
    for (const std::int64_t count : nonzeros) {
        total += count + 1;
    }
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<std::int64_t> cuts{0};
    double share = 0;
    for (std::size_t r = 0; r + 1 < weights.size(); ++r) {
        share += weights[r];
        const auto target =
            static_cast<std::int64_t>(std::llround(share / all * static_cast<double>(total)));
        std::int64_t row = 0;
        std::int64_t before = 0;
        while (before < target) {
            before += nonzeros[static_cast<std::size_t>(row)] + 1;
            ++row;
        }
        cuts.push_back(row);
    }
    cuts.push_back(static_cast<std::int64_t>(nonzeros.size()));
    return cuts;
}

TEST(RowMap, ByNonzerosCutsWhereTheWorkIsShared) {
    const Comm comm = world();
    auto generator = test::make_generator();
    for (const int rows : {0, 1, 2, 7, 500}) {
        for (const bool skewed : {false, true}) {
            std::vector<std::int64_t> nonzeros(static_cast<std::size_t>(rows));
            for (auto& count : nonzeros) {
                count = std::uniform_int_distribution<int>(0, 9)(generator);
            }
            if (skewed && rows > 2) {
                nonzeros[1] = 4000;  // more than everything else
            }
            std::vector<double> weights(static_cast<std::size_t>(comm.size()), 1.0);
            if (skewed) {
                weights[0] = 3.0;
            }
            // In the initial distribution the last rank has all rows.
            std::vector<std::int64_t> offsets(static_cast<std::size_t>(comm.size()) + 1, 0);
            offsets.back() = rows;
            const RowMap initial(comm.rank(), offsets);
            const std::span<const std::int64_t> mine(
                nonzeros.data() + initial.first_row(),
                static_cast<std::size_t>(initial.local_rows()));
            const RowMap map = RowMap::by_nonzeros(comm, initial, mine, weights);
            ASSERT_EQ(map.offsets(), cuts_by_definition(nonzeros, weights)) << rows << skewed;
            ASSERT_EQ(RowMap::balanced_offsets(comm.size(), nonzeros, weights), map.offsets());
            ASSERT_EQ(RowMap::even_offsets(comm.size(), rows, weights),
                      RowMap::by_rows(comm, rows, weights).offsets());

            const RowMap equal = RowMap::by_rows(comm, rows);
            const std::span<const std::int64_t> share(nonzeros.data() + equal.first_row(),
                                                      static_cast<std::size_t>(equal.local_rows()));
            ASSERT_EQ(RowMap::by_nonzeros(comm, equal, share, weights), map);
        }
    }
}

TEST(RowMap, RefusesImpossibleArguments) {
    const Comm serial;
    EXPECT_THROW(RowMap(0, {0}), InputError);
    EXPECT_THROW(RowMap(0, {1, 2}), InputError);
    EXPECT_THROW(RowMap(0, {0, 3, 2}), InputError);
    EXPECT_THROW(RowMap(2, {0, 3, 4}), InputError);
    EXPECT_THROW(RowMap::by_rows(serial, -1), InputError);
    const std::vector<double> two{1, 1};
    const std::vector<double> negative{-1};
    const std::vector<double> zero{0};
    const std::vector<double> nan{std::numeric_limits<double>::quiet_NaN()};
    for (const auto& weights : {two, negative, zero, nan}) {
        EXPECT_THROW(RowMap::by_rows(serial, 10, weights), InputError);
    }
    const std::vector<std::int64_t> counts(3);
    EXPECT_THROW(RowMap::by_nonzeros(serial, RowMap::by_rows(serial, 4), counts), ShapeError);
}

// NOLINTBEGIN(bugprone-use-after-move): tests the state after a move
TEST(RowMap, StaysValidOnceMovedFrom) {
    RowMap first(1, {0, 3, 7});
    const RowMap second = std::move(first);
    EXPECT_EQ(second.local_rows(), 4);
    EXPECT_EQ(first, second);
}
// NOLINTEND(bugprone-use-after-move)

}  // namespace
}  // namespace quiver

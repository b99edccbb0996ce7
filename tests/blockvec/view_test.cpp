// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/view.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/shape.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

static_assert(std::is_trivially_copyable_v<BlockView<double>>);
static_assert(std::is_convertible_v<BlockView<double>, BlockView<const double>>);
static_assert(!std::is_convertible_v<BlockView<const double>, BlockView<double>>);
static_assert(!std::is_convertible_v<BlockView<float>, BlockView<const double>>);

TEST(BlockView, IndexesRowsByTheirStride) {
    std::vector<int> memory(35);
    for (std::size_t i = 0; i < memory.size(); ++i) {
        memory[i] = static_cast<int>(i);
    }
    const BlockView<int> view(memory.data(), 5, 4, 7);
    EXPECT_EQ(view(3, 2), 3 * 7 + 2);
    EXPECT_EQ(view.columns(1, 3)(3, 2), 3 * 7 + 3);
    EXPECT_EQ(view.columns(1, 3).cols, 3);
    EXPECT_EQ(view.row_range(2, 3)(1, 0), 3 * 7);
    EXPECT_EQ(view.row_range(2, 3).rows, 3);
    const BlockView<const int> read_only = view;
    EXPECT_EQ(&read_only(4, 3), &view(4, 3));
    EXPECT_EQ(read_only.ld, 7);
}

TEST(BlockView, RefusesColumnsAndRowsThatAreNotThere) {
    std::vector<double> memory(12);
    const BlockView<double> view(memory.data(), 3, 4, 4);
    EXPECT_EQ(view.columns(4, 0).cols, 0);
    EXPECT_EQ(view.columns(0, 4).cols, 4);
    EXPECT_EQ(view.row_range(3, 0).rows, 0);
    constexpr int most = std::numeric_limits<int>::max();
    for (const auto& [first, count] :
         {std::pair{-1, 2}, {0, 5}, {3, 2}, {5, 0}, {0, -1}, {most, 1}, {1, most}, {most, most}}) {
        EXPECT_THROW(view.columns(first, count), ShapeError) << first << ' ' << count;
        EXPECT_THROW(view.row_range(first, count), ShapeError) << first << ' ' << count;
    }
    try {
        view.columns(3, 2);
    } catch (const ShapeError& error) {
        EXPECT_STREQ(error.what(), "columns: 2 from index 3 do not fit a view of size 4, 0 .. 3");
    }
}

TEST(BlockView, IsEmptyWithoutRowsOrColumns) {
    double value = 0;
    EXPECT_TRUE(BlockView<double>().empty());
    EXPECT_TRUE(BlockView<double>(&value, 0, 3, 3).empty());
    EXPECT_TRUE(BlockView<double>(&value, 3, 0, 3).empty());
    EXPECT_FALSE(BlockView<double>(&value, 1, 1, 1).empty());
}

TEST(RequireValid, RefusesViewsThatCannotBeTraversed) {
    double value = 0;
    const auto refused = [&](const BlockView<double>& view) {
        try {
            require_valid(view, "operation", "X");
        } catch (const ShapeError& error) {
            return std::string(error.what()).find("operation") == 0 &&
                   std::string(error.what()).find("X: ") != std::string::npos;
        }
        return false;
    };
    EXPECT_FALSE(refused({&value, 1, 1, 1}));
    EXPECT_FALSE(refused({nullptr, 0, 3, 3}));
    EXPECT_TRUE(refused({&value, -1, 1, 1}));
    EXPECT_TRUE(refused({&value, 1, -1, 1}));
    EXPECT_TRUE(refused({&value, 2, 3, 2}));
    EXPECT_TRUE(refused({nullptr, 2, 3, 3}));
    EXPECT_TRUE(refused({&value, std::numeric_limits<std::int64_t>::max() / 4, 1, 2}));
}

/// True if the views share a byte: marks the bytes of both in one arena and looks for a byte marked
/// twice.
template <class T, class U>
bool share_a_byte(const char* arena, std::size_t size, const BlockView<T>& a,
                  const BlockView<U>& b) {
    std::vector<int> marks(size, 0);
    const auto mark = [&](const auto& view, int bit) {
        for (std::int64_t i = 0; i < view.rows; ++i) {
            for (int j = 0; j < view.cols; ++j) {
                const auto at = reinterpret_cast<const char*>(&view(i, j)) - arena;
                for (std::size_t byte = 0; byte < sizeof(view(i, j)); ++byte) {
                    marks[static_cast<std::size_t>(at) + byte] |= bit;
                }
            }
        }
    };
    mark(a, 1);
    mark(b, 2);
    return std::find(marks.begin(), marks.end(), 3) != marks.end();
}

TEST(Overlap, AgreesWithMarkedBytesForEqualStrides) {
    constexpr std::size_t elements = 96;
    std::vector<double> memory(elements);
    const auto* arena = reinterpret_cast<const char*>(memory.data());
    auto generator = test::make_generator();
    const auto pick = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(generator);
    };
    int overlapping = 0;
    constexpr int trials = 20000;
    for (int trial = 0; trial < trials; ++trial) {
        const int ld = pick(1, 8);
        const auto random_view = [&] {
            const int cols = pick(0, ld);
            const int rows = pick(0, 5);
            return BlockView<double>(memory.data() + pick(0, 40), rows, cols, ld);
        };
        const auto a = random_view();
        const auto b = random_view();
        const bool expected = share_a_byte(arena, elements * sizeof(double), a, b);
        overlapping += expected ? 1 : 0;
        ASSERT_EQ(overlap(a, b), expected)
            << "ld " << ld << ": " << a.rows << " x " << a.cols << " at " << a.data - memory.data()
            << ", " << b.rows << " x " << b.cols << " at " << b.data - memory.data();
    }
    EXPECT_GT(overlapping, trials / 10);
    EXPECT_LT(overlapping, trials * 9 / 10);
}

TEST(Overlap, NeverMissesASharedByteOfDifferentStridesAndTypes) {
    constexpr std::size_t bytes = 1024;
    std::vector<double> memory(bytes / sizeof(double));
    const auto* arena = reinterpret_cast<const char*>(memory.data());
    auto* floats = reinterpret_cast<float*>(memory.data());
    auto generator = test::make_generator();
    const auto pick = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(generator);
    };
    int apart = 0;
    for (int trial = 0; trial < 5000; ++trial) {
        const int ld_a = pick(1, 8);
        const int ld_b = pick(1, 9);
        const BlockView<double> a(memory.data() + pick(0, 60), pick(1, 5), pick(1, ld_a), ld_a);
        const BlockView<float> b(floats + pick(0, 120), pick(1, 5), pick(1, ld_b), ld_b);
        const bool shared = share_a_byte(arena, bytes, a, b);
        const bool said = overlap(a, b);
        ASSERT_TRUE(said || !shared);
        apart += said ? 0 : 1;
    }
    EXPECT_GT(apart, 100);
}

TEST(Overlap, DistinguishesPlaces) {
    double value = 0;
    const BlockView<double> host(&value, 1, 1, 1, Place::host);
    const BlockView<double> device(&value, 1, 1, 1, Place::device);
    EXPECT_TRUE(overlap(host, host));
    EXPECT_FALSE(overlap(host, device));
    EXPECT_TRUE(same_block(host, host));
    EXPECT_FALSE(same_block(host, device));
}

}  // namespace
}  // namespace quiver

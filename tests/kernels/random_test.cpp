// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/random.hpp"

#include <gtest/gtest.h>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers: kat_vectors of the Random123 distribution.
TEST(Philox, GivesTheKnownWords) {
    constexpr std::uint32_t ones = 0xffffffffu;
    EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
              (Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
    EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
              (Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
    EXPECT_EQ(
        philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
        (Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Uniform, LiesInTheUnitIntervalAndDependsOnEveryArgument) {
    double sum = 0;
    for (std::int64_t row = 0; row < 4000; ++row) {
        const double value = uniform(7, row, 3);
        ASSERT_GE(value, 0.0);
        ASSERT_LT(value, 1.0);
        sum += value;
    }
    // Four standard deviations of the mean of 4000 numbers.
    EXPECT_NEAR(sum / 4000, 0.5, 4 * std::sqrt(1.0 / 12 / 4000));
    EXPECT_EQ(uniform(7, 1, 2), uniform(7, 1, 2));
    EXPECT_NE(uniform(7, 1, 2), uniform(8, 1, 2));
    EXPECT_NE(uniform(7, 1, 2), uniform(7, 2, 1));
    EXPECT_NE(uniform(7, 1, 2), uniform(7, 1, 2 + (std::int64_t{1} << 32)));
    EXPECT_NE(uniform(7, 1, 2), uniform(7, 1 + (std::int64_t{1} << 32), 2));
}

constexpr std::uint64_t seed = 0x123456789abcdef0u;

/// A part of the global block, by the reference.
template <class T>
Global<T> expected_block(std::int64_t first_row, int first_column, std::int64_t rows, int cols) {
    Global<T> block(rows, cols);
    reference::fill_random(
        RandomArgs<T>{rows, cols, seed, first_row, first_column, block.values.data(), cols});
    return block;
}

template <class T>
class FillRandom : public ::testing::Test {
  protected:
    Context ctx = make_context();
};
TYPED_TEST_SUITE(FillRandom, Scalars, ScalarName);

TYPED_TEST(FillRandom, GivesTheBitsOfTheReferenceForAnyShapeAndLayout) {
    using T = TypeParam;
    for (const int width : all_widths()) {
        for (const std::int64_t rows : {0, 1, 31, 33}) {
            const Layout layout = layouts[(static_cast<std::size_t>(rows) + 2) % 3];
            const std::int64_t first_row = (std::int64_t{1} << 32) - 5;
            TestBlock<T> block(this->ctx, poisoned_global<T>(rows, width), layout,
                               this->ctx.place());
            fill_random(this->ctx, seed, first_row, 9, block.view());
            expect_same_bits(block.result(), expected_block<T>(first_row, 9, rows, width));
        }
    }
}

TYPED_TEST(FillRandom, GivesTheSameGlobalBlockForAnyDistribution) {
    using T = TypeParam;
    const auto global = expected_block<T>(0, 0, 1003, 5);
    for (const RowMap& map :
         {uneven_map(this->ctx, 1003), RowMap::by_rows(this->ctx.comm(), 1003)}) {
        BlockVector<T> block(this->ctx, map, 5, 7);
        fill_random(this->ctx, seed, block);
        Global<T> mine(map.local_rows(), 5);
        copy(this->ctx, block.view(), BlockView<T>(mine.values.data(), mine.rows, 5, 5));
        Global<T> expected(map.local_rows(), 5);
        for (std::int64_t i = 0; i < mine.rows; ++i) {
            for (int j = 0; j < 5; ++j) {
                expected(i, j) = global(map.first_row() + i, j);
            }
        }
        expect_same_bits(mine, expected);
    }
}

TYPED_TEST(FillRandom, GivesTheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    const auto expected = expected_block<T>(3, 1, 4001, 3);
    for (const int threads : {1, 2, 3, 7}) {
        Context ctx(Comm(MPI_COMM_WORLD), Device::host(threads));
        TestBlock<T> block(ctx, poisoned_global<T>(4001, 3), layouts[2], Place::host);
        fill_random(ctx, seed, 3, 1, block.view());
        expect_same_bits(block.result(), expected);
    }
}

TYPED_TEST(FillRandom, FillsTheIntervalFromMinusOneToOne) {
    using T = TypeParam;
    const auto block = expected_block<T>(0, 0, 1000, 4);
    double sum = 0;
    for (const T& value : block.values) {
        ASSERT_GE(real_part(value), -1);
        ASSERT_LT(real_part(value), 1);
        sum += static_cast<double>(real_part(value));
    }
    EXPECT_NEAR(sum / 4000, 0.0, 4 * std::sqrt(1.0 / 3 / 4000));
}

TYPED_TEST(FillRandom, RejectsABlockElsewhere) {
    using T = TypeParam;
    TestBlock<T> block(this->ctx, Global<T>(4, 4), layouts[0], this->ctx.place());
    auto elsewhere = block.view();
    elsewhere.place = test_place() == Place::host ? Place::device : Place::host;
    EXPECT_THROW(fill_random(this->ctx, seed, 0, 0, elsewhere), ShapeError);
    EXPECT_THROW(fill_random(this->ctx, seed, -1, 0, block.view()), ShapeError);
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// The checksums of a block locate changed words and restore them.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/abft/checksum.hpp"
#include "tests/solvers/abft_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class AbftChecksum : public ::testing::Test {
  protected:
    /// Flips a bit of an element, counted over its real and imaginary part.
    void flip(const BlockView<T>& x, std::int64_t row, int column, int bit) {
        std::array<unsigned char, 8> mask{};
        mask[static_cast<std::size_t>(bit % 32 / 8)] = static_cast<unsigned char>(1 << bit % 8);
        char* const element = reinterpret_cast<char*>(x.data + row * x.ld + column);
        flip_bits(ctx, element + bit / 32 * 4, std::span<const unsigned char>(mask).first(4));
    }
    std::int64_t any_row(std::int64_t rows) {
        return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(rows));
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
TYPED_TEST_SUITE(AbftChecksum, Scalars, ScalarName);

TYPED_TEST(AbftChecksum, EveryBitIsLocatedAndRestored) {
    using T = TypeParam;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    for (const int log_chunk : {12, 14, 16}) {
        const std::int64_t rows = (std::int64_t{1} << log_chunk) * 2 - this->any_row(4000);
        const Global<T> values = random_global<T>(this->generator, rows, 3);
        TestBlock<T> block(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const BlockView<T> x = block.view();
        const Checksum<T> before(this->ctx, x, {}, log_chunk);
        const int step = log_chunk == 12 ? 1 : 13;
        for (int bit = static_cast<int>(this->generator() % static_cast<unsigned>(step));
             bit < bits; bit += step) {
            const std::int64_t edges[] = {0, (std::int64_t{1} << log_chunk) - 1, rows - 1};
            const std::int64_t row = bit % 8 < 3 ? edges[bit % 8] : this->any_row(rows);
            const int column = static_cast<int>(this->generator() % 3);
            SCOPED_TRACE("chunks of 2^" + std::to_string(log_chunk) + ", row " +
                         std::to_string(row) + " of " + std::to_string(rows) + ", bit " +
                         std::to_string(bit));
            this->flip(x, row, column, bit);
            const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
            ASSERT_EQ(found.size(), 1u);
            EXPECT_EQ(found.front().chunk, row >> log_chunk);
            EXPECT_EQ(found.front().row, row);
            EXPECT_EQ(found.front().column, column);
            ASSERT_TRUE(restore(this->ctx, x, found.front(), before));
            expect_same_bits(block.result(), values);
        }
    }
}

/// The last rows have small factors, and the halves of a word may borrow: flips each bit in both
/// directions.
TYPED_TEST(AbftChecksum, EveryBitOfTheLastRowsIsLocated) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    const std::int64_t rows = 4096 + 5;
    const Global<T> values = random_global<T>(this->generator, rows, 1);
    TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
    const BlockView<T> x = block.view();
    for (const std::int64_t row : {rows - 1, rows - 2, rows - 3, rows - 5}) {
        for (int bit = 0; bit < bits; ++bit) {
            for (int way = 0; way < 2; ++way) {
                const Checksum<T> before(this->ctx, x, {}, log_chunk);
                this->flip(x, row, 0, bit);
                const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
                ASSERT_EQ(found.size(), 1u);
                EXPECT_EQ(found.front().row, row) << "bit " << bit << " of row " << row;
                ASSERT_TRUE(restore(this->ctx, x, found.front(), before));
                this->flip(x, row, 0, bit);
            }
        }
    }
    expect_same_bits(block.result(), values);
}

/// An element is restored even if sums are NaN or infinite.
TYPED_TEST(AbftChecksum, BesideElementsThatAreNotNumbers) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    for (const int cols : {1, 3, 7}) {
        const std::int64_t rows = 2 * 4096 - 7;
        Global<T> values = random_global<T>(this->generator, rows, cols);
        for (int j = 0; j < cols; ++j) {
            values(100, j) = poison<T>();
            values(j % 2 == 0 ? rows - 1 : 4095, j) = -poison<T>();
            values(5000, j) = poison<T>();
        }
        TestBlock<T> block(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const BlockView<T> x = block.view();
        const Checksum<T> before(this->ctx, x, {}, log_chunk);
        for (int trial = 0; trial < 20; ++trial) {
            const std::int64_t row = this->any_row(rows);
            this->flip(x, row, static_cast<int>(this->generator() % static_cast<unsigned>(cols)),
                       static_cast<int>(this->generator() % bits));
            const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
            bool restored = false;
            for (const FaultyChunk& fault : found) {
                restored = restore(this->ctx, x, fault, before) || restored;
            }
            EXPECT_TRUE(restored);
            expect_same_bits(block.result(), values);
        }
    }
}

/// One changed element in every column is restored, whether it has become infinite, NaN or another
/// number.
TYPED_TEST(AbftChecksum, OneElementOfEachColumnIsRestored) {
    using T = TypeParam;
    using Real = real_t<T>;
    constexpr int log_chunk = 12;
    const Global<T> values = random_global<T>(this->generator, 9000, 6);
    for (int trial = 0; trial < 20; ++trial) {
        Global<T> struck = values;
        const std::int64_t chunk = trial % 2;
        for (int j = 0; j < 6; ++j) {
            const T others[] = {T(std::numeric_limits<Real>::infinity()),
                                poison<T>(),
                                T(0),
                                random_value<T>(this->generator),
                                -values(0, j),
                                T(std::numeric_limits<Real>::max())};
            struck((chunk << log_chunk) + this->any_row(4096), j) =
                others[static_cast<std::size_t>(trial + j) % 6];
        }
        TestBlock<T> right(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const Checksum<T> before(this->ctx, right.view(), {}, log_chunk);
        TestBlock<T> block(this->ctx, struck, any_layout(this->generator), this->ctx.place());
        const auto found =
            Checksum<T>(this->ctx, block.view(), {}, log_chunk).changed_since(before);
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found.front().chunk, chunk);
        EXPECT_EQ(found.front().row, -1);  // six rows
        ASSERT_TRUE(restore(this->ctx, block.view(), found.front(), before));
        expect_same_bits(block.result(), values);
    }
}

/// Two changed elements of a column are found and not repaired, even if both have changed by the
/// same amount, which looks like twice that change in a row between them. Only bits above the
/// rounding of the floating-point sums are flipped: smaller changes appear in the word sums only,
/// which cannot distinguish these cases.
TYPED_TEST(AbftChecksum, TwoElementsOfAColumnAreNotRepaired) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(real_t<T>)) * 8;
    for (int trial = 0; trial < 200; ++trial) {
        Global<T> values = random_global<T>(this->generator, 4096, 2);
        const T constant = values(0, 0);
        if (trial % 2 == 0) {
            std::fill(values.values.begin(), values.values.end(), constant);
        }
        TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
        const BlockView<T> x = block.view();
        const Checksum<T> before(this->ctx, x, {}, log_chunk);
        const int bit =
            bits / 2 + static_cast<int>(this->generator() % static_cast<unsigned>(bits / 2));
        const std::int64_t row = this->any_row(4096);
        this->flip(x, row, 1, bit);
        this->flip(x, (row + 1 + this->any_row(4095)) % 4096, 1, bit);
        const Global<T> struck = block.result();
        const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
        ASSERT_EQ(found.size(), 1u) << "bit " << bit;
        EXPECT_EQ(found.front().column, 1);
        EXPECT_FALSE(restore(this->ctx, x, found.front(), before)) << "bit " << bit;
        expect_same_bits(block.result(), struck);
    }
}

TYPED_TEST(AbftChecksum, WithoutWordSumsFaultsAreFoundButNotLocated) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(real_t<T>)) * 8;
    const Global<T> values = random_global<T>(this->generator, 5000, 2);
    TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
    const BlockView<T> x = block.view();
    const Checksum<T> before(this->ctx, x, {}, log_chunk, WordSums::no);
    this->flip(x, 4321, 1, bits - 1);
    const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found.front().chunk, 1);
    EXPECT_EQ(found.front().row, -1);
    EXPECT_FALSE(restore(this->ctx, x, found.front(), before));
}

TYPED_TEST(AbftChecksum, RefusesSumsOfAnotherBlock) {
    using T = TypeParam;
    const Global<T> values = random_global<T>(this->generator, 9000, 3);
    TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
    const BlockView<T> x = block.view();
    const Checksum<T> sums(this->ctx, x, {}, 12);
    EXPECT_NO_THROW(sums.changed_since(Checksum<T>(this->ctx, x.columns(0, 2), {}, 12), 1));
    EXPECT_THROW(sums.changed_since(Checksum<T>(this->ctx, x.columns(0, 2), {}, 12), 2),
                 ShapeError);
    EXPECT_THROW(sums.changed_since(Checksum<T>(this->ctx, x.row_range(0, 8999), {}, 12)),
                 ShapeError);
    EXPECT_THROW(sums.changed_since(Checksum<T>(this->ctx, x, {}, 13)), ShapeError);
}

/// correct() restores a block from a right copy of it.
TYPED_TEST(AbftChecksum, ARightCopyRestoresTheBlock) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    const Global<T> values = random_global<T>(this->generator, 20000, 5);
    TestBlock<T> twin(this->ctx, values, any_layout(this->generator), this->ctx.place());
    for (const bool write : {false, true}) {
        TestBlock<T> block(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const BlockView<T> x = block.view();
        this->flip(x, 100, 2, bits / 2);
        this->flip(x, 9000, 4, bits - 1);
        this->flip(x, 9001, 4, bits - 1);
        const Global<T> struck = block.result();
        const Correction correction = correct(this->ctx, x, twin.const_view(), log_chunk, write);
        EXPECT_EQ(correction.rows, 1);
        EXPECT_EQ(correction.chunks, 1);
        expect_same_bits(block.result(), write ? values : struck);
    }
}

}  // namespace
}  // namespace quiver::test

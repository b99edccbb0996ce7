// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/block_vector.hpp"

#include <complex>
#include <cstdint>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "blockvec/small_matrix.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

TEST(BlockVector, ChangesWidthWithoutTouchingMemory) {
    const Context ctx = test::make_context();
    BlockVector<double> block(ctx, RowMap::by_rows(ctx.comm(), 103), 3, 10);
    const double* memory = block.view().data;
    for (const int width : {0, 1, 10, 7}) {
        block.set_width(width);
        EXPECT_EQ(block.width(), width);
        EXPECT_EQ(block.view().cols, width);
        EXPECT_EQ(block.view().ld, 10);
        EXPECT_EQ(block.view().data, memory);
    }
    EXPECT_THROW(block.set_width(11), ShapeError);
    EXPECT_THROW(block.set_width(-1), ShapeError);
    EXPECT_EQ(block.width(), 7);
}

TEST(BlockVector, HasTheRowsOfItsMap) {
    const Context ctx = test::make_context();
    for (const std::int64_t rows : {0, 1, 2, 1001}) {
        const RowMap map = RowMap::by_rows(ctx.comm(), rows);
        const BlockVector<std::complex<float>> block(ctx, map, 5);
        EXPECT_EQ(block.rows(), map.local_rows());
        EXPECT_EQ(block.view().rows, map.local_rows());
        EXPECT_EQ(block.row_map(), map);
        EXPECT_EQ(block.place(), ctx.place());
        EXPECT_EQ(block.view().place, ctx.place());
        EXPECT_EQ(block.capacity(), 5);
        EXPECT_EQ(ctx.comm().sum(block.rows()), rows);
    }
}

TEST(BlockVector, GivesColumnsAnywhereWithinItsCapacity) {
    const Context ctx = test::make_context();
    BlockVector<float> block(ctx, RowMap::by_rows(ctx.comm(), 50), 2, 8);
    const auto view = block.columns(3, 5);
    EXPECT_EQ(view.data, block.view().data + 3);
    EXPECT_EQ(view.cols, 5);
    EXPECT_EQ(view.ld, 8);
    EXPECT_EQ(std::as_const(block).columns(8, 0).cols, 0);
    EXPECT_THROW(block.columns(3, 6), ShapeError);
    EXPECT_THROW(block.columns(-1, 2), ShapeError);
    EXPECT_THROW(block.columns(0, -1), ShapeError);
    EXPECT_THROW(block.columns(1, std::numeric_limits<int>::max()), ShapeError);
}

TEST(BlockVector, MovesItsMemory) {
    const Context ctx = test::make_context();
    BlockVector<double> first(ctx, RowMap::by_rows(ctx.comm(), 40), 3);
    const double* memory = first.view().data;
    BlockVector<double> second = std::move(first);
    EXPECT_EQ(second.view().data, memory);
    first = std::move(second);
    EXPECT_EQ(first.view().data, memory);
}

TEST(BlockVector, LivesOnTheHostOfADeviceContextToo) {
    const Context ctx = test::make_context();
    BlockVector<half_t> block(ctx, RowMap::by_rows(ctx.comm(), 20), 3, 4, Place::host);
    EXPECT_EQ(block.place(), Place::host);
    for (std::int64_t i = 0; i < block.rows(); ++i) {
        block.view()(i, 2) = to_half(1.5f);
        EXPECT_EQ(block.view()(i, 2).bits, 0x3e00);
    }
}

TEST(BlockVector, RefusesImpossibleSizes) {
    const Context ctx = test::make_context();
    const RowMap map = RowMap::by_rows(ctx.comm(), 10);
    EXPECT_THROW(BlockVector<double>(ctx, map, -1), ShapeError);
    EXPECT_THROW(BlockVector<double>(ctx, map, 1, -1), ShapeError);
    const RowMap huge(0, {0, std::numeric_limits<std::int64_t>::max() / 2});
    EXPECT_THROW(BlockVector<double>(ctx, huge, 100), MemoryError);
}

TEST(SmallMatrix, IsARowMajorViewOfZeros) {
    SmallMatrix<double> matrix(3, 4);
    EXPECT_EQ(matrix(2, 3), 0.0);
    matrix(1, 2) = 7;
    const BlockView<const double> view = matrix;
    EXPECT_EQ(view(1, 2), 7.0);
    EXPECT_EQ(view.data[1 * 4 + 2], 7.0);
    EXPECT_EQ(view.place, Place::host);
    const auto identity = SmallMatrix<double>::identity(3);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            EXPECT_EQ(identity(i, j), i == j ? 1.0 : 0.0);
        }
    }
}

// NOLINTBEGIN(bugprone-use-after-move): tests the state after a move
TEST(BlockVector, HasNoColumnsOnceMovedFrom) {
    const Context ctx = test::make_context();
    const RowMap map = RowMap::by_rows(ctx.comm(), 20);
    BlockVector<double> first(ctx, map, 3, 5);
    BlockVector<double> second(std::move(first));
    BlockVector<double> third;
    third = std::move(second);
    EXPECT_EQ(third.width(), 3);
    EXPECT_EQ(third.row_map(), map);
    for (BlockVector<double>* const empty : {&first, &second}) {
        EXPECT_EQ(empty->rows(), map.local_rows());
        EXPECT_EQ(empty->width(), 0);
        EXPECT_EQ(empty->capacity(), 0);
        EXPECT_TRUE(empty->view().empty());
        EXPECT_THROW(empty->set_width(1), ShapeError);
        EXPECT_THROW(empty->columns(0, 1), ShapeError);
    }
    first = BlockVector<double>(ctx, map, 2);
    EXPECT_EQ(first.width(), 2);
}
// NOLINTEND(bugprone-use-after-move)

// NOLINTBEGIN(bugprone-use-after-move): tests the state after a move
TEST(SmallMatrix, IsEmptyOnceMovedFrom) {
    SmallMatrix<double> first(3, 4);
    SmallMatrix<double> second(std::move(first));
    SmallMatrix<double> third;
    third = std::move(second);
    EXPECT_EQ(third.cols(), 4);
    for (const SmallMatrix<double>* const empty : {&first, &second}) {
        EXPECT_EQ(empty->rows(), 0);
        EXPECT_TRUE(empty->view().empty());
    }
}
// NOLINTEND(bugprone-use-after-move)

}  // namespace
}  // namespace quiver

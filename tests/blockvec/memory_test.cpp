// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/memory.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

TEST(Memory, AlignsTo256Bytes) {
    const Context ctx = test::make_context();
    for (const std::size_t bytes : {1, 255, 256, 257, 100000}) {
        const Buffer buffer = ctx.allocate(memory_kind(ctx.place()), bytes, "test");
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.as<void>()) % 256, 0u);
        EXPECT_EQ(buffer.bytes(), bytes);
    }
    EXPECT_EQ(ctx.allocate(memory_kind(ctx.place()), 0, "test").as<void>(), nullptr);
}

TEST(Memory, ReportsTheMissingBytesAndTheirPurpose) {
    const Context ctx = test::make_context();
    for (const std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX}) {
        try {
            ctx.allocate(memory_kind(ctx.place()), bytes, "a basis");
            FAIL() << "nothing was thrown";
        } catch (const MemoryError& error) {
            const std::string text = error.what();
            EXPECT_EQ(text.find("a basis: "), 0u) << text;
            EXPECT_NE(text.find(std::to_string(bytes)), std::string::npos) << text;
            EXPECT_NE(text.find(to_string(ctx.place())), std::string::npos) << text;
        }
    }
    // The Context is still usable.
    EXPECT_NE(ctx.allocate(memory_kind(ctx.place()), 64, "test").as<void>(), nullptr);
}

TEST(Scratch, IsUsedAgain) {
    const Context ctx = test::make_context();
    const MemoryKind kind = memory_kind(ctx.place());
    void* first = nullptr;
    {
        const Scratch scratch = ctx.scratch(kind, 10000);
        first = scratch.as<void>();
        ASSERT_NE(first, nullptr);
    }
    for (const std::size_t bytes : {10000, 1, 9999, 16384}) {
        EXPECT_EQ(ctx.scratch(kind, bytes).as<void>(), first) << bytes;
    }
    EXPECT_NE(ctx.scratch(kind, 1 << 20).as<void>(), first);
}

TEST(Scratch, IsNotSharedWhileItIsHeld) {
    const Context ctx = test::make_context();
    const MemoryKind kind = memory_kind(ctx.place());
    std::set<void*> held;
    {
        const Scratch a = ctx.scratch(kind, 5000);
        const Scratch b = ctx.scratch(kind, 5000);
        const Scratch c = ctx.scratch(kind, 100);
        held = {a.as<void>(), b.as<void>(), c.as<void>()};
        EXPECT_EQ(held.size(), 3u);
    }
    // A request gets the smallest block that suffices, so that large blocks remain for large
    // requests.
    const Scratch small = ctx.scratch(kind, 100);
    const Scratch large = ctx.scratch(kind, 5000);
    const Scratch large_too = ctx.scratch(kind, 5000);
    EXPECT_EQ((std::set<void*>{small.as<void>(), large.as<void>(), large_too.as<void>()}), held);
}

TEST(Memory, OutlivesTheContextWithItsOwners) {
    std::optional<Context> ctx(test::make_context());
    const Place place = ctx->place();
    BlockVector<double> block(*ctx, RowMap::by_rows(ctx->comm(), 100), 4);
    const std::shared_ptr<Memory> memory = ctx->memory();
    ctx.reset();
    EXPECT_EQ(memory.use_count(), 2);
    if (place == Place::host && block.rows() > 0) {
        block.view()(0, 3) = 5;
        EXPECT_EQ(block.view()(0, 3), 5);
    }
    block = BlockVector<double>();
    EXPECT_EQ(memory.use_count(), 1);
}

}  // namespace
}  // namespace quiver

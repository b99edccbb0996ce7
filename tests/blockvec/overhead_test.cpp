// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/overhead.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

TEST(Overhead, IsCountedByKind) {
    Context ctx = test::make_context();
    OverheadCounts& counts = OverheadCounts::of(ctx);
    EXPECT_EQ(&counts, &OverheadCounts::of(ctx));
    counts.count(Overhead::upload, 8);
    counts.count(Overhead::upload, 16, 0.5);
    EXPECT_EQ(counts[Overhead::upload].count, 2);
    EXPECT_EQ(counts[Overhead::upload].bytes, 24.0);
    EXPECT_EQ(counts[Overhead::upload].seconds, 0.5);
    EXPECT_EQ(counts[Overhead::result].count, 0);
    counts.clear();
    EXPECT_EQ(counts[Overhead::upload].count, 0);
    EXPECT_EQ(std::string(to_string(Overhead::late_result)), "late result");
}

TEST(Overhead, IsTimedWhereAsked) {
    Context ctx = test::make_context();
    OverheadCounts& counts = OverheadCounts::of(ctx);
    const auto pause = [&](Overhead kind, bool always) {
        const OverheadCounts::Pause timed(ctx, kind, 3, always);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    pause(Overhead::result, false);
    EXPECT_EQ(counts[Overhead::result].count, 1);
    EXPECT_EQ(counts[Overhead::result].bytes, 3.0);
    EXPECT_EQ(counts[Overhead::result].seconds, 0.0) << "timing is off";
    pause(Overhead::kernel_load, true);
    EXPECT_GE(counts[Overhead::kernel_load].seconds, 0.005);
    ctx.ledger().set_timing(true);
    pause(Overhead::result, false);
    EXPECT_EQ(counts[Overhead::result].count, 2);
    EXPECT_GE(counts[Overhead::result].seconds, 0.005);
}

}  // namespace
}  // namespace quiver

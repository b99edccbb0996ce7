// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/ledger.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

KernelCall call(const char* name, Place place, std::int64_t rows, double bytes) {
    return {name, Dtype::d, place, rows, 3, 4, bytes, 2 * bytes};
}

TEST(Ledger, AddsUpCallsOfOneShape) {
    Context ctx = test::make_context();
    Ledger& ledger = ctx.ledger();
    for (int i = 0; i < 3; ++i) {
        const Ledger::Entry entry(ledger, call("one", ctx.place(), 10, 100.0));
    }
    { const Ledger::Entry entry(ledger, call("one", ctx.place(), 11, 7.0)); }
    { const Ledger::Entry entry(ledger, call("two", ctx.place(), 10, 1000.0)); }
    const auto records = ledger.records();
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(std::string(records[0].call.name), "two");
    EXPECT_EQ(records[1].calls, 3);
    EXPECT_EQ(records[1].bytes, 300.0);
    EXPECT_EQ(records[1].flops, 600.0);
    EXPECT_EQ(records[1].call.rows, 10);
    EXPECT_EQ(records[2].call.rows, 11);
    for (const auto& record : records) {
        EXPECT_EQ(record.seconds, 0.0) << "timing is off";
    }
    ledger.clear();
    EXPECT_TRUE(ledger.records().empty());
}

TEST(Ledger, TimesHostCallsByTheClock) {
    Context ctx = test::make_context();
    ctx.ledger().set_timing(true);
    const auto begin = std::chrono::steady_clock::now();
    {
        const Ledger::Entry entry(ctx.ledger(), call("sleep", Place::host, 1, 1.0));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    { const Ledger::Entry entry(ctx.ledger(), call("nothing", Place::host, 1, 1.0)); }
    const std::chrono::duration<double> both = std::chrono::steady_clock::now() - begin;
    const auto records = ctx.ledger().records();
    ASSERT_EQ(records.size(), 2u);
    // The longer call comes first; on a busy machine either may be longer.
    const bool sleep_is_first = std::string(records[0].call.name) == "sleep";
    EXPECT_GE(records[sleep_is_first ? 0 : 1].seconds, 0.020);
    EXPECT_GE(records[0].seconds, records[1].seconds);
    EXPECT_LE(records[0].seconds + records[1].seconds, both.count());
}

TEST(Ledger, TimesDeviceCallsByEventsOnTheStream) {
    Context ctx = test::make_context();
    if (ctx.place() == Place::host) {
        GTEST_SKIP() << "needs QUIVER_TEST_PLACE=device";
    }
    constexpr std::size_t bytes = std::size_t{1} << 30;
    const Buffer buffer = ctx.allocate(MemoryKind::device, bytes, "test");
    ctx.ledger().set_timing(true);
    // The ledger keeps events for fewer calls than these.
    constexpr int calls = 5000;
    for (int i = 0; i < calls; ++i) {
        const Ledger::Entry entry(ctx.ledger(), call("small", Place::device, 1, 1.0));
    }
    {
        const Ledger::Entry entry(ctx.ledger(), call("zero", Place::device, 1, 1.0));
        device::set_zero(buffer.as<void>(), bytes, ctx.stream());
    }
    double zero_seconds = 0;
    for (const auto& record : ctx.ledger().records()) {
        if (std::string(record.call.name) == "zero") {
            zero_seconds = record.seconds;
        } else {
            EXPECT_EQ(record.calls, calls);
        }
    }
    // No memory writes faster than 100 TB/s.
    EXPECT_GT(zero_seconds, static_cast<double>(bytes) / 100e12);
}

}  // namespace
}  // namespace quiver

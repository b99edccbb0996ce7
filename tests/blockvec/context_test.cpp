// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/context.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// A service like those that the upper floors attach to a Context.
struct Handle {
    explicit Handle(const Context& ctx) : stream(ctx.stream()) { ++alive; }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { --alive; }
    Stream stream;
    int uses = 0;
    static inline int alive = 0;
};
struct OtherHandle : Handle {
    using Handle::Handle;
};

TEST(Context, MakesAServiceOnceAndEndsItWithItself) {
    ASSERT_EQ(Handle::alive, 0);
    {
        Context ctx = test::make_context();
        ++ctx.service<Handle>().uses;
        ++ctx.service<Handle>().uses;
        EXPECT_EQ(ctx.service<Handle>().uses, 2);
        EXPECT_EQ(ctx.service<Handle>().stream, ctx.stream());
        EXPECT_EQ(Handle::alive, 1);
        EXPECT_EQ(ctx.service<OtherHandle>().uses, 0);
        EXPECT_EQ(Handle::alive, 2);
        Context moved = std::move(ctx);
        EXPECT_EQ(moved.service<Handle>().uses, 2);
    }
    EXPECT_EQ(Handle::alive, 0);
}

TEST(Context, TwoDoNotDisturbEachOther) {
    Context one = test::make_context();
    Context two = test::make_context();
    std::vector<std::string> heard;
    one.set_event_sink(
        [&](const Event& event) { heard.push_back(std::get<NoticeEvent>(event).text); });
    one.emit(NoticeEvent{"to one"});
    two.emit(NoticeEvent{"to two"});
    EXPECT_EQ(heard, std::vector<std::string>{"to one"});

    { const Ledger::Entry entry(one.ledger(), {"kernel", Dtype::d, one.place(), 1, 1, 1, 8, 2}); }
    EXPECT_EQ(one.ledger().records().size(), 1u);
    EXPECT_TRUE(two.ledger().records().empty());

    one.service<Handle>().uses = 9;
    EXPECT_EQ(two.service<Handle>().uses, 0);

    int relation = 0;
    MPI_Comm_compare(one.comm().handle(), two.comm().handle(), &relation);
    EXPECT_EQ(relation, MPI_CONGRUENT);
    const MemoryKind kind = memory_kind(one.place());
    void* of_one = nullptr;
    { of_one = one.scratch(kind, 4096).as<void>(); }
    EXPECT_NE(two.scratch(kind, 4096).as<void>(), of_one);
    if (one.place() == Place::device) {
        EXPECT_NE(one.stream(), two.stream());
        EXPECT_NE(one.stream(), nullptr);
        EXPECT_NE(one.counters(), two.counters());
    }
}

TEST(Context, TakesTheThreadsItIsGiven) {
    EXPECT_EQ(Context(Comm(), Device::host(3)).threads(), 3);
    EXPECT_GE(Context().threads(), 1);
    EXPECT_EQ(Context().place(), Place::host);
    EXPECT_EQ(Context().comm().size(), 1);
}

TEST(Context, RefusesAGpuThatIsNotThere) {
    const int gpus = device::count();
    EXPECT_THROW(Context(Comm(), Device::cuda(gpus)), UnsupportedError);
    EXPECT_THROW(Context(Comm(), Device::cuda(-1)), UnsupportedError);
    EXPECT_EQ(device::why_none().empty(), gpus > 0);
}

TEST(Context, CountersStartAtZero) {
    Context ctx = test::make_context();
    if (ctx.place() == Place::host) {
        GTEST_SKIP() << "needs QUIVER_TEST_PLACE=device";
    }
    std::vector<unsigned> words(1024, 1);
    device::copy(words.data(), ctx.counters(), words.size() * sizeof(unsigned), ctx.stream());
    ctx.synchronize();
    EXPECT_EQ(std::count(words.begin(), words.end(), 0u), 1024);
    EXPECT_EQ(ctx.counters(), ctx.counters());
}

// NOLINTBEGIN(bugprone-use-after-move): tests the state after a move
TEST(Context, RefusesToWorkOnceMovedFrom) {
    Context first = test::make_context();
    const int ranks = first.comm().size();
    Context second(std::move(first));
    EXPECT_EQ(second.allocate(MemoryKind::host, 8, "words").bytes(), 8u);
    EXPECT_THROW(first.allocate(MemoryKind::host, 8, "words"), InputError);
    EXPECT_THROW(first.scratch(MemoryKind::host, 8), InputError);
    EXPECT_THROW(first.ledger(), InputError);
    EXPECT_THROW(first.stream(), InputError);
    EXPECT_THROW(first.memory(), InputError);
    EXPECT_THROW(first.service<Handle>(), InputError);
    EXPECT_EQ(first.comm().size(), ranks);
    first = std::move(second);
    EXPECT_NE(first.scratch(MemoryKind::host, 8).as<char>(), nullptr);
}
// NOLINTEND(bugprone-use-after-move)

}  // namespace
}  // namespace quiver

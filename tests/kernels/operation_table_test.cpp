// SPDX-License-Identifier: BSD-3-Clause
// Tests that every operation has a protected form or a stated reason why it has none, and that
// calls of protected operations reach the policy.
#include "kernels/operation_table.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "kernels/tsmttsm.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

/// Counts the calls of each operation and executes none.
template <class T>
class CountingOperations final : public BlockOperations<T> {
  public:
    using Block = BlockView<const T>;
    void tsmm(Context&, T, Block, Block, T, BlockView<T>) override { ++calls["tsmm"]; }
    void tsmm(Context&, T, Block, Block, T, BlockView<T>, Block) override { ++calls["tsmm D"]; }
    void tsmttsm(Context&, T, Block, Block, T, BlockView<T>, Reduce) override {
        ++calls["tsmttsm"];
    }
    void tsmm_gram(Context&, T, Block, Block, T, BlockView<T>, BlockView<T>, Reduce) override {
        ++calls["tsmm_gram"];
    }
    void axpby(Context&, T, Block, T, BlockView<T>) override { ++calls["axpby"]; }
    void axpby(Context&, std::span<const T>, Block, std::span<const T>, BlockView<T>) override {
        ++calls["axpby columns"];
    }

    std::map<std::string, int> calls;
};

TEST(OperationTable, EveryOperationIsProtectedOrSaysWhyNot) {
    std::set<const void*> seen;
    for (const operations::Summary& summary : operations::all) {
        EXPECT_FALSE(summary.name.empty());
        EXPECT_NE(summary.is_protected, !summary.reason.empty()) << summary.name;
        EXPECT_TRUE(seen.insert(summary.operation).second) << summary.name << " is listed twice";
    }
}

TEST(OperationTable, ProtectedOperationsReachThePolicyAndNoKernel) {
    using T = double;
    using Calls = std::map<std::string, int>;
    Context ctx = make_context();
    CountingOperations<T> counting;
    BlockPolicy policy;
    policy.operations.get<double>() = &counting;
    const RowMap map = RowMap::by_rows(ctx.comm(), 8);
    BlockVector<T> x(ctx, map, 2);
    BlockVector<T> y(ctx, map, 2);
    SmallMatrix<T> small(2, 2);
    const std::vector<T> scalars(2, T(2));
    const auto c = small.view();
    const std::map<std::string_view, std::pair<Calls, std::function<void()>>> cases{
        {"tsmttsm", {{{"tsmttsm", 1}}, [&] { tsmttsm(ctx, 1, x.view(), y.view(), 0, c); }}},
        {"tsmm",
         {{{"tsmm", 1}, {"tsmm D", 1}},
          [&] {
              tsmm(ctx, 1, x.view(), c, 0, y.view());
              tsmm(ctx, 1, x.view(), c, 1, y.view(), c);
          }}},
        {"tsmm_gram",
         {{{"tsmm_gram", 1}}, [&] { tsmm_gram(ctx, 1, x.view(), c, 0, y.view(), c); }}},
        {"axpby",
         {{{"axpby", 1}, {"axpby columns", 1}},
          [&] {
              axpby(ctx, 2, x.view(), 1, y.view());
              axpby<T>(ctx, scalars, x.view(), scalars, y.view());
          }}},
        {"scale", {{{"axpby", 1}, {"axpby columns", 1}}, [&] {
                       scale(ctx, 2, y.view());
                       scale<T>(ctx, scalars, y.view());
                   }}}};
    for (const operations::Summary& summary : operations::all) {
        if (!summary.is_protected) {
            continue;
        }
        const auto found = cases.find(summary.name);
        ASSERT_NE(found, cases.end()) << summary.name << " is protected, but not tested here";
        counting.calls.clear();
        ctx.ledger().clear();
        const ScopedPolicy scoped(ctx, &policy);
        found->second.second();
        EXPECT_EQ(counting.calls, found->second.first) << summary.name;
        EXPECT_TRUE(ctx.ledger().records().empty()) << summary.name;
    }
}

}  // namespace
}  // namespace quiver::test

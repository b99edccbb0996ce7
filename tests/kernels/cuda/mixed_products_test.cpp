// SPDX-License-Identifier: BSD-3-Clause
// Tests on a GPU that random plans of the mixed-precision products give exact sums of small
// integers.
#include "kernels/cuda/mixed_products.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/planner.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
Global<T> integers(std::mt19937_64& generator, std::int64_t rows, int cols) {
    return Global<T>(rows, cols, [&] {
        return reference::converted<T>(static_cast<double>(integer_value<float>(generator)));
    });
}

template <class T>
class MixedProducts : public ::testing::Test {
  protected:
    void SetUp() override {
        if (test_place() == Place::host) {
            GTEST_SKIP() << "plans are for kernels on a GPU";
        }
    }
    int width() {
        // Half of the widths are small, where plans differ most.
        return static_cast<int>(generator() % (generator() % 2 == 0 ? 12 : 64)) + 1;
    }

    std::mt19937_64 generator = make_generator();
};
using Shorts = ::testing::Types<half_t, bfloat16_t>;
TYPED_TEST_SUITE(MixedProducts, Shorts, ScalarName);

TYPED_TEST(MixedProducts, AnyPlanOfTsmttsmIsRight) {
    using T = TypeParam;
    Context ctx = make_context();
    const cuda::Machine machine = ctx.service<cuda::Planner>().machine();
    for (int trial = 0; trial < 40; ++trial) {
        const int m = this->width();
        const bool same = trial % 3 == 0;
        const int n = same || trial % 2 == 0 ? m : this->width();
        const auto rows = static_cast<std::int64_t>(this->generator() % 60'000);
        const Layout layout = trial % 4 == 0 ? layouts[1 + trial / 4 % 2] : layouts[0];
        const auto a = integers<T>(this->generator, rows, m);
        const auto b = same ? a : integers<T>(this->generator, rows, n);
        const auto old = random_global<float>(this->generator, m, n);
        const RowMap map = RowMap::by_rows(ctx.comm(), rows);
        TestBlock<T> a_block(ctx, a, map, layout);
        TestBlock<T> b_block(ctx, b, map, layout);
        const auto av = a_block.view();
        const auto bv = same ? av : b_block.view();
        auto expected = old;
        for (float& value : expected.values) {
            value = 0;
        }
        reference::tsmttsm_mixed<long double>(
            MixedTsmttsmArgs<T, float>{rows, m, n, 2.0F, a.values.data(), m, b.values.data(), n,
                                       0.0F, expected.values.data(), n});
        MixedTsmttsmArgs<T, float> args{rows,    m,     n,    2.0F,    av.data, av.ld,
                                        bv.data, bv.ld, 0.0F, nullptr, n};
        const cuda::MixedShape shape = cuda::mixed_shape(args);
        const bool fold = this->generator() % 3 > 0;
        const auto plans = mixed_plans(fold ? shape : unfolded(shape), machine);
        ASSERT_FALSE(plans.empty());
        const auto& plan = plans[this->generator() % plans.size()];
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(m) + " x " +
                     std::to_string(n) + (same ? " same, " : ", ") + to_text(plan));
        TestBlock<float> c_block(ctx, poisoned_global<float>(m, n), layout, Place::device);
        args.c = c_block.view().data;
        args.ldc = c_block.view().ld;
        const Scratch workspace =
            ctx.scratch(MemoryKind::device, cuda::workspace_bytes(ctx, args, plan));
        cuda::tsmttsm_mixed(ctx, args, plan, workspace.as<void>());
        a_block.expect_unchanged();
        expect_equal(c_block.result(), expected);
    }
}

template <class In, class Small, class Out>
void check_rows(Context& ctx, std::mt19937_64& generator, int m, int n, bool update,
                Layout layout) {
    const auto rows = static_cast<std::int64_t>(generator() % 20'000);
    const auto x = integers<In>(generator, rows, m);
    const auto c = integers<Small>(generator, m, n);
    const auto old = update ? integers<Out>(generator, rows, n) : poisoned_global<Out>(rows, n);
    const float beta = update ? -1.0F : 0.0F;
    const RowMap map = RowMap::by_rows(ctx.comm(), rows);
    TestBlock<In> x_block(ctx, x, map, layout);
    TestBlock<Small> c_block(ctx, c, layout, Place::device);
    TestBlock<Out> y_block(ctx, old, map, layout);
    const auto xv = x_block.view();
    const auto cv = c_block.view();
    const auto yv = y_block.view();
    const MixedTsmmArgs<In, Small, Out> args{rows,    m,     n,    1.0F,    xv.data, xv.ld,
                                             cv.data, cv.ld, beta, yv.data, yv.ld};
    const auto plans = mixed_plans(cuda::mixed_shape(args), ctx.service<cuda::Planner>().machine());
    ASSERT_FALSE(plans.empty());
    const auto& plan = plans[generator() % plans.size()];
    SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(m) + " x " + std::to_string(n) +
                 (update ? " added, " : ", ") + to_text(plan));
    cuda::tsmm_mixed(ctx, args, plan);
    const auto actual = y_block.result();
    std::vector<long double> exact(old.values.size());
    reference::tsmm_mixed(
        MixedTsmmArgs<In, Small, Out>{rows, m, n, 1.0F, x.values.data(), m, c.values.data(), n,
                                      beta, const_cast<Out*>(old.values.data()), n},
        exact.data());
    for (std::int64_t i = 0; i < rows; ++i) {
        for (int j = 0; j < n; ++j) {
            const auto value = exact[static_cast<std::size_t>(i * n + j)];
            const Out rounded = reference::converted<Out>(static_cast<double>(value));
            ASSERT_EQ(reference::converted<double>(actual(i, j)),
                      reference::converted<double>(rounded))
                << i << ", " << j;
        }
    }
}

TYPED_TEST(MixedProducts, AnyPlanOfTsmmIsRight) {
    using T = TypeParam;
    Context ctx = make_context();
    for (int trial = 0; trial < 24; ++trial) {
        const int m = this->width();
        const int n = trial % 2 == 0 ? m : this->width();
        const Layout layout = trial % 4 == 0 ? layouts[1 + trial / 4 % 2] : layouts[0];
        if constexpr (std::is_same_v<T, half_t>) {
            check_rows<T, float, float>(ctx, this->generator, m, n, trial % 3 == 0, layout);
        } else {
            check_rows<T, T, T>(ctx, this->generator, m, n, trial % 3 == 0, layout);
        }
    }
}

}  // namespace
}  // namespace quiver::test

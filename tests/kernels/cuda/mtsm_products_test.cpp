// SPDX-License-Identifier: BSD-3-Clause
// Tests on a GPU that random plans of mtsm give exact sums of small integers.
#include "kernels/cuda/mtsm_products.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/planner.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class A, class T>
void check_any_plan(Context& ctx, std::mt19937_64& generator) {
    const auto pick = [&](int most) { return 1 + static_cast<int>(generator() % most); };
    const int m = pick(generator() % 3 == 0 ? 1500 : 300);
    const int k = pick(generator() % 3 == 0 ? 600 : 200);
    const int n = pick(generator() % 2 == 0 ? 12 : 64);
    const bool along_sum = generator() % 2 == 0;
    const bool conjugated = is_complex_v<T> && generator() % 2 == 0;
    const bool x_rows = generator() % 2 == 0;
    const auto layout = [&] { return layouts[generator() % 3]; };
    const auto integers = [&]<class V>(V, std::int64_t rows, int cols) {
        return Global<V>(rows, cols, [&] {
            if constexpr (std::is_same_v<V, T>) {
                return integer_value<T>(generator);
            } else {
                return reference::converted<V>(integer_value<T>(generator));
            }
        });
    };
    const auto a = integers(A{}, along_sum ? m : k, along_sum ? k : m);
    const auto x = integers(T{}, x_rows ? k : n, x_rows ? n : k);
    TestBlock<A> a_block(ctx, a, layout(), Place::device);
    TestBlock<T> x_block(ctx, x, layout(), Place::device);
    TestBlock<T> y_block(ctx, poisoned_global<T>(m, n), layout(), Place::device);
    const auto av = a_block.view();
    const auto xv = x_block.view();
    const auto yv = y_block.view();
    const std::int64_t x_row = x_rows ? xv.ld : 1;
    const std::int64_t x_col = x_rows ? 1 : xv.ld;
    const MtsmArgs<A, T> args{m,       k,     n,     T(1), av.data, av.ld, along_sum, conjugated,
                              xv.data, x_row, x_col, T(0), yv.data, yv.ld, 1};
    const auto plans = mtsm_plans(cuda::mtsm_shape(args), ctx.service<cuda::Planner>().machine());
    ASSERT_FALSE(plans.empty());
    const cuda::MtsmPlan& plan = plans[generator() % plans.size()];
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n) +
                 (along_sum ? ", along the sum, " : ", across the sum, ") + to_text(plan));
    const Scratch workspace =
        ctx.scratch(MemoryKind::device, cuda::workspace_bytes(ctx, args, plan));
    cuda::mtsm(ctx, args, plan, workspace.as<void>());

    Global<T> expected(m, n);
    reference::mtsm<wide_t<T>>(MtsmArgs<A, T>{
        m, k, n, T(1), a.values.data(), a.cols, along_sum, conjugated, x.values.data(),
        x_rows ? x.cols : 1, x_rows ? 1 : x.cols, T(0), expected.values.data(), n, 1});
    a_block.expect_unchanged();
    x_block.expect_unchanged();
    expect_equal(y_block.result(), expected);
}

template <class A>
class MtsmProducts : public ::testing::Test {};
using Elements =
    ::testing::Types<float, double, std::complex<float>, std::complex<double>, half_t, bfloat16_t>;
TYPED_TEST_SUITE(MtsmProducts, Elements, ScalarName);

TYPED_TEST(MtsmProducts, AnyPlanIsRight) {
    if (test_place() == Place::host) {
        GTEST_SKIP() << "plans are for kernels on a GPU";
    }
    using A = TypeParam;
    using T = std::conditional_t<sizeof(A) == 2, float, A>;
    Context ctx = make_context();
    auto generator = make_generator();
    for (int trial = 0; trial < 16 && !::testing::Test::HasFailure(); ++trial) {
        check_any_plan<A, T>(ctx, generator);
    }
}

}  // namespace
}  // namespace quiver::test

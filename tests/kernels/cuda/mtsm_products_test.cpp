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

/// A random problem: B has `m` x `k` elements.
struct Problem {
    int m, k, n;
    bool along_sum, conjugated, x_rows, y_rows;
};

/// Changes some plans to ones that only experiments use, if these are legal.
void vary(cuda::MtsmPlan& plan, const cuda::MtsmShape& shape, const cuda::Machine& machine,
          std::mt19937_64& generator) {
    cuda::MtsmPlan other = plan;
    if (plan.direct) {
        other.tcf = static_cast<int>(generator() % 4) * plan.rows_a_thread;
    } else if (generator() % 4 == 0) {
        other.plain = 1 + static_cast<int>(generator() % 2);
    } else if (generator() % 4 == 0) {
        other.stages = 1;
    }
    if (kernel_of(other, shape, machine)) {
        plan = other;
    }
}

/// Compares a random plan among those that `allowed` accepts with the reference; a no-op if there
/// is none.
template <class A, class T, class Allowed>
void check_plan(Context& ctx, std::mt19937_64& generator, const Problem& problem,
                Allowed&& allowed) {
    const auto [m, k, n, along_sum, conjugated, x_rows, y_rows] = problem;
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
    const bool update = generator() % 2 == 0;
    auto expected = update ? integers(T{}, y_rows ? m : n, y_rows ? n : m)
                           : poisoned_global<T>(y_rows ? m : n, y_rows ? n : m);
    TestBlock<A> a_block(ctx, a, layout(), Place::device);
    TestBlock<T> x_block(ctx, x, layout(), Place::device);
    TestBlock<T> y_block(ctx, expected, layout(), Place::device);
    const auto av = a_block.view();
    const auto xv = x_block.view();
    const auto yv = y_block.view();
    const T alpha = update ? T(-2) : T(1);
    const T beta = update ? T(3) : T(0);
    const MtsmArgs<A, T> args{m,
                              k,
                              n,
                              alpha,
                              av.data,
                              av.ld,
                              along_sum,
                              conjugated,
                              xv.data,
                              x_rows ? xv.ld : 1,
                              x_rows ? 1 : xv.ld,
                              beta,
                              yv.data,
                              y_rows ? yv.ld : 1,
                              y_rows ? 1 : yv.ld};
    auto plans = mtsm_plans(cuda::mtsm_shape(args), ctx.service<cuda::Planner>().machine());
    std::erase_if(plans, [&](const cuda::MtsmPlan& plan) { return !allowed(plan); });
    if (plans.empty()) {
        return;
    }
    cuda::MtsmPlan plan = plans[generator() % plans.size()];
    vary(plan, cuda::mtsm_shape(args), ctx.service<cuda::Planner>().machine(), generator);
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n) +
                 (along_sum ? ", along the sum, " : ", across the sum, ") + to_text(plan));
    const Scratch workspace =
        ctx.scratch(MemoryKind::device, cuda::workspace_bytes(ctx, args, plan));
    cuda::mtsm(ctx, args, plan, workspace.as<void>());

    reference::mtsm<wide_t<T>>(MtsmArgs<A, T>{
        m, k, n, alpha, a.values.data(), a.cols, along_sum, conjugated, x.values.data(),
        x_rows ? x.cols : 1, x_rows ? 1 : x.cols, beta, expected.values.data(),
        y_rows ? expected.cols : 1, y_rows ? 1 : expected.cols});
    a_block.expect_unchanged();
    x_block.expect_unchanged();
    expect_equal(y_block.result(), expected);
}

template <class A, class T>
void check_any_plan(Context& ctx, std::mt19937_64& generator) {
    const auto pick = [&](int most) { return 1 + static_cast<int>(generator() % most); };
    const auto coin = [&] { return generator() % 2 == 0; };
    const Problem problem{pick(generator() % 3 == 0 ? 1500 : 300),
                          pick(generator() % 3 == 0 ? 600 : 200),
                          pick(coin() ? 12 : 64),
                          coin(),
                          is_complex_v<T> && coin(),
                          coin(),
                          coin()};
    check_plan<A, T>(ctx, generator, problem, [](const cuda::MtsmPlan&) { return true; });
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

/// Tall matrices of few columns, stored by columns as Y is.
TYPED_TEST(MtsmProducts, AnyDirectPlanIsRight) {
    if (test_place() == Place::host) {
        GTEST_SKIP() << "plans are for kernels on a GPU";
    }
    using A = TypeParam;
    if constexpr (sizeof(A) > 2) {
        Context ctx = make_context();
        auto generator = make_generator();
        for (int trial = 0; trial < 24 && !::testing::Test::HasFailure(); ++trial) {
            const auto up_to = [&](int most) { return 1 + static_cast<int>(generator() % most); };
            const Problem problem{up_to(5000),
                                  up_to(32),
                                  up_to(16),
                                  false,
                                  is_complex_v<A> && generator() % 2 == 0,
                                  generator() % 2 == 0,
                                  false};
            check_plan<A, A>(ctx, generator, problem,
                             [](const cuda::MtsmPlan& plan) { return plan.direct; });
        }
    }
}

}  // namespace
}  // namespace quiver::test

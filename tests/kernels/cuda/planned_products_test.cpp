// SPDX-License-Identifier: BSD-3-Clause
// Compares products by random legal plans, not only by tuned ones, with the reference, for random
// shapes and layouts.
#include "kernels/cuda/planned_products.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "kernels/cuda/plan_arithmetic.hpp"
#include "kernels/cuda/planned_launch.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/random.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "kernels/tsmttsm.hpp"
#include "kernels/tuning.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

constexpr int plans_a_test = 16;

/// A random problem and a random plan that is legal for it.
template <class T, class Plan>
struct Trial {
    std::int64_t rows;
    int m, n;
    bool same;
    Layout layout;
    /// The layout of the second operand.
    Layout other;
    Plan plan;
};

template <class Plan>
using AllPlans =
    std::function<std::vector<Plan>(const cuda::ProductShape&, const cuda::Machine&, std::size_t)>;

template <class T>
class PlannedProducts : public ::testing::Test {
  protected:
    void SetUp() override {
        if (test_place() == Place::host) {
            GTEST_SKIP() << "plans are for kernels on a GPU";
        }
    }

    template <class Plan>
    std::vector<Trial<T, Plan>> trials(Context& ctx, bool gram, const AllPlans<Plan>& all) {
        std::vector<Trial<T, Plan>> result;
        std::uniform_int_distribution<int> width(1, 64);
        while (result.size() < plans_a_test) {
            const int m = width(generator);
            const bool same = gram && generator() % 3 == 0;
            const int n = same || generator() % 3 == 0 ? m : width(generator);
            add_trial(ctx, result, m, n, same, all);
        }
        return result;
    }

    /// Trials of random streamed plans, with up to 300 columns of the wide block and 20 of the
    /// other.
    template <class Plan>
    std::vector<Trial<T, Plan>> streamed_trials(Context& ctx, const AllPlans<Plan>& all) {
        std::vector<Trial<T, Plan>> result;
        std::uniform_int_distribution<int> wide(1, 300);
        std::uniform_int_distribution<int> narrow(1, 20);
        while (result.size() < plans_a_test) {
            const int m = wide(generator);
            const int n = narrow(generator);
            add_trial(ctx, result, m, n, false, all);
        }
        return result;
    }

    /// The plans of the streamed kernels for m columns of A that start anywhere and n of B.
    static std::vector<cuda::TsmttsmPlan> sum_streams(const cuda::ProductShape& shape,
                                                      const cuda::Machine& machine,
                                                      std::size_t most) {
        const auto request = cuda::Served::streams_of_sums(shape.scalar, shape.m, shape.n,
                                                           cuda::Layout::any(shape.scalar_bytes()));
        return cuda::streamed_sum_plans(request.shape, machine, most);
    }
    /// The plans of the streamed kernels for m columns of X that start anywhere and n of Y.
    static std::vector<cuda::TsmmPlan> streams(const cuda::ProductShape& shape,
                                               const cuda::Machine& machine, std::size_t most) {
        const auto any = cuda::Layout::any(shape.scalar_bytes());
        const auto request = cuda::Served::streams(shape.scalar, shape.m, shape.n, any, any);
        return cuda::streamed_plans(request.shape, machine, most);
    }

    /// Trials of random plans that copy rows without gaps as runs of bytes.
    template <class Plan>
    std::vector<Trial<T, Plan>> run_trials(Context& ctx, const AllPlans<Plan>& all) {
        std::vector<Trial<T, Plan>> result;
        // Wider blocks of doubles use the tensor cores, which have no runs.
        std::uniform_int_distribution<int> width(1, std::is_same_v<T, double> ? 9 : 64);
        std::uniform_int_distribution<std::int64_t> rows(0, 5000);
        const cuda::Machine& machine = ctx.service<cuda::Planner>().machine();
        while (result.size() < plans_a_test) {
            const int m = width(generator) | 1;
            const int n = width(generator);
            auto plans = all({dtype_v<T>, m, n}, machine, 100'000'000);
            std::erase_if(plans, [](const Plan& plan) { return !plan.run; });
            if (!plans.empty()) {
                const Layout packed{};
                result.push_back({rows(generator), m, n, false, packed, packed,
                                  plans[generator() % plans.size()]});
            }
        }
        return result;
    }

    /// Adds a trial of a random plan, if there is one.
    template <class Plan>
    void add_trial(Context& ctx, std::vector<Trial<T, Plan>>& result, int m, int n, bool same,
                   const AllPlans<Plan>& all) {
        std::uniform_int_distribution<std::int64_t> rows(0, 5000);
        const auto plans =
            all({dtype_v<T>, m, n, same}, ctx.service<cuda::Planner>().machine(), 100'000'000);
        if (!plans.empty()) {
            const Layout layout = any_layout(generator);
            const Layout other = same ? layout : any_layout(generator);
            result.push_back(
                {rows(generator), m, n, same, layout, other, plans[generator() % plans.size()]});
        }
    }

    /// Compares tsmttsm by the plan of a trial with the reference, for a random beta of 0 and -1.
    void check_tsmttsm(Context& ctx, const Trial<T, cuda::TsmttsmPlan>& trial);
    /// Compares tsmm by the plan of a trial with the reference, for a random beta of 0, 1 and -1.
    void check_tsmm(Context& ctx, const Trial<T, cuda::TsmmPlan>& trial);

    std::mt19937_64 generator = make_generator();
};
TYPED_TEST_SUITE(PlannedProducts, Scalars, ScalarName);

template <class T>
void PlannedProducts<T>::check_tsmttsm(Context& ctx, const Trial<T, cuda::TsmttsmPlan>& trial) {
    const T beta = generator() % 3 == 0 ? T(0) : T(-1);
    SCOPED_TRACE(std::to_string(trial.rows) + " rows, " + std::to_string(trial.m) + "x" +
                 std::to_string(trial.n) + (trial.same ? " same, " : ", ") + to_text(trial.plan));
    const auto a = random_global<T>(generator, trial.rows, trial.m);
    const auto b = trial.same ? a : random_global<T>(generator, trial.rows, trial.n);
    const auto old = beta == T(0) ? poisoned_global<T>(trial.m, trial.n)
                                  : random_global<T>(generator, trial.m, trial.n);
    const RowMap map = RowMap::by_rows(ctx.comm(), trial.rows);
    TestBlock<T> a_block(ctx, a, map, trial.layout);
    TestBlock<T> b_block(ctx, b, map, trial.other);
    TestBlock<T> c_block(ctx, old, trial.layout, Place::device);
    const auto av = a_block.view();
    const auto bv = trial.same ? av : b_block.view();
    const auto cv = c_block.view();
    const T alpha = other_coefficient<T>();
    const TsmttsmArgs<T> args{trial.rows, trial.m, trial.n, alpha,   av.data, av.ld,
                              bv.data,    bv.ld,   beta,    cv.data, cv.ld};
    if (trial.plan.run && !cuda::kernel_of(trial.plan, cuda::OperandsOf(args).own,
                                           ctx.service<cuda::Planner>().machine())) {
        return;  // runs are for rows without gaps
    }
    const Scratch workspace =
        ctx.scratch(MemoryKind::device, cuda::workspace_bytes(ctx, args, trial.plan));

    cuda::tsmttsm(ctx, args, trial.plan, workspace.as<void>());

    a_block.expect_unchanged();
    const auto actual = c_block.result();
    auto expected = old;
    reference::tsmttsm<wide_t<T>>(TsmttsmArgs<T>{trial.rows, trial.m, trial.n, alpha,
                                                 a.values.data(), trial.m, b.values.data(), trial.n,
                                                 beta, expected.values.data(), trial.n});
    for (int i = 0; i < trial.m; ++i) {
        for (int j = 0; j < trial.n; ++j) {
            const long double bound =
                sum_bound(trial.rows, alpha, a.column_norm(i) * b.column_norm(j), beta,
                          beta == T(0) ? 0 : std::abs(old(i, j)));
            const long double error = std::abs(wide_t<T>(actual(i, j)) - wide_t<T>(expected(i, j)));
            ASSERT_TRUE(error <= bound) << "(" << i << ", " << j << "): " << actual(i, j)
                                        << " instead of " << expected(i, j);
        }
    }
}

TYPED_TEST(PlannedProducts, AnyPlanOfTsmttsmIsRight) {
    Context ctx = make_context();
    for (auto& trial : this->template trials<cuda::TsmttsmPlan>(ctx, true, cuda::tsmttsm_plans)) {
        trial.plan.atomics = this->generator() % 3 == 0;
        this->check_tsmttsm(ctx, trial);
    }
}

/// Plans without prefetching, with blocked columns, and with other unrolling, which only
/// experiments use.
TYPED_TEST(PlannedProducts, PlansOfExperimentsAreRight) {
    Context ctx = make_context();
    const cuda::Machine& machine = ctx.service<cuda::Planner>().machine();
    int changed = 0;
    for (auto& trial : this->template trials<cuda::TsmttsmPlan>(ctx, true, cuda::tsmttsm_plans)) {
        cuda::TsmttsmPlan plan = trial.plan;
        plan.bulk = false;
        plan.stages = this->generator() % 2 == 0 ? 1 : plan.stages;
        plan.blocked = !plan.tensor;
        plan.unroll = 1 << this->generator() % 4;
        const cuda::ProductShape shape(dtype_v<TypeParam>, trial.m, trial.n, trial.same);
        if (cuda::kernel_of(plan, shape, {}, {}, machine)) {
            trial.plan = plan;
            ++changed;
        }
        this->check_tsmttsm(ctx, trial);
    }
    for (auto& trial : this->template trials<cuda::TsmmPlan>(ctx, false, cuda::tsmm_plans)) {
        trial.plan.bulk = false;
        trial.plan.stages = 1;
        this->check_tsmm(ctx, trial);
    }
    EXPECT_GT(changed, 0);
}

/// The partial sums of all blocks, without the reduction: their sum is C, which is not written.
TYPED_TEST(PlannedProducts, WithoutAReductionTheBlocksLeaveTheirSums) {
    using T = TypeParam;
    Context ctx = make_context();
    constexpr std::int64_t rows = 20'011;
    constexpr int m = 5;
    constexpr int n = 8;
    const RowMap map = RowMap::by_rows(ctx.comm(), rows);
    const auto a = random_global<T>(this->generator, rows, m);
    const auto b = random_global<T>(this->generator, rows, n);
    TestBlock<T> a_block(ctx, a, map, layouts[0]);
    TestBlock<T> b_block(ctx, b, map, layouts[0]);
    const auto old = poisoned_global<T>(m, n);
    TestBlock<T> c_block(ctx, old, layouts[0], Place::device);
    const auto av = a_block.view();
    const auto bv = b_block.view();
    const auto cv = c_block.view();
    const TsmttsmArgs<T> args{rows,    m,     n,    T(1),    av.data, av.ld,
                              bv.data, bv.ld, T(0), cv.data, cv.ld};
    const auto plan =
        cuda::tsmttsm_plans({dtype_v<T>, m, n}, ctx.service<cuda::Planner>().machine(), 1).at(0);
    const std::size_t bytes = cuda::workspace_bytes(ctx, args, plan);
    const Scratch workspace = ctx.scratch(MemoryKind::device, bytes);
    choose_plans(ctx, {.reduction = Reduction::none});

    cuda::tsmttsm(ctx, args, plan, workspace.as<void>());

    choose_plans(ctx, {});
    std::vector<T> parts(bytes / sizeof(T));
    device::copy(parts.data(), workspace.as<T>(), bytes, ctx.stream());
    ctx.synchronize();
    ASSERT_GT(parts.size(), 2u * m * n) << "several blocks";
    auto expected = old;
    reference::tsmttsm<wide_t<T>>(TsmttsmArgs<T>{
        rows, m, n, T(1), a.values.data(), m, b.values.data(), n, T(0), expected.values.data(), n});
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            wide_t<T> sum(0);
            for (std::size_t e = static_cast<std::size_t>(i * n + j); e < parts.size();
                 e += m * n) {
                sum += wide_t<T>(parts[e]);
            }
            const long double bound =
                sum_bound(rows, T(1), a.column_norm(i) * b.column_norm(j), T(0), 0.0);
            EXPECT_LE(std::abs(sum - wide_t<T>(expected(i, j))), bound) << i << ", " << j;
        }
    }
    const auto left = c_block.result();
    EXPECT_EQ(std::memcmp(left.values.data(), old.values.data(), old.values.size() * sizeof(T)), 0);
}

/// 224 threads have seven lanes of 32 slots. Rows of odd width divide them into two classes of
/// three lanes, and the seventh lane must not read shared memory beyond the stages.
TYPED_TEST(PlannedProducts, ALaneWithoutRowsReadsNothing) {
    if constexpr (std::is_same_v<TypeParam, float>) {
        Context ctx = make_context();
        cuda::TsmttsmPlan plan;
        plan.tile_m = 6;
        plan.tile_n = 16;
        plan.vector = 2;
        plan.rows = 12;
        plan.stages = 4;
        plan.bulk = true;
        plan.team = plan.threads = 224;
        this->check_tsmttsm(ctx, {3000, 47, 57, false, {}, {}, plan});
    }
}

TYPED_TEST(PlannedProducts, AnyRunOfTsmttsmIsRight) {
    if constexpr (sizeof(TypeParam) < 16) {  // rows of double complex are multiples of 16 bytes
        Context ctx = make_context();
        for (const auto& trial :
             this->template run_trials<cuda::TsmttsmPlan>(ctx, cuda::tsmttsm_plans)) {
            this->check_tsmttsm(ctx, trial);
        }
    }
}

TYPED_TEST(PlannedProducts, AnyStreamedPlanOfTsmttsmIsRight) {
    Context ctx = make_context();
    for (auto& trial : this->template streamed_trials<cuda::TsmttsmPlan>(ctx, this->sum_streams)) {
        trial.plan.atomics = this->generator() % 3 == 0;
        this->check_tsmttsm(ctx, trial);
    }
}

/// More than 192 columns of A, from where on the library streams them, times every width of B up to
/// 16; A, B and C have gaps and any alignment.
TYPED_TEST(PlannedProducts, TheStreamedSumsOfEveryWidthAreRight) {
    Context ctx = make_context();
    const cuda::Machine& machine = ctx.service<cuda::Planner>().machine();
    std::uniform_int_distribution<int> columns(193, 500);
    std::uniform_int_distribution<std::int64_t> rows(0, 3000);
    for (int n = 1; n <= 16; ++n) {
        const int m = columns(this->generator);
        const auto plans = this->sum_streams({dtype_v<TypeParam>, m, n}, machine, 1);
        ASSERT_EQ(plans.size(), 1u) << m << "x" << n;
        this->check_tsmttsm(
            ctx, {n % 4 == 0 ? 3 : rows(this->generator), m, n, false, any_layout(this->generator),
                  any_layout(this->generator), plans[0]});
    }
}

template <class T>
void PlannedProducts<T>::check_tsmm(Context& ctx, const Trial<T, cuda::TsmmPlan>& trial) {
    SCOPED_TRACE(std::to_string(trial.rows) + " rows, " + std::to_string(trial.m) + "x" +
                 std::to_string(trial.n) + ", " + to_text(trial.plan));
    const auto x = random_global<T>(generator, trial.rows, trial.m);
    const auto c = random_global<T>(generator, trial.m, trial.n);
    const T betas[] = {T(0), T(1), T(-1)};
    const T beta = betas[generator() % 3];
    const bool update = beta != T(0);
    const auto old = update ? random_global<T>(generator, trial.rows, trial.n)
                            : poisoned_global<T>(trial.rows, trial.n);
    const RowMap map = RowMap::by_rows(ctx.comm(), trial.rows);
    TestBlock<T> x_block(ctx, x, map, trial.layout);
    TestBlock<T> c_block(ctx, c, trial.layout, Place::device);
    TestBlock<T> y_block(ctx, old, map, trial.other);
    const auto xv = x_block.view();
    const auto cv = c_block.view();
    const auto yv = y_block.view();
    const T alpha = other_coefficient<T>();
    // The plan is legal for operands without gaps. With gaps runs are impossible, and other plans
    // may need more shared memory than the device has.
    if (!trial.plan.streamed &&
        !cuda::kernel_of(trial.plan, {dtype_v<T>, trial.m, trial.n},
                         cuda::Layout::of(xv.data, trial.m, xv.ld, sizeof(T)),
                         cuda::Layout::of(yv.data, trial.n, yv.ld, sizeof(T)),
                         ctx.service<cuda::Planner>().machine())) {
        return;
    }

    cuda::tsmm(ctx,
               TsmmArgs<T>{trial.rows, trial.m, trial.n, alpha, xv.data, xv.ld, cv.data, cv.ld,
                           beta, yv.data, yv.ld},
               trial.plan);

    const auto actual = y_block.result();
    auto expected = old;
    reference::tsmm<wide_t<T>>(TsmmArgs<T>{trial.rows, trial.m, trial.n, alpha, x.values.data(),
                                           trial.m, c.values.data(), trial.n, beta,
                                           expected.values.data(), trial.n});
    for (std::int64_t i = 0; i < trial.rows; ++i) {
        long double row_norm = 0;
        for (int k = 0; k < trial.m; ++k) {
            row_norm += std::norm(wide_t<T>(x(i, k)));
        }
        for (int j = 0; j < trial.n; ++j) {
            const long double bound =
                sum_bound(trial.m, alpha, std::sqrt(row_norm) * c.column_norm(j), beta,
                          update ? std::abs(old(i, j)) : 0);
            const long double error = std::abs(wide_t<T>(actual(i, j)) - wide_t<T>(expected(i, j)));
            ASSERT_TRUE(error <= bound) << "(" << i << ", " << j << "): " << actual(i, j)
                                        << " instead of " << expected(i, j);
        }
    }
}

TYPED_TEST(PlannedProducts, AnyPlanOfTsmmIsRight) {
    Context ctx = make_context();
    for (const auto& trial : this->template trials<cuda::TsmmPlan>(ctx, false, cuda::tsmm_plans)) {
        this->check_tsmm(ctx, trial);
    }
}

TYPED_TEST(PlannedProducts, AnyRunOfTsmmIsRight) {
    if constexpr (sizeof(TypeParam) < 16) {  // rows of double complex are multiples of 16 bytes
        Context ctx = make_context();
        for (const auto& trial : this->template run_trials<cuda::TsmmPlan>(ctx, cuda::tsmm_plans)) {
            this->check_tsmm(ctx, trial);
        }
    }
}

TYPED_TEST(PlannedProducts, AnyStreamedPlanOfTsmmIsRight) {
    Context ctx = make_context();
    for (const auto& trial : this->template streamed_trials<cuda::TsmmPlan>(ctx, this->streams)) {
        this->check_tsmm(ctx, trial);
    }
}

/// Up to 400 columns of X times every width of Y up to 16; X, Y and C have gaps and any alignment.
TYPED_TEST(PlannedProducts, TheStreamedPlanOfEveryWidthIsRight) {
    Context ctx = make_context();
    const cuda::Machine& machine = ctx.service<cuda::Planner>().machine();
    std::uniform_int_distribution<int> columns(1, 400);
    std::uniform_int_distribution<std::int64_t> rows(0, 3000);
    for (int n = 1; n <= 16; ++n) {
        const int m = columns(this->generator);
        const auto plans = this->streams({dtype_v<TypeParam>, m, n}, machine, 1);
        ASSERT_EQ(plans.size(), 1u) << m << "x" << n;
        this->check_tsmm(ctx, {n % 4 == 0 ? 3 : rows(this->generator), m, n, false,
                               any_layout(this->generator), any_layout(this->generator), plans[0]});
    }
}

TYPED_TEST(PlannedProducts, AnyPlanOfTwoSourcesIsRight) {
    using T = TypeParam;
    Context ctx = make_context();
    const auto pair_plans = [](const cuda::ProductShape& shape, const cuda::Machine& machine,
                               std::size_t most) {
        return tsmm_plans(cuda::ProductShape::pair(shape.scalar, shape.m, shape.n), machine, most);
    };
    for (const auto& trial : this->template trials<cuda::TsmmPlan>(ctx, false, pair_plans)) {
        SCOPED_TRACE(std::to_string(trial.rows) + " rows, " + std::to_string(trial.m) + "x" +
                     std::to_string(trial.n) + ", " + to_text(trial.plan));
        const auto x = integer_global<T>(this->generator, trial.rows, trial.m);
        const auto c = integer_global<T>(this->generator, trial.m, trial.n);
        const auto d = integer_global<T>(this->generator, trial.n, trial.n);
        auto expected = integer_global<T>(this->generator, trial.rows, trial.n);
        const RowMap map = RowMap::by_rows(ctx.comm(), trial.rows);
        TestBlock<T> x_block(ctx, x, map, trial.layout);
        TestBlock<T> c_block(ctx, c, trial.layout, Place::device);
        TestBlock<T> d_block(ctx, d, trial.layout, Place::device);
        TestBlock<T> y_block(ctx, expected, map, trial.other);
        const auto xv = x_block.view();
        const auto cv = c_block.view();
        const auto dv = d_block.view();
        const auto yv = y_block.view();

        cuda::tsmm(ctx,
                   TsmmArgs<T>{trial.rows, trial.m, trial.n, T(2), xv.data, xv.ld, cv.data, cv.ld,
                               T(-1), yv.data, yv.ld, dv.data, dv.ld},
                   trial.plan);

        reference::tsmm<wide_t<T>>(TsmmArgs<T>{
            trial.rows, trial.m, trial.n, T(2), x.values.data(), trial.m, c.values.data(), trial.n,
            T(-1), expected.values.data(), trial.n, d.values.data(), trial.n});
        x_block.expect_unchanged();
        expect_equal(y_block.result(), expected);
    }
}

TYPED_TEST(PlannedProducts, AnyPlanOfAnUpdateAndItsSumsIsRight) {
    using T = TypeParam;
    Context ctx = make_context();
    for (const bool adds : {false, true}) {
        const auto plans = [&](const cuda::ProductShape& given, const cuda::Machine& machine,
                               std::size_t most) {
            cuda::ProductShape shape(given.scalar, given.m, given.n);
            shape.adds = adds;
            return tsmm_gram_plans(shape, machine, most);
        };
        for (const auto& trial : this->template trials<cuda::TsmmGramPlan>(ctx, false, plans)) {
            SCOPED_TRACE(std::to_string(trial.rows) + " rows, " + std::to_string(trial.m) + "x" +
                         std::to_string(trial.n) + (adds ? " adds, " : ", ") +
                         to_text(trial.plan.update) + ", " + to_text(trial.plan.sums));
            const auto v = integer_global<T>(this->generator, trial.rows, trial.m);
            Global<T> h(trial.m, trial.n);
            for (int i = 0; i < std::min(trial.m, trial.n); ++i) {
                h(i, trial.n - 1 - i) = T(1);  // keeps entries small and sums exact
            }
            auto expected = adds ? integer_global<T>(this->generator, trial.rows, trial.n)
                                 : poisoned_global<T>(trial.rows, trial.n);
            Global<T> sums(trial.n, trial.n);
            Context own(Comm(MPI_COMM_SELF), ctx.device());
            TestBlock<T> v_block(own, v, trial.layout, Place::device);
            TestBlock<T> h_block(own, h, trial.layout, Place::device);
            TestBlock<T> w_block(own, expected, trial.other, Place::device);
            TestBlock<T> g_block(own, poisoned_global<T>(trial.n, trial.n), trial.layout,
                                 Place::device);
            const auto vv = v_block.view();
            const auto hv = h_block.view();
            const auto wv = w_block.view();
            const auto gv = g_block.view();
            const T beta = adds ? T(-1) : T(0);
            const TsmmGramArgs<T> args{{trial.rows, trial.m, trial.n, T(1), vv.data, vv.ld, hv.data,
                                        hv.ld, beta, wv.data, wv.ld},
                                       gv.data,
                                       gv.ld};
            const Scratch workspace =
                own.scratch(MemoryKind::device, cuda::workspace_bytes(own, args, trial.plan));

            cuda::tsmm_gram(own, args, trial.plan, workspace.as<void>());

            reference::tsmm_gram<wide_t<T>>(
                TsmmGramArgs<T>{{trial.rows, trial.m, trial.n, T(1), v.values.data(), trial.m,
                                 h.values.data(), trial.n, beta, expected.values.data(), trial.n},
                                sums.values.data(),
                                trial.n});
            v_block.expect_unchanged();
            expect_equal(w_block.result(), expected);
            expect_equal(g_block.result(), sums);
        }
    }
}

TYPED_TEST(PlannedProducts, TheSameLaunchGivesTheSameBits) {
    using T = TypeParam;
    Context ctx = make_context();
    for (const auto& [m, n] : {std::pair{3, 3}, {17, 17}, {40, 4}}) {
        const std::int64_t rows = 300'001;
        BlockVector<T> a(ctx, RowMap::by_rows(ctx.comm(), rows), m);
        BlockVector<T> b(ctx, RowMap::by_rows(ctx.comm(), rows), n);
        fill_random(ctx, 1, a);
        fill_random(ctx, 2, b);
        std::vector<T> first;
        for (int time = 0; time < 100; ++time) {
            SmallMatrix<T> c(m, n);
            tsmttsm<T>(ctx, T(1), a.view(), b.view(), T(0), c.view());
            const std::vector<T> values(c.view().data, c.view().data + m * n);
            if (time == 0) {
                first = values;
                ASSERT_NE(first.front(), T(0));
            }
            ASSERT_EQ(std::memcmp(values.data(), first.data(), values.size() * sizeof(T)), 0)
                << "call " << time;
        }
    }
}

/// Checks the plan that results from each choice, and its product.
TYPED_TEST(PlannedProducts, ChoicesOfPlansAreFollowedAndRight) {
    using T = TypeParam;
    Context ctx = make_context();
    cuda::Planner& planner = ctx.service<cuda::Planner>();
    const cuda::ProductShape shape(dtype_v<T>, 8, 8, true);
    const auto usual = planner.plan<cuda::TsmttsmPlan>({shape, {}, {}}).value();
    EXPECT_FALSE(usual.atomics);
    const RowMap map = RowMap::by_rows(ctx.comm(), 20'011);
    const auto a = random_global<T>(this->generator, 20'011, 8);
    TestBlock<T> a_block(ctx, a, map, layouts[0]);
    for (const Reduction reduction : {Reduction::reproducible, Reduction::atomics}) {
        for (const bool tuned : {true, false}) {
            choose_plans(ctx, {reduction, tuned});
            auto plan = planner.plan<cuda::TsmttsmPlan>({shape, {}, {}}).value();
            EXPECT_EQ(plan.atomics, reduction == Reduction::atomics);
            plan.atomics = false;
            EXPECT_EQ(plan,
                      tuned ? usual : cuda::tsmttsm_plans(shape, planner.machine(), 1).front());
            SmallMatrix<T> c(8, 8);
            std::fill_n(c.view().data, 64, T(1));
            tsmttsm<T>(ctx, T(1), a_block.view(), a_block.view(), T(2), c.view());
            SmallMatrix<T> expected(8, 8);
            std::fill_n(expected.view().data, 64, T(1));
            reference::tsmttsm<wide_t<T>>(TsmttsmArgs<T>{20'011, 8, 8, T(1), a.values.data(), 8,
                                                         a.values.data(), 8, T(2),
                                                         expected.view().data, 8});
            for (int i = 0; i < 8; ++i) {
                for (int j = 0; j < 8; ++j) {
                    const long double bound =
                        sum_bound(20'011, T(1), a.column_norm(i) * a.column_norm(j), T(2), 1.0);
                    EXPECT_LE(std::abs(wide_t<T>(c(i, j)) - wide_t<T>(expected(i, j))), bound)
                        << i << ", " << j;
                }
            }
        }
    }
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// Tests the plans of mtsm. Needs no GPU.
#include "kernels/cuda/mtsm_plan.hpp"

#include <gtest/gtest.h>

namespace quiver::cuda {
namespace {

template <class F>
void for_each_shape(F&& f) {
    for (const Dtype a : {Dtype::s, Dtype::d, Dtype::c, Dtype::z, Dtype::h, Dtype::b}) {
        for (const int n : {1, 2, 3, 7, 8, 16, 17, 31, 32, 33, 63, 64}) {
            for (const bool along_sum : {false, true}) {
                MtsmShape shape;
                shape.a = a;
                shape.scalar = a == Dtype::h || a == Dtype::b ? Dtype::s : a;
                shape.n = n;
                shape.along_sum = along_sum;
                shape.unit_x = Layout::of(nullptr, n, n, shape.scalar_bytes()).unit;
                f(shape);
            }
        }
    }
}

TEST(MtsmPlans, EveryShapeHasOneOnEveryMachine) {
    const Machine machines[] = {
        {}, {163 * 1024, 164 * 1024, false}, {99 * 1024, 100 * 1024, false}};
    for_each_shape([&](MtsmShape shape) {
        for (const auto& [log_m, log_k] : {std::pair{0, 0}, {14, 14}, {20, 2}, {3, 15}}) {
            shape.log_m = log_m;
            shape.log_k = log_k;
            for (const Machine& machine : machines) {
                const auto plans = mtsm_plans(shape, machine);
                ASSERT_FALSE(plans.empty())
                    << letter(shape.a) << ' ' << shape.n << ' ' << shape.along_sum;
                for (const MtsmPlan& plan : {plans.front(), plans.back()}) {
                    const PlannedKernel kernel = kernel_of(plan, shape, machine).value();
                    EXPECT_LE(kernel.shared_bytes, machine.shared_per_block);
                    EXPECT_EQ(plan.warps_m * plan.warps_n * plan.groups, MtsmPlan::threads / 32);
                    EXPECT_GE(plan.warps_n * plan.columns(shape), shape.n);
                    EXPECT_EQ(kernel.rows, plan.rows(shape));
                }
            }
        }
    });
}

TEST(MtsmPlans, LargeMatricesKeepTheMemoryBusyAndTheirLastSumsShort) {
    for_each_shape([&](const MtsmShape& shape) {
        const MtsmPlan plan = mtsm_plans(shape, {}).front();
        SCOPED_TRACE(to_text(plan));
        // Products with few columns are limited by memory. By Little's law, this many bytes in
        // flight on a multiprocessor hide the latency of the memory of an H200.
        if (shape.n <= 8) {
            EXPECT_GE((plan.stages - 1) * plan.blocks * plan.fetched(shape) * MtsmPlan::threads *
                          shape.a_bytes(),
                      32 * 1024);
        }
        // A block has few rows compared with 2^14.
        EXPECT_LE(plan.rows(shape), 1024);
    });
}

TEST(MtsmPlans, DoublesWithManyColumnsGoToTheTensorCores) {
    for (const Dtype a : {Dtype::d, Dtype::z}) {
        for (const bool along_sum : {false, true}) {
            MtsmShape shape;
            shape.a = shape.scalar = a;
            shape.along_sum = along_sum;
            shape.n = 64;
            EXPECT_TRUE(mtsm_plans(shape, {}).front().tensor);
            shape.n = 1;
            EXPECT_FALSE(mtsm_plans(shape, {}).front().tensor);
        }
    }
}

TEST(MtsmPlans, HalfWithManyColumnsGoesToTheTensorCores) {
    for (const Dtype a : {Dtype::h, Dtype::b}) {
        for (const bool along_sum : {false, true}) {
            MtsmShape shape;
            shape.a = a;
            shape.scalar = Dtype::s;
            shape.along_sum = along_sum;
            for (const int n : {8, 16, 33, 64}) {
                shape.n = n;
                shape.unit_x = Layout::of(nullptr, n, n, sizeof(float)).unit;
                for (const MtsmPlan& plan : mtsm_plans(shape, {})) {
                    // The depth divides into steps of eight terms for every group.
                    EXPECT_TRUE(!plan.tensor || plan.depth % (8 * plan.groups) == 0);
                }
                EXPECT_TRUE(mtsm_plans(shape, {}).front().tensor) << n;
            }
            shape.n = 1;
            EXPECT_FALSE(mtsm_plans(shape, {}).front().tensor);
        }
    }
}

TEST(MtsmPlans, LinesOfSinglesThatAreNotAlignedAreShifted) {
    for_each_shape([&](MtsmShape shape) {
        for (const int unit : {shape.a_bytes(), 8, 16}) {
            shape.unit_a = unit;
            const bool shifted = shape.a == Dtype::s && unit == 4 && shape.n <= 24;
            const auto plans = mtsm_plans(shape, {});
            EXPECT_EQ(plans.front().shifted, shifted) << letter(shape.a) << ' ' << shape.n;
            EXPECT_EQ(plans.front().spread, shifted) << letter(shape.a) << ' ' << shape.n;
            for (const MtsmPlan& plan : plans) {
                ASSERT_TRUE(!plan.shifted || (unit < 16 && plan.spread != plan.tensor));
            }
        }
    });
}

/// The stage of a shifted plan has 16 more bytes for each line.
TEST(MtsmPlans, ShiftedPlansAreForUnalignedLinesOfWholeElements) {
    for (const Dtype a : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        for (const bool along_sum : {false, true}) {
            MtsmShape shape;
            shape.a = shape.scalar = a;
            shape.n = 8;
            shape.along_sum = along_sum;
            shape.unit_a = a == Dtype::s || a == Dtype::c ? 4 : 8;
            std::size_t shifted = 0;
            for (MtsmPlan plan : mtsm_plans(shape, {})) {
                const PlannedKernel kernel = kernel_of(plan, shape, {}).value();
                if (!plan.shifted) {
                    continue;
                }
                ++shifted;
                const int lines = along_sum ? plan.rows(shape) : plan.depth;
                const int length = along_sum ? plan.depth : plan.rows(shape);
                EXPECT_GE(kernel.shared_bytes, static_cast<std::size_t>(plan.stages) * lines *
                                                   (length * shape.a_bytes() + 16));
                MtsmShape aligned = shape;
                aligned.unit_a = 16;
                EXPECT_FALSE(kernel_of(plan, aligned, {})) << to_text(plan);
                plan.spread = !plan.spread;
                EXPECT_FALSE(kernel_of(plan, shape, {})) << to_text(plan);
            }
            EXPECT_GT(shifted, 0u) << letter(a);
        }
    }
}

/// Lanes that read single elements of 32 adjacent rows have no bank conflicts.
TEST(MtsmPlans, TallMatricesOfSinglesAreReadByElement) {
    MtsmShape shape;
    shape.a = shape.scalar = Dtype::s;
    shape.n = 8;
    shape.log_m = 20;
    shape.log_k = 3;
    EXPECT_TRUE(mtsm_plans(shape, {}).front().spread);
    shape.log_m = 14;
    EXPECT_FALSE(mtsm_plans(shape, {}).front().spread);
    shape.log_m = 20;
    shape.a = shape.scalar = Dtype::d;
    EXPECT_FALSE(mtsm_plans(shape, {}).front().spread);
}

TEST(MtsmPlans, TallMatricesOfFewColumnsHaveNoTermsToSpare) {
    // As in TSM2L: a thread block computes whole sums, and no group of warps waits for the sums of
    // another.
    for (const int k : {4, 8, 16}) {
        MtsmShape shape;
        shape.n = k;
        shape.log_m = 20;
        shape.log_k = k == 4 ? 2 : k == 8 ? 3 : 4;
        const MtsmPlan plan = mtsm_plans(shape, {}).front();
        EXPECT_EQ(plan.groups, 1) << to_text(plan);
        EXPECT_LE(plan.depth, k) << to_text(plan);
    }
}

MtsmShape tall_by_columns(Dtype scalar, int n, int k) {
    MtsmShape shape;
    shape.a = shape.scalar = scalar;
    shape.n = n;
    shape.x_rows = false;
    shape.unit_x = 4;
    shape.unit_y = 16;
    shape.log_m = 20;
    for (shape.log_k = 0; 1 << shape.log_k < k; ++shape.log_k) {
    }
    return shape;
}

TEST(MtsmPlans, TallMatricesByColumnsAreReadDirectly) {
    for (const Dtype scalar : {Dtype::s, Dtype::d}) {
        for (const int width : {8, 16}) {
            const MtsmShape shape = tall_by_columns(scalar, width, width);
            const MtsmPlan plan = mtsm_plans(shape, {}).front();
            EXPECT_TRUE(plan.direct) << letter(scalar) << width;
            EXPECT_EQ(plan.rows_a_thread, 16 / shape.scalar_bytes()) << to_text(plan);
            EXPECT_EQ(plan_of<MtsmPlan>(to_text(plan)), plan);
            const auto kernel = kernel_of(plan, shape, {}).value();
            EXPECT_STREQ(kernel.source, "mtsm_direct.cuh");
            EXPECT_EQ(mtsm_workspace(132, kernel, width), 0u);

            MtsmShape other = shape;
            other.log_m = 14;
            EXPECT_FALSE(mtsm_plans(other, {}).front().direct) << "not tall";
            other = shape;
            other.unit_a = 4;
            EXPECT_FALSE(mtsm_plans(other, {}).front().direct) << "not aligned";
            EXPECT_FALSE(kernel_of(plan, other, {})) << "not aligned";
            other = shape;
            other.unit_y = 0;
            EXPECT_FALSE(kernel_of(plan, other, {})) << "Y is stored by rows";
            other = shape;
            other.along_sum = true;
            EXPECT_FALSE(kernel_of(plan, other, {})) << "A is stored by rows";
            other = shape;
            other.log_k = 6;
            EXPECT_FALSE(kernel_of(plan, other, {})) << "too many terms";
        }
    }
}

}  // namespace
}  // namespace quiver::cuda

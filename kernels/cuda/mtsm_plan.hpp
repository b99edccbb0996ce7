// SPDX-License-Identifier: BSD-3-Clause
// How mtsm divides its work on a GPU: pure arithmetic, as in plan.hpp, so that a launch and the
// tests without a GPU see the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/plan.hpp"

namespace quiver::cuda {

/// What a kernel is compiled for.
struct MtsmShape {
    /// Of B, and of X and Y.
    Dtype a = Dtype::d, scalar = Dtype::d;
    int n = 1;
    bool along_sum = false, conjugated = false;
    /// Bytes that are copied at a time; those of X by rows, or by elements.
    int unit_a = 16, unit_x = 16;
    bool x_rows = true;
    /// Of op(A), about: as powers of two.
    int log_m = 14, log_k = 14;

    int a_bytes() const;
    int scalar_bytes() const;
};

/// See src/mtsm.cuh and src/mtsm_tiles.cuh. In the words of the TSM2X paper: t1 = depth, t2 =
/// columns(), t3 = fetched(). tensor: by the tensor cores; then rows_a_thread counts tiles of 16
/// rows in a warp. warps_m, warps_n, groups: how the eight warps share rows and columns, and in how
/// many groups the terms.
struct MtsmPlan {
    using Request = MtsmShape;
    static constexpr int threads = 256;
    QUIVER_FIELDS(MtsmPlan, (bool, tensor, false), (int, rows_a_thread, 1), (int, warps_m, 1),
                  (int, warps_n, 1), (int, groups, 8), (int, depth, 16), (int, stages, 3),
                  (int, blocks, 1))

    /// Of Y that a block makes.
    int rows(const MtsmShape& shape) const;
    /// Of the sums of a thread; of tensor cores: of a warp.
    int columns(const MtsmShape& shape) const;
    /// Elements of B that a thread fetches at a time.
    int fetched(const MtsmShape& shape) const { return rows(shape) * depth / threads; }
    bool operator==(const MtsmPlan&) const = default;
};

/// The most columns of one launch.
inline constexpr int widest_mtsm = 64;

/// All plans that registers and shared memory allow, the model's favourite first. The model is the
/// paper's (section 3.1.8) in the terms of plan_arithmetic.hpp: memory, slowed down by Little's law
/// where few bytes are under way, and arithmetic, slowed down by few warps; t2 above peak flops /
/// bandwidth makes the second the larger.
std::vector<MtsmPlan> mtsm_plans(const MtsmShape& shape, const Machine& machine);

/// Nothing where the plan is not legal for the shape or the machine.
std::optional<PlannedKernel> kernel_of(const MtsmPlan& plan, const MtsmShape& shape,
                                       const Machine& machine);

/// Elements of the workspace of a launch of so many blocks.
std::size_t mtsm_workspace(unsigned blocks, const PlannedKernel& kernel, int n);

}  // namespace quiver::cuda

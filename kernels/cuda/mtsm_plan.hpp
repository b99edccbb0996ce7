// SPDX-License-Identifier: BSD-3-Clause
// The division of work of mtsm on a GPU. Pure arithmetic, as in plan.hpp, so that a launch and the
// tests without a GPU compute the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/plan.hpp"

namespace quiver::cuda {

/// The shape that a kernel is compiled for.
struct MtsmShape {
    /// Scalar types of B, and of X and Y.
    Dtype a = Dtype::d, scalar = Dtype::d;
    int n = 1;
    bool along_sum = false, conjugated = false;
    /// Bytes copied at a time from B and from X; x_rows: X is copied by rows, otherwise by
    /// elements.
    int unit_a = 16, unit_x = 16;
    bool x_rows = true;
    /// The largest of 16, 8 or 4 that divides the addresses of the columns of Y, if Y is stored by
    /// columns and B is across the sum with at most most_direct_terms columns; otherwise 0.
    int unit_y = 0;
    /// Approximate binary logarithms of the rows and columns of op(A).
    int log_m = 14, log_k = 14;

    int a_bytes() const;
    int scalar_bytes() const;
};

/// See src/mtsm.cuh and src/mtsm_tiles.cuh. In the notation of the TSM2X paper: t1 = depth, t2 =
/// columns(), t3 = fetched(). tensor: uses the tensor cores; then rows_a_thread counts tiles of 16
/// rows per warp. warps_m, warps_n, groups: the eight warps are divided among rows, columns, and
/// groups of terms. shifted: lines of B that do not start at multiples of 16 bytes are copied in
/// aligned pieces of 16 bytes. spread: without tensor cores, a thread reads single elements of B,
/// and its rows are 32 apart; always with `shifted`. direct: the kernel of src/mtsm_direct.cuh, for
/// a tall B of few terms; a thread has rows_a_thread adjacent rows and loads `depth` terms ahead;
/// `stages` is not used; if `tcf` is not 0, a thread processes that many rows (a multiple of
/// rows_a_thread; the thread count factor of the paper) and the launch has as many blocks as this
/// needs. plain: the versions V0 (1) and V1 (2) of the paper, without shared memory and without
/// prefetching; all other fields are ignored. No search chooses tcf or plain.
struct MtsmPlan {
    using Request = MtsmShape;
    static constexpr int threads = 256;
    QUIVER_FIELDS(MtsmPlan, (bool, tensor, false), (int, rows_a_thread, 1), (int, warps_m, 1),
                  (int, warps_n, 1), (int, groups, 8), (int, depth, 16), (int, stages, 3),
                  (int, blocks, 1), (bool, shifted, false), (bool, spread, false),
                  (bool, direct, false), (int, tcf, 0), (int, plain, 0))

    /// Rows of Y per block.
    int rows(const MtsmShape& shape) const;
    /// Columns of the sums of a thread, or of a warp for the tensor cores.
    int columns(const MtsmShape& shape) const;
    /// Elements of B that a thread fetches at a time.
    int fetched(const MtsmShape& shape) const { return rows(shape) * depth / threads; }
    bool operator==(const MtsmPlan&) const = default;
};

/// The most columns of one launch.
inline constexpr int widest_mtsm = 64;
/// The most terms of a direct plan.
inline constexpr int most_direct_terms = 32;

/// All plans that registers and shared memory allow, best by the model first. The model is that of
/// the paper (section 3.1.8) with the terms of plan_arithmetic.hpp: memory time, increased by
/// Little's law if few bytes are in flight, and arithmetic time, increased if there are few warps.
/// If t2 exceeds peak flops / bandwidth, arithmetic dominates.
std::vector<MtsmPlan> mtsm_plans(const MtsmShape& shape, const Machine& machine);

/// Modelled clocks of a multiprocessor per element of B; no estimate, but the order of plans, for
/// direct and plain plans.
double model_clocks(const MtsmPlan& plan, const MtsmShape& shape, const Machine& machine);

/// Returns nothing if the plan is not legal for the shape or the machine.
std::optional<PlannedKernel> kernel_of(const MtsmPlan& plan, const MtsmShape& shape,
                                       const Machine& machine);

/// Elements of the workspace of a launch with `blocks` blocks.
std::size_t mtsm_workspace(unsigned blocks, const PlannedKernel& kernel, int n);

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
// The division of work of the mixed-precision products on a GPU. Pure arithmetic, as in plan.hpp,
// so that a launch and the tests without a GPU compute the same numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/fold.hpp"
#include "kernels/cuda/plan.hpp"

namespace quiver::cuda {

/// The shape that a kernel is compiled for. `unit`: 0 if rows have no gaps and are copied as bytes,
/// else the bytes that a thread copies at a time.
struct MixedShape {
    Dtype scalar = Dtype::h;
    int m = 1, n = 1;
    int unit = 0;
    /// True for tsmm, false for tsmttsm.
    bool tsmm = false;
    /// tsmttsm only: A is B.
    bool same = false;
    /// tsmm only: the stored types of C and of Y (float or `scalar`), whether Y is read and added,
    /// and whether Y is accessed 16 bytes at a time.
    bool small_is_float = false, out_is_float = true, adds = false;
    bool flat = true;
};

/// See src/mixed_tsmttsm.cuh and src/mixed_tsmm.cuh. For tsmm `shares` is 1; for tsmttsm `kept` is
/// 0. fold: 1, or the least number of rows that together have a multiple of 16 bytes; without
/// folding, rows that are not multiples of 16 bytes are copied one by one, padded. bulk: the copy
/// engine brings the rows; only if MixedShape::unit is 0.
struct MixedPlan {
    using Request = MixedShape;
    QUIVER_FIELDS(MixedPlan, (int, fold, 1), (int, split, 1), (int, shares, 1), (int, row_warps, 8),
                  (int, steps, 1), (int, stages, 3), (int, kept, 0), (int, blocks, 1),
                  (bool, bulk, false))
    int threads() const { return 32 * split * shares * row_warps; }
    int rows() const { return fold * 16 * steps * row_warps; }
    bool operator==(const MixedPlan&) const = default;
};

/// The widest blocks of one launch.
inline constexpr int widest_mixed = 64;

/// All plans that registers and shared memory allow, best by the model first. On an H200 there is
/// at least one for all shapes up to widest_mixed (for tsmm also m up to 256 with n up to 16).
std::vector<MixedPlan> mixed_plans(const MixedShape& shape, const Machine& machine);

/// A shape like `shape`, whose plans do not fold rows.
MixedShape unfolded(const MixedShape& shape);

/// Returns nothing if the plan is not legal for the shape or the machine.
std::optional<PlannedKernel> kernel_of(const MixedPlan& plan, const MixedShape& given,
                                       const Machine& machine);

/// The shape that wide_tsmttsm is compiled for: sums of `words` doubles each.
struct WideShape {
    int m = 1, n = 1, words = 1;
};
/// See src/wide_tsmttsm.cuh: the tile of sums of a thread.
struct WidePlan {
    using Request = WideShape;
    QUIVER_FIELDS(WidePlan, (int, tile_m, 1), (int, tile_n, 1))
    bool operator==(const WidePlan&) const = default;
};
/// The plan with the smallest tiles with which the threads cover C.
WidePlan wide_plan(const WideShape& shape);
std::optional<PlannedKernel> kernel_of(const WidePlan& plan, const WideShape& shape,
                                       const Machine& machine);

/// MixedShape::unit for blocks with these layouts. Threads copy and pad rows whose widths are
/// multiples of 16, because the banks of shared memory would serialise accesses to unpadded rows,
/// and rows wider than widest_mixed, whose long rows would fill the shared memory.
int mixed_unit(const Layout& a, int m, const Layout& b, int n);

}  // namespace quiver::cuda

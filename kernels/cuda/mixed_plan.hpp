// SPDX-License-Identifier: BSD-3-Clause
// How the mixed-precision products divide their work on a GPU: pure arithmetic, as in plan.hpp, so
// that a launch and the tests without a GPU see the same numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/fold.hpp"
#include "kernels/cuda/plan.hpp"

namespace quiver::cuda {

/// What a kernel is compiled for. `unit`: 0 where rows have no gaps and come as bytes, else the
/// bytes that a thread copies at a time.
struct MixedShape {
    Dtype scalar = Dtype::h;
    int m = 1, n = 1;
    int unit = 0;
    /// tsmm, else tsmttsm.
    bool tsmm = false;
    /// tsmttsm only: A is B.
    bool same = false;
    /// tsmm only: of C and of Y, what is stored (float or `scalar`); whether results wait to be
    /// added to Y; and whether Y takes 16 bytes at a time.
    bool small_is_float = false, out_is_float = true, adds = false;
    bool flat = true;
};

/// See src/mixed_tsmttsm.cuh and src/mixed_tsmm.cuh. Of tsmm `shares` is 1; of tsmttsm `kept` is 0.
/// bulk: by the copy engine; only where MixedShape::unit is 0.
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

/// All plans that registers and shared memory allow, the model's favourite first; at least one on
/// an H200 for shapes up to widest_mixed each (of tsmm m up to 256 with n up to 16).
std::vector<MixedPlan> mixed_plans(const MixedShape& shape, const Machine& machine);

/// Nothing where the plan is not legal for the shape or the machine.
std::optional<PlannedKernel> kernel_of(const MixedPlan& plan, const MixedShape& shape,
                                       const Machine& machine);

/// What wide_tsmttsm is compiled for: sums of `words` doubles each.
struct WideShape {
    int m = 1, n = 1, words = 1;
};
struct WidePlan {
    using Request = WideShape;
    QUIVER_FIELDS(WidePlan, (int, tile_m, 1), (int, tile_n, 1))
    bool operator==(const WidePlan&) const = default;
};
/// The smallest tiles that the threads cover C with.
WidePlan wide_plan(const WideShape& shape);
std::optional<PlannedKernel> kernel_of(const WidePlan& plan, const WideShape& shape,
                                       const Machine& machine);

/// The bytes at a time for blocks that lie so: of widths that are multiples of 16 rows are padded
/// by the threads, since the banks of shared memory would serve them one after the other; so are
/// those wider than widest_mixed, whose long rows would fill the shared memory.
int mixed_unit(const Layout& a, int m, const Layout& b, int n);

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
// Shared arithmetic of the plans of tsmttsm, tsmm and the other dense products.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

constexpr int round_up(int value, int unit) {
    return ceil_div(value, unit) * unit;
}
/// The next odd number of vectors: rows with this distance start in different banks.
constexpr int odd_pitch(int columns, int vector) {
    return (ceil_div(columns, vector) | 1) * vector;
}
/// The next pitch, in doubles, with which the fragments of a warp lie in different banks.
constexpr int fragment_pitch(int columns) {
    return columns <= 4 ? 4 : round_up(columns - 4, 8) + 4;
}
/// Doubles in a scalar of the tensor-core kernels.
constexpr int parts_of(Dtype scalar) {
    return scalar == Dtype::z ? 2 : 1;
}
constexpr bool has_tensor_kernels(Dtype scalar) {
    return scalar == Dtype::d || scalar == Dtype::z;
}
/// Registers of a scalar.
inline int words_of(const ProductShape& shape) {
    return shape.scalar_bytes() / 4;
}
/// Cost of a multiply-add of this scalar type, in units of a single-precision multiply-add.
constexpr double fma_weight(Dtype scalar) {
    return scalar == Dtype::s ? 1 : scalar == Dtype::d ? 2 : scalar == Dtype::c ? 4 : 8;
}
/// Elements of shared memory, rounded up so that the next array is aligned to 16 bytes.
constexpr int aligned_elements(int elements, int scalar_bytes) {
    return round_up(elements, std::max(1, 16 / scalar_bytes));
}

/// True if threads with this number of registers fit a multiprocessor, whose four parts share the
/// warps.
constexpr bool registers_fit(int registers, int threads, int blocks) {
    const int warps_a_part = ceil_div(threads / 32 * blocks, 4);
    return registers <= std::min(255, 16384 / 32 / warps_a_part);
}
inline bool shared_fits(std::size_t bytes, int blocks, const Machine& machine) {
    constexpr std::size_t fixed = 1024 + 256;  // reserved by the system, and for barriers
    return bytes + 256 <= machine.shared_per_block &&
           (bytes + fixed) * static_cast<std::size_t>(blocks) <= machine.shared_per_multiprocessor;
}

/// True if rows that are contiguous in memory are also contiguous in shared memory.
inline bool bulk_whole(const Layout& layout, bool exact, int columns, int pitch) {
    return layout.contiguous && exact && pitch == columns;
}
/// True if rows can be copied in bulk: each row is a multiple of 16 bytes, or all `rows` together
/// are, without gaps in memory and in shared memory.
inline bool bulk_possible(const Layout& layout, bool exact, int columns, int pitch, int rows,
                          int scalar_bytes) {
    if (!layout.aligned) {
        return false;
    }
    if (layout.unit == 16) {
        return pitch * scalar_bytes % 16 == 0;
    }
    return bulk_whole(layout, exact, columns, pitch) && rows * columns * scalar_bytes % 16 == 0;
}
/// True if threads can copy the rows of both blocks as runs of bytes (or, if rows are multiples of
/// 16 bytes, row by row), and at least one of the blocks needs it. `same`: there is no second
/// block.
inline bool runs_possible(const Layout& a, int columns_a, int pitch_a, const Layout& b,
                          int columns_b, int pitch_b, bool same, bool exact, int rows,
                          int scalar_bytes) {
    return (a.unit < 16 || (!same && b.unit < 16)) &&
           bulk_possible(a, exact, columns_a, pitch_a, rows, scalar_bytes) &&
           (same || bulk_possible(b, exact, columns_b, pitch_b, rows, scalar_bytes));
}
inline int copy_unit(const Layout& layout, int pitch, int scalar_bytes) {
    int unit = layout.unit;
    while (pitch * scalar_bytes % unit != 0) {
        unit /= 2;
    }
    return unit;
}

/// The terms of the model. They overlap, but not perfectly.
struct Clocks {
    double memory = 0, arithmetic = 0, issue = 0, shared = 0, waiting = 0;

    double total() const {
        const auto power = [](double value) { return value * value * value * value; };
        return std::pow(power(memory) + power(arithmetic) + power(issue) + power(shared), 0.25) +
               waiting;
    }
};
/// Read bandwidth of an H200 in bytes per clock and multiprocessor.
inline constexpr double memory_bytes_a_clock = 17.6;
/// Bytes that must be in flight per multiprocessor to saturate the memory.
inline constexpr double bytes_under_way = 36 * 1024;

/// Slowdown of the memory if fewer bytes are in flight.
inline double latency_factor(double under_way) {
    return std::max(1.0, bytes_under_way / std::max(under_way, 1.0));
}
/// Slowdown of the memory if threads copy `under_way` bytes ahead on a multiprocessor whose blocks
/// use `shared` bytes of shared memory: the bytes in flight occupy the L1 cache, which is what the
/// shared memory leaves. Fitted to the times of a thousand plans on an H200
/// (docs/notes/kernels.md).
inline double copy_factor(double under_way, double shared) {
    const double lack = 30 * 1024 / under_way;
    const double crowd = std::max(0.0, shared - 168 * 1024) / (64 * 1024);
    return std::cbrt(1 + lack * lack * lack) * (1 + 0.2 * crowd);
}
/// Slowdown of the memory for a kernel whose shared memory consists of its stages, with `ahead`
/// times the nominal bytes in flight. The copy engine, which does not use the L1 cache, is slower
/// by the factor `bulk`.
inline double ring_factor(const PlannedKernel& kernel, int stages, int blocks, double ahead,
                          double bulk) {
    const double shared = blocks * (static_cast<double>(kernel.shared_bytes) + 1024);
    // With one stage, the rows are in flight only while no thread computes.
    const double under_way = ahead * shared * std::max(0.3, stages - 1.1) / stages;
    return kernel.bulk ? bulk * copy_factor(under_way, 0) : copy_factor(under_way, shared);
}
/// Clocks that the threads of a team wait for each other per stage.
inline double stage_wait(int team, bool bulk) {
    return bulk && team <= 128 ? 60 : team == 32 ? 60 : 90 + 0.2 * team;
}
/// Instructions of a team's warps per stage, besides those for rows and copies.
inline double stage_instructions(int team, bool bulk) {
    return 30.0 * team / 32 + (bulk ? 80 : 0);
}
/// Clocks of the copy engine for one row that is copied separately.
inline constexpr double bulk_row_clocks = 60;
/// Slowdown of arithmetic if there are few warps to switch between.
inline double warps_factor(double threads) {
    const double warps = threads / 32;
    return 0.8 * (warps + 2) / warps;
}

/// The tile geometry that follows from a plan of tsmttsm and a shape.
struct SumTiles {
    int slots, lanes, row_multiple;
    /// Accumulators of a thread, and registers for these with its operands.
    int accumulators, registers;
    /// Columns of A and B that the tiles cover.
    int columns_m, columns_n;
    /// Elements after a stage that the tiles of its last row read.
    int slack = 16;
};
/// `bulk`: rows without gaps between them.
std::optional<SumTiles> tiles_of(const TsmttsmPlan& plan, const ProductShape& shape, bool bulk);
/// Row pitch in shared memory.
int pitch_of(const TsmttsmPlan& plan, const ProductShape& shape, const SumTiles& tiles, bool bulk,
             const Layout& layout, int columns, int covered);
/// Returns nothing if the plan is not legal.
std::optional<Clocks> clocks_of(const TsmttsmPlan& plan, const ProductShape& shape,
                                const Machine& machine);
SumTileConfig tile_config(const TsmttsmPlan& plan, const ProductShape& shape, int pitch_a,
                          int pitch_b);

/// The tile geometry of tsmm.
struct RowTiles {
    /// Rows that a team processes at a time; columns of X, padded with zeros.
    int rows, depth;
    /// Elements of C in shared memory.
    int size_c;
    /// Registers of a thread for accumulators and operands.
    int registers;
};
std::optional<RowTiles> tiles_of(const TsmmPlan& plan, const ProductShape& shape);
int pitch_of(const TsmmPlan& plan, const ProductShape& shape, const RowTiles& tiles, bool bulk,
             const Layout& x);
std::optional<Clocks> clocks_of(const TsmmPlan& plan, const ProductShape& shape,
                                const Machine& machine);
RowTileConfig tile_config(const TsmmPlan& plan, const ProductShape& shape, int pitch);

/// The same functions for streamed plans of tsmm (tsmm_streamed_plan.cpp). `named` = false omits
/// the expression of the kernel. The first of streamed_plans() is the measured plan, with as many
/// stages and threads as fit shared memory.
std::optional<RowTiles> streamed_tiles(const TsmmPlan& plan, const ProductShape& shape);
std::optional<PlannedKernel> streamed_kernel(const TsmmPlan& plan, const ProductShape& shape,
                                             const Layout& x, const Layout& y,
                                             const Machine& machine, bool named);
std::optional<Clocks> streamed_clocks(const TsmmPlan& plan, const ProductShape& shape,
                                      const Machine& machine);
std::vector<TsmmPlan> streamed_plans(const ProductShape& shape, const Machine& machine,
                                     std::size_t most);

/// The same functions for streamed plans of tsmttsm (tsmttsm_streamed_plan.cpp). The first of
/// streamed_sum_plans() is the measured plan.
std::optional<SumTiles> streamed_sum_tiles(const TsmttsmPlan& plan, const ProductShape& shape);
std::optional<PlannedKernel> streamed_sum_kernel(const TsmttsmPlan& plan, const ProductShape& shape,
                                                 const Layout& a, const Layout& b,
                                                 const Machine& machine, bool named);
std::optional<Clocks> streamed_sum_clocks(const TsmttsmPlan& plan, const ProductShape& shape,
                                          const Machine& machine);
std::vector<TsmttsmPlan> streamed_sum_plans(const ProductShape& shape, const Machine& machine,
                                            std::size_t most);

/// The instance of a device template for a scalar type and a configuration.
template <class Config>
std::string instance_of(const char* kernel, Dtype scalar, const Config& config) {
    return visit_dtype(scalar,
                       [&]<class T>() { return instance(kernel, device_name<T>(), config); });
}

/// On an H200, reading and writing together is slower than reading alone by this factor.
inline constexpr double read_write_factor = 4.05 / 4.6;

/// The `most` cheapest plans by the model.
template <class Plan>
std::vector<Plan> ranked(std::vector<std::pair<double, Plan>> costs, std::size_t most) {
    std::stable_sort(costs.begin(), costs.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Plan> plans;
    for (std::size_t i = 0; i < std::min(most, costs.size()); ++i) {
        plans.push_back(costs[i].second);
    }
    return plans;
}

}  // namespace quiver::cuda

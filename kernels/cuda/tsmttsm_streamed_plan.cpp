// SPDX-License-Identifier: BSD-3-Clause
// Streamed plans of tsmttsm (src/tsmttsm_streamed.cuh).
#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
namespace {

constexpr int piece_bytes = 512;  // of a warp: 16 of each lane

/// Columns of A that a warp computes at a time: a tile of the tensor cores, or one vector per lane.
int columns_at_a_time(const TsmttsmPlan& plan, const ProductShape& shape) {
    return plan.tensor ? 16 : 32 * (16 / shape.scalar_bytes());
}

/// Bytes of a stage of a warp for `rows` rows.
int stage_bytes(const TsmttsmPlan& plan, const ProductShape& shape, int rows) {
    const int bytes = shape.scalar_bytes();
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        const int tiles_m = ceil_div(ceil_div(shape.m, 16), plan.team / 32);
        const int tiles_n = ceil_div(parts * shape.n, 8);
        return rows / 4 * (tiles_m * parts * piece_bytes + tiles_n * 32 * bytes);
    }
    const int unit = 16 / bytes;
    return rows * plan.tile_m / unit * piece_bytes + rows * ceil_div(shape.n, unit) * 16;
}

std::size_t shared_bytes(const TsmttsmPlan& plan, const ProductShape& shape) {
    return static_cast<std::size_t>(plan.threads / 32 * plan.stages) *
           static_cast<std::size_t>(stage_bytes(plan, shape, plan.rows));
}

/// Sets rows and stages: a stage of about `stage` bytes, and rings of at most `ring` bytes
/// together.
void fill_ring(TsmttsmPlan& plan, const ProductShape& shape, int stage, int ring) {
    const int step = plan.tensor ? 4 : 1;
    plan.rows = std::max(1, stage / stage_bytes(plan, shape, step)) * step;
    plan.stages =
        std::clamp(ring / (plan.threads / 32 * stage_bytes(plan, shape, plan.rows)), 2, 8);
}

/// The fastest of the plans measured on an H100.
TsmttsmPlan measured_plan(const ProductShape& shape) {
    TsmttsmPlan plan;
    plan.streamed = true;
    plan.tensor = has_tensor_kernels(shape.scalar);
    if (plan.tensor) {
        plan.team = plan.threads = 256;
        fill_ring(plan, shape, 2300, 144 * 1024);
        return plan;
    }
    plan.tile_m = 4;
    const int warps = ceil_div(
        shape.m, columns_at_a_time(plan, shape) * plan.tile_m / (16 / shape.scalar_bytes()));
    const int most_warps = shape.scalar == Dtype::s ? 16 : 8;
    plan.team = 32 * warps;
    plan.threads = std::max(1, most_warps / warps) * plan.team;
    fill_ring(plan, shape, 3000, (shape.scalar == Dtype::s ? 144 : 96) * 1024);
    return plan;
}

/// Calls f(plan) for every plan of the parameter space, legal or not.
template <class F>
void for_each_plan(const ProductShape& shape, F&& f) {
    TsmttsmPlan plan = measured_plan(shape);
    for (const int threads : {128, 256, 384, 512}) {
        for (const int teams : {1, 2, 4}) {
            for (const int tile_m : {1, 2, 4, 8}) {
                for (const int kilobytes : {48, 96, 144}) {
                    for (const int stage : {1100, 2300, 4600}) {
                        if (plan.tensor && tile_m > 1) {
                            continue;
                        }
                        plan.threads = threads;
                        plan.team = threads / teams;
                        plan.tile_m = tile_m;
                        fill_ring(plan, shape, stage, kilobytes * 1024);
                        f(plan);
                    }
                }
            }
        }
    }
}

}  // namespace

std::optional<SumTiles> streamed_sum_tiles(const TsmttsmPlan& plan, const ProductShape& shape) {
    if (!plan.streamed || plan.team < 32 || plan.team % 32 != 0 || plan.threads > 1024 ||
        plan.threads < plan.team || plan.threads % plan.team != 0 || plan.stages < 2 ||
        plan.rows < 1 || plan.tile_m < 1 || plan.tile_n != 1 || plan.vector != 1 ||
        plan.blocks < 1 || plan.bulk || shape.same || shape.second > 0) {
        return std::nullopt;
    }
    const int warps = plan.team / 32;
    if (plan.tensor) {
        if (!has_tensor_kernels(shape.scalar) || plan.tile_m != 1 || plan.rows % 4 != 0) {
            return std::nullopt;
        }
        const int tiles_m = ceil_div(ceil_div(shape.m, 16), warps);
        const int tiles_n = ceil_div(parts_of(shape.scalar) * shape.n, 8);
        const int sums = tiles_m * tiles_n * 8;
        return SumTiles{
            plan.team,  1, plan.rows, sums, sums + tiles_n * 8 + 16 + 50, tiles_m * warps * 16,
            tiles_n * 8};
    }
    const int unit = 16 / shape.scalar_bytes();
    if (shape.scalar == Dtype::z || plan.tile_m % unit != 0 || plan.team * plan.tile_m < shape.m) {
        return std::nullopt;
    }
    const int sums = plan.tile_m * shape.n * words_of(shape);
    return SumTiles{plan.team,
                    1,
                    plan.rows,
                    sums,
                    sums + (plan.tile_m + unit) * words_of(shape) + 50,
                    plan.team * plan.tile_m,
                    shape.n};
}

std::optional<PlannedKernel> streamed_sum_kernel(const TsmttsmPlan& plan, const ProductShape& shape,
                                                 const Layout& a, const Layout& b,
                                                 const Machine& machine, bool named) {
    const auto tiles = streamed_sum_tiles(plan, shape);
    if (!tiles || !registers_fit(tiles->registers, plan.threads, plan.blocks)) {
        return std::nullopt;
    }
    const int bytes = shape.scalar_bytes();
    PlannedKernel kernel;
    kernel.source = "tsmttsm_streamed.cuh";
    kernel.threads = plan.threads;
    kernel.shared_bytes = shared_bytes(plan, shape);
    kernel.rows = plan.rows * (plan.threads / plan.team);
    kernel.blocks_per_multiprocessor = plan.blocks;
    kernel.atomics = plan.atomics;
    if (!shared_fits(kernel.shared_bytes, plan.blocks, machine) ||
        kernel.shared_bytes < static_cast<std::size_t>(plan.threads * bytes)) {
        return std::nullopt;
    }
    if (named) {
        const SumTileConfig tile{.tensor = plan.tensor,
                                 .m = shape.m,
                                 .n = shape.n,
                                 .same = false,
                                 .tile_m = plan.tile_m,
                                 .tile_n = shape.n,
                                 .vector = 1,
                                 .pitch_a = 0,
                                 .pitch_b = 0,
                                 .team = plan.team};
        const TsmttsmConfig config{.tile = tile,
                                   .exact = false,
                                   .rows = plan.rows,
                                   .stages = plan.stages,
                                   .contiguous_a = false,
                                   .contiguous_b = false,
                                   .bytes_a = a.unit,
                                   // A lane of the tensor cores copies whole elements of B.
                                   .bytes_b = plan.tensor ? std::min(b.unit, bytes) : b.unit,
                                   .threads = plan.threads,
                                   .blocks = plan.blocks,
                                   .atomics = plan.atomics};
        kernel.expression = instance_of("streamed_tsmttsm", shape.scalar, config);
    }
    return kernel;
}

std::optional<Clocks> streamed_sum_clocks(const TsmttsmPlan& plan, const ProductShape& shape,
                                          const Machine& machine) {
    const auto tiles = streamed_sum_tiles(plan, shape);
    const auto kernel = streamed_sum_kernel(plan, shape, {}, {}, machine, false);
    if (!tiles || !kernel) {
        return std::nullopt;
    }
    const double bytes = shape.scalar_bytes();
    const double read = bytes * shape.m;
    const double warps = plan.team / 32.0;
    const double factor = warps_factor(static_cast<double>(plan.threads) * plan.blocks);
    const double shared = plan.blocks * static_cast<double>(kernel->shared_bytes);
    Clocks clocks;
    clocks.memory = (read + bytes * shape.n) / memory_bytes_a_clock *
                    copy_factor(shared * (plan.stages - 1) / plan.stages, shared);
    // Every warp reads the rows of B.
    const double loads =
        static_cast<double>(stage_bytes(plan, shape, plan.rows)) * warps / plan.rows / piece_bytes;
    clocks.shared = 4 * loads;
    const double products = static_cast<double>(tiles->columns_m) * tiles->columns_n;
    if (plan.tensor) {
        const double real = products * parts_of(shape.scalar);
        clocks.arithmetic = real / 126 * factor;
        clocks.issue = (2 * loads + real / 512) / 4 * factor;
    } else {
        const double multiply_adds = products * fma_weight(shape.scalar) / 32;
        clocks.arithmetic = multiply_adds / 4 / 0.93 * factor;
        clocks.issue = (multiply_adds + 2 * loads) / 4 / 0.9 * factor;
    }
    return clocks;
}

std::vector<TsmttsmPlan> streamed_sum_plans(const ProductShape& shape, const Machine& machine,
                                            std::size_t most) {
    const TsmttsmPlan first = measured_plan(shape);
    std::vector<std::pair<double, TsmttsmPlan>> costs;
    if (streamed_sum_kernel(first, shape, {}, {}, machine, false)) {
        costs.emplace_back(0, first);
    }
    if (most > 1) {
        for_each_plan(shape, [&](const TsmttsmPlan& plan) {
            if (const auto clocks = streamed_sum_clocks(plan, shape, machine);
                clocks && plan != first) {
                costs.emplace_back(clocks->total(), plan);
            }
        });
    }
    return ranked(std::move(costs), most);
}

}  // namespace quiver::cuda

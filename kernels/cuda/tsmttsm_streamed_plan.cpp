// SPDX-License-Identifier: BSD-3-Clause
// Streamed plans of tsmttsm (src/tsmttsm_streamed.cuh).
#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
namespace {

constexpr int piece_bytes = 512;  // of a warp: 16 of each lane

/// Columns of B that a lane multiplies without tensor cores.
int columns_a_lane(const TsmttsmPlan& plan, const ProductShape& shape) {
    const int unit = 16 / shape.scalar_bytes();
    return plan.tile_n == 1 ? shape.n : round_up(ceil_div(shape.n, plan.tile_n), unit);
}

/// Bytes of a stage of a team for `rows` rows.
int stage_bytes(const TsmttsmPlan& plan, const ProductShape& shape, int rows) {
    const int warps = plan.team / 32;
    const int bytes = shape.scalar_bytes();
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        const int tiles_m = ceil_div(ceil_div(shape.m, 16), plan.team / 32);
        const int tiles_n = ceil_div(parts * shape.n, 8);
        return rows / 4 * (warps * tiles_m * parts * piece_bytes + tiles_n * 32 * bytes / parts);
    }
    const int unit = 16 / bytes;
    const int pitch_b = round_up(plan.tile_n * columns_a_lane(plan, shape), unit);
    return rows * warps * plan.tile_m / unit / plan.tile_n * piece_bytes +
           round_up(rows * pitch_b * bytes, 16);
}

std::size_t shared_bytes(const TsmttsmPlan& plan, const ProductShape& shape) {
    return static_cast<std::size_t>(plan.threads / plan.team * plan.stages) *
           static_cast<std::size_t>(stage_bytes(plan, shape, plan.rows));
}

/// Sets rows and stages: a stage of about `stage` bytes, and rings of at most `ring` bytes
/// together.
void fill_ring(TsmttsmPlan& plan, const ProductShape& shape, int stage, int ring) {
    const int step = plan.tensor ? 4 : 1;
    plan.rows = std::max(1, stage / stage_bytes(plan, shape, step)) * step;
    plan.stages =
        std::clamp(ring / (plan.threads / plan.team * stage_bytes(plan, shape, plan.rows)), 2, 8);
}

/// Threads of a team and of a block, columns of A of a thread, about the bytes of a stage, and the
/// lanes that share the columns of B.
struct Teams {
    int team, threads, tile_m, stage;
    int tile_n = 1;
};

constexpr int kb = 1024;

/// The fastest of the plans measured on an H200 with tensor cores. With fewer warps, each has more
/// products for its loads of B.
Teams measured_tensor_teams(const ProductShape& shape) {
    if (shape.scalar == Dtype::d) {
        return {128, 256, 1, 18 * kb};
    }
    if (shape.m > 256 && (shape.n <= 4 || shape.n > 8)) {
        return {256, 256, 1, 24 * kb};
    }
    return shape.n > 4 && shape.n <= 8 && shape.m <= 256 ? Teams{64, 128, 1, 16 * kb}
                                                         : Teams{128, 256, 1, 16 * kb};
}

/// The fastest of the plans measured on an H200 for a shape of whole steps of 128 columns.
Teams measured_teams(const ProductShape& shape) {
    const int blocks = ceil_div(shape.m, 128);
    if (has_tensor_kernels(shape.scalar)) {
        return measured_tensor_teams(shape);
    }
    if (shape.scalar == Dtype::s && shape.n > 8) {
        if (blocks == 2) {
            return shape.n <= 12 ? Teams{64, 256, 4, 16 * kb} : Teams{64, 256, 8, 16 * kb, 2};
        }
        if (blocks == 3) {
            return {96, 384, 4, 16 * kb};
        }
        if (blocks == 4 && shape.n > 12) {
            return {64, 256, 8, 16 * kb};
        }
    }
    if (shape.scalar == Dtype::c && blocks == 2 && shape.n > 8) {
        return {128, 256, 2, 16 * kb};
    }
    if (shape.scalar == Dtype::c && blocks == 3 && shape.n > 4) {
        return shape.n <= 8 ? Teams{192, 384, 4, 16 * kb, 2} : Teams{192, 384, 2, 16 * kb};
    }
    const int team = 32 * blocks;
    return {team, std::max(1, 256 / team) * team, 4, 24 * kb};
}

TsmttsmPlan measured_plan(const ProductShape& shape) {
    const Teams teams = measured_teams(shape);
    TsmttsmPlan plan;
    plan.streamed = true;
    plan.tensor = has_tensor_kernels(shape.scalar);
    plan.team = teams.team;
    plan.threads = teams.threads;
    plan.tile_m = teams.tile_m;
    plan.tile_n = teams.tile_n;
    fill_ring(plan, shape, teams.stage, 144 * kb);
    return plan;
}

/// Calls f(plan) for every plan of the parameter space, legal or not.
template <class F>
void for_each_plan(const ProductShape& shape, F&& f) {
    TsmttsmPlan plan = measured_plan(shape);
    for (const int threads : {128, 256, 384, 512}) {
        for (const int teams : {1, 2, 4}) {
            for (const int tile_m : {1, 2, 4, 8}) {
                for (const int tile_n : {1, 2}) {
                    for (const int kilobytes : {96, 144}) {
                        for (const int stage : {8, 16, 32}) {
                            for (const int blocks : {1, 2}) {
                                plan.threads = threads;
                                plan.team = threads / teams;
                                plan.tile_m = tile_m;
                                plan.tile_n = tile_n;
                                plan.blocks = blocks;
                                if (plan.team % 32 == 0 &&
                                    streamed_sum_tiles(plan, shape).has_value()) {
                                    fill_ring(plan, shape, stage * 1024, kilobytes * 1024 / blocks);
                                    f(plan);
                                }
                            }
                        }
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
        plan.rows < 1 || plan.tile_m < 1 || plan.tile_n < 1 || plan.tile_n > 2 ||
        plan.vector != 1 || plan.blocks < 1 || plan.bulk || plan.run || shape.same ||
        shape.second > 0) {
        return std::nullopt;
    }
    const int warps = plan.team / 32;
    constexpr int most_barriers = 15;  // of a block, besides that of all threads
    if (warps > 1 && plan.threads / plan.team > most_barriers) {
        return std::nullopt;
    }
    if (plan.tensor) {
        if (!has_tensor_kernels(shape.scalar) || plan.tile_m != 1 || plan.tile_n != 1 ||
            plan.rows % 4 != 0) {
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
    const int columns_m = plan.team / plan.tile_n * plan.tile_m;
    if (shape.scalar == Dtype::z || plan.tile_m % (unit * plan.tile_n) != 0 ||
        columns_m < shape.m) {
        return std::nullopt;
    }
    const int columns = columns_a_lane(plan, shape);
    if (ceil_div(shape.n, columns) != plan.tile_n) {
        return std::nullopt;
    }
    const int sums = plan.tile_m * columns * words_of(shape);
    return SumTiles{plan.team,
                    1,
                    plan.rows,
                    sums,
                    sums + (plan.tile_m + unit) * words_of(shape) + 50,
                    columns_m,
                    columns * plan.tile_n};
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
    kernel.row_classes = streamed_row_classes;
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
                                 .tile_n = plan.tensor ? shape.n : columns_a_lane(plan, shape),
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

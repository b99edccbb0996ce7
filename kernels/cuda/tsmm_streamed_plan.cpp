// SPDX-License-Identifier: BSD-3-Clause
// Streamed plans of tsmm (src/tsmm_streamed.cuh).
#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
namespace {

/// The number of copies, of 512 bytes each, by which a warp fetches one slab.
int slab_copies(const TsmmPlan& plan, const ProductShape& shape) {
    const int rows =
        plan.tensor ? 2 * plan.tile_rows : plan.tile_rows / ceil_div(shape.n, plan.tile_n);
    return rows * plan.vector;
}

std::size_t shared_bytes(const TsmmPlan& plan, const ProductShape& shape, const RowTiles& tiles) {
    return static_cast<std::size_t>(tiles.size_c) * static_cast<std::size_t>(shape.scalar_bytes()) +
           static_cast<std::size_t>(plan.threads / 32 * plan.stages) *
               static_cast<std::size_t>(slab_copies(plan, shape) * 512);
}

/// The fastest of the plans measured on an H200; the same for any number of columns of X.
TsmmPlan measured_plan(const ProductShape& shape) {
    TsmmPlan plan;
    plan.streamed = true;
    plan.team = 32;
    plan.tensor = has_tensor_kernels(shape.scalar);
    plan.threads = 256;
    plan.stages = 4;
    if (plan.tensor) {
        const int tiles_n = ceil_div(parts_of(shape.scalar) * shape.n, 8);
        plan.vector = tiles_n <= 2 ? 4 : 2;
        plan.stages = tiles_n == 3 || tiles_n == 4 ? 5 : 4;
    } else if (shape.n <= 4) {
        plan.tile_rows = 4;
        plan.tile_n = shape.n;
        plan.vector = 2;
    } else if (shape.scalar == Dtype::c) {
        plan.tile_rows = 8;
        plan.tile_n = ceil_div(shape.n, shape.n <= 8 ? 2 : 4);
        plan.vector = 2;
        plan.stages = 3;
        plan.threads = 384;
    } else {
        plan.tile_rows = shape.n <= 8 ? 4 : 8;
        plan.tile_n = ceil_div(shape.n, shape.n <= 8 ? 2 : 4);
        plan.stages = 6;
        plan.threads = 512;
    }
    return plan;
}

/// The measured plan, with its stages and then its threads reduced until it fits shared memory. The
/// result does not depend on the m of the shape, so that one kernel serves all m.
TsmmPlan first_plan(const ProductShape& shape, const Machine& machine) {
    TsmmPlan plan = measured_plan(shape);
    const ProductShape usual =
        ProductShape::streams(shape.scalar, shape.n > 16 ? 128 : 256, shape.n);
    const auto fits = [&] {
        const auto tiles = streamed_tiles(plan, usual);
        return tiles && shared_fits(shared_bytes(plan, usual, *tiles), plan.blocks, machine);
    };
    while (plan.stages > 2 && !fits()) {
        --plan.stages;
    }
    while (plan.threads > 128 && !fits()) {
        plan.threads /= 2;
    }
    return plan;
}

/// Calls f(plan) for every plan of the parameter space, legal or not.
template <class F>
void for_each_plan(const ProductShape& shape, F&& f) {
    TsmmPlan plan = measured_plan(shape);
    for (const int threads : {128, 256, 384, 512}) {
        for (const int stages : {2, 3, 4, 6, 8}) {
            for (const int vector : {1, 2, 4}) {
                for (const int tile_rows : {1, 2, 4, 8}) {
                    for (const int share : {1, 2, 4}) {
                        plan.threads = threads;
                        plan.stages = stages;
                        plan.vector = vector;
                        plan.tile_rows = tile_rows;
                        plan.tile_n = plan.tensor ? share : ceil_div(shape.n, share);
                        f(plan);
                    }
                }
            }
        }
    }
}

}  // namespace

std::optional<RowTiles> streamed_tiles(const TsmmPlan& plan, const ProductShape& shape) {
    if (plan.team != 32 || plan.threads < 32 || plan.threads > 1024 || plan.threads % 32 != 0 ||
        plan.stages < 2 || plan.tile_rows < 1 || plan.tile_n < 1 || plan.vector < 1 ||
        plan.vector > 4 || plan.blocks < 1 || plan.vector_n != 1 || plan.in_registers ||
        plan.bulk || plan.run || plan.staged || shape.second > 0) {
        return std::nullopt;
    }
    RowTiles tiles{};
    if (plan.tensor) {
        if (!has_tensor_kernels(shape.scalar) || plan.tile_n != 1) {
            return std::nullopt;
        }
        const int parts = parts_of(shape.scalar);
        const int tiles_n = ceil_div(parts * shape.n, 8);
        tiles.rows = 16 * plan.tile_rows;
        tiles.depth = round_up(shape.m, plan.vector * 8 / parts);
        tiles.size_c = tiles.depth * tiles_n * 8 / parts;
        tiles.registers = plan.tile_rows * 8 * (tiles_n + 1) + 60;
        return tiles;
    }
    const int unit = 16 / shape.scalar_bytes();
    const int threads_n = ceil_div(shape.n, plan.tile_n);
    if (shape.scalar == Dtype::z || threads_n == 3 || threads_n > 4 ||
        plan.tile_rows % threads_n != 0) {
        return std::nullopt;
    }
    tiles.rows = 4 * plan.tile_rows / threads_n;
    tiles.depth = round_up(shape.m, plan.vector * 8 * unit);
    tiles.size_c = tiles.depth * threads_n * plan.tile_n;
    // The sums are divided among the eight lanes of a row.
    tiles.registers = (round_up(plan.tile_rows * plan.tile_n, 8) + (plan.tile_rows + 1) * unit) *
                          words_of(shape) +
                      40;
    return tiles;
}

std::optional<PlannedKernel> streamed_kernel(const TsmmPlan& plan, const ProductShape& shape,
                                             const Layout& x, const Layout& y,
                                             const Machine& machine, bool named) {
    const auto tiles = plan.streamed ? streamed_tiles(plan, shape) : std::nullopt;
    if (!tiles || !registers_fit(tiles->registers, plan.threads, plan.blocks)) {
        return std::nullopt;
    }
    PlannedKernel kernel;
    kernel.source = "tsmm_streamed.cuh";
    kernel.threads = plan.threads;
    kernel.shared_bytes = shared_bytes(plan, shape, *tiles);
    kernel.rows = tiles->rows * plan.threads / 32;
    kernel.blocks_per_multiprocessor = plan.blocks;
    kernel.row_classes = streamed_row_classes;
    if (!shared_fits(kernel.shared_bytes, plan.blocks, machine)) {
        return std::nullopt;
    }
    if (named) {
        // One kernel serves all m, so m is not part of its name.
        RowTileConfig tile = tile_config(plan, shape, 0);
        tile.m = 0;
        const TsmmConfig config{.tile = tile,
                                .second = 0,
                                .exact = false,
                                .stages = plan.stages,
                                .contiguous = false,
                                .bytes_x = x.unit,
                                .bytes_second = 0,
                                .staged_y = false,
                                .bytes_y = y.unit,
                                .flat_y = false,
                                .threads = plan.threads,
                                .blocks = plan.blocks};
        kernel.expression = instance_of("streamed_tsmm", shape.scalar, config);
    }
    return kernel;
}

std::optional<Clocks> streamed_clocks(const TsmmPlan& plan, const ProductShape& shape,
                                      const Machine& machine) {
    const auto tiles = streamed_tiles(plan, shape);
    const auto kernel = streamed_kernel(plan, shape, {}, {}, machine, false);
    if (!tiles || !kernel) {
        return std::nullopt;
    }
    const double bytes = shape.scalar_bytes();
    const double read = bytes * shape.m;
    const double warps = static_cast<double>(plan.threads) / 32 * plan.blocks;
    const double ring = warps * plan.stages * slab_copies(plan, shape) * 512;
    const double factor = warps_factor(32 * warps);
    Clocks clocks;
    clocks.memory = (read + bytes * shape.n) / (memory_bytes_a_clock * read_write_factor) *
                    copy_factor(ring * (plan.stages - 1) / plan.stages,
                                plan.blocks * static_cast<double>(kernel->shared_bytes));
    const double products = static_cast<double>(tiles->size_c);
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        clocks.arithmetic = products * parts * parts / 126 * factor;
        // Loads of a warp for each row: pieces of X, and C.
        const double loads = read / 512 + products * bytes / 512 / plan.tile_rows / 16;
        clocks.shared = 4 * loads;
        clocks.issue = (loads + products * parts * parts / 512) / 4 * factor;
    } else {
        const double multiply_adds = products * fma_weight(shape.scalar) / 32;
        clocks.arithmetic = multiply_adds / 4 / 0.93 * factor;
        const double threads_n = ceil_div(shape.n, plan.tile_n);
        const double loads =
            read * threads_n / 512 + products * bytes * threads_n / plan.tile_rows / 512;
        clocks.shared = 4 * loads;
        clocks.issue = (multiply_adds + loads + read / 512) / 4 / 0.9 * factor;
    }
    return clocks;
}

std::vector<TsmmPlan> streamed_plans(const ProductShape& shape, const Machine& machine,
                                     std::size_t most) {
    const TsmmPlan first = first_plan(shape, machine);
    std::vector<std::pair<double, TsmmPlan>> costs;
    if (streamed_kernel(first, shape, {}, {}, machine, false)) {
        costs.emplace_back(0, first);
    }
    if (most > 1) {
        for_each_plan(shape, [&](const TsmmPlan& plan) {
            if (const auto clocks = streamed_clocks(plan, shape, machine);
                clocks && plan != first) {
                costs.emplace_back(clocks->total(), plan);
            }
        });
    }
    return ranked(std::move(costs), most);
}

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
namespace {

/// The shape of G as the product of W with itself.
ProductShape sums_shape(const ProductShape& shape) {
    return {shape.scalar, shape.n, shape.n, true};
}

struct Geometry {
    RowTiles rows;
    SumTiles sums;
    int pitch_v, pitch_w;
    /// Rows of W in shared memory for each team.
    int rows_w;
    PlannedKernel kernel;
};

std::optional<Geometry> geometry_of(const TsmmGramPlan& plan, const ProductShape& shape,
                                    const Machine& machine) {
    const ProductShape gram = sums_shape(shape);
    const auto rows = tiles_of(plan.update, shape);
    const auto sums = tiles_of(plan.sums, gram, false);
    if (!rows || !sums || plan.update.streamed || plan.update.bulk || plan.update.run ||
        plan.update.team != plan.sums.team || plan.update.threads != plan.sums.threads ||
        shape.n > widest_panel) {
        return std::nullopt;
    }
    const int bytes = shape.scalar_bytes();
    const int teams = plan.update.threads / plan.update.team;
    Geometry geometry{*rows,
                      *sums,
                      pitch_of(plan.update, shape, *rows, false, {}),
                      pitch_of(plan.sums, gram, *sums, false, {}, shape.n, sums->columns_n),
                      round_up(rows->rows, sums->row_multiple),
                      {}};
    const int buffers = shape.adds ? plan.update.stages : 1;
    const int elements =
        aligned_elements(rows->size_c, bytes) +
        teams *
            (plan.update.stages * aligned_elements(rows->rows * geometry.pitch_v, bytes) +
             buffers * aligned_elements(geometry.rows_w * geometry.pitch_w + sums->slack, bytes));
    PlannedKernel& kernel = geometry.kernel;
    kernel.source = "tsmm_gram.cuh";
    kernel.threads = plan.update.threads;
    kernel.shared_bytes = static_cast<std::size_t>(elements) * static_cast<std::size_t>(bytes);
    kernel.rows = rows->rows * teams;
    kernel.blocks_per_multiprocessor = plan.update.blocks;
    if (!shared_fits(kernel.shared_bytes, plan.update.blocks, machine) ||
        kernel.shared_bytes < static_cast<std::size_t>(kernel.threads * bytes)) {
        return std::nullopt;
    }
    return geometry;
}

/// Registers of a thread. While the thread updates a group of rows, it also keeps its sums and the
/// addresses of its copies.
int registers_of(const Geometry& geometry, const TsmmGramPlan& plan, const ProductShape& shape) {
    const int bytes = shape.scalar_bytes();
    const auto copies = [&](int columns) {
        const int unit = shape.exact ? copy_unit({}, columns, bytes) : std::min(8, bytes);
        const int count = ceil_div(geometry.rows.rows * columns * bytes / unit, plan.update.team);
        // Unless the shape is exact, rows may have gaps: each copy then has its own source address.
        return shape.exact ? count * 3 / 2 : count * 3;
    };
    return (plan.sums.tensor ? 0 : 24 + geometry.sums.accumulators / 8) +
           std::max(geometry.rows.registers + geometry.sums.accumulators, geometry.sums.registers) +
           copies(shape.m) + (shape.adds ? copies(shape.n) : 0);
}

/// The fastest plans for the sums, judged by their arithmetic and loads only.
std::vector<TsmttsmPlan> sums_plans(const ProductShape& gram, int team, int threads,
                                    const Machine& machine) {
    std::vector<std::pair<double, TsmttsmPlan>> costs;
    TsmttsmPlan plan;
    plan.team = team;
    plan.threads = threads;
    plan.stages = 2;
    const auto add = [&] {
        const auto tiles = tiles_of(plan, gram, false);
        if (!tiles) {
            return;
        }
        plan.rows = round_up(64, tiles->row_multiple);
        if (const auto clocks = clocks_of(plan, gram, machine)) {
            const double busy = clocks->arithmetic + clocks->issue + clocks->shared;
            costs.emplace_back(busy + 0.002 * tiles->accumulators, plan);
        }
    };
    if (has_tensor_kernels(gram.scalar) && gram.m > 1) {
        plan.tensor = true;
        for (const int warps_m : {1, 2, 4, 8}) {
            for (const int warps_n : {1, 2, 4, 8}) {
                plan.tile_m = warps_m;
                plan.tile_n = warps_n;
                add();
            }
        }
        plan.tensor = false;
    }
    if (!has_tensor_kernels(gram.scalar) || gram.m <= 10) {
        for (const int vector : {1, 2, 4}) {
            for (int tile = vector; tile <= 8 && vector * gram.scalar_bytes() <= 16;
                 tile += vector) {
                if (tile < gram.m + vector) {
                    plan.tile_m = plan.tile_n = tile;
                    plan.vector = vector;
                    add();
                }
            }
        }
    }
    constexpr std::size_t most = 8;
    return ranked(std::move(costs), most);
}

/// Calls f(plan) for the plans that update the rows of W.
template <class F>
void for_each_update(const ProductShape& shape, int team, int threads, F&& f) {
    TsmmPlan plan;
    plan.team = team;
    plan.threads = threads;
    plan.staged = true;  // as in the model: results go through shared memory
    if (has_tensor_kernels(shape.scalar) && shape.m * shape.n >= 4) {
        plan.tensor = true;
        for (const int tiles_m : {1, 2, 4}) {
            for (const int warps_n : {1, 2, 4, 8}) {
                plan.tile_rows = tiles_m;
                plan.tile_n = warps_n;
                f(plan);
            }
        }
        plan.tensor = false;
    }
    if (has_tensor_kernels(shape.scalar) && shape.m * shape.n > 100) {
        return;
    }
    const int bytes = shape.scalar_bytes();
    for (const int vector : {1, 2, 4}) {
        for (const int vector_n : {1, 2, 4}) {
            if (vector * bytes > 16 || vector_n * bytes > 16 || vector >= shape.m + 1) {
                continue;
            }
            for (const int tile_rows : {1, 2, 4, 8}) {
                for (int tile_n = vector_n; tile_n <= 8; tile_n += vector_n) {
                    if (tile_rows * tile_n * words_of(shape) <= 64 && tile_n < shape.n + vector_n) {
                        plan.tile_rows = tile_rows;
                        plan.tile_n = tile_n;
                        plan.vector = vector;
                        plan.vector_n = vector_n;
                        f(plan);
                    }
                }
            }
        }
    }
}

}  // namespace

std::optional<PlannedKernel> kernel_of(const TsmmGramPlan& plan, const ProductShape& shape,
                                       const Layout& v, const Layout& w, const Machine& machine) {
    auto geometry = geometry_of(plan, shape, machine);
    if (!geometry) {
        return std::nullopt;
    }
    const int bytes = shape.scalar_bytes();
    const TsmmGramConfig config{
        .update = tile_config(plan.update, shape, geometry->pitch_v),
        .sums = tile_config(plan.sums, sums_shape(shape), geometry->pitch_w, geometry->pitch_w),
        .exact = shape.exact,
        .adds = shape.adds,
        .stages = plan.update.stages,
        .contiguous = shape.exact && v.contiguous && w.contiguous,
        .bytes_v = copy_unit(v, geometry->pitch_v, bytes),
        .bytes_w = copy_unit(w, geometry->pitch_w, bytes),
        .threads = plan.update.threads,
        .blocks = plan.update.blocks};
    geometry->kernel.expression = instance_of("tsmm_gram", shape.scalar, config);
    return geometry->kernel;
}

double model_clocks(const TsmmGramPlan& plan, const ProductShape& shape, const Machine& machine) {
    const auto geometry = geometry_of(plan, shape, machine);
    const auto update = clocks_of(plan.update, shape, machine);
    TsmttsmPlan sums_alone = plan.sums;
    sums_alone.blocks = plan.update.blocks;
    const auto sums = clocks_of(sums_alone, sums_shape(shape), machine);
    if (!geometry || !update || !sums) {
        return HUGE_VAL;
    }
    const double bytes = shape.scalar_bytes();
    const double read = bytes * (shape.m + (shape.adds ? shape.n : 0));
    const double written = bytes * shape.n;
    const int teams = plan.update.threads / plan.update.team * plan.update.blocks;
    const double under_way =
        (read + written) * geometry->rows.rows * teams * (plan.update.stages - 1);
    Clocks clocks;
    clocks.memory =
        (read + written) / (memory_bytes_a_clock * read_write_factor) * latency_factor(under_way);
    clocks.arithmetic = update->arithmetic + sums->arithmetic;
    clocks.issue = update->issue + sums->issue;
    clocks.shared = update->shared + sums->shared;
    clocks.waiting = 2 * stage_wait(plan.update.team, false) / (geometry->rows.rows * teams);
    return clocks.total();
}

std::vector<TsmmGramPlan> tsmm_gram_plans(const ProductShape& shape, const Machine& machine,
                                          std::size_t most) {
    std::vector<std::pair<double, TsmmGramPlan>> costs;
    const std::pair<int, int> teams[] = {{32, 128},  {64, 128},  {128, 128}, {64, 256},
                                         {128, 256}, {256, 256}, {384, 384}, {512, 512}};
    for (const auto& [team, threads] : teams) {
        for (const TsmttsmPlan& sums : sums_plans(sums_shape(shape), team, threads, machine)) {
            for_each_update(shape, team, threads, [&](const TsmmPlan& update) {
                for (const int stages : {2, 3, 4}) {
                    for (const int blocks : {1, 2, 3, 4}) {
                        TsmmGramPlan plan{update, sums};
                        plan.update.stages = stages;
                        plan.update.blocks = blocks;
                        const auto geometry = geometry_of(plan, shape, machine);
                        if (!geometry || !registers_fit(registers_of(*geometry, plan, shape),
                                                        plan.update.threads, blocks)) {
                            continue;
                        }
                        const double cost = model_clocks(plan, shape, machine);
                        if (cost < HUGE_VAL) {
                            costs.emplace_back(cost, plan);
                        }
                    }
                }
            });
        }
    }
    return ranked(std::move(costs), most);
}

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
std::optional<RowTiles> tiles_of(const TsmmPlan& plan, const ProductShape& shape) {
    if (plan.streamed) {
        return streamed_tiles(plan, shape);
    }
    const int words = words_of(shape);
    if (plan.team % 32 != 0 || plan.team < 32 || plan.threads % plan.team != 0 ||
        plan.stages < (plan.bulk ? 2 : 1) || plan.tile_rows < 1 || plan.tile_n < 1 ||
        plan.vector < 1) {
        return std::nullopt;
    }
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        if (!has_tensor_kernels(shape.scalar) || plan.team % (32 * plan.tile_n) != 0 ||
            (plan.vector != 1 && plan.vector != 2 && plan.vector != 4)) {
            return std::nullopt;
        }
        const int all_n = ceil_div(parts * shape.n, 8);
        const int own_n = ceil_div(all_n, plan.tile_n);
        const int real_depth = round_up(parts * shape.m, 4 * plan.vector);
        const int pitch_c = round_up(all_n * 8 - 4, 8) + 4;
        return RowTiles{
            plan.team / 32 / plan.tile_n * plan.tile_rows * 16, real_depth / parts,
            real_depth / parts * pitch_c / parts,
            plan.tile_rows * own_n * 8 + plan.tile_rows * 8 * plan.vector + own_n * 4 + 75};
    }
    const int threads_n = ceil_div(shape.n, plan.tile_n);
    if (plan.vector_n < 1 || plan.tile_n % plan.vector_n != 0 || threads_n > plan.team) {
        return std::nullopt;
    }
    const int depth = round_up(shape.m, plan.vector);
    const int kept = plan.in_registers ? depth * plan.tile_n : 0;
    return RowTiles{
        plan.team / threads_n * plan.tile_rows, depth,
        depth * round_up(threads_n * plan.tile_n, plan.vector_n),
        (plan.tile_rows * plan.tile_n + kept + plan.tile_rows * plan.vector + plan.tile_n) * words +
            40};
}

int pitch_of(const TsmmPlan& plan, const ProductShape& shape, const RowTiles& tiles, bool bulk,
             const Layout& x) {
    if (bulk && (x.unit < 16 || (!plan.tensor && x.contiguous && shape.m % plan.vector == 0 &&
                                 ceil_div(shape.n, plan.tile_n) >= 16))) {
        return shape.m;  // contiguous rows; at most two of them conflict in the banks
    }
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        return fragment_pitch(parts * tiles.depth) / parts;
    }
    return odd_pitch(shape.m, bulk ? std::max(1, 16 / shape.scalar_bytes()) : plan.vector);
}

RowTileConfig tile_config(const TsmmPlan& plan, const ProductShape& shape, int pitch) {
    return {.tensor = plan.tensor,
            .m = shape.m,
            .n = shape.n,
            .tile_rows = plan.tile_rows,
            .tile_n = plan.tile_n,
            .vector = plan.vector,
            .vector_n = plan.vector_n,
            .in_registers = plan.in_registers,
            .pitch = pitch,
            .team = plan.team};
}

namespace {

/// How a block of threads writes Y: `unit` bytes at a time; with `flat` as one run of bytes from
/// `elements` of shared memory, which are 0 without staging.
struct Writing {
    int unit;
    bool flat = false;
    int elements = 0;
};

Writing writing_of(const TsmmPlan& plan, const ProductShape& shape, const RowTiles& tiles,
                   const Layout& y) {
    const int bytes = shape.scalar_bytes();
    Writing writing{.unit = y.unit};
    if (plan.staged) {
        writing.flat = y.unit < 16 && y.aligned && y.contiguous && shape.exact &&
                       tiles.rows * shape.n * bytes % 16 == 0;
        writing.unit = writing.flat ? 16 : y.unit;
        const int vector = std::max(1, writing.unit / bytes);
        writing.elements = tiles.rows * (writing.flat ? shape.n : odd_pitch(shape.n, vector));
    }
    return writing;
}

/// kernel_of; `named` = false omits the expression, which takes longer than everything else.
std::optional<PlannedKernel> plan_kernel(const TsmmPlan& plan, const ProductShape& shape,
                                         const Layout& x, const Layout& y, const Machine& machine,
                                         bool named) {
    if (plan.streamed || shape.streamed) {
        return streamed_kernel(plan, shape, x, y, machine, named);
    }
    const auto tiles = tiles_of(plan, shape);
    if (!tiles) {
        return std::nullopt;
    }
    const int bytes = shape.scalar_bytes();
    const auto geometry = [&](bool bulk, bool run) -> std::optional<PlannedKernel> {
        const int pitch = pitch_of(plan, shape, *tiles, bulk || run, x);
        if (run && (shape.second > 0 || x.unit == 16 || tiles->depth != shape.m ||
                    !bulk_possible(x, shape.exact, shape.m, pitch, tiles->rows, bytes))) {
            return std::nullopt;
        }
        if (bulk && (!machine.bulk_copies || shape.second > 0 ||
                     (pitch == shape.m && tiles->depth != shape.m) ||
                     !bulk_possible(x, shape.exact, shape.m, pitch, tiles->rows, bytes))) {
            return std::nullopt;
        }
        if (!plan.tensor && pitch % plan.vector != 0) {
            return std::nullopt;
        }
        const int teams = plan.threads / plan.team;
        // The rows of Y are stored after those of X.
        const int unit_second =
            shape.second == 0
                ? 0
                : std::min(copy_unit(y, pitch, bytes), copy_unit(y, shape.m - shape.second, bytes));
        const Writing writing = writing_of(plan, shape, *tiles, y);
        const int size_x = aligned_elements(tiles->rows * pitch, bytes);
        const int elements =
            aligned_elements(tiles->size_c, bytes) +
            teams * (plan.stages * size_x + aligned_elements(writing.elements, bytes));
        PlannedKernel kernel;
        kernel.source = "tsmm.cuh";
        kernel.threads = plan.threads;
        kernel.shared_bytes = static_cast<std::size_t>(elements) * static_cast<std::size_t>(bytes);
        kernel.rows = tiles->rows * teams;
        kernel.blocks_per_multiprocessor = plan.blocks;
        kernel.bulk = bulk;
        kernel.run = run;
        kernel.pieces_a_row = bulk && !bulk_whole(x, shape.exact, shape.m, pitch);
        if (!shared_fits(kernel.shared_bytes, plan.blocks, machine)) {
            return std::nullopt;
        }
        if (named) {
            const TsmmConfig config{
                .tile = tile_config(plan, shape, pitch),
                .second = shape.second,
                .exact = shape.exact,
                .stages = plan.stages,
                .contiguous = shape.exact && x.contiguous && (shape.second == 0 || y.contiguous),
                .bytes_x = bulk  ? 0
                           : run ? 16
                                 : copy_unit(x, pitch, bytes),
                .bytes_second = unit_second,
                .staged_y = plan.staged,
                .bytes_y = writing.unit,
                .flat_y = writing.flat,
                .threads = plan.threads,
                .blocks = plan.blocks};
            kernel.expression = instance_of("tsmm", shape.scalar, config);
        }
        return kernel;
    };
    if (plan.run) {
        return plan.bulk || plan.tensor ? std::nullopt : geometry(false, true);
    }
    if (plan.bulk) {
        if (auto kernel = geometry(true, false)) {
            return kernel;
        }
    }
    return geometry(false, false);
}

/// The work of a multiprocessor for one row of X and Y, or a part of it.
struct RowWork {
    /// Instructions of warps.
    double instructions;
    /// Of 128 bytes of shared memory.
    double wavefronts;
    /// Clocks of the units that multiply and add.
    double arithmetic = 0;
    /// The factor by which this part lengthens the time of the memory.
    double memory = 1;
};

/// Products on the tensor cores. `teams`: those on a multiprocessor.
RowWork tensor_work(const TsmmPlan& plan, const ProductShape& shape, const RowTiles& tiles,
                    double teams) {
    const int parts = parts_of(shape.scalar);
    const int own_n = ceil_div(ceil_div(parts * shape.n, 8), plan.tile_n);
    const double covered_n = own_n * 8.0 * plan.tile_n;
    const double depth = static_cast<double>(tiles.depth) * parts;
    // For sixteen rows and four columns of X, by all warps together.
    const double loads = plan.tile_n * (2.0 + static_cast<double>(own_n) / plan.tile_rows);
    const double steps = depth / 4 / 16;
    const double independent = plan.tile_rows * own_n * teams * plan.team / 128;
    return {.instructions = (loads * parts + own_n * plan.tile_n + 6.0 / plan.tile_rows) * steps,
            .wavefronts = 2 * loads * steps,
            .arithmetic = covered_n * depth / 126 * (0.85 * std::max(1.0, 4 / independent))};
}

/// Products by multiply-adds of threads.
RowWork thread_work(const TsmmPlan& plan, const ProductShape& shape, const RowTiles& tiles) {
    const int bytes = shape.scalar_bytes();
    const int threads_n = ceil_div(shape.n, plan.tile_n);
    const int busy = plan.team / threads_n * threads_n;
    const double idle = static_cast<double>(plan.team) / busy;
    const double per_row = threads_n / 32.0 * idle;
    const double fmas = per_row * plan.tile_n * tiles.depth;
    const double wide = std::max(1.0, plan.vector * bytes / 8.0);
    const double wide_n = std::max(1.0, plan.vector_n * bytes / 8.0);
    const double loads_x = per_row * tiles.depth / plan.vector;
    const double loads_c =
        plan.in_registers ? 0
                          : per_row * tiles.depth * plan.tile_n / plan.vector_n / plan.tile_rows;
    const double slowdown = fma_weight(shape.scalar) <= 2 ? 1.5 : 1;
    return {.instructions = fmas * (words_of(shape) > 1 && shape.scalar != Dtype::d ? 4 : 1) +
                            loads_x + loads_c + per_row * (plan.tile_n + 4),
            .wavefronts = loads_x * wide + loads_c * wide_n,
            .arithmetic = slowdown * fmas * fma_weight(shape.scalar) / 4 / 0.93};
}

/// Stores of Y. `unit`: Layout::unit of Y.
RowWork store_work(const TsmmPlan& plan, const ProductShape& shape, int unit) {
    const int bytes = shape.scalar_bytes();
    const double read = static_cast<double>(bytes) * shape.m;
    const double written = static_cast<double>(bytes) * shape.n;
    if (plan.staged) {
        return {.instructions = written / (32 * bytes) + 4 * written / (32 * 16),
                .wavefronts = 2 * written / 128 * 1.5};
    }
    // Stores of neighbouring threads may leave 32-byte sectors partially written.
    const int together =
        bytes *
        (plan.tensor ? 4 : std::min(shape.n, ceil_div(shape.n, plan.tile_n) * plan.vector_n));
    const double sectors = std::max(1.0, 32.0 / together) * (shape.n * bytes % 32 == 0 ? 1
                                                             : shape.n * bytes < 32    ? 1.3
                                                                                       : 1.8);
    return {.instructions =
                3 * written / (32 * std::min(unit, plan.tensor ? bytes : plan.vector_n * bytes)),
            .wavefronts = written / 64 * sectors,
            .memory = (read + written * sectors) / (read + written)};
}

}  // namespace

std::optional<PlannedKernel> kernel_of(const TsmmPlan& plan, const ProductShape& shape,
                                       const Layout& x, const Layout& y, const Machine& machine) {
    return plan_kernel(plan, shape, x, y, machine, true);
}

std::optional<Clocks> clocks_of(const TsmmPlan& plan, const ProductShape& shape,
                                const Machine& machine) {
    if (plan.streamed) {
        return streamed_clocks(plan, shape, machine);
    }
    const auto tiles = tiles_of(plan, shape);
    const Layout layout_x{true, copy_unit({}, shape.m, shape.scalar_bytes()), true};
    const Layout layout_y{true, copy_unit({}, shape.n, shape.scalar_bytes()), true};
    const auto kernel = plan_kernel(plan, shape, layout_x, layout_y, machine, false);
    if (!tiles || !kernel) {
        return std::nullopt;
    }
    const double read = static_cast<double>(shape.scalar_bytes()) * shape.m;
    const double written = static_cast<double>(shape.scalar_bytes()) * shape.n;
    const double teams = static_cast<double>(plan.threads) / plan.team * plan.blocks;
    const RowWork products =
        plan.tensor ? tensor_work(plan, shape, *tiles, teams) : thread_work(plan, shape, *tiles);
    const RowWork writing = store_work(plan, shape, layout_y.unit);
    double instructions = products.instructions;
    if (!kernel->bulk) {
        instructions += 2 * read / (32 * (kernel->run ? 16 : layout_x.unit));
    }
    instructions += stage_instructions(plan.team, kernel->bulk) / tiles->rows;
    instructions += writing.instructions;
    // About half of the bytes in flight are stores, which no thread waits for.
    const double memory = (read + written) / (memory_bytes_a_clock * read_write_factor) *
                          ring_factor(*kernel, plan.stages, plan.blocks, 2.6, 1.05);
    // More registers for sums leave fewer for prefetching.
    const double crowd = 1 + 0.2 * std::max(0, tiles->registers - 136) / 64.0;
    const double factor = warps_factor(static_cast<double>(plan.threads) * plan.blocks) * crowd;
    return Clocks{
        .memory = std::max(memory, kernel->pieces_a_row * bulk_row_clocks) * writing.memory * crowd,
        .arithmetic = products.arithmetic * factor,
        .issue = instructions / 4 / 0.9 * factor,
        .shared = (read / 128 + products.wavefronts + writing.wavefronts) * crowd,
        .waiting = stage_wait(plan.team, kernel->bulk) * (plan.staged ? 1.5 : 1) *
                   (kernel->bulk ? 0.5 : 1) / (tiles->rows * teams)};
}

double model_clocks(const TsmmPlan& plan, const ProductShape& shape, const Machine& machine) {
    const auto clocks = clocks_of(plan, shape, machine);
    return clocks ? clocks->total() : HUGE_VAL;
}

namespace {

/// Appends the legal plans that differ from `plan` in stages, blocks and ways of copying.
void add_tsmm_stages(TsmmPlan plan, const ProductShape& shape, const Machine& machine,
                     const PlanSpace& space, std::vector<std::pair<double, TsmmPlan>>& costs) {
    const int bytes = shape.scalar_bytes();
    const auto tiles = tiles_of(plan, shape);
    if (!tiles || tiles->rows * shape.m * bytes / plan.team > 40 * 16) {
        return;
    }
    const bool with_runs =
        !plan.tensor && shape.exact && shape.second == 0 && shape.m * bytes % 16 != 0;
    // Registers for the target addresses of copies of a second source; more for odd widths.
    const int second_registers = shape.second == 0 ? 0 : shape.exact ? 24 : 48;
    const auto add = [&](bool staged) {
        plan.staged = staged;
        const double cost = model_clocks(plan, shape, machine);
        if (cost < HUGE_VAL) {
            costs.emplace_back(cost, plan);
        }
    };
    for (const int stages : space.stages) {
        for (const int blocks : space.blocks) {
            for (const auto& [bulk, run] :
                 {std::pair{false, false}, {true, false}, {false, true}}) {
                const int registers = tiles->registers + (bulk ? 0 : 12) + second_registers;
                if ((run && !with_runs) || !registers_fit(registers, plan.threads, blocks)) {
                    continue;
                }
                plan.stages = stages;
                plan.blocks = blocks;
                plan.bulk = bulk;
                plan.run = run;
                add(false);
                add(true);
            }
        }
    }
}

}  // namespace

std::vector<TsmmPlan> tsmm_plans(const ProductShape& shape, const Machine& machine,
                                 std::size_t most) {
    return tsmm_plans_in({}, shape, machine, most);
}

std::vector<TsmmPlan> tsmm_plans_in(const PlanSpace& space, const ProductShape& shape,
                                    const Machine& machine, std::size_t most) {
    if (shape.streamed) {
        return streamed_plans(shape, machine, most);
    }
    std::vector<std::pair<double, TsmmPlan>> costs;
    const int bytes = shape.scalar_bytes();
    const int words = words_of(shape);
    for (const auto& [team, threads] : space.teams) {
        TsmmPlan plan;
        plan.team = team;
        plan.threads = threads;
        if (has_tensor_kernels(shape.scalar) && shape.m * shape.n >= 4 &&
            space.tensor.value_or(true)) {
            plan.tensor = true;
            for (const int tiles_m : {1, 2, 4}) {
                for (const int warps_n : {1, 2, 4, 8}) {
                    if (space.has_tile(tiles_m, warps_n)) {
                        plan.tile_rows = tiles_m;
                        plan.tile_n = warps_n;
                        add_tsmm_stages(plan, shape, machine, space, costs);
                    }
                }
            }
        }
        plan.tensor = false;
        const bool slow = has_tensor_kernels(shape.scalar) && shape.m * shape.n > 100;
        if (space.tensor.value_or(slow)) {
            continue;
        }
        const int most_entries = words == 1 ? 128 : words == 2 ? 64 : 18;
        for (const int vector : space.vectors) {
            for (const int vector_n : {1, 2, 4}) {
                if (vector * bytes > 16 || vector_n * bytes > 16 || vector >= shape.m + 1) {
                    continue;
                }
                for (const int tile_rows : {1, 2, 4, 6, 8, 12, 16}) {
                    for (int tile_n = vector_n; tile_n <= 16; tile_n += vector_n) {
                        if (tile_rows * tile_n > most_entries || tile_n >= shape.n + vector_n ||
                            !space.has_tile(tile_rows, tile_n)) {
                            continue;
                        }
                        plan.tile_rows = tile_rows;
                        plan.tile_n = tile_n;
                        plan.vector = vector;
                        plan.vector_n = vector_n;
                        const int kept = round_up(shape.m, vector) * tile_n * words;
                        for (const bool in_registers : {false, true}) {
                            if (!in_registers || kept <= 72) {
                                plan.in_registers = in_registers;
                                add_tsmm_stages(plan, shape, machine, space, costs);
                            }
                        }
                        plan.in_registers = false;
                    }
                }
            }
        }
    }
    return ranked(std::move(costs), most);
}

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>

#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
std::optional<SumTiles> tiles_of(const TsmttsmPlan& plan, const ProductShape& shape, bool bulk) {
    if (plan.streamed) {
        return streamed_sum_tiles(plan, shape);
    }
    const int words = words_of(shape);
    if (plan.team % 32 != 0 || plan.team < 32 || plan.threads % plan.team != 0 || plan.rows < 1 ||
        plan.stages < (plan.bulk ? 2 : 1) || plan.unroll < 0 || (plan.tensor && plan.blocked) ||
        plan.tile_m < 1 || plan.tile_n < 1 || plan.vector < 1) {
        return std::nullopt;
    }
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        const int warps = plan.tile_m * plan.tile_n;
        if (!has_tensor_kernels(shape.scalar) || plan.team % (32 * warps) != 0 ||
            (plan.vector != 1 && plan.vector != 2 && plan.vector != 4)) {
            return std::nullopt;
        }
        const int all_m = ceil_div(parts * shape.m, 16);
        const int all_n = ceil_div(parts * shape.n, 8);
        const int own_m = ceil_div(all_m, plan.tile_m);
        const int own_n = ceil_div(all_n, plan.tile_n);
        const int lanes = plan.team / (32 * warps);
        if (own_m * own_n > 16) {
            return std::nullopt;  // the sums would need more than half of the registers, and spill
        }
        return SumTiles{32 * warps,
                        lanes,
                        lanes * 4 * plan.vector,
                        own_m * own_n * 8,
                        own_m * own_n * 8 + own_m * 8 * plan.vector + own_n * 4 + 55,
                        own_m * plan.tile_m * 16,
                        own_n * plan.tile_n * 8};
    }
    if (plan.tile_m % plan.vector != 0 || plan.tile_n % plan.vector != 0) {
        return std::nullopt;
    }
    // Bulk copies leave no gaps between rows, so rows of odd width start within a vector.
    const int divisor_m = bulk ? std::gcd(shape.m, plan.vector) : plan.vector;
    const int divisor_n = bulk ? std::gcd(shape.n, plan.vector) : plan.vector;
    const int classes = plan.vector / std::min(divisor_m, divisor_n);
    const int threads_m = ceil_div(shape.m + plan.vector - divisor_m, plan.tile_m);
    const int threads_n = ceil_div(shape.n + plan.vector - divisor_n, plan.tile_n);
    const int slots = shape.same ? threads_m * (threads_m + 1) / 2 : threads_m * threads_n;
    const int lanes = plan.team / slots / classes * classes;
    if (lanes < 1 || (shape.same && plan.tile_m != plan.tile_n)) {
        return std::nullopt;
    }
    return SumTiles{slots,
                    lanes,
                    lanes,
                    plan.tile_m * plan.tile_n * words,
                    (plan.tile_m * plan.tile_n + 2 * (plan.tile_m + plan.tile_n)) * words + 28,
                    threads_m * plan.tile_m,
                    threads_n * plan.tile_n,
                    classes > 1 ? 32 : 16};
}

int pitch_of(const TsmttsmPlan& plan, const ProductShape& shape, const SumTiles& tiles, bool bulk,
             const Layout& layout, int columns, int covered) {
    const int bytes = shape.scalar_bytes();
    if (bulk && (layout.unit < 16 || (!plan.tensor && layout.contiguous))) {
        return columns;
    }
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        return fragment_pitch(parts * columns) / parts;
    }
    if (!bulk) {
        return odd_pitch(covered, plan.vector);
    }
    const int unit = std::max(1, 16 / bytes);
    return tiles.slots < 32 ? odd_pitch(covered, unit) : round_up(covered, unit);
}

SumTileConfig tile_config(const TsmttsmPlan& plan, const ProductShape& shape, int pitch_a,
                          int pitch_b) {
    return {.tensor = plan.tensor,
            .m = shape.m,
            .n = shape.n,
            .same = shape.same,
            .tile_m = plan.tile_m,
            .tile_n = plan.tile_n,
            .vector = plan.vector,
            .pitch_a = pitch_a,
            .pitch_b = pitch_b,
            .team = plan.team,
            .blocked = plan.blocked,
            .unroll = plan.unroll};
}

namespace {

/// kernel_of; `named` = false omits the expression, which takes longer than everything else.
std::optional<PlannedKernel> plan_kernel(const TsmttsmPlan& plan, const ProductShape& shape,
                                         const Layout& a, const Layout& b, const Machine& machine,
                                         bool named) {
    if (plan.streamed || shape.streamed) {
        return streamed_sum_kernel(plan, shape, a, b, machine, named);
    }
    const int bytes = shape.scalar_bytes();
    const auto geometry = [&](bool bulk, bool run) -> std::optional<PlannedKernel> {
        const bool gapless = bulk || run;
        const auto tiles = tiles_of(plan, shape, gapless);
        if (!tiles) {
            return std::nullopt;
        }
        const int rows = std::max(1, plan.rows / tiles->row_multiple) * tiles->row_multiple;
        const int pitch_a = pitch_of(plan, shape, *tiles, gapless, a, shape.m, tiles->columns_m);
        const int pitch_b = pitch_of(plan, shape, *tiles, gapless, b, shape.n, tiles->columns_n);
        if (run && !runs_possible(a, shape.m, pitch_a, b, shape.n, pitch_b, shape.same, shape.exact,
                                  rows, bytes)) {
            return std::nullopt;
        }
        if (bulk &&
            (!machine.bulk_copies ||
             !bulk_possible(a, shape.exact, shape.m, pitch_a, rows, bytes) ||
             (!shape.same && !bulk_possible(b, shape.exact, shape.n, pitch_b, rows, bytes)))) {
            return std::nullopt;
        }
        const int teams = plan.threads / plan.team;
        const int size_a = aligned_elements(rows * pitch_a + tiles->slack, bytes);
        const int size_b = shape.same ? 0 : aligned_elements(rows * pitch_b + tiles->slack, bytes);
        PlannedKernel kernel;
        kernel.source = "tsmttsm.cuh";
        kernel.threads = plan.threads;
        kernel.shared_bytes = static_cast<std::size_t>(teams * plan.stages * (size_a + size_b)) *
                              static_cast<std::size_t>(bytes);
        kernel.rows = rows * teams;
        kernel.blocks_per_multiprocessor = plan.blocks;
        kernel.bulk = bulk;
        kernel.run = run;
        if (bulk) {
            kernel.pieces_a_row = !bulk_whole(a, shape.exact, shape.m, pitch_a) +
                                  (!shape.same && !bulk_whole(b, shape.exact, shape.n, pitch_b));
        }
        kernel.atomics = plan.atomics;
        if (!shared_fits(kernel.shared_bytes, plan.blocks, machine) ||
            kernel.shared_bytes < static_cast<std::size_t>(plan.threads * bytes)) {
            return std::nullopt;
        }
        if (named) {
            const TsmttsmConfig config{.tile = tile_config(plan, shape, pitch_a, pitch_b),
                                       .exact = shape.exact,
                                       .rows = rows,
                                       .stages = plan.stages,
                                       .contiguous_a = shape.exact && a.contiguous,
                                       .contiguous_b = shape.exact && b.contiguous,
                                       .bytes_a = bulk  ? 0
                                                  : run ? 16
                                                        : copy_unit(a, pitch_a, bytes),
                                       .bytes_b = bulk  ? 0
                                                  : run ? 16
                                                        : copy_unit(b, pitch_b, bytes),
                                       .threads = plan.threads,
                                       .blocks = plan.blocks,
                                       .atomics = plan.atomics};
            kernel.expression = instance_of("tsmttsm", shape.scalar, config);
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

}  // namespace

std::optional<PlannedKernel> kernel_of(const TsmttsmPlan& plan, const ProductShape& shape,
                                       const Layout& a, const Layout& b, const Machine& machine) {
    return plan_kernel(plan, shape, a, b, machine, true);
}

std::optional<Clocks> clocks_of(const TsmttsmPlan& plan, const ProductShape& shape,
                                const Machine& machine) {
    if (plan.streamed || shape.streamed) {
        return streamed_sum_clocks(plan, shape, machine);
    }
    const Layout layout_a{true, copy_unit({}, shape.m, shape.scalar_bytes()), true};
    const Layout layout_b{true, copy_unit({}, shape.n, shape.scalar_bytes()), true};
    const auto kernel = plan_kernel(plan, shape, layout_a, layout_b, machine, false);
    if (!kernel) {
        return std::nullopt;
    }
    const auto tiles = tiles_of(plan, shape, kernel->bulk || kernel->run);
    const int bytes = shape.scalar_bytes();
    const double row_bytes = static_cast<double>(bytes) * (shape.m + (shape.same ? 0 : shape.n));
    const int block_teams = plan.threads / plan.team;
    const double teams = static_cast<double>(block_teams) * plan.blocks;
    Clocks clocks;
    clocks.memory =
        row_bytes / memory_bytes_a_clock * ring_factor(*kernel, plan.stages, plan.blocks, 1, 1.1);
    double instructions = 0;
    double wavefronts = row_bytes / 128;
    if (plan.tensor) {
        const int own_m = tiles->columns_m / 16 / plan.tile_m;
        const int own_n = tiles->columns_n / 8 / plan.tile_n;
        const double triangle = shape.same && own_m > 1 ? 0.5 + 0.5 / own_m : 1;
        const double warps = plan.tile_m * plan.tile_n;
        clocks.arithmetic =
            static_cast<double>(tiles->columns_m) * tiles->columns_n * triangle / 126;
        const double loads = (2 * own_m + own_n) * warps / 4;
        wavefronts += 2 * loads;
        instructions = loads + (own_m * own_n * warps + 8.0 / plan.vector * warps) / 4;
        const double independent = own_m * own_n * teams * plan.team / 128;
        clocks.arithmetic *= 1.4 * std::max(1.0, 4 / independent);
    } else {
        const double used = static_cast<double>(tiles->slots) * plan.tile_m * plan.tile_n / 32 *
                            plan.team / (tiles->lanes * tiles->slots);
        const double weight = fma_weight(shape.scalar);
        const double loads =
            static_cast<double>(tiles->slots) * (plan.tile_m + plan.tile_n) / plan.vector / 32;
        clocks.arithmetic = used * weight / 4 / 0.93;
        wavefronts += loads * std::max(1.0, plan.vector * bytes / 8.0);
        instructions = used * (shape.scalar == Dtype::c || shape.scalar == Dtype::z ? 4 : 1) +
                       loads + 2.0 * tiles->slots / 32;
    }
    if (!kernel->bulk) {
        instructions +=
            2 * row_bytes / (32 * (kernel->run ? 16 : std::min(layout_a.unit, layout_b.unit)));
    }
    instructions += stage_instructions(plan.team, kernel->bulk) / kernel->rows * block_teams;
    clocks.memory = std::max(clocks.memory, kernel->pieces_a_row * bulk_row_clocks);
    const double factor = warps_factor(static_cast<double>(plan.threads) * plan.blocks);
    clocks.arithmetic *= factor;
    clocks.issue = 1.3 * instructions / 4 / 0.9 * factor;
    clocks.shared = wavefronts;
    clocks.waiting =
        (kernel->bulk ? 0.36 : 0.55) * stage_wait(plan.team, kernel->bulk) / (plan.rows * teams);
    return clocks;
}

double model_clocks(const TsmttsmPlan& plan, const ProductShape& shape, const Machine& machine) {
    const auto clocks = clocks_of(plan, shape, machine);
    return clocks ? clocks->total() : HUGE_VAL;
}

namespace {

/// Appends the legal plans that differ from `plan` in rows, stages, blocks and ways of copying.
void add_tsmttsm_stages(TsmttsmPlan plan, const ProductShape& shape, const Machine& machine,
                        const PlanSpace& space,
                        std::vector<std::pair<double, TsmttsmPlan>>& costs) {
    const int bytes = shape.scalar_bytes();
    const int unit_m = copy_unit({}, shape.m, bytes);
    const int unit_n = copy_unit({}, shape.n, bytes);
    const int teams = plan.threads / plan.team;
    const int parts = plan.tensor ? parts_of(shape.scalar) : 1;
    const bool with_runs =
        !plan.tensor && shape.exact && (shape.m * bytes % 16 != 0 || shape.n * bytes % 16 != 0);
    for (const auto& [bulk, run] : {std::pair{false, false}, {true, false}, {false, true}}) {
        const auto tiles = tiles_of(plan, shape, bulk || run);
        if (!tiles || (run && !with_runs)) {
            continue;
        }
        plan.bulk = bulk;
        plan.run = run;
        const int row_bytes =
            bytes * (tiles->columns_m + (shape.same ? 0 : tiles->columns_n)) / parts;
        for (const int stages : space.stages) {
            for (const int kilobytes : {16, 24, 48, 72, 104, 150, 200}) {
                for (const int blocks : space.blocks) {
                    plan.stages = stages;
                    plan.blocks = blocks;
                    const int budget = kilobytes * 1024 / teams / stages;
                    plan.rows = std::max(1, budget / (row_bytes * tiles->row_multiple)) *
                                tiles->row_multiple;
                    // Row by row, a thread keeps the target address of every copy.
                    const int copies = !shape.exact || bulk || run
                                           ? 0
                                           : plan.rows *
                                                 (shape.m * bytes / unit_m +
                                                  (shape.same ? 0 : shape.n * bytes / unit_n)) /
                                                 plan.team;
                    const int registers = tiles->registers + (bulk ? 0 : run ? 6 : 12 + copies);
                    if (!registers_fit(registers, plan.threads, blocks) ||
                        (!bulk && plan.rows * row_bytes / plan.team > (run ? 40 * 16 : 40 * 4))) {
                        continue;
                    }
                    // Kernels that need nearly all registers often spill some.
                    const bool tight =
                        !has_tensor_kernels(shape.scalar) &&
                        !registers_fit(tiles->registers * 10 / 9, plan.threads, blocks);
                    const double cost = model_clocks(plan, shape, machine) * (tight ? 1.1 : 1);
                    if (cost < HUGE_VAL) {
                        costs.emplace_back(cost, plan);
                    }
                }
            }
        }
    }
}

}  // namespace

std::vector<TsmttsmPlan> tsmttsm_plans(const ProductShape& shape, const Machine& machine,
                                       std::size_t most) {
    return tsmttsm_plans_in({}, shape, machine, most);
}

std::vector<TsmttsmPlan> tsmttsm_plans_in(const PlanSpace& space, const ProductShape& shape,
                                          const Machine& machine, std::size_t most) {
    if (shape.streamed) {
        return streamed_sum_plans(shape, machine, most);
    }
    std::vector<std::pair<double, TsmttsmPlan>> costs;
    const int bytes = shape.scalar_bytes();
    const int words = words_of(shape);
    for (const auto& [team, threads] : space.teams) {
        TsmttsmPlan plan;
        plan.team = team;
        plan.threads = threads;
        if (has_tensor_kernels(shape.scalar) && shape.m * shape.n >= 4 &&
            space.tensor.value_or(true)) {
            plan.tensor = true;
            for (const int warps_m : {1, 2, 4, 8}) {
                for (const int warps_n : {1, 2, 4, 8}) {
                    if (space.has_tile(warps_m, warps_n)) {
                        plan.tile_m = warps_m;
                        plan.tile_n = warps_n;
                        add_tsmttsm_stages(plan, shape, machine, space, costs);
                    }
                }
            }
        }
        plan.tensor = false;
        const int most_entries = words == 1 ? 144 : words == 2 ? 72 : 25;
        const bool slow = has_tensor_kernels(shape.scalar) && shape.m * shape.n > 100;
        if (space.tensor.value_or(slow)) {
            continue;
        }
        for (const int vector : space.vectors) {
            if (vector * bytes > 16) {
                break;
            }
            for (int tile_m = vector; tile_m <= 16; tile_m += vector) {
                for (int tile_n = vector; tile_n <= 16; tile_n += vector) {
                    const bool wasteful = tile_m >= shape.m + vector || tile_n >= shape.n + vector;
                    if (tile_m * tile_n <= most_entries && !wasteful &&
                        space.has_tile(tile_m, tile_n)) {
                        plan.vector = vector;
                        plan.tile_m = tile_m;
                        plan.tile_n = tile_n;
                        add_tsmttsm_stages(plan, shape, machine, space, costs);
                    }
                }
            }
        }
    }
    return ranked(std::move(costs), most);
}

}  // namespace quiver::cuda

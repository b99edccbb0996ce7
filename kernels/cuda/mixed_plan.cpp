// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/mixed_plan.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
namespace {

/// Elements that loads may read beyond a stage (FoldedSums::slack).
constexpr std::size_t slack = 64;
constexpr std::size_t short_bytes = 2;
/// Largest bytes of a stage with more than one step.
constexpr std::size_t most_stage_bytes = 40 * 1024;
/// Clocks of a multiprocessor for one tensor-core product, and for the barriers of a stage.
constexpr double mma_clocks = 3.2;
constexpr double barrier_clocks = 250;

const char* name_of(Dtype scalar) {
    return scalar == Dtype::h ? "quiver::half_t" : "quiver::bfloat16_t";
}

int fold_of(const MixedShape& shape) {
    int fold = 1;
    while (shape.unit == 0 && (fold * shape.m % 8 != 0 || fold * shape.n % 8 != 0)) {
        fold *= 2;
    }
    return fold;
}

std::size_t pitch_of(const MixedShape& shape, int fold, int columns) {
    return static_cast<std::size_t>(row_pitch(columns, fold, shape.unit));
}

FoldedProduct product_of(const MixedPlan& plan, const MixedShape& shape) {
    return {{shape.m, plan.fold, plan.split},
            {shape.n, plan.fold, plan.split},
            shape.same,
            plan.shares};
}

std::size_t long_rows(const MixedPlan& plan) {
    return static_cast<std::size_t>(plan.rows() / plan.fold);
}

std::size_t tsmttsm_stage_bytes(const MixedPlan& plan, const MixedShape& shape) {
    const std::size_t pitch = pitch_of(shape, plan.fold, shape.m) +
                              (shape.same ? 0 : pitch_of(shape, plan.fold, shape.n));
    return long_rows(plan) * pitch * short_bytes;
}
std::size_t tsmttsm_shared_bytes(const MixedPlan& plan, const MixedShape& shape) {
    return static_cast<std::size_t>(plan.stages) * tsmttsm_stage_bytes(plan, shape) +
           slack * short_bytes +
           static_cast<std::size_t>(plan.fold * plan.row_warps * shape.m * shape.n) * sizeof(float);
}

int parts_of(const MixedShape& shape) {
    return shape.small_is_float ? 2 : 1;
}
std::size_t out_bytes(const MixedShape& shape) {
    return shape.out_is_float || shape.adds ? sizeof(float) : short_bytes;
}
std::size_t tsmm_stage_bytes(const MixedPlan& plan, const MixedShape& shape) {
    return long_rows(plan) * pitch_of(shape, plan.fold, shape.m) * short_bytes;
}
std::size_t tsmm_shared_bytes(const MixedPlan& plan, const MixedShape& shape) {
    const FoldedProduct product = product_of(plan, shape);
    const auto pitch_y = static_cast<std::size_t>(result_pitch(plan.fold * shape.n));
    const auto spilled = static_cast<std::size_t>((parts_of(shape) - plan.kept) * plan.split *
                                                  product.pairs() * product.chunks() * 32 * 8);
    // At first, this memory holds the parts of C.
    const auto c = static_cast<std::size_t>(round_up(parts_of(shape) * shape.m * shape.n, 8));
    return static_cast<std::size_t>(plan.stages) * tsmm_stage_bytes(plan, shape) +
           slack * short_bytes + std::max(long_rows(plan) * pitch_y, c) * out_bytes(shape) +
           spilled + static_cast<std::size_t>(shape.n) * sizeof(float);
}

/// Calls f for every way to divide the warps of a block of 256 threads and to copy the rows.
template <class F>
void for_each_deal(const MixedShape& shape, const Machine& machine, int most_shares, F&& f) {
    const int fold = fold_of(shape);
    const int ways = shape.unit == 0 && machine.bulk_copies ? 2 : 1;
    for (int split = 1; split <= fold; split *= 2) {
        for (int shares = 1; shares <= most_shares; shares *= 2) {
            for (const int blocks : {1, 2, 3}) {
                for (int way = 0; way < ways && split * shares <= 8; ++way) {
                    MixedPlan plan;
                    plan.fold = fold;
                    plan.split = split;
                    plan.shares = shares;
                    plan.row_warps = 8 / (split * shares);
                    plan.blocks = blocks;
                    plan.bulk = way == 1;
                    f(plan);
                }
            }
        }
    }
}

/// Calls f with all steps and stages that fit.
template <class Bytes, class StageBytes, class F>
void for_each_ring(MixedPlan plan, const Machine& machine, StageBytes&& stage_bytes, Bytes&& bytes,
                   F&& f) {
    for (const int stages : {4, 3, 2}) {
        for (const int steps : {8, 4, 2, 1}) {
            plan.steps = steps;
            plan.stages = stages;
            const std::size_t most = most_stage_bytes / static_cast<std::size_t>(plan.blocks);
            if ((steps == 1 || stage_bytes(plan) <= most) &&
                shared_fits(bytes(plan), plan.blocks, machine)) {
                f(plan);
            }
        }
    }
}

std::vector<MixedPlan> sorted(std::vector<std::pair<double, MixedPlan>> costs) {
    const std::size_t all = costs.size();
    return ranked(std::move(costs), all);
}

double overlapped(double memory, double arithmetic, double issue, double shared, double waiting) {
    Clocks clocks;
    clocks.memory = memory;
    clocks.arithmetic = arithmetic;
    clocks.issue = issue;
    clocks.shared = shared;
    clocks.waiting = waiting;
    return clocks.total();
}

/// The slowdown of memory with `stage` bytes copied at a time. The copy engine of an H200 alone
/// reaches 75 to 80% of the memory bandwidth, which is too little if nothing is written.
double ring_factor(const MixedPlan& plan, double stage, std::size_t shared, double bulk) {
    return copy_factor((plan.stages - 1.0) * plan.blocks * stage,
                       plan.blocks * (static_cast<double>(shared) + 1024)) *
           (plan.bulk ? bulk : 1);
}

/// The fields that both kernels of folded rows have.
template <class Config>
Config folded_config(const MixedPlan& plan, const MixedShape& shape) {
    Config config;
    config.m = shape.m;
    config.n = shape.n;
    config.fold = plan.fold;
    config.split = plan.split;
    config.row_warps = plan.row_warps;
    config.steps = plan.steps;
    config.stages = plan.stages;
    config.bytes = shape.unit;
    config.bulk = plan.bulk;
    config.blocks = plan.blocks;
    return config;
}

/// The number of turns in which the banks serve the eight rows of a matrix.
int conflicts(std::size_t pitch) {
    int chunks = static_cast<int>(pitch / 8);
    int degree = 1;
    while (degree < 8 && chunks % 2 == 0) {
        chunks /= 2;
        degree *= 2;
    }
    return degree;
}

}  // namespace

int mixed_unit(const Layout& a, int m, const Layout& b, int n) {
    const bool whole = a.contiguous && b.contiguous && a.aligned && b.aligned;
    const bool crowded = m % 16 == 0 && n % 16 == 0 && (m > 16 || n > 16);
    if (whole && !crowded && std::max(m, n) <= widest_mixed) {
        return 0;
    }
    return std::min(a.unit, b.unit);
}

namespace {

std::vector<MixedPlan> mixed_tsmttsm_plans(const MixedShape& shape, const Machine& machine) {
    std::vector<std::pair<double, MixedPlan>> costs;
    const int unit = shape.unit == 0 ? 16 : shape.unit;
    for_each_deal(shape, machine, shape.same ? 1 : 2, [&](const MixedPlan& deal) {
        const FoldedProduct product = product_of(deal, shape);
        const int sums = 4 * product.tiles();
        // With several diagonal blocks per slab, their positions cost registers when sums are
        // flushed.
        const bool dense = deal.split == deal.fold;
        const int registers = (dense ? sums + 44 : 2 * sums + 64) + 4 * product.pairs();
        const auto bytes = [&](const MixedPlan& p) { return tsmttsm_shared_bytes(p, shape); };
        const auto stage = [&](const MixedPlan& p) { return tsmttsm_stage_bytes(p, shape); };
        if (!registers_fit(registers, deal.threads(), deal.blocks)) {
            return;
        }
        for_each_ring(deal, machine, stage, bytes, [&](const MixedPlan& plan) {
            // These clocks are for 16 long rows, which share the cost of a stage and of a flush.
            const double teams = plan.split * plan.shares;
            const double loads_a = product.pairs();
            const double loads_b = shape.same ? 0 : (product.chunks() + 1) / 2;
            const double memory =
                16.0 * plan.fold * 2 * (shape.same ? shape.m : shape.m + shape.n) /
                memory_bytes_a_clock *
                ring_factor(plan, static_cast<double>(tsmttsm_stage_bytes(plan, shape)),
                            tsmttsm_shared_bytes(plan, shape), 1.25);
            const double copies =
                plan.bulk ? 0 : 16.0 * plan.fold * 2 * (shape.m + shape.n) / unit / 32 * 8;
            const double issue =
                (teams * (loads_a + loads_b + product.tiles() * 1.1 + 8) + copies) / 4;
            const double shared = teams * 4 *
                                  (loads_a * conflicts(pitch_of(shape, plan.fold, shape.m)) +
                                   loads_b * conflicts(pitch_of(shape, plan.fold, shape.n)));
            const double waiting = barrier_clocks / (plan.steps * plan.row_warps) / plan.blocks +
                                   (dense ? 4.0 : 30.0) * sums * teams / 128 / 4;
            costs.emplace_back(
                overlapped(memory, teams * product.tiles() * mma_clocks, issue, shared, waiting) /
                    plan.fold,
                plan);
        });
    });
    return sorted(std::move(costs));
}

std::vector<MixedPlan> mixed_tsmm_plans(const MixedShape& shape, const Machine& machine) {
    std::vector<std::pair<double, MixedPlan>> costs;
    const int unit = shape.unit == 0 ? 16 : shape.unit;
    const int parts = parts_of(shape);
    for_each_deal(shape, machine, 1, [&](MixedPlan deal) {
        const FoldedProduct product = product_of(deal, shape);
        for (deal.kept = parts; deal.kept >= 0; --deal.kept) {
            const int registers = 2 * product.tiles() * deal.kept + 4 * product.pairs() + 56;
            const auto bytes = [&](const MixedPlan& p) { return tsmm_shared_bytes(p, shape); };
            const auto stage = [&](const MixedPlan& p) {
                return tsmm_stage_bytes(p, shape) +
                       long_rows(p) * static_cast<std::size_t>(p.fold * shape.n) * out_bytes(shape);
            };
            if (!registers_fit(registers, deal.threads(), deal.blocks)) {
                continue;
            }
            for_each_ring(deal, machine, stage, bytes, [&](const MixedPlan& plan) {
                const double teams = plan.split;
                const double row_bytes = 2.0 * shape.m + (shape.out_is_float ? 4.0 : 2.0) * shape.n;
                const double memory =
                    16.0 * plan.fold * row_bytes / memory_bytes_a_clock *
                    ring_factor(plan, 2.0 * static_cast<double>(tsmm_stage_bytes(plan, shape)),
                                tsmm_shared_bytes(plan, shape), 1);
                const double put = plan.split == 1 ? 10 : 18;
                const double products = teams * product.tiles() * parts;
                const double spilled = teams * product.tiles() * (parts - plan.kept);
                const double copies =
                    plan.bulk ? 0 : 16.0 * plan.fold * 2 * shape.m / unit / 32 * 8;
                const double stores =
                    16.0 * plan.fold * shape.n * (shape.flat ? 0.125 * 6 : 8) / 32;
                const double issue =
                    (teams * (product.pairs() + product.chunks() * (put + 4) + 10) +
                     products * 1.1 + spilled * 2 + copies + stores) /
                    4;
                const double shared = teams * (4.0 * product.pairs() *
                                                   conflicts(pitch_of(shape, plan.fold, shape.m)) +
                                               product.chunks() * 6.0) +
                                      2 * spilled;
                const double waiting =
                    2 * barrier_clocks / (plan.steps * plan.row_warps) / plan.blocks;
                costs.emplace_back(
                    overlapped(memory, products * mma_clocks, issue, shared, waiting) / plan.fold,
                    plan);
            });
        }
    });
    return sorted(std::move(costs));
}

}  // namespace

std::vector<MixedPlan> mixed_plans(const MixedShape& shape, const Machine& machine) {
    return shape.tsmm ? mixed_tsmm_plans(shape, machine) : mixed_tsmttsm_plans(shape, machine);
}

MixedShape unfolded(const MixedShape& shape) {
    MixedShape own = shape;
    if (shape.unit == 0) {
        own.unit = 16;
        while (2 * shape.m % own.unit != 0 || 2 * shape.n % own.unit != 0) {
            own.unit /= 2;
        }
    }
    return own;
}

std::optional<PlannedKernel> kernel_of(const MixedPlan& plan, const MixedShape& given,
                                       const Machine& machine) {
    const MixedShape shape =
        plan.fold == 1 && fold_of(given) > 1 && !given.tsmm ? unfolded(given) : given;
    PlannedKernel kernel;
    kernel.shared_bytes =
        shape.tsmm ? tsmm_shared_bytes(plan, shape) : tsmttsm_shared_bytes(plan, shape);
    if (plan.fold != fold_of(shape) || (plan.bulk && shape.unit != 0) ||
        !shared_fits(kernel.shared_bytes, plan.blocks, machine)) {
        return std::nullopt;
    }
    const std::string scalar = name_of(shape.scalar);
    if (shape.tsmm) {
        const std::string out = shape.out_is_float ? "float" : scalar;
        MixedTsmmConfig config = folded_config<MixedTsmmConfig>(plan, shape);
        config.flat = shape.flat;
        config.kept = plan.kept;
        kernel.source = "mixed_tsmm.cuh";
        kernel.expression = instance("mixed_tsmm", scalar, shape.small_is_float ? "float" : scalar,
                                     out, shape.adds ? "float" : out, config);
    } else {
        MixedTsmttsmConfig config = folded_config<MixedTsmttsmConfig>(plan, shape);
        config.same = shape.same;
        config.shares = plan.shares;
        kernel.source = "mixed_tsmttsm.cuh";
        kernel.expression = instance("mixed_tsmttsm", scalar, config);
    }
    kernel.threads = plan.threads();
    kernel.rows = plan.rows();
    kernel.blocks_per_multiprocessor = plan.blocks;
    kernel.bulk = plan.bulk;
    return kernel;
}

namespace {
constexpr int wide_threads = 256;
}  // namespace

WidePlan wide_plan(const WideShape& shape) {
    const auto [m, n, words] = shape;
    WidePlan plan;
    const auto slots = [&, m = m, n = n] {
        return ceil_div(m, plan.tile_m) * ceil_div(n, plan.tile_n);
    };
    while (slots() > wide_threads || plan.tile_m * plan.tile_n < std::min(4, m * n / 8)) {
        (ceil_div(m, plan.tile_m) > ceil_div(n, plan.tile_n) ? plan.tile_m : plan.tile_n) *= 2;
    }
    return plan;
}

std::optional<PlannedKernel> kernel_of(const WidePlan& plan, const WideShape& shape,
                                       const Machine&) {
    if (ceil_div(shape.m, plan.tile_m) * ceil_div(shape.n, plan.tile_n) > wide_threads) {
        return std::nullopt;
    }
    const WideTsmttsmConfig config{.m = shape.m,
                                   .n = shape.n,
                                   .tile_m = plan.tile_m,
                                   .tile_n = plan.tile_n,
                                   .rows = 32,
                                   .threads = wide_threads};
    PlannedKernel kernel;
    kernel.source = "wide_tsmttsm.cuh";
    kernel.expression =
        shape.words == 1
            ? instance("wide_tsmttsm", "quiver::MixedTsmttsmArgs<float,double>", "double", config)
            : instance("wide_tsmttsm", "quiver::TwofoldTsmttsmArgs", "quiver::Twofold", config);
    kernel.threads = wide_threads;
    const int columns = round_up(shape.m, plan.tile_m) + round_up(shape.n, plan.tile_n);
    kernel.shared_bytes = sizeof(double) * static_cast<std::size_t>(std::max(
                                               config.rows * columns, shape.words * wide_threads));
    kernel.rows = config.rows;
    kernel.blocks_per_multiprocessor = 2;
    return kernel;
}

}  // namespace quiver::cuda

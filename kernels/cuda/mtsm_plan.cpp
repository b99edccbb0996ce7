// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/mtsm_plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cuda/plan_arithmetic.hpp"

namespace quiver::cuda {
namespace {

constexpr int warps = MtsmPlan::threads / 32;
/// Clocks of a multiprocessor for one m16n8k4 product in double.
constexpr double mma_clocks = 4;
/// Clocks for two m16n8k8 products in tf32: mma.sync reaches about 60% of the peak.
constexpr double short_mma_clocks = 3.2;
/// Time to fetch X from the L2 cache, relative to memory time.
constexpr double l2_share = 0.05;
/// The following constants were fitted in the same way as copy_factor().
constexpr double fitted_bytes_a_clock = 18.5;
constexpr double fma_slowdown = 2.2;
constexpr double mma_slowdown = 0.9;
constexpr double shared_slowdown = 1.2;
constexpr double instruction_slowdown = 1.2;
constexpr double copy_instructions = 2;
constexpr double wait_clocks = 50;
/// Bytes per clock that one multiprocessor reads from the L2 cache.
constexpr double l2_bytes_a_clock = 32;

bool is_short(Dtype scalar) {
    return scalar == Dtype::h || scalar == Dtype::b;
}

int bytes_of(Dtype scalar) {
    if (is_short(scalar)) {
        return sizeof(half_t);
    }
    return visit_dtype(scalar, []<class T>() { return static_cast<int>(sizeof(T)); });
}

std::string name_of(Dtype scalar) {
    if (is_short(scalar)) {
        return scalar == Dtype::h ? device_name<half_t>() : device_name<bfloat16_t>();
    }
    return visit_dtype(scalar, []<class T>() { return device_name<T>(); });
}

int vector_a(const MtsmShape& shape) {
    return 16 / shape.a_bytes();
}
int vector_x(const MtsmShape& shape) {
    return std::max(1, 16 / shape.scalar_bytes());
}

/// Real rows and real terms of an element of B in the tensor-core product.
int real_rows(const MtsmShape& shape) {
    return shape.along_sum ? 1 : parts_of(shape.scalar);
}
int real_terms(const MtsmShape& shape) {
    return shape.along_sum ? parts_of(shape.scalar) : 1;
}
int tiles_n(const MtsmPlan& plan, const MtsmShape& shape) {
    return ceil_div(ceil_div(parts_of(shape.scalar) * shape.n, 8), plan.warps_n);
}

/// Terms of one tensor-core product.
int tensor_terms(const MtsmShape& shape) {
    return is_short(shape.a) ? 8 : 4;
}

/// The next pitch, in doubles, with which the fragments of a warp lie in different banks if they
/// consist of every other line.
constexpr int paired_pitch(int columns) {
    return round_up(columns + 2, 4) - 2;
}

/// Distance of lines of B in elements: the words of a fragment, like those of X, lie in different
/// banks.
int pitch_a(const MtsmPlan& plan, const MtsmShape& shape) {
    const int length = shape.along_sum ? plan.depth : plan.rows(shape);
    if (plan.shifted) {
        // A line has 16 more bytes. Fragments have rows or terms of one parity.
        const int parts = parts_of(shape.scalar);
        return plan.tensor ? paired_pitch(parts * length + 2) / parts
                           : round_up(length, vector_a(shape)) + vector_a(shape);
    }
    if (plan.tensor && is_short(shape.a)) {
        return odd_pitch(length, shape.along_sum ? 8 : 16);
    }
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        return fragment_pitch(parts * length) / parts;
    }
    return shape.along_sum ? odd_pitch(length, vector_a(shape)) : length;
}
int pitch_x(const MtsmPlan& plan, const MtsmShape& shape) {
    if (plan.tensor && is_short(shape.a) && !shape.along_sum) {
        return odd_pitch(shape.n, 8);
    }
    if (plan.tensor) {
        const int parts = parts_of(shape.scalar);
        return (plan.shifted && !shape.along_sum ? paired_pitch(parts * shape.n)
                                                 : fragment_pitch(parts * shape.n)) /
               parts;
    }
    return round_up(plan.columns(shape) * plan.warps_n, vector_x(shape));
}

std::size_t stage_bytes(const MtsmPlan& plan, const MtsmShape& shape) {
    const int lines = shape.along_sum ? plan.rows(shape) : plan.depth;
    return static_cast<std::size_t>(
        round_up(lines * pitch_a(plan, shape) * shape.a_bytes(), 16) +
        (plan.shifted && shape.along_sum && !plan.tensor ? lines * shape.unit_a : 0) +
        round_up(plan.depth * pitch_x(plan, shape) * shape.scalar_bytes(), 16));
}
std::size_t shared_bytes(const MtsmPlan& plan, const MtsmShape& shape) {
    return static_cast<std::size_t>(plan.stages) * stage_bytes(plan, shape) +
           static_cast<std::size_t>(4 * MtsmPlan::threads * shape.scalar_bytes());
}

/// Bytes of shared memory for X in a direct plan, for any number of terms with the log_k of the
/// shape.
std::size_t direct_bytes(const MtsmShape& shape) {
    return static_cast<std::size_t>((1 << shape.log_k) * round_up(shape.n, vector_x(shape)) *
                                    shape.scalar_bytes());
}

bool is_legal_direct(const MtsmPlan& plan, const MtsmShape& shape, const Machine& machine) {
    // For sums and loads in flight, of 128 of a thread. Complex products need more temporary
    // values.
    const int most_registers = parts_of(shape.scalar) == 2 ? 88 : 96;
    const int words = shape.scalar_bytes() / 4;
    const int bytes = std::max(plan.rows_a_thread, 1) * shape.scalar_bytes();
    const bool aligned =
        plan.rows_a_thread == 1 || std::min({16, shape.unit_a, shape.unit_y}) % bytes == 0;
    return !plan.tensor && !shape.along_sum && shape.a == shape.scalar && shape.unit_y > 0 &&
           1 << shape.log_k <= most_direct_terms && aligned && plan.rows_a_thread >= 1 &&
           plan.warps_m == warps && plan.warps_n == 1 && plan.groups == 1 && plan.depth >= 1 &&
           plan.blocks == 2 && !plan.shifted && !plan.spread && plan.tcf >= 0 &&
           plan.tcf % plan.rows_a_thread == 0 &&
           plan.rows_a_thread * words * (shape.n + plan.depth) <= most_registers &&
           shared_fits(direct_bytes(shape), plan.blocks, machine);
}

bool is_legal(const MtsmPlan& plan, const MtsmShape& shape, const Machine& machine) {
    if (plan.plain != 0) {
        return plan.plain <= 2 && !plan.direct && !shape.along_sum && !shape.conjugated &&
               shape.a == shape.scalar;
    }
    if (plan.direct) {
        return is_legal_direct(plan, shape, machine);
    }
    if (plan.stages < 1 || plan.tcf != 0) {
        return false;
    }
    const int columns = plan.columns(shape);
    // The terms that a warp adds in one step of the loop of src/mtsm_tiles.cuh.
    const int terms = plan.tensor ? plan.depth * real_terms(shape) : plan.depth;
    const int step_terms = plan.groups * (plan.tensor ? 8 : 4);
    if (plan.shifted && (shape.unit_a == 16 || is_short(shape.a) || plan.spread == plan.tensor ||
                         terms % step_terms != 0)) {
        return false;
    }
    if (plan.spread && (plan.tensor || is_short(shape.a) || (shape.along_sum && !plan.shifted))) {
        return false;
    }
    const int words = shape.scalar_bytes() / 4;
    // Reject plans with a warp that has no columns of its own, or with sums too long for the
    // registers.
    if (columns > 32 || (plan.warps_n - 1) * columns >= (plan.tensor ? 8 : 1) * shape.n) {
        return false;
    }
    int registers = 52;
    if (plan.tensor) {
        const int tiles = tiles_n(plan, shape);
        if (plan.depth * real_terms(shape) % (tensor_terms(shape) * plan.groups) != 0 ||
            (plan.warps_n - 1) * tiles >= ceil_div(parts_of(shape.scalar) * shape.n, 8)) {
            return false;
        }
        registers += 8 * plan.rows_a_thread * tiles + 8 * plan.rows_a_thread + 4;
    } else {
        const int step = shape.along_sum ? vector_a(shape) : 1;
        if (plan.depth % (plan.groups * step) != 0 ||
            (!shape.along_sum && !plan.spread && plan.rows_a_thread % vector_a(shape) != 0)) {
            return false;
        }
        registers += plan.rows_a_thread * columns * words + columns * words +
                     (shape.along_sum ? 4 : words) * plan.rows_a_thread;
        registers += plan.shifted && !shape.along_sum ? 8 : 0;  // the shifts of four terms
    }
    return registers_fit(registers, MtsmPlan::threads, plan.blocks) &&
           shared_fits(shared_bytes(plan, shape), plan.blocks, machine);
}

/// Memory time of lines of this many bytes that begin anywhere, relative to long ones. Along the
/// sum, a line reads a sector of 32 bytes more. Across the sum, the factor for short lines was
/// measured on an H100.
double shifted_lines_factor(const MtsmShape& shape, double line) {
    return shape.along_sum ? 1 + 32 / line : line < 1024 ? 1.15 : 1;
}

constexpr int log_few = 4;
constexpr int log_many = 17;

/// The legal direct plans, each with a number that orders them (not clocks): long vectors first,
/// then as many loads ahead as there are terms, at most 8. Measured on an H100.
std::vector<std::pair<double, MtsmPlan>> direct_plans(const MtsmShape& shape,
                                                      const Machine& machine) {
    std::vector<std::pair<double, MtsmPlan>> ordered;
    MtsmPlan plan;
    plan.direct = true;
    plan.warps_m = warps;
    plan.groups = 1;
    plan.stages = 2;
    plan.blocks = 2;
    for (plan.rows_a_thread = 1; plan.rows_a_thread <= 4; plan.rows_a_thread *= 2) {
        for (plan.depth = 4; plan.depth <= 8; plan.depth *= 2) {
            if (is_legal(plan, shape, machine)) {
                const bool short_sum = 1 << shape.log_k < plan.depth;
                ordered.emplace_back(
                    1.0 / plan.rows_a_thread + 0.1 / plan.depth + (short_sum ? 1 : 0), plan);
            }
        }
    }
    return ordered;
}

/// True for shapes with which direct plans were measured to be the fastest on an H100.
bool prefers_direct(const MtsmShape& shape) {
    constexpr int widest = 16;
    return (shape.scalar == Dtype::s || shape.scalar == Dtype::d) && shape.n <= widest &&
           shape.log_k >= 3 && shape.log_k <= log_few && shape.log_m >= log_many &&
           shape.unit_a == 16 && shape.unit_y == 16;
}

/// True for the kind of plans, apart from direct ones, that was measured to be the fastest on an
/// H100. In single precision these are shifted ones, and spread ones for a tall B of few aligned
/// terms across the sum.
bool is_measured_kind(const MtsmPlan& plan, const MtsmShape& shape) {
    constexpr int widest = 24;
    const bool single = shape.a == Dtype::s && shape.n <= widest;
    const bool shifted = single && shape.unit_a == 4;  // lines of an even length were not measured
    const bool tall = !shape.along_sum && shape.log_k <= log_few && shape.log_m >= log_many;
    const bool spread = shifted || (single && tall);
    return plan.shifted == shifted && plan.spread == spread;
}

/// Modelled clocks of a multiprocessor per element of B.
double cost(const MtsmPlan& plan, const MtsmShape& shape, int multiprocessors) {
    const int rows = plan.rows(shape);
    const double elements = static_cast<double>(rows) * plan.depth;
    const double depth = std::max(1.0, std::ldexp(1.0, shape.log_k) / plan.depth);
    const double a_bytes = elements * shape.a_bytes();
    const double x_bytes = static_cast<double>(plan.depth) * shape.n * shape.scalar_bytes();
    const double y_bytes = static_cast<double>(rows) * shape.n * shape.scalar_bytes() / depth;
    const double line = (shape.along_sum ? plan.depth : rows) * shape.a_bytes();
    const double lines_factor = plan.shifted ? shifted_lines_factor(shape, line)
                                : line <= 64 ? 1.85
                                             : 1;
    const double shared = plan.blocks * (static_cast<double>(shared_bytes(plan, shape)) + 1024);
    Clocks clocks;
    clocks.memory = (a_bytes * lines_factor + l2_share * x_bytes + y_bytes) / fitted_bytes_a_clock *
                    copy_factor(std::max(0.3, plan.stages - 1.1) * plan.blocks * a_bytes, shared);
    const double copies = a_bytes / (plan.shifted ? 16 : shape.unit_a) + x_bytes / shape.unit_x;
    double instructions = 0;
    double wavefronts = 0;
    double sums = 0;
    if (plan.tensor && is_short(shape.a)) {
        const double steps = static_cast<double>(plan.depth) / 8 / plan.groups;
        const double tiles = tiles_n(plan, shape);
        sums = 4 * plan.rows_a_thread * tiles;
        clocks.arithmetic =
            mma_slowdown * warps * steps * plan.rows_a_thread * tiles * short_mma_clocks;
        instructions = steps * (plan.rows_a_thread * (2 * tiles + 6) + 10 * tiles + 4) + sums;
        wavefronts = steps * 2 * (plan.rows_a_thread + tiles);
    } else if (plan.tensor) {
        const double steps = static_cast<double>(plan.depth) * real_terms(shape) / 4 / plan.groups;
        const double tiles = tiles_n(plan, shape);
        clocks.arithmetic = mma_slowdown * warps * steps * plan.rows_a_thread * tiles * mma_clocks;
        instructions = steps * (plan.rows_a_thread * (tiles + 2) + 3 * tiles + 4);
        wavefronts = steps * 2 * (2 * plan.rows_a_thread + tiles);
        sums = 4 * plan.rows_a_thread * tiles / parts_of(shape.scalar);
    } else {
        const double terms = static_cast<double>(plan.depth) / plan.groups;
        const double columns = plan.columns(shape);
        const double products =
            terms * plan.rows_a_thread * columns * (fma_weight(shape.scalar) >= 4 ? 4 : 1);
        const double loads = terms * plan.rows_a_thread / (plan.spread ? 1 : vector_a(shape));
        const double x_loads = terms * std::ceil(columns / vector_x(shape));
        const bool is_double = shape.scalar == Dtype::d || shape.scalar == Dtype::z;
        clocks.arithmetic = fma_slowdown * warps * products / (is_double ? 2 : 4) *
                            warps_factor(MtsmPlan::threads * plan.blocks);
        const double conversions = shape.a_bytes() == 2 ? 1.5 * terms * plan.rows_a_thread : 0;
        instructions = products + loads + x_loads + conversions + terms;
        wavefronts = (plan.spread ? shape.a_bytes() / 4 : 4) * loads + x_loads;
        sums = plan.rows_a_thread * columns;
    }
    clocks.issue =
        (warps * (instruction_slowdown * instructions + 30) + copies / 32 * copy_instructions) / 4;
    clocks.shared = shared_slowdown * (warps * wavefronts + (a_bytes + x_bytes) / 128);
    clocks.waiting =
        wait_clocks / plan.blocks + (plan.groups > 1 ? sums * 40 : sums * 4) / depth / plan.blocks;
    // A small matrix leaves blocks without work. If many blocks share the sums of the same rows,
    // the last block adds them alone.
    const double all_rows = std::ldexp(1.0, shape.log_m);
    const double slots = multiprocessors * plan.blocks;
    const double tiles = std::ceil(all_rows / rows);
    const double idle = std::max(1.0, slots / (tiles * depth));
    const double sharers = std::min(slots, tiles * depth) / tiles;
    const double last_sums =
        sharers > 1 ? sharers * rows * shape.n * shape.scalar_bytes() / l2_bytes_a_clock + 3000 : 0;
    return clocks.total() * idle / elements +
           last_sums * multiprocessors / (all_rows * std::ldexp(1.0, shape.log_k));
}

}  // namespace

int MtsmShape::a_bytes() const {
    return bytes_of(a);
}
int MtsmShape::scalar_bytes() const {
    return bytes_of(scalar);
}

int MtsmPlan::rows(const MtsmShape& shape) const {
    return tensor ? 16 * rows_a_thread * warps_m / real_rows(shape) : 32 * rows_a_thread * warps_m;
}

int MtsmPlan::columns(const MtsmShape& shape) const {
    if (tensor) {
        return 8 * tiles_n(*this, shape) / parts_of(shape.scalar);
    }
    return warps_n == 1 ? shape.n : round_up(ceil_div(shape.n, warps_n), vector_x(shape));
}

double model_clocks(const MtsmPlan& plan, const MtsmShape& shape, const Machine& machine) {
    return plan.direct || plan.plain != 0 ? plan.plain + 1.0 / plan.rows_a_thread
                                          : cost(plan, shape, machine.multiprocessors);
}

std::vector<MtsmPlan> mtsm_plans(const MtsmShape& shape, const Machine& machine) {
    std::vector<std::pair<double, MtsmPlan>> costs;
    // Plans of other kinds than the measured ones come last.
    constexpr double other_kind = 1e6;
    // A stage should not be much longer than the sums.
    const int least_depth = 16 / shape.a_bytes();
    const int most_depth = std::max({least_depth, 4, 1 << std::min(shape.log_k, 7)});
    MtsmPlan plan;
    for (const bool tensor : {false, true}) {
        plan.tensor = tensor;
        if (tensor && !has_tensor_kernels(shape.scalar) && !is_short(shape.a)) {
            continue;
        }
        for (plan.rows_a_thread = 1; plan.rows_a_thread <= 8; plan.rows_a_thread *= 2) {
            for (plan.warps_m = 1; plan.warps_m <= warps; plan.warps_m *= 2) {
                for (plan.warps_n = 1; plan.warps_m * plan.warps_n <= warps; plan.warps_n *= 2) {
                    plan.groups = warps / (plan.warps_m * plan.warps_n);
                    for (plan.depth = 4; plan.depth <= most_depth; plan.depth *= 2) {
                        for (plan.stages = 2; plan.stages <= 4; ++plan.stages) {
                            for (plan.blocks = 1; plan.blocks <= 3; ++plan.blocks) {
                                for (const bool shifted : {false, true}) {
                                    for (const bool spread : {false, true}) {
                                        plan.shifted = shifted;
                                        plan.spread = spread;
                                        if (is_legal(plan, shape, machine)) {
                                            const double added =
                                                is_measured_kind(plan, shape) ? 0 : other_kind;
                                            costs.emplace_back(
                                                cost(plan, shape, machine.multiprocessors) + added,
                                                plan);
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    // Direct plans come first for the shapes measured, otherwise last.
    const double added = prefers_direct(shape) ? -other_kind : 2 * other_kind;
    for (const auto& [order, direct] : direct_plans(shape, machine)) {
        costs.emplace_back(order + added, direct);
    }
    const std::size_t all = costs.size();
    return ranked(std::move(costs), all);
}

std::optional<PlannedKernel> kernel_of(const MtsmPlan& plan, const MtsmShape& shape,
                                       const Machine& machine) {
    if (!is_legal(plan, shape, machine)) {
        return std::nullopt;
    }
    PlannedKernel kernel;
    kernel.threads = MtsmPlan::threads;
    kernel.rows = plan.rows(shape);
    if (plan.plain != 0) {
        kernel.source = "mtsm_direct.cuh";
        kernel.expression = instance("mtsm_plain", name_of(shape.scalar), shape.n, plan.plain == 2);
        kernel.rows = kernel.rows_a_block = MtsmPlan::threads;
        kernel.depth = 0;
        return kernel;
    }
    if (plan.direct) {
        const MtsmDirectConfig config{.n = shape.n,
                                      .conjugated = shape.conjugated,
                                      .vector = plan.rows_a_thread,
                                      .ahead = plan.depth,
                                      .threads = MtsmPlan::threads,
                                      .blocks = plan.blocks};
        kernel.source = "mtsm_direct.cuh";
        kernel.expression = instance("mtsm_direct", name_of(shape.scalar), config);
        kernel.shared_bytes = direct_bytes(shape);
        kernel.blocks_per_multiprocessor = 2 * plan.blocks;  // blocks of few rows
        kernel.depth = 0;
        kernel.rows_a_block = MtsmPlan::threads * plan.tcf;
        return kernel;
    }
    const MtsmConfig config{.tensor = plan.tensor,
                            .along_sum = shape.along_sum,
                            .conjugated = shape.conjugated,
                            .n = shape.n,
                            .rows = plan.rows(shape),
                            .depth = plan.depth,
                            .rows_a_thread = plan.rows_a_thread,
                            .warps_m = plan.warps_m,
                            .warps_n = plan.warps_n,
                            .groups = plan.groups,
                            .pitch_a = pitch_a(plan, shape),
                            .pitch_x = pitch_x(plan, shape),
                            .stages = plan.stages,
                            .bytes_a = shape.unit_a,
                            .bytes_x = shape.unit_x,
                            .x_rows = shape.x_rows,
                            .shifted = plan.shifted,
                            .spread = plan.spread,
                            .threads = MtsmPlan::threads,
                            .blocks = plan.blocks};
    kernel.source = "mtsm.cuh";
    kernel.expression = instance("mtsm", name_of(shape.a), name_of(shape.scalar), config);
    kernel.shared_bytes = shared_bytes(plan, shape);
    kernel.blocks_per_multiprocessor = plan.blocks;
    kernel.depth = plan.depth;
    return kernel;
}

std::size_t mtsm_workspace(unsigned blocks, const PlannedKernel& kernel, int n) {
    if (kernel.depth == 0) {
        return 0;  // no block adds to the sums of another one
    }
    return std::size_t{2} * blocks * static_cast<std::size_t>(kernel.rows) *
           static_cast<std::size_t>(n);
}

}  // namespace quiver::cuda

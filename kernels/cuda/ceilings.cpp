// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/ceilings.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

constexpr const char* source = "ceilings.cuh";
constexpr double factor_a = 0.7310585786300049;
constexpr double factor_b = 0.2689414213699951;
/// Two blocks keep the schedulers of a multiprocessor busy.
constexpr int arithmetic_blocks = 2;
constexpr int block_warps = block_threads / 32;

struct MmaShape {
    int m, n, k;
};

/// The shape of the tensor-core product; {0, 0, 0} for plain multiply-adds.
MmaShape mma_shape(Arithmetic arithmetic) {
    switch (arithmetic) {
        case Arithmetic::double_mma_8x8x4:
            return {8, 8, 4};
        case Arithmetic::double_mma_16x8x4:
            return {16, 8, 4};
        case Arithmetic::double_mma_16x8x8:
            return {16, 8, 8};
        case Arithmetic::double_mma_16x8x16:
            return {16, 8, 16};
        default:
            return {0, 0, 0};
    }
}

}  // namespace

std::string expression(Traffic traffic, const TrafficForm& form) {
    constexpr const char* names[] = {"read_stream", "copy_stream", "copy_stream"};
    return instance(names[static_cast<int>(traffic)], form.unroll, form.streaming);
}

std::string expression(Arithmetic arithmetic) {
    if (arithmetic == Arithmetic::single_fma || arithmetic == Arithmetic::double_fma) {
        return instance("multiply_adds", arithmetic == Arithmetic::single_fma ? "float" : "double");
    }
    const MmaShape shape = mma_shape(arithmetic);
    return instance("matrix_products", shape.m, shape.k);
}

int traffic_forms(Traffic) {
    return static_cast<int>(std::size(all_traffic_forms));
}

void run_traffic(Context& ctx, Traffic traffic, int form, double factor, double* x, double* y,
                 std::int64_t count) {
    const TrafficForm& chosen = all_traffic_forms[form];
    const std::int64_t tile = std::int64_t{2} * chosen.unroll * block_threads;
    const std::int64_t tiles = count / tile;
    const std::int64_t blocks =
        chosen.blocks == 0
            ? tiles
            : std::min<std::int64_t>(tiles, std::int64_t{chosen.blocks} * multiprocessors(ctx));
    Kernel& kernel = ctx.service<Specialiser>().get(ctx, source, expression(traffic, chosen));
    const LaunchShape shape{.blocks = static_cast<unsigned>(blocks), .threads = block_threads};
    if (traffic == Traffic::read) {
        launch(ctx, kernel, shape, static_cast<const double*>(x), y, tiles);
    } else {
        launch(ctx, kernel, shape, factor, static_cast<const double*>(x),
               traffic == Traffic::copy ? y : x, tiles);
    }
}

std::int64_t arithmetic_results(const Context& ctx, Arithmetic) {
    return std::int64_t{arithmetic_blocks} * multiprocessors(ctx) * block_threads;
}

double run_arithmetic(Context& ctx, Arithmetic arithmetic, std::int64_t steps, double* results) {
    Kernel& kernel = ctx.service<Specialiser>().get(ctx, source, expression(arithmetic));
    const auto blocks = static_cast<unsigned>(arithmetic_blocks * multiprocessors(ctx));
    const LaunchShape shape{.blocks = blocks, .threads = block_threads};
    // As in ceilings.cuh: independent chains of a thread, and of a warp.
    constexpr double chains = 16;
    constexpr double mma_chains = 8;
    const double all_steps = static_cast<double>(steps) * blocks;
    if (const MmaShape mma = mma_shape(arithmetic); mma.m > 0) {
        launch(ctx, kernel, shape, steps, factor_a, factor_b, results);
        return all_steps * block_warps * mma_chains * 2.0 * mma.m * mma.n * mma.k;
    }
    if (arithmetic == Arithmetic::single_fma) {
        launch(ctx, kernel, shape, steps, 0.5f, 1.0f, results);
    } else {
        launch(ctx, kernel, shape, steps, 0.5, 1.0, results);
    }
    return all_steps * block_threads * chains * 2.0;
}

}  // namespace quiver::cuda

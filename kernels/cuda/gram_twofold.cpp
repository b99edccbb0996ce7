// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

#include "blockvec/device.hpp"
#include "kernels/cuda/gram_twofold_tiling.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {
namespace {

/// The start of the workspace: the upper halves of the largest magnitudes of the columns.
constexpr std::size_t maxima_bytes = widest_panel * sizeof(std::uint32_t);
constexpr int maxima_blocks = 8;
constexpr std::size_t twofold_bytes = 2 * sizeof(double);

GramTwofoldTiling gram_twofold_tiling(const Context& ctx, const GramTwofoldArgs& args) {
    return GramTwofoldTiling(args.n, Layout::of(args.x, args.n, args.ldx, sizeof(double)),
                             shared_bytes_per_block(ctx));
}

/// True if this file's kernel serves the block; others are products of two equal blocks.
bool is_served(const Context& ctx, const GramTwofoldArgs& args) {
    return args.n <= widest_panel && gram_twofold_tiling(ctx, args).shared_bytes > 0;
}

}  // namespace

std::size_t workspace_bytes(Context& ctx, const GramTwofoldArgs& args) {
    if (!is_served(ctx, args)) {
        return workspace_bytes(ctx, product_of(args));
    }
    const GramTwofoldTiling tiling = gram_twofold_tiling(ctx, args);
    const auto n = static_cast<std::size_t>(args.n);
    return maxima_bytes + blocks_for(ctx, args.rows, tiling.config.rows, tiling.config.blocks) * n *
                              n * twofold_bytes;
}

void gram_twofold(Context& ctx, const GramTwofoldArgs& args, void* workspace) {
    if (!is_served(ctx, args)) {
        tsmttsm_twofold(ctx, product_of(args), workspace);
        return;
    }
    auto* const largest = static_cast<std::uint32_t*>(workspace);
    device::set_zero(largest, maxima_bytes, ctx.stream());
    auto& specialiser = ctx.service<Specialiser>();
    launch(ctx, specialiser.get(ctx, "gram_twofold.cuh", instance("column_maxima", block_threads)),
           {.blocks = blocks_for(ctx, args.rows, block_threads / args.n, maxima_blocks),
            .threads = block_threads},
           args.rows, args.n, args.x, args.ldx, largest);
    const GramTwofoldTiling tiling = gram_twofold_tiling(ctx, args);
    const unsigned blocks = blocks_for(ctx, args.rows, tiling.config.rows, tiling.config.blocks);
    launch(ctx, specialiser.get(ctx, "gram_twofold.cuh", expression(tiling)),
           {.blocks = blocks,
            .threads = static_cast<unsigned>(tiling.config.threads),
            .shared_bytes = tiling.shared_bytes},
           args, largest, static_cast<char*>(workspace) + maxima_bytes, ctx.counters(),
           reduction_group(blocks, args.n * args.n));
}

}  // namespace quiver::cuda

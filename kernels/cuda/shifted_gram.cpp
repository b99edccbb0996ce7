// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "kernels/cuda/shifted_gram_tiling.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::cuda {
namespace {

/// The launch of one panel of G, whose first element is G(first_a, first_b).
template <class In>
struct ShiftedGramLaunch {
    int first_a, first_b;
    ShiftedGramTiling tiling;
    unsigned blocks;
    /// Sums of a block.
    int size;

    ShiftedGramLaunch(const Context& ctx, const ShiftedGramArgs<In>& args, const GramPanel& panel)
        : first_a(panel.first_a),
          first_b(panel.first_b),
          tiling(sizeof(In), panel,
                 Layout::of(args.x + panel.first_a, panel.m, args.ldx, sizeof(In)),
                 Layout::of(args.x + panel.first_b, panel.n, args.ldx, sizeof(In)),
                 args.factor != 1, shared_bytes_per_block(ctx)),
          blocks(blocks_for(ctx, args.rows, tiling.rows(), tiling.config.blocks)),
          size((panel.m + (tiling.config.same ? 1 : 0)) * panel.n) {}
};

}  // namespace

template <class In>
std::size_t workspace_bytes(Context& ctx, const ShiftedGramArgs<In>& args) {
    std::size_t most = 0;
    for_each_gram_panel(args.n, [&](const GramPanel& panel) {
        const ShiftedGramLaunch<In> launch(ctx, args, panel);
        most = std::max(most, launch.blocks * static_cast<std::size_t>(launch.size));
    });
    return most * sizeof(double);
}

template <class In>
void shifted_gram(Context& ctx, const ShiftedGramArgs<In>& args, void* workspace) {
    // The panels run one after another on the stream, and share workspace and counters.
    for_each_gram_panel(args.n, [&](const GramPanel& panel) {
        const ShiftedGramLaunch<In> plan(ctx, args, panel);
        launch(ctx,
               ctx.service<Specialiser>().get(ctx, "shifted_gram.cuh", expression<In>(plan.tiling)),
               {.blocks = plan.blocks,
                .threads = static_cast<unsigned>(plan.tiling.config.threads),
                .shared_bytes = plan.tiling.shared_bytes},
               args, plan.first_a, plan.first_b, static_cast<double*>(workspace), ctx.counters(),
               reduction_group(plan.blocks, plan.size));
    });
}

#define QUIVER_INSTANTIATE(In)                                                  \
    template std::size_t workspace_bytes(Context&, const ShiftedGramArgs<In>&); \
    template void shifted_gram(Context&, const ShiftedGramArgs<In>&, void*);
QUIVER_FOR_EACH_REAL_ELEMENT(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda

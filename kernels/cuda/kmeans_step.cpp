// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "kernels/cuda/kmeans_tiling.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::cuda {
namespace {

template <class In, class T>
struct KmeansLaunch {
    KmeansTiling tiling;
    unsigned blocks;

    KmeansLaunch(const Context& ctx, const KmeansStepArgs<In, T>& args)
        : tiling(sizeof(T), args.d, args.k, shared_bytes_per_block(ctx)),
          blocks(blocks_for(
              ctx, args.rows, tiling.rows * tiling.threads,
              std::max(1, static_cast<int>(shared_bytes_per_block(ctx) / tiling.shared_bytes)))) {}
};

}  // namespace

template <class In, class T>
std::size_t workspace_bytes(Context& ctx, const KmeansStepArgs<In, T>& args) {
    return KmeansLaunch<In, T>(ctx, args).blocks * static_cast<std::size_t>(args.k) *
           static_cast<std::size_t>(args.d + 2) * sizeof(double);
}

template <class In, class T>
void kmeans_step(Context& ctx, const KmeansStepArgs<In, T>& args, void* workspace) {
    const KmeansLaunch<In, T> plan(ctx, args);
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, "kmeans_step.cuh",
                                          expression<In, T>(plan.tiling, args.d)),
           {.blocks = plan.blocks,
            .threads = static_cast<unsigned>(plan.tiling.threads),
            .shared_bytes = plan.tiling.shared_bytes},
           args, static_cast<double*>(workspace), ctx.counters(),
           reduction_group(plan.blocks, args.k * (args.d + 2)));
}

#define QUIVER_INSTANTIATE(In, T)                                                 \
    template std::size_t workspace_bytes(Context&, const KmeansStepArgs<In, T>&); \
    template void kmeans_step(Context&, const KmeansStepArgs<In, T>&, void*);
QUIVER_FOR_EACH_KMEANS(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include "kernels/cuda/kmeans_tiling.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::cuda {
namespace {

/// The kernel and its launch.
struct KmeansLaunch {
    const char* source;
    std::string expression;
    int threads;
    std::size_t shared_bytes;
    unsigned blocks;
};

template <class In, class T>
KmeansLaunch launch_of(Context& ctx, const KmeansStepArgs<In, T>& args) {
    const std::size_t limit = shared_bytes_per_block(ctx);
    const int capability = ctx.service<Planner>().machine().capability;
    if (prefers_kmeans_products(capability, sizeof(T), args.d, args.k)) {
        const KmeansProductsTiling tiling(sizeof(In), sizeof(T), args.d, args.k,
                                          Layout::of(args.x, args.d, args.ldx, sizeof(In)), limit);
        return {"kmeans_products.cuh", expression<In, T>(tiling), tiling.threads(),
                tiling.shared_bytes, blocks_for(ctx, args.rows, tiling.threads(), 1)};
    }
    const KmeansTiling tiling(sizeof(T), args.d, args.k, limit);
    const int resident = std::max(1, static_cast<int>(limit / tiling.shared_bytes));
    return {"kmeans_step.cuh", expression<In, T>(tiling, args.d), tiling.threads,
            tiling.shared_bytes,
            blocks_for(ctx, args.rows, tiling.rows * tiling.threads, resident)};
}

}  // namespace

template <class In, class T>
std::size_t workspace_bytes(Context& ctx, const KmeansStepArgs<In, T>& args) {
    return launch_of(ctx, args).blocks * static_cast<std::size_t>(args.k) *
           static_cast<std::size_t>(args.d + 2) * sizeof(double);
}

template <class In, class T>
void kmeans_step(Context& ctx, const KmeansStepArgs<In, T>& args, void* workspace) {
    const KmeansLaunch plan = launch_of(ctx, args);
    launch(ctx, ctx.service<Specialiser>().get(ctx, plan.source, plan.expression),
           {.blocks = plan.blocks,
            .threads = static_cast<unsigned>(plan.threads),
            .shared_bytes = plan.shared_bytes},
           args, static_cast<double*>(workspace), ctx.counters(),
           reduction_group(plan.blocks, args.k * (args.d + 2)));
}

#define QUIVER_INSTANTIATE(In, T)                                                 \
    template std::size_t workspace_bytes(Context&, const KmeansStepArgs<In, T>&); \
    template void kmeans_step(Context&, const KmeansStepArgs<In, T>&, void*);
QUIVER_FOR_EACH_KMEANS(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

unsigned blocks_of(const Context& ctx, std::int64_t rows, const TsmttsmTiling& tiling) {
    return blocks_for(ctx, rows, tiling.rows * tiling.unroll, tiling.blocks);
}

/// Calls f(part of the arguments, tiling) for every panel of C.
template <class T, class F>
void for_each_panel(const TsmttsmArgs<T>& args, F&& f) {
    const Panels panels_m(args.m);
    const Panels panels_n(args.n);
    for (int i = 0; i < panels_m.count; ++i) {
        for (int j = 0; j < panels_n.count; ++j) {
            TsmttsmArgs<T> part = args;
            part.m = panels_m.size(i, args.m);
            part.n = panels_n.size(j, args.n);
            part.a += panels_m.begin(i);
            part.b += panels_n.begin(j);
            part.c += panels_m.begin(i) * args.ldc + panels_n.begin(j);
            f(part, TsmttsmTiling(sizeof(T), part.m, part.n));
        }
    }
}

}  // namespace

template <class T>
std::size_t workspace_bytes(const Context& ctx, const TsmttsmArgs<T>& args) {
    std::size_t most = 0;
    for_each_panel(args, [&](const TsmttsmArgs<T>& part, const TsmttsmTiling& tiling) {
        const auto entries = static_cast<std::size_t>(tiling.m * tiling.n);
        most = std::max(most, blocks_of(ctx, part.rows, tiling) * entries * sizeof(T));
    });
    return most;
}

template <class T>
void run(Context& ctx, const TsmttsmArgs<T>& args, void* workspace) {
    // The panels follow each other on the stream and share workspace and counters.
    for_each_panel(args, [&](const TsmttsmArgs<T>& part, const TsmttsmTiling& tiling) {
        Kernel& kernel = ctx.service<Specialiser>().get("tsmttsm.cuh", expression<T>(tiling));
        const unsigned blocks = blocks_of(ctx, part.rows, tiling);
        launch(ctx, kernel, {.blocks = blocks, .threads = block_threads}, part,
               static_cast<T*>(workspace), ctx.counters(), reduction_group(blocks));
    });
}

template std::size_t workspace_bytes(const Context&, const TsmttsmArgs<float>&);
template std::size_t workspace_bytes(const Context&, const TsmttsmArgs<double>&);
template std::size_t workspace_bytes(const Context&, const TsmttsmArgs<std::complex<float>>&);
template std::size_t workspace_bytes(const Context&, const TsmttsmArgs<std::complex<double>>&);
template void run(Context&, const TsmttsmArgs<float>&, void*);
template void run(Context&, const TsmttsmArgs<double>&, void*);
template void run(Context&, const TsmttsmArgs<std::complex<float>>&, void*);
template void run(Context&, const TsmttsmArgs<std::complex<double>>&, void*);

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

template <class T>
bool wants_dots(const SpmmvArgs<T>& args) {
    return args.dot_yy != nullptr || args.dot_xy != nullptr;
}

/// A launch with dots leaves a partial sum a block, so it has fewer of them.
unsigned blocks_of(const Context& ctx, std::int64_t rows, int panel, bool dots) {
    return blocks_for(ctx, rows, block_threads / (panel * spmmv_split(panel)), dots ? 8 : 32);
}

}  // namespace

template <class T>
std::size_t workspace_bytes(const Context& ctx, const SpmmvArgs<T>& args) {
    if (!wants_dots(args)) {
        return 0;
    }
    std::size_t most = 0;
    const Panels panels(args.width);
    for (int p = 0; p < panels.count; ++p) {
        const int width = panels.size(p, args.width);
        most = std::max(most, blocks_of(ctx, args.rows, width, true) * 2 *
                                  static_cast<std::size_t>(width) * sizeof(T));
    }
    return most;
}

template <class T>
void run(Context& ctx, const SpmmvArgs<T>& args, void* workspace) {
    const bool dots = wants_dots(args);
    if (args.rows == 0 && !dots) {
        return;
    }
    const void* columns = args.column64;
    const char* index = "long";
    if (args.column64 == nullptr) {
        columns = args.column32;
        index = "int";
    }
    const auto moved = [](auto* pointer, int by) {
        return pointer == nullptr ? pointer : pointer + by;
    };
    const Panels panels(args.width);
    for (int p = 0; p < panels.count; ++p) {
        const int begin = panels.begin(p);
        SpmmvArgs<T> part = args;
        part.width = panels.size(p, args.width);
        part.shifts = moved(args.shifts, begin);
        part.x = moved(args.x, begin);
        part.halo = moved(args.halo, begin);
        part.y = moved(args.y, begin);
        part.dot_yy = moved(args.dot_yy, begin);
        part.dot_xy = moved(args.dot_xy, begin);
        Kernel& kernel = ctx.service<Specialiser>().get(
            "spmmv.cuh", instance("spmmv", device_name<T>(), index, spmmv_split(part.width), dots));
        const unsigned blocks = blocks_of(ctx, args.rows, part.width, dots);
        launch(ctx, kernel, {.blocks = blocks, .threads = block_threads}, part, columns,
               std::int64_t{args.width}, static_cast<T*>(workspace), ctx.counters(),
               reduction_group(blocks));
    }
}

template std::size_t workspace_bytes(const Context&, const SpmmvArgs<float>&);
template std::size_t workspace_bytes(const Context&, const SpmmvArgs<double>&);
template std::size_t workspace_bytes(const Context&, const SpmmvArgs<std::complex<float>>&);
template std::size_t workspace_bytes(const Context&, const SpmmvArgs<std::complex<double>>&);
template void run(Context&, const SpmmvArgs<float>&, void*);
template void run(Context&, const SpmmvArgs<double>&, void*);
template void run(Context&, const SpmmvArgs<std::complex<float>>&, void*);
template void run(Context&, const SpmmvArgs<std::complex<double>>&, void*);

}  // namespace quiver::cuda

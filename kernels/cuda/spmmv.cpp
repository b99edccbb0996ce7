// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/spmmv_tiling.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

template <class T>
bool wants_dots(const SpmmvArgs<T>& args) {
    return args.dot_yy != nullptr || args.dot_xy != nullptr;
}

/// Columns begin .. begin + width - 1 of a product.
template <class T>
SpmmvArgs<T> columns_of(const SpmmvArgs<T>& args, int begin, int width) {
    const auto moved = [begin](auto* pointer) {
        return pointer == nullptr ? pointer : pointer + begin;
    };
    SpmmvArgs<T> part = args;
    part.width = width;
    part.shifts = moved(args.shifts);
    part.x = moved(args.x);
    part.halo = moved(args.halo);
    part.y = moved(args.y);
    part.dot_yy = moved(args.dot_yy);
    part.dot_xy = moved(args.dot_xy);
    return part;
}

/// Bytes that divide the addresses of all rows of X, Y and the halo; at least a real number's.
template <class T>
std::size_t alignment_of(const SpmmvArgs<T>& part, std::int64_t halo_ld) {
    std::uintptr_t bits = 16;
    const auto add = [&](const T* pointer, std::int64_t ld) {
        if (pointer != nullptr) {
            bits |= reinterpret_cast<std::uintptr_t>(pointer) |
                    static_cast<std::uintptr_t>(ld) * sizeof(T);
        }
    };
    add(part.x, part.ldx);
    add(part.y, part.ldy);
    add(part.halo, halo_ld);
    return std::size_t{1} << std::countr_zero(bits);
}

struct Division {
    unsigned blocks;
    std::int64_t tile_rows;
};

/// Tiles as large as the tiling's, but several for each block that can be resident. A launch with
/// dots leaves a partial sum a block, so it has fewer of them.
Division divide(const Context& ctx, std::int64_t rows, int lanes, int tile_rows, bool dots) {
    const std::int64_t share = rows / (std::int64_t{8} * multiprocessors(ctx));
    const std::int64_t tile = std::clamp<std::int64_t>(share / lanes * lanes, lanes, tile_rows);
    const std::int64_t tiles = (rows + tile - 1) / tile;
    return {static_cast<unsigned>(std::clamp<std::int64_t>(
                tiles, 1, dots ? std::int64_t{4} * multiprocessors(ctx) : std::int64_t{1} << 30)),
            tile};
}

}  // namespace

template <class T>
std::size_t workspace_bytes(const Context& ctx, const SpmmvArgs<T>& args) {
    return wants_dots(args) ? std::size_t{4} * static_cast<std::size_t>(multiprocessors(ctx)) * 2 *
                                  static_cast<std::size_t>(Panels(args.width).width) * sizeof(T)
                            : 0;
}

template <class T>
void run(Context& ctx, const SpmmvArgs<T>& args, void* workspace) {
    const bool dots = wants_dots(args);
    if (args.rows == 0 && !dots) {
        return;
    }
    const bool wide = args.column64 != nullptr;
    const void* columns = args.column32;
    const void* list = args.list32;
    if (wide) {
        columns = args.column64;
        list = args.list64;
    }
    const std::int64_t row_entries = args.entries / std::max<std::int64_t>(args.rows, 1);
    const Panels panels(args.width);
    for (int p = 0; p < panels.count; ++p) {
        const SpmmvArgs<T> part = columns_of(args, panels.begin(p), panels.size(p, args.width));
        const SpmmvTiling tiling(sizeof(T), part.width, alignment_of(part, args.width), args.chunk,
                                 row_entries);
        const Division division = divide(ctx, args.rows, tiling.lanes, tiling.tile_rows, dots);
        Kernel& kernel = ctx.service<Specialiser>().get(
            "spmmv.cuh", expression<T>(tiling, wide ? "long" : "int", dots));
        launch(ctx, kernel,
               {.blocks = division.blocks, .threads = static_cast<unsigned>(tiling.threads)}, part,
               columns, list, std::int64_t{args.width}, division.tile_rows,
               static_cast<T*>(workspace), ctx.counters(),
               reduction_group(division.blocks, 2 * part.width));
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

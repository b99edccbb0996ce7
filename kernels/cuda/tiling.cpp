// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/tiling.hpp"

#include <algorithm>

namespace quiver::cuda {
namespace {

constexpr int registers_per_multiprocessor = 65536;

/// The edge of tiles of at most `limit` that divide `columns` most evenly.
int tile_edge(int columns, int limit) {
    return ceil_div(columns, ceil_div(columns, limit));
}

}  // namespace

TsmttsmTiling::TsmttsmTiling(std::size_t scalar_bytes, int m_, int n_) : CompiledShape(m_, n_) {
    // Small tiles spread a narrow row over few cache lines a load; wide rows need large ones, with
    // more multiply-adds for each load. The sums take at most half of a thread's registers.
    const int words = static_cast<int>(scalar_bytes / sizeof(float));
    const int widest = std::max(m, n);
    tile_m = tile_edge(m, widest <= (words == 4 ? 32 : 16) ? 4 : 8);
    tile_n = tile_edge(n, widest <= 16 || words == 4 ? 4 : 8);
    const int loaded = words * (tile_m + tile_n);
    unroll = std::clamp(32 / loaded, 1, 8);
    rows = block_threads / (ceil_div(m, tile_m) * ceil_div(n, tile_n));
    const int registers = std::min(255, words * tile_m * tile_n + loaded * unroll + 32);
    blocks = std::clamp(registers_per_multiprocessor / (registers * block_threads), 1, 6);
}

TsmmTiling::TsmmTiling(std::size_t scalar_bytes, int m_, int n_, std::size_t shared_limit)
    : CompiledShape(m_, n_) {
    // Of the multiprocessor's shared memory: what a group of rows should take, what C may take
    // beside it, and what a block may take so that two of them fit.
    constexpr std::size_t rows_budget = 40 * 1024;
    constexpr std::size_t c_budget = 64 * 1024;
    const std::size_t block_budget = std::min<std::size_t>(shared_limit, 112 * 1024);

    panel = Panels(n).width;
    tile_n = tile_edge(panel, panel < 8 ? 1 : panel <= 16 ? 2 : 4);
    const int threads_n = ceil_div(panel, tile_n);
    tile_rows = panel < 4 ? 1 : 4;
    row_threads = block_threads / threads_n;
    const auto row_bytes = [&](int columns) {
        return static_cast<std::size_t>(columns | 1) * scalar_bytes;
    };
    const auto staged_bytes = [&](int columns) {
        return static_cast<std::size_t>(rows()) * row_bytes(columns);
    };
    chunk = m;
    if (panel < n && row_bytes(m) <= block_budget) {
        // Whole rows, fewer of them if need be: several panels are computed from one staging, also
        // in place.
        while (staged_bytes(m) > block_budget && tile_rows > 1) {
            tile_rows /= 2;
        }
        while (staged_bytes(m) > block_budget) {
            row_threads = std::max(1, row_threads / 2);
        }
    } else if (staged_bytes(m) > rows_budget) {
        int chunks = 2;
        while (staged_bytes(ceil_div(m, chunks)) > rows_budget) {
            ++chunks;
        }
        chunk = ceil_div(m, chunks);
    }
    threads = ceil_div(threads_n * row_threads, 32) * 32;
    const std::size_t c_bytes =
        static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * scalar_bytes;
    shared_bytes = staged_bytes(chunk);
    shared_c = c_bytes <= c_budget && shared_bytes + c_bytes <= block_budget;
    if (shared_c) {
        shared_bytes += c_bytes;
    }
    blocks =
        std::clamp(static_cast<int>(2 * 112 * 1024 / std::max<std::size_t>(shared_bytes, 1)), 1, 6);
}

}  // namespace quiver::cuda

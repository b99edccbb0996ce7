// SPDX-License-Identifier: BSD-3-Clause
// How a sparse product divides its work on a device; see src/spmmv.cuh. Pure arithmetic, so that a
// launch and the tests without a GPU see the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

/// Of one panel of columns.
struct SpmmvTiling {
    int width;
    /// Bytes that a thread loads of a row of X at once: 4, 8 or 16.
    int word = 16;
    /// Threads that share the entries of a row.
    int split = 1;
    int threads = 512;
    /// Rows that a block works on at a time.
    int lanes;
    /// Rows that a block works on one after another, where there are enough of them.
    int tile_rows;

    /// width_ <= widest_panel. `align`: what all rows of X, Y and the halo are aligned to, in
    /// bytes. `chunk`: of SpmmvArgs. `row_entries`: of a row, on average.
    SpmmvTiling(std::size_t scalar_bytes, int width_, std::size_t align, int chunk,
                std::int64_t row_entries)
        : width(width_) {
        const int bytes = static_cast<int>(scalar_bytes);
        const int row_bytes = width * bytes;
        while (word > 4 && (static_cast<int>(align) | row_bytes) % word != 0) {
            word /= 2;
        }
        const int column_threads = width / (word > bytes ? word / bytes : 1);
        // Lanes of a chunk read neighbouring entries. Entries of compressed rows are neighbours in
        // their row: threads for about half of them, up to a warp for all columns.
        while (chunk == 1 && 2 * split * column_threads <= 32 && 4 * split <= row_entries) {
            split *= 2;
        }
        lanes = threads / (column_threads * split);
        // Some 64 KiB of X: two blocks of a multiprocessor keep about that in their L1 cache, and
        // all blocks together a third of the L2 cache.
        tile_rows = ceil_div(65536 / row_bytes, lanes) * lanes;
    }
};

template <class T>
std::string expression(const SpmmvTiling& tiling, const char* index, bool dots) {
    return instance("spmmv", device_name<T>(), index, tiling.width, tiling.word, tiling.split,
                    tiling.threads, dots);
}

}  // namespace quiver::cuda

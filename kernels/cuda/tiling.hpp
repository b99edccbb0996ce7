// SPDX-License-Identifier: BSD-3-Clause
// How the specialised kernels divide their work: tiles, panels, shared memory. Pure arithmetic on
// shapes, so that a launch, its workspace and the tests without a GPU see the same numbers.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/cuda/expressions.hpp"

namespace quiver::cuda {

inline constexpr int block_threads = 256;
/// Columns beyond this are computed panel by panel.
inline constexpr int widest_panel = 64;

constexpr int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

/// `columns` in as few panels of at most `limit` as possible, all of the same width but the last.
struct Panels {
    int count;
    int width;

    constexpr Panels(int columns, int limit = widest_panel)
        : count(ceil_div(columns, limit)), width(count > 0 ? ceil_div(columns, count) : 0) {}
    constexpr int begin(int panel) const { return panel * width; }
    constexpr int size(int panel, int columns) const {
        return columns - begin(panel) < width ? columns - begin(panel) : width;
    }
};

/// The shape of C that a kernel is compiled for: exact for squares and narrow blocks, else the next
/// of a few wide ones, since the basis of a solver takes every width and a compilation some 0.2 s.
struct CompiledShape {
    int m, n;
    bool exact;

    constexpr CompiledShape(int m_, int n_)
        : m(m_ == n_ ? m_ : compiled_width(m_)),
          n(m_ == n_ ? n_ : compiled_width(n_)),
          exact(m == m_ && n == n_) {}
    static constexpr int compiled_width(int width) {
        const int step = width <= 16 ? 1 : width <= 64 ? 8 : width <= 256 ? 32 : 128;
        return ceil_div(width, step) * step;
    }
};

/// Of one panel of tsmttsm; see src/tsmttsm.cuh. m, n <= widest_panel.
struct TsmttsmTiling : CompiledShape {
    int tile_m, tile_n;
    int unroll;
    /// Rows of A and B that a block works on at a time.
    int rows;
    /// Blocks to launch for every multiprocessor.
    int blocks;

    TsmttsmTiling(std::size_t scalar_bytes, int m, int n);
};

template <class T>
std::string expression(const TsmttsmTiling& tiling) {
    return instance("tsmttsm", device_name<T>(), tiling.m, tiling.n, tiling.exact, tiling.tile_m,
                    tiling.tile_n, tiling.unroll, block_threads);
}

/// See src/tsmm.cuh. `shared_limit`: bytes of shared memory that a block may have.
struct TsmmTiling : CompiledShape {
    int panel, chunk;
    int tile_rows, tile_n, row_threads;
    int threads;
    bool shared_c;
    std::size_t shared_bytes;
    /// Blocks to launch for every multiprocessor.
    int blocks;

    TsmmTiling(std::size_t scalar_bytes, int m, int n, std::size_t shared_limit);
    int rows() const { return row_threads * tile_rows; }
    bool can_run_in_place() const { return panel == n || chunk == m; }
};

template <class T>
std::string expression(const TsmmTiling& tiling) {
    return instance("tsmm", device_name<T>(), tiling.m, tiling.n, tiling.exact, tiling.panel,
                    tiling.chunk, tiling.tile_rows, tiling.tile_n, tiling.row_threads,
                    tiling.threads, tiling.shared_c);
}

/// How many threads share a row's entries and one column in spmmv; see src/spmmv.cuh.
constexpr int spmmv_split(int width) {
    return width == 1 ? 4 : width < 4 ? 2 : 1;
}

}  // namespace quiver::cuda

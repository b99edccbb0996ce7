// SPDX-License-Identifier: BSD-3-Clause
// The inner loop of both dense products: a small tile of sums that stays in registers.
#pragma once

#include <bit>

#include "kernels/host/simd.hpp"

namespace quiver::host {

/// The widest column panel of a tile: two registers.
template <class R>
constexpr int widest_panel(int vector_bytes) {
    return 2 * vector_bytes / static_cast<int>(sizeof(R));
}

/// Columns first .. first + width - 1 of a block, of which an earlier panel has the first `skip`.
struct Panel {
    int first;
    int width;
    int skip;
};

/// The panel that brings column j of n. Its width is a power of two and all its columns exist: the
/// last one reaches back over its neighbour rather than over the end.
constexpr Panel panel_at(int j, int n, int widest) {
    const int main = std::min(widest, static_cast<int>(std::bit_floor(static_cast<unsigned>(n))));
    const int left = n - j;
    if (left >= main) {
        return {j, main, 0};
    }
    const int width = static_cast<int>(std::bit_ceil(static_cast<unsigned>(left)));
    return {n - width, width, width - left};
}

/// Rows of the tile for panels of a width: its sums take half of the registers, 8 rows at most.
template <class Isa, class R, int width>
inline constexpr int tile_rows = std::min(8, Isa::registers / 2 /
                                                 Pack<R, width, Isa::vector_bytes>::vectors);

/// sum(t, j) = sum over k < count of a[t * a_tile + k * a_step] b[k * b_step + j] for t < tile and
/// j < width.
template <class Isa, class R, int tile, int width>
struct RegisterTile {
    using Columns = Pack<R, width, Isa::vector_bytes>;
    /// Where the tile is too small to hide the latency of an addition, every `unroll`-th k has
    /// accumulators of its own.
    static constexpr int unroll = std::max(1, 8 / (tile * Columns::vectors));

    Columns sum[tile];

    /// Also fetches what is wanted `ahead` steps of k later, unless `ahead` is 0.
    template <int ahead = 0>
    [[gnu::always_inline]] inline void multiply(std::int64_t count, const R* a, std::int64_t a_tile,
                                                std::int64_t a_step, const R* b,
                                                std::int64_t b_step) {
        Columns partial[unroll][tile];
#pragma GCC unroll 8
        for (int u = 0; u < unroll; ++u) {
#pragma GCC unroll 8
            for (int t = 0; t < tile; ++t) {
                partial[u][t].zero();
            }
        }
        std::int64_t k = 0;
        for (; k + unroll <= count; k += unroll) {
#pragma GCC unroll 8
            for (int u = 0; u < unroll; ++u) {
                Columns row;
                row.load(b + (k + u) * b_step);
                if constexpr (ahead > 0) {
                    constexpr int line = 64 / static_cast<int>(sizeof(R));
                    __builtin_prefetch(a + (k + u + ahead) * a_step);
                    for (int j = 0; j < width; j += line) {
                        __builtin_prefetch(b + (k + u + ahead) * b_step + j);
                    }
                }
#pragma GCC unroll 8
                for (int t = 0; t < tile; ++t) {
                    partial[u][t].add_product(a[t * a_tile + (k + u) * a_step], row);
                }
            }
        }
        if constexpr (unroll > 1) {
            for (; k < count; ++k) {
                Columns row;
                row.load(b + k * b_step);
#pragma GCC unroll 8
                for (int t = 0; t < tile; ++t) {
                    partial[0][t].add_product(a[t * a_tile + k * a_step], row);
                }
            }
        }
#pragma GCC unroll 8
        for (int t = 0; t < tile; ++t) {
            sum[t] = partial[0][t];
#pragma GCC unroll 8
            for (int u = 1; u < unroll; ++u) {
                sum[t].add(partial[u][t]);
            }
        }
    }
};

}  // namespace quiver::host

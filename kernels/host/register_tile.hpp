// SPDX-License-Identifier: BSD-3-Clause
// Shared parts of the dense products: tables of compiled register tiles, permutations for narrow
// blocks, and non-temporal stores.
#pragma once

#include <array>
#include <utility>

#include "kernels/host/simd.hpp"

namespace quiver::host {

/// Pending non-temporal stores of whole cache lines; `to` is aligned to lines. Kernels send a few
/// lines at a time, because a burst would stall all other memory traffic.
template <class R>
struct Stream {
    static constexpr int line = 64 / static_cast<int>(sizeof(R));
    const R* from;
    R* to;
    std::int64_t lines;

    template <class Isa>
    [[gnu::always_inline]] inline void send(std::int64_t most) {
        if (lines <= 0 || most <= 0) {
            return;
        }
        const std::int64_t now = std::min(most, lines);
#if defined(__x86_64__)
        constexpr int lanes = lanes_v<Isa, R>;
        using Vector = typename VectorOf<R, lanes>::type;
        for (std::int64_t i = 0; i < now * line; i += lanes) {
            Vector value;
            std::memcpy(&value, from + i, sizeof(Vector));
            auto* target = reinterpret_cast<Vector*>(to + i);
#if defined(__clang__)
            // clang checks the operands of asm against the instruction set of the file, not of the
            // caller.
            __builtin_nontemporal_store(value, target);
#else
            if constexpr (std::is_same_v<Isa, Baseline>) {
                asm volatile("movntps %1, %0" : "=m"(*target) : "x"(value));
            } else {
                asm volatile("vmovntps %1, %0" : "=m"(*target) : "x"(value));
            }
#endif
        }
#else
        std::copy_n(from, now * line, to);
#endif
        from += now * line;
        to += now * line;
        lines -= now;
    }
};

/// `total` parts cut into the fewest pieces of at most `most` parts, of nearly equal size.
struct Pieces {
    int count, total;
    Pieces(int all, int most) : count((all + most - 1) / most), total(all) {}
    int first(int piece) const { return total * piece / count; }
    int size(int piece) const { return first(piece + 1) - first(piece); }
};

/// The largest number of rows of a tile with `vectors` registers per row: the sums, a row of the
/// other factor and one broadcast number share the registers.
template <class Isa>
constexpr int most_rows(int vectors, int most) {
    return std::min(most, (Isa::registers - 1 - vectors) / vectors);
}
inline constexpr int most_vectors = 4;

/// Tile<Isa, R, rows, vectors>::run, compiled for every tile that fits: [vectors - 1][rows - 1].
template <class Isa, class R, class Args, template <class, class, int, int> class Tile, int most>
constexpr auto make_tile_table() {
    std::array<std::array<void (*)(const Args&), most>, most_vectors> table{};
    const auto fill = [&]<int vectors>(std::integral_constant<int, vectors>) {
        [&]<int... row>(std::integer_sequence<int, row...>) {
            ((table[vectors - 1][row] = entry<Isa, Tile<Isa, R, row + 1, vectors>, Args>()), ...);
        }
        (std::make_integer_sequence<int, most_rows<Isa>(vectors, most)>());
    };
    [&]<int... v>(std::integer_sequence<int, v...>) {
        (fill(std::integral_constant<int, v + 1>()), ...);
    }
    (std::make_integer_sequence<int, most_vectors>());
    return table;
}

/// Blocks without gaps of at most this many columns are folded: a vector holds several of their
/// rows. The baseline instruction set has no suitable permutation of lanes.
template <class Isa, class R>
inline constexpr int widest_folded = std::is_same_v<Isa, Baseline> ? 0 : lanes_v<Isa, R> / 2;

template <class R>
using LaneIndex = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
template <class Isa, class R>
using LaneIndices = typename VectorOf<LaneIndex<R>, lanes_v<Isa, R>>::type;

/// Row i of `source`: the permutation that brings column i of `fold` rows with m columns to the
/// lanes of the same rows with n columns.
template <class Index>
void set_folded_source(int lanes, int fold, int m, int n, Index* source) {
    for (int i = 0; i < m; ++i) {
        for (int lane = 0; lane < lanes; ++lane) {
            *source++ = static_cast<Index>(std::min(lane / n, fold - 1) * m + i);
        }
    }
}

}  // namespace quiver::host

// SPDX-License-Identifier: BSD-3-Clause
// The inner loop of both dense products: a small tile of sums that stays in registers. Lanes run
// along the columns of B and always fill whole vectors: B can be read, and C written, up to the
// next multiple of the lanes, and what stands there does not matter.
#pragma once

#include <array>
#include <utility>

#include "kernels/host/simd.hpp"

namespace quiver::host {

/// Whole lines on their way past the caches; `to` is aligned to lines. Kernels send some now and
/// then, since a burst of them would hold up everything else.
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
            if constexpr (std::is_same_v<Isa, Baseline>) {
                asm volatile("movntps %1, %0" : "=m"(*target) : "x"(value));
            } else {
                asm volatile("vmovntps %1, %0" : "=m"(*target) : "x"(value));
            }
        }
#else
        std::copy_n(from, now * line, to);
#endif
        from += now * line;
        to += now * line;
        lines -= now;
    }
};

template <class R>
struct TileArgs {
    std::int64_t count;
    const R* a;
    std::int64_t a_ld;
    const R* b;
    std::int64_t b_ld;
    R* c;
    std::int64_t c_ld;
    /// What to fetch meanwhile, a line of A and some of B a step; nothing where null.
    const R* next_a;
    std::int64_t next_a_step;
    const R* next_b;
    std::int64_t next_b_step;
    int next_b_lines = 1;
    /// So many tiles, one after the other in A and C. One where transposed.
    int tiles = 1;
    /// Lines to send with each tile: one a step, and more up to `share` at its end.
    Stream<R>* stream = nullptr;
    std::int64_t share = 0;
};

/// transposed: C(t, :) += sum over k of A(k, t) B(k, :); else C(t, :) = sum over k of A(t, k)
/// B(k, :), with the rows of C written in ascending order. k < count, t < tile; rows of B and C are
/// `vectors` registers long.
template <class Isa, class R, int tile, int vectors, bool transposed>
struct RegisterTile {
    static constexpr int lanes = lanes_v<Isa, R>;
    using Vector = typename VectorOf<R, lanes>::type;
    /// Where the tile is too small to hide the latency of an addition, every `unroll`-th k has
    /// accumulators of its own.
    static constexpr int unroll = std::max(1, (8 + tile * vectors - 1) / (tile * vectors));
    static constexpr int group = transposed ? unroll : 2 * unroll;

    [[gnu::always_inline]] static inline void add(const TileArgs<R>& args, std::int64_t k,
                                                  Vector (&sum)[tile][vectors]) {
        Vector row[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
            load_once(args.b + k * args.b_ld + v * lanes, row[v]);
        }
#pragma GCC unroll 32
        for (int t = 0; t < tile; ++t) {
            const R factor = transposed ? args.a[k * args.a_ld + t] : args.a[t * args.a_ld + k];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                sum[t][v] += factor * row[v];
            }
        }
    }

    [[gnu::always_inline]] static inline void run(const TileArgs<R>& given) {
        TileArgs<R> args = given;
        if constexpr (transposed) {
            Stream<R> none{nullptr, nullptr, 0};
            run_tile(args, none);
            return;
        }
        Stream<R> stream = *given.stream;
        for (int i = 0; i < given.tiles; ++i) {
            run_tile(args, stream);
            stream.template send<Isa>(args.share - args.count * static_cast<int>(sizeof(R)) / 8);
            args.a += tile * args.a_ld;
            args.c += tile * args.c_ld;
            args.next_a += tile * args.a_ld;
        }
        *given.stream = stream;
    }

    [[gnu::always_inline]] static inline void run_tile(const TileArgs<R>& args, Stream<R>& stream) {
        Vector sum[unroll][tile][vectors] = {};
        std::int64_t k = 0;
        for (; k + group <= args.count; k += group) {
#pragma GCC unroll 32
            for (int u = 0; u < group; ++u) {
                if constexpr (transposed) {
                    if (args.next_a != nullptr) {
                        __builtin_prefetch(args.next_a + (k + u) * args.next_a_step);
                    }
                    if (args.next_b != nullptr) {
                        for (int v = 0; v < args.next_b_lines; ++v) {
                            __builtin_prefetch(args.next_b + (k + u) * args.next_b_step +
                                               v * lanes);
                        }
                    }
                } else if (u * sizeof(R) % 8 == 0) {
                    __builtin_prefetch(args.next_a + (k + u) * args.next_a_step);
                }
                add(args, k + u, sum[u % unroll]);
                if (!transposed && u * sizeof(R) % 8 == 0) {
                    stream.template send<Isa>(1);
                }
            }
        }
        for (; k < args.count; ++k) {
            add(args, k, sum[0]);
        }
#pragma GCC unroll 32
        for (int t = 0; t < tile; ++t) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                R* c = args.c + t * args.c_ld + v * lanes;
                Vector total = sum[0][t][v];
#pragma GCC unroll 8
                for (int u = 1; u < unroll; ++u) {
                    total += sum[u][t][v];
                }
                if constexpr (transposed) {
                    Vector old;
                    std::memcpy(&old, c, sizeof(Vector));
                    total += old;
                }
                std::memcpy(c, &total, sizeof(Vector));
            }
        }
    }
};

inline constexpr int most_tile_rows = 14;

/// Tiles with `vectors` registers in a row have at most so many rows: the sums, a row of B and a
/// factor share the registers.
template <class Isa, bool transposed>
constexpr int most_rows(int vectors) {
    const int fit = (Isa::registers - 1 - vectors) / vectors;
    return std::min(transposed ? most_tile_rows : 8, fit);
}
inline constexpr int most_vectors = 4;

/// The compiled tiles of an instruction set: [vectors - 1][rows - 1].
template <class R>
using TileFunction = void (*)(const TileArgs<R>&);
template <class R>
using TileTable = std::array<std::array<TileFunction<R>, most_tile_rows>, most_vectors>;

template <class Isa, class R, bool transposed>
constexpr TileTable<R> make_tile_table() {
    TileTable<R> table{};
    const auto fill = [&]<int vectors>(std::integral_constant<int, vectors>) {
        [&]<int... row>(std::integer_sequence<int, row...>) {
            ((table[vectors - 1][row] =
                  entry<Isa, RegisterTile<Isa, R, row + 1, vectors, transposed>, TileArgs<R>>()),
             ...);
        }
        (std::make_integer_sequence<int, most_rows<Isa, transposed>(vectors)>());
    };
    [&]<int... v>(std::integer_sequence<int, v...>) {
        (fill(std::integral_constant<int, v + 1>()), ...);
    }
    (std::make_integer_sequence<int, most_vectors>());
    return table;
}

template <class Isa, class R, bool transposed>
inline constexpr TileTable<R> tile_table = make_tile_table<Isa, R, transposed>();

template <class Isa, class R, bool transposed>
TileFunction<R> tile_function(int rows, int vectors) {
    return tile_table<Isa, R, transposed>[static_cast<std::size_t>(vectors - 1)]
                                         [static_cast<std::size_t>(rows - 1)];
}

/// Blocks without gaps of so many columns are folded: a vector holds several of their rows. The
/// baseline has no permutation of lanes for it.
template <class Isa, class R>
inline constexpr int widest_folded = std::is_same_v<Isa, Baseline> ? 0 : lanes_v<Isa, R> / 2;

template <class R>
using LaneIndex = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
template <class Isa, class R>
using LaneIndices = typename VectorOf<LaneIndex<R>, lanes_v<Isa, R>>::type;

/// Row i of `source`: the permutation that brings column i of `fold` rows of m columns to the lanes
/// of the same rows of n columns.
template <class Index>
void set_folded_source(int lanes, int fold, int m, int n, Index* source) {
    for (int i = 0; i < m; ++i) {
        for (int lane = 0; lane < lanes; ++lane) {
            *source++ = static_cast<Index>(std::min(lane / n, fold - 1) * m + i);
        }
    }
}

/// `total` parts cut into the fewest pieces of at most `most`, of nearly equal size.
struct Pieces {
    int count, total;
    Pieces(int all, int most) : count((all + most - 1) / most), total(all) {}
    int first(int piece) const { return total * piece / count; }
    int size(int piece) const { return first(piece + 1) - first(piece); }
};

}  // namespace quiver::host

// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha (A - shift) X + beta Y for rows in chunks or compressed rows, with column dots in the
// same pass. Sources: Kreutzer et al., SIAM J. Sci. Comput. 36, 2014 (SELL-C-sigma) and IPDPS 2015
// (fused block products).
#pragma once

#include "kernels/leaf_args.hpp"
#include "reduce.cuh"

namespace quiver {

template <int BYTES>
struct WordOf {
    using type = int;
};
template <>
struct WordOf<8> {
    using type = int2;
};
template <>
struct WordOf<16> {
    using type = int4;
};

/// COUNT neighbours of one row, moved in words of WORD bytes (4, 8 or 16), to which their address
/// is aligned.
template <class T, int COUNT, int WORD>
struct Packet {
    using Word = typename WordOf<WORD>::type;
    static constexpr int words = COUNT * static_cast<int>(sizeof(T)) / WORD;
    T at[COUNT];

    /// Calls move(word, place) for all words.
    template <class Move>
    void load_by(const T* from, Move move) {
        Word word[words];
#pragma unroll
        for (int w = 0; w < words; ++w) {
            word[w] = move(reinterpret_cast<const Word*>(from) + w);
        }
        memcpy(at, word, sizeof(at));
    }
    void load(const T* from) {
        load_by(from, [](const Word* word) { return *word; });
    }
    /// Of what no thread writes during the launch.
    void load_constant(const T* from) {
        load_by(from, [](const Word* word) { return __ldg(word); });
    }
    /// The same, of what is read once: leaves the caches to others.
    void load_streamed(const T* from) {
        load_by(from, [](const Word* word) { return __ldcs(word); });
    }
    void store_streamed(T* to) const {
        Word word[words];
        memcpy(word, at, sizeof(at));
#pragma unroll
        for (int w = 0; w < words; ++w) {
            __stcs(reinterpret_cast<Word*>(to) + w, word[w]);
        }
    }
};

/// How many entries a thread fetches at a time: as many as its 64 registers hold, by their words.
constexpr int spmmv_batch(int x_words, int value_words, int index_words, bool dots) {
    const int kept = (dots ? 4 : 2) * x_words + (value_words == 4 ? 8 : 0);
    const int fetched = x_words + value_words + index_words;
    return kept + 8 * fetched <= 44 ? 8 : kept + 4 * fetched <= 44 ? 4 : 2;
}

/// A row's threads: WIDTH columns, as many for each as WORD bytes hold, times SPLIT (a power of
/// two), which share the row's entries. A block goes down tiles of tile_rows rows, so that it finds
/// rows of X that neighbours share in its L1 cache. Entries are fetched some at a time, to have
/// their rows of X under way together. WORD: x, y, halo and all their rows are aligned to it. The
/// halo has rows of halo_ld elements.
template <class T, class Index, int WIDTH, int WORD, int SPLIT, int THREADS, bool DOTS>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    spmmv(SpmmvArgs<T> args, const Index* column_of, const Index* list, std::int64_t halo_ld,
          std::int64_t tile_rows, T* partials, unsigned* counters, int group) {
    constexpr int bytes = sizeof(T);
    constexpr int count = WORD > bytes ? WORD / bytes : 1;
    constexpr int slots = WIDTH / count * SPLIT;
    constexpr int lanes = THREADS / slots;
    constexpr int batch = spmmv_batch(count * bytes / 4, bytes / 4, sizeof(Index) / 4, DOTS);
    static_assert(WIDTH % count == 0 && lanes > 0);
    using Columns = Packet<T, count, WORD>;
    using Entry = Packet<T, 1, bytes>;

    const int lane = threadIdx.x / slots;
    const int column = threadIdx.x % slots / SPLIT * count;
    const int part = threadIdx.x % SPLIT;
    const int log_chunk = __ffs(args.chunk) - 1;
    const int step = args.chunk * SPLIT;
    const bool accumulate = !is_zero(args.beta);
    const bool shifted = args.shifts != nullptr || !is_zero(args.shift);

    T dot[2 * count] = {};
    for (std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * tile_rows; tile < args.rows;
         tile += static_cast<std::int64_t>(gridDim.x) * tile_rows) {
        const std::int64_t tile_end = minimum(tile + tile_rows, args.rows);
        // The block goes around together: all threads of a warp take part in the shuffles.
        for (std::int64_t base = tile; base < tile_end; base += lanes) {
            const std::int64_t slot = base + lane;
            const bool active = lane < lanes && slot < tile_end;
            T sum[count] = {};
            if (active) {
                const std::int64_t* const start = args.start + (slot >> log_chunk);
                const std::int64_t end = load_constant(start + 1);
                for (std::int64_t first =
                         load_constant(start) + (slot & (args.chunk - 1)) + part * args.chunk;
                     first < end; first += batch * step) {
                    Index source[batch];
                    Entry value[batch];
                    Columns x[batch];
#pragma unroll
                    for (int u = 0; u < batch; ++u) {
                        const std::int64_t entry = first + u * step;
                        source[u] = -1;
                        if (entry < end) {
                            source[u] = __ldcs(column_of + entry);
                            value[u].load_streamed(args.value + entry);
                        }
                    }
#pragma unroll
                    for (int u = 0; u < batch; ++u) {
                        if (source[u] >= 0) {
                            const T* const row = source[u] < args.own
                                                     ? args.x + source[u] * args.ldx
                                                     : args.halo + (source[u] - args.own) * halo_ld;
                            x[u].load_constant(row + column);
                        }
                    }
#pragma unroll
                    for (int u = 0; u < batch; ++u) {
                        if (source[u] >= 0) {
#pragma unroll
                            for (int v = 0; v < count; ++v) {
                                sum[v] = multiply_add(value[u].at[0], x[u].at[v], sum[v]);
                            }
                        }
                    }
                }
            }
#pragma unroll
            for (int distance = SPLIT / 2; distance > 0; distance /= 2) {
#pragma unroll
                for (int v = 0; v < count; ++v) {
                    sum[v] = sum[v] + shuffle_xor(sum[v], distance);
                }
            }
            if (active && part == 0) {
                const std::int64_t row = list != nullptr ? load_constant(list + slot) : slot;
                T* const y = args.y + row * args.ldy + column;
                Columns x{};
                Columns old{};
                if (shifted || DOTS) {
                    x.load_constant(args.x + row * args.ldx + column);
                }
                if (accumulate) {
                    old.load(y);
                }
                Columns result;
#pragma unroll
                for (int v = 0; v < count; ++v) {
                    if (shifted) {
                        const T shift = args.shifts != nullptr
                                            ? load_constant(args.shifts + column + v)
                                            : args.shift;
                        sum[v] = multiply_add(-shift, x.at[v], sum[v]);
                    }
                    T value = multiply(args.alpha, sum[v]);
                    if (accumulate) {
                        value = multiply_add(args.beta, old.at[v], value);
                    }
                    result.at[v] = value;
                    if constexpr (DOTS) {
                        dot[v] = multiply_add(conjugate(value), value, dot[v]);
                        dot[count + v] = multiply_add(conjugate(x.at[v]), value, dot[count + v]);
                    }
                }
                result.store_streamed(y);
            }
        }
    }
    if constexpr (DOTS) {
        __shared__ T shared[2 * count * THREADS];
        sum_over_lanes(dot, lane, lanes, slots, shared);
        if (lane == 0 && part == 0) {
            T* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (2 * WIDTH) + column;
#pragma unroll
            for (int v = 0; v < count; ++v) {
                mine[v] = dot[v];
                mine[WIDTH + v] = dot[count + v];
            }
        }
        // Few registers are left for it.
        sum_over_blocks<8>(2 * WIDTH, partials, counters, group, shared, [&](int e, T total) {
            T* const result = e < WIDTH ? args.dot_yy : args.dot_xy;
            if (result != nullptr) {
                result[e % WIDTH] = total;
            }
        });
    }
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// P A = L U of many small matrices in registers: one matrix per thread, or one row per thread of a
// group. Rows are exchanged by renumbering until they are stored. Source: Haidar et al., IEEE TPDS
// 29(5), 2018, section 4.4 (register design, delayed exchange of rows).
#pragma once

#include "batched.cuh"

namespace quiver {

/// One matrix per thread, THREADS matrices per block.
template <class T, int N, int THREADS, int GAP, int WORD, bool BY_ROWS, Packing PACKING>
__global__ void __launch_bounds__(THREADS) lu_by_thread(LuArgs<T> args) {
    using Tile = MatrixTile<T, N, THREADS, THREADS, N, GAP, WORD, BY_ROWS, false, PACKING>;
    using Own = OwnMatrix<T, N, Tile, BY_ROWS, PACKING>;
    __shared__ int shared_pivots[THREADS * N];
    T* const tile = dynamic_shared<T>();
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * THREADS;
    const std::int64_t b = first + threadIdx.x;
    if constexpr (PACKING != Packing::interleaved) {
        Tile::load(args.a, first, tile);
        __syncthreads();
    }
    T a[N][N];
    Own::load(args.a, b, tile, a);

    int status = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        int p = k;
        RealOf<T> largest = one_norm(a[k][k]);
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            const RealOf<T> value = one_norm(a[i][k]);
            const bool more = (value > largest) | (value != value);
            largest = more ? value : largest;
            p = more ? i : p;
        }
        shared_pivots[threadIdx.x * N + k] = p;
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            const bool here = p == i;
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const T below = a[i][j];
                a[i][j] = here ? a[k][j] : below;
                a[k][j] = here ? below : a[k][j];
            }
        }
        const bool zero = is_zero(a[k][k]);
        status = status == 0 && (zero || !is_finite(a[k][k])) ? k + 1 : status;
        const T pivot = zero ? from_real<T>(1) : a[k][k];
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            a[i][k] = quotient(a[i][k], pivot);
            const T factor = -a[i][k];
#pragma unroll
            for (int j = k + 1; j < N; ++j) {
                a[i][j] = multiply_add(factor, a[k][j], a[i][j]);
            }
        }
    }

    Own::template store<false>(args.a, b, a, tile);
    if (b < args.a.count) {
        args.status[b] = status;
    }
    __syncthreads();
    if constexpr (PACKING != Packing::interleaved) {
        Tile::store(args.a, first, tile);
    }
    const std::int64_t left = minimum<std::int64_t>(THREADS, args.a.count - first);
    for (int e = threadIdx.x; e < left * N; e += THREADS) {
        args.pivots[first * N + e] = shared_pivots[e];
    }
}

/// A sortable key of a pivot candidate: larger values have larger keys, NaN has the largest; key 0
/// means no candidate.
struct PivotKey {
    unsigned high;
    unsigned low;

    static PivotKey of(float value) { return {(__float_as_uint(value) & 0x7fffffffu) + 1, 0}; }
    static PivotKey of(double value) {
        return {(static_cast<unsigned>(__double2hiint(value)) & 0x7fffffffu) + 1,
                static_cast<unsigned>(__double2loint(value))};
    }
};

/// The largest value among LANES neighbouring lanes, returned in each of them.
template <int LANES>
unsigned largest_of(unsigned value) {
    if constexpr (LANES == 32) {
        return __reduce_max_sync(0xffffffffu, value);
    } else {
#pragma unroll
        for (int mask = LANES / 2; mask > 0; mask /= 2) {
            const unsigned other = shuffle_xor(value, mask);
            value = other > value ? other : value;
        }
        return value;
    }
}

/// The lane of the warp with the largest key among LANES neighbours; among equal keys, the one with
/// the smallest position; any lane if there is no candidate. `high` becomes the high word of the
/// winner's key.
template <int LANES, bool HAS_LOW>
int winner_of(PivotKey key, int position, unsigned& high) {
    constexpr unsigned all = 0xffffffffu;
    const int lane = threadIdx.x % 32;
    const unsigned group = LANES == 32 ? all : ((1u << LANES % 32) - 1) << (lane / LANES * LANES);
    high = largest_of<LANES>(key.high);
    bool candidate = key.high == high;
    unsigned candidates = __ballot_sync(all, candidate) & group;
    if (__any_sync(all, high != 0 && (candidates & (candidates - 1)) != 0)) {
        if constexpr (HAS_LOW) {
            const unsigned low = largest_of<LANES>(candidate ? key.low : 0);
            candidate = candidate && key.low == low;
        }
        const unsigned rank = 1024u - static_cast<unsigned>(position);
        const unsigned best = largest_of<LANES>(candidate ? rank : 0);
        candidates = __ballot_sync(all, candidate && rank == best) & group;
    }
    return __ffs(static_cast<int>(candidates)) - 1;
}

/// GROUP threads share a matrix, SPLIT of them a row: the thread with remainder s holds columns s,
/// s + SPLIT, ... GROUP is a power of two up to 32, or a multiple of 32; in the latter case a block
/// has one matrix.
template <class T, int N, int MATRICES, int GROUP, int SPLIT, int PITCH, int WORD, bool BY_ROWS,
          Packing PACKING>
__global__ void __launch_bounds__(MATRICES* GROUP) lu_by_rows(LuArgs<T> args) {
    constexpr int threads = MATRICES * GROUP;
    constexpr int lanes = GROUP < 32 ? GROUP : 32;
    constexpr int warps = GROUP / lanes;  // per matrix
    static_assert(warps == 1 || MATRICES == 1);
    static_assert(N * SPLIT <= GROUP);
    constexpr int columns = ceil_div(N, SPLIT);
    constexpr int V = 16 / sizeof(T);
    constexpr int share =
        ceil_div(columns, V) * V;  // elements of a thread in a broadcast row, padded
    constexpr bool has_low = sizeof(RealOf<T>) == 8;
    using Tile = MatrixTile<T, N, MATRICES, threads, PITCH, 0, WORD, BY_ROWS, false, PACKING>;
    struct Found {
        unsigned high, low;
        int position;
    };

    __shared__ Found found[2][warps];
    T* const tile = dynamic_shared<T>();
    // The pivot row of each warp, for this step and the previous one.
    T* const passed = tile + ceil_div(Tile::elements, V) * V;
    constexpr int passed_row = SPLIT * share;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * MATRICES;
    const int m = threadIdx.x / GROUP;
    const int t = threadIdx.x % GROUP;
    const int lane = threadIdx.x % 32;
    const int warp = t / 32;
    const int row = t / SPLIT;
    const int part = t % SPLIT;
    const bool has_row = row < N;
    T* const own = tile + m * Tile::matrix_pitch;

    Tile::load(args.a, first, tile);
    __syncthreads();
    T a[columns];
    if constexpr (BY_ROWS && SPLIT == 1) {
        load_run<vector_of<T>(PITCH)>(own + (has_row ? row : 0) * PITCH, a);
    } else {
#pragma unroll
        for (int q = 0; q < columns; ++q) {
            const int column = q * SPLIT + part;
            a[q] = has_row && column < N ? own[Tile::index(row, column)] : T{};
        }
    }

    int position = has_row ? row : 1000;
    int exchanged = 0;  // row exchanged with the row of this thread's number
    int status = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        PivotKey key{0, 0};
        if (position >= k && has_row && part == k % SPLIT) {
            key = PivotKey::of(one_norm(a[k / SPLIT]));
        }
        unsigned high;
        const int winner = winner_of<lanes, has_low>(key, position, high);
        const bool passes = lane / SPLIT == winner / SPLIT;
        T* const to = passed + ((k % 2 * MATRICES + m) * warps + warp) * passed_row + part * share;
        if (passes) {
#pragma unroll
            for (int q = k / SPLIT / V * V; q < columns; q += V) {
                Pack<T, V> pack;
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    pack.value[v] = q + v < columns ? a[minimum(q + v, columns - 1)] : T{};
                }
                *reinterpret_cast<Pack<T, V>*>(to + q) = pack;
            }
        }
        int best_warp = 0;
        int best_position;
        if constexpr (warps == 1) {
            best_position = shuffle(position, winner, 32);
            __syncwarp();
        } else {
            if (lane == winner) {
                found[k % 2][warp] = {high, key.low, position};
            }
            __syncthreads();
            Found best = found[k % 2][0];
#pragma unroll
            for (int w = 1; w < warps; ++w) {
                const Found other = found[k % 2][w];
                const bool same = other.high == best.high;
                const bool more = same && other.low == best.low ? other.position < best.position
                                  : same                        ? other.low > best.low
                                                                : other.high > best.high;
                if (more) {
                    best = other;
                    best_warp = w;
                }
            }
            best_position = best.position;
        }
        if (passes && warp == best_warp) {
            position = k;
        } else if (position == k) {
            position = best_position;
        }
        exchanged = t == k ? best_position : exchanged;

        const T* const from = passed + ((k % 2 * MATRICES + m) * warps + best_warp) * passed_row;
        const T pivot = from[k % SPLIT * share + k / SPLIT];
        const bool zero = is_zero(pivot);
        status = status == 0 && (zero || !is_finite(pivot)) ? k + 1 : status;
        T factor = a[k / SPLIT];
        if constexpr (SPLIT > 1) {
            factor = shuffle(factor, lane / SPLIT * SPLIT + k % SPLIT, 32);
        }
        if (position > k && has_row) {
            factor = quotient(factor, zero ? from_real<T>(1) : pivot);
            if (part == k % SPLIT) {
                a[k / SPLIT] = factor;
            }
            factor = -factor;
#pragma unroll
            for (int q = k / SPLIT / V * V; q < columns; q += V) {
                const auto pack = *reinterpret_cast<const Pack<T, V>*>(from + part * share + q);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    if (q + v < columns && (q + v) * SPLIT + SPLIT - 1 > k &&
                        (q + v) * SPLIT + part > k) {
                        a[q + v] = multiply_add(factor, pack.value[v], a[q + v]);
                    }
                }
            }
        }
    }

    const std::int64_t b = first + m;
    if (b < args.a.count) {
        if (t < N) {
            args.pivots[b * N + t] = exchanged;
        }
        if (t == 0) {
            args.status[b] = status;
        }
    }
    if (has_row) {
        if constexpr (BY_ROWS && SPLIT == 1) {
            store_run<vector_of<T>(PITCH)>(a, own + position * PITCH);
        } else {
#pragma unroll
            for (int q = 0; q < columns; ++q) {
                if (q * SPLIT + part < N) {
                    own[Tile::index(position, q * SPLIT + part)] = a[q];
                }
            }
        }
    }
    __syncthreads();
    Tile::store(args.a, first, tile);
}

}  // namespace quiver

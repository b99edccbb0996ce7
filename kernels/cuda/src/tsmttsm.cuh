// SPDX-License-Identifier: BSD-3-Clause
// C = alpha A^H B + beta C. Ernst, Hager, Thies, Wellein, IJHPCA 2020, section 3: every thread sums
// a TILE_M x TILE_N tile of C over its rows; a tile's columns are interleaved with those of the
// other threads of the row (transposed mapping), so that neighbours load neighbours.
#pragma once

#include "kernels/leaf_args.hpp"
#include "reduce.cuh"

namespace quiver {

/// Column of a tile's entry. Those beyond the matrix repeat its last column, and their sums are
/// dropped: only the last entry of a tile where COLUMNS is exact, more where it is rounded up.
template <int COLUMNS, bool EXACT, int TILE, int THREADS>
int tile_column(int thread, int entry, int columns) {
    static_assert(THREADS * (TILE - 1) < COLUMNS && THREADS * TILE >= COLUMNS);
    const int column = thread + entry * THREADS;
    if (EXACT) {
        return entry < TILE - 1 ? column : minimum(column, COLUMNS - 1);
    }
    return minimum(column, columns - 1);
}

/// M x N: shape of C, or with EXACT = false the next larger one that is compiled.
template <class T, int M, int N, bool EXACT, int TILE_M, int TILE_N, int UNROLL, int THREADS>
__global__ void __launch_bounds__(THREADS)
    tsmttsm(TsmttsmArgs<T> args, T* partials, unsigned* counters, int group) {
    constexpr int threads_m = ceil_div(M, TILE_M);
    constexpr int threads_n = ceil_div(N, TILE_N);
    constexpr int slots = threads_m * threads_n;
    constexpr int lanes = THREADS / slots;
    static_assert(lanes >= 1);
    const int lane = threadIdx.x / slots;
    const int slot = threadIdx.x % slots;
    const int thread_m = slot % threads_m;
    const int thread_n = slot / threads_m;

    T sum[TILE_M * TILE_N] = {};
    if (lane < lanes) {
        const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * lanes;
        std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * lanes + lane;
        const auto add_rows = [&](auto count) {
            constexpr int rows = decltype(count)::value;
            T a[rows][TILE_M];
            T b[rows][TILE_N];
#pragma unroll
            for (int u = 0; u < rows; ++u) {
                const T* a_row = args.a + (row + u * stride) * args.lda;
                const T* b_row = args.b + (row + u * stride) * args.ldb;
#pragma unroll
                for (int i = 0; i < TILE_M; ++i) {
                    a[u][i] = conjugate(
                        a_row[tile_column<M, EXACT, TILE_M, threads_m>(thread_m, i, args.m)]);
                }
#pragma unroll
                for (int j = 0; j < TILE_N; ++j) {
                    b[u][j] = b_row[tile_column<N, EXACT, TILE_N, threads_n>(thread_n, j, args.n)];
                }
            }
#pragma unroll
            for (int u = 0; u < rows; ++u) {
#pragma unroll
                for (int i = 0; i < TILE_M; ++i) {
#pragma unroll
                    for (int j = 0; j < TILE_N; ++j) {
                        T& entry = sum[i * TILE_N + j];
                        entry = multiply_add(a[u][i], b[u][j], entry);
                    }
                }
            }
        };
        for (; row + (UNROLL - 1) * stride < args.rows; row += UNROLL * stride) {
            add_rows(Constant<UNROLL>{});
        }
        for (; row < args.rows; row += stride) {
            add_rows(Constant<1>{});
        }
    }

    // As many entries at a time as 16 KB of shared memory hold.
    constexpr int entries = TILE_M * TILE_N;
    constexpr int batch = minimum<int>(entries, 16384 / (THREADS * sizeof(T)));
    __shared__ T shared[batch * THREADS];
    T* mine = partials + static_cast<std::int64_t>(blockIdx.x) * (M * N);
#pragma unroll
    for (int begin = 0; begin < entries; begin += batch) {
        T part[batch] = {};
#pragma unroll
        for (int e = 0; e < batch; ++e) {
            if (begin + e < entries) {
                part[e] = sum[begin + e];
            }
        }
        sum_over_lanes(part, lane, lanes, slots, shared);
#pragma unroll
        for (int e = 0; e < batch; ++e) {
            const int i = thread_m + (begin + e) / TILE_N * threads_m;
            const int j = thread_n + (begin + e) % TILE_N * threads_n;
            if (lane == 0 && begin + e < entries && i < M && j < N) {
                mine[i * N + j] = part[e];
            }
        }
    }
    sum_over_blocks(M * N, partials, counters, group, [&](int e, T total) {
        if (!EXACT && (e / N >= args.m || e % N >= args.n)) {
            return;
        }
        T* c = args.c + e / N * args.ldc + e % N;
        T value = multiply(args.alpha, total);
        if (!is_zero(args.beta)) {
            value = multiply_add(args.beta, *c, value);
        }
        *c = value;
    });
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha X C + beta Y, also in place. A block stages a group of rows of X in shared memory, all
// of it before it writes any of the group's Y. Every thread sums a tile of rows x columns,
// interleaved with those of its neighbours: Ernst et al., IJHPCA 2020, section 4.
#pragma once

#include "kernels/leaf_args.hpp"
#include "scalar.cuh"

namespace quiver {

/// M x N: shape of C, or with EXACT = false the next larger one that is compiled. Columns of Y are
/// computed PANEL at a time, columns of X staged CHUNK at a time. In place needs CHUNK == M or
/// PANEL == N: else a panel would be written before the next one has read X. SHARED_C: C is staged,
/// too. Dynamic shared memory: ROW_THREADS TILE_ROWS (CHUNK | 1) elements for X (odd, against bank
/// conflicts), then M N for C.
template <class T, int M, int N, bool EXACT, int PANEL, int CHUNK, int TILE_ROWS, int TILE_N,
          int ROW_THREADS, int THREADS, bool SHARED_C>
__global__ void __launch_bounds__(THREADS) tsmm(TsmmArgs<T> args) {
    constexpr int threads_n = ceil_div(PANEL, TILE_N);
    constexpr int rows_per_block = ROW_THREADS * TILE_ROWS;
    constexpr int pitch = CHUNK | 1;
    static_assert(threads_n * ROW_THREADS <= THREADS);
    const int m = EXACT ? M : args.m;
    const int n = EXACT ? N : args.n;
    T* const staged_x = dynamic_shared<T>();
    T* const staged_c = staged_x + rows_per_block * pitch;
    const int thread_n = threadIdx.x % threads_n;
    const int thread_row = threadIdx.x / threads_n;

    if constexpr (SHARED_C) {
        for (int e = threadIdx.x; e < m * N; e += THREADS) {
            if (EXACT || e % N < n) {
                staged_c[e] = load_constant(args.c + e / N * args.ldc + e % N);
            }
        }
    }
    const std::int64_t groups = (args.rows + rows_per_block - 1) / rows_per_block;
    for (std::int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
        const std::int64_t first = group * rows_per_block;
        const int rows = static_cast<int>(minimum<std::int64_t>(rows_per_block, args.rows - first));
        const T* const x = args.x + first * args.ldx;
        T* const y = args.y + first * args.ldy;
        for (int panel = 0; panel < n; panel += PANEL) {
            // Entries beyond the panel or the matrix compute its last column and drop it.
            int column[TILE_N];
            bool valid[TILE_N];
#pragma unroll
            for (int j = 0; j < TILE_N; ++j) {
                const int in_panel = thread_n + j * threads_n;
                column[j] = minimum(panel + in_panel, n - 1);
                valid[j] = in_panel < PANEL && panel + in_panel < n;
            }
            T sum[TILE_ROWS][TILE_N] = {};
            for (int chunk = 0; chunk < m; chunk += CHUNK) {
                const int depth = EXACT && M % CHUNK == 0 ? CHUNK : minimum(CHUNK, m - chunk);
                if (CHUNK < M || panel == 0) {
                    __syncthreads();
#pragma unroll 8
                    for (int e = threadIdx.x; e < rows_per_block * CHUNK; e += THREADS) {
                        const int row = e / CHUNK;
                        const int k = e % CHUNK;
                        const bool inside = row < rows && k < depth;
                        staged_x[row * pitch + k] = inside ? x[row * args.ldx + chunk + k] : T{};
                    }
                    __syncthreads();
                }
                if (thread_row < ROW_THREADS) {
#pragma unroll 4
                    for (int k = 0; k < depth; ++k) {
                        T left[TILE_ROWS];
                        T right[TILE_N];
#pragma unroll
                        for (int i = 0; i < TILE_ROWS; ++i) {
                            left[i] = staged_x[(thread_row + i * ROW_THREADS) * pitch + k];
                        }
#pragma unroll
                        for (int j = 0; j < TILE_N; ++j) {
                            right[j] =
                                SHARED_C
                                    ? staged_c[(chunk + k) * N + column[j]]
                                    : load_constant(args.c + (chunk + k) * args.ldc + column[j]);
                        }
#pragma unroll
                        for (int i = 0; i < TILE_ROWS; ++i) {
#pragma unroll
                            for (int j = 0; j < TILE_N; ++j) {
                                sum[i][j] = multiply_add(left[i], right[j], sum[i][j]);
                            }
                        }
                    }
                }
            }
            // All loads of Y before its first store, so that they overlap.
            const bool accumulate = !is_zero(args.beta);
#pragma unroll
            for (int i = 0; i < TILE_ROWS; ++i) {
                const int row = thread_row + i * ROW_THREADS;
#pragma unroll
                for (int j = 0; j < TILE_N; ++j) {
                    sum[i][j] = multiply(args.alpha, sum[i][j]);
                    if (accumulate && row < rows && thread_row < ROW_THREADS && valid[j]) {
                        sum[i][j] =
                            multiply_add(args.beta, y[row * args.ldy + column[j]], sum[i][j]);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < TILE_ROWS; ++i) {
                const int row = thread_row + i * ROW_THREADS;
#pragma unroll
                for (int j = 0; j < TILE_N; ++j) {
                    if (row < rows && thread_row < ROW_THREADS && valid[j]) {
                        y[row * args.ldy + column[j]] = sum[i][j];
                    }
                }
            }
        }
    }
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// W = alpha V H + beta W and G = W^H W in one pass: rows of V (and of W) travel to shared memory as
// in tsmm.cuh, a tile of rows makes those of the new W, which leave for the memory and stay in
// shared memory for a tile of sums as in tsmttsm.cuh.
#pragma once

#include "kernels/operations/tsmm_gram.hpp"
#include "reduce.cuh"
#include "tsmm.cuh"

namespace quiver {

/// Stores the first `present` rows of `n` columns that lie PITCH apart in shared memory, BYTES at a
/// time.
template <int TEAM, int N, bool EXACT, int PITCH, int BYTES, class T>
void store_block(int thread, const T* shared, T* y, std::int64_t ld, int present, int n) {
    using Unit = typename UnitOf<BYTES, T>::type;
    constexpr int unit = UnitOf<BYTES, T>::size;
    constexpr int row_units = ceil_div(N, unit);
#pragma unroll 4
    for (int u = thread; u < present * row_units; u += TEAM) {
        const int row = u / row_units;
        const int column = u % row_units * unit;
        if (EXACT || column < n) {
            *reinterpret_cast<Unit*>(y + row * ld + column) =
                *reinterpret_cast<const Unit*>(shared + row * PITCH + column);
        }
    }
}

/// M x N: shape of H, or with EXACT = false the next larger one that is compiled. UPDATE: FmaRows
/// or MmaRows, SUMS: FmaTile or MmaTile of N x N, SAME, both of a team of TEAM threads. For each
/// team STAGES groups of UPDATE::rows rows of V, and with ADDS (beta is not zero) of W, are on
/// their way, BYTES_V and BYTES_W at a time; rows of W leave in pieces as large. CONTIGUOUS:
/// without gaps between rows.
template <class T, int M, int N, bool EXACT, bool ADDS, class UPDATE, class SUMS, int STAGES,
          bool CONTIGUOUS, int BYTES_V, int BYTES_W, int TEAM, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    tsmm_gram(TsmmGramArgs<T> args, T* partials, unsigned* counters, int group) {
    const TsmmArgs<T>& update = args.update;
    constexpr int rows = UPDATE::rows;
    // The sums may take more rows at a time: zeros.
    constexpr int rows_w = ceil_div(rows, SUMS::row_multiple) * SUMS::row_multiple;
    constexpr int pitch_w = SUMS::pitch_a;
    // Fragments at the edge of G read past the last row.
    constexpr int slack = 16;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_c = ceil_div(UPDATE::size_c, unit) * unit;
    constexpr int size_v = ceil_div(rows * UPDATE::pitch_x, unit) * unit;
    constexpr int size_w = ceil_div(rows_w * pitch_w + slack, unit) * unit;
    constexpr int teams = THREADS / TEAM;
    constexpr int team_size = STAGES * size_v + (ADDS ? STAGES : 1) * size_w;
    static_assert(SUMS::pitch_b == pitch_w);
    const int team = teams == 1 ? 0 : threadIdx.x / TEAM;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % TEAM;
    T* const staged_h = dynamic_shared<T>();
    T* const stages_v = staged_h + size_c + team * team_size;
    T* const stages_w = stages_v + STAGES * size_v;

    // Beyond the matrix H is zero, and so are V and W, lest they be NaN.
    for (int e = threadIdx.x; e < size_c + teams * team_size; e += THREADS) {
        staged_h[e] = T{};
    }
    __syncthreads();
    const int n = EXACT ? N : update.n;

    const Chunks chunks{static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x,
                        (update.rows + rows - 1) / rows,
                        static_cast<std::int64_t>(gridDim.x) * teams};
    const RowCopy<T, TEAM, rows, M, UPDATE::pitch_x, EXACT, CONTIGUOUS, BYTES_V> copy_v(
        thread, update.x, update.ldx, update.m);
    const RowCopy<T, TEAM, rows, N, pitch_w, EXACT, CONTIGUOUS, BYTES_W> copy_w(
        thread, update.y, update.ldy, update.n);
    const auto start = [&](int stage, std::int64_t chunk) {
        copy_v.start(stages_v + stage * size_v, update.x, chunk * rows, update.rows);
        if constexpr (ADDS) {
            copy_w.start(stages_w + stage * size_w, update.y, chunk * rows, update.rows);
        }
    };
    UPDATE rows_of_w(thread, staged_h);
    SUMS sums(thread);
    const auto prepare = [&] {
        for (int e = threadIdx.x; e < update.m * N; e += THREADS) {
            const int k = e / N;
            const int j = e % N;
            if (j < n) {
                UPDATE::put(staged_h, k, j, multiply(update.alpha, update.c[k * update.ldc + j]));
            }
        }
        __syncthreads();
        rows_of_w.begin();
    };
    T* w = stages_w;
    const auto multiply_rows = [&](int stage) {
        rows_of_w.multiply_rows(stages_v + stage * size_v, EXACT ? M : update.m);
        w = stages_w + (ADDS ? stage * size_w : 0);
    };
    const auto finish = [&](std::int64_t chunk) {
        const std::int64_t first = chunk * rows;
        const int present = static_cast<int>(minimum<std::int64_t>(rows, update.rows - first));
#pragma unroll
        for (int e = 0; e < UPDATE::entries; ++e) {
            const int row = rows_of_w.row(e);
            const int col = rows_of_w.col(e);
            if (row < rows && col < N) {
                T& entry = w[row * pitch_w + col];
                T value = rows_of_w.sum(e);
                if constexpr (ADDS) {
                    value = multiply_add(update.beta, entry, value);
                }
                // An infinite H makes rows that do not exist NaN.
                entry = row < present ? value : T{};
            }
        }
        sync_team<TEAM>(team);
        store_block<TEAM, N, EXACT, pitch_w, BYTES_W>(thread, w, update.y + first * update.ldy,
                                                      update.ldy, present, n);
        sums.template add<rows_w>(w, w);
    };
    for_copied_chunks<STAGES, TEAM>(team, chunks, start, prepare, multiply_rows, finish);

    T* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (N * N);
    constexpr int shared_bytes = (size_c + teams * team_size) * static_cast<int>(sizeof(T));
    sum_tiles<TEAM, THREADS, shared_bytes>(sums, staged_h, [&](int i, int j, T value, bool) {
        if (i < N && j < N && (i <= j || sums.mirrors())) {
            mine[i <= j ? i * N + j : j * N + i] = i <= j ? value : conjugate(value);
        }
    });
    sum_over_blocks<N * N, THREADS>(
        N * N, partials, counters, group, staged_h, [&](int e, T total) {
            const int i = e / N;
            const int j = e % N;
            if (i <= j && (EXACT || j < update.n)) {
                args.g[i * args.ldg + j] = i == j ? real_part(total) : total;
                if (i < j) {
                    args.g[j * args.ldg + i] = conjugate(total);
                }
            }
        });
}

}  // namespace quiver

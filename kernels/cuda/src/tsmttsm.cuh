// SPDX-License-Identifier: BSD-3-Clause
// C = alpha A^H B + beta C after Ernst, Hager, Thies, Wellein, IJHPCA 2020, section 3, with what
// came later: rows travel to shared memory asynchronously, several stages ahead of the sums, and
// double precision may sum on the tensor cores.
#pragma once

#include "kernels/operations/tsmttsm.hpp"
#include "reduce.cuh"
#include "stage.cuh"
#include "tsmttsm_tiles.cuh"

namespace quiver {

/// M x N: shape of C, or with EXACT = false the next larger one that is compiled. SAME: A is B, C
/// its Gram matrix, one triangle is summed. TILE: FmaTile or MmaTile of a team of TEAM threads. For
/// each team ROWS of A and B make a stage in shared memory, STAGES of them are on their way.
/// CONTIGUOUS_A, CONTIGUOUS_B: without gaps between rows. BYTES_A, BYTES_B: what a thread copies at
/// a time; 0: the copy engine does. ATOMICS: C holds beta C already and every block adds its sums
/// to it, in any order; else the last block does, in one order.
template <class T, int M, int N, bool EXACT, bool SAME, class TILE, int ROWS, int STAGES,
          bool CONTIGUOUS_A, bool CONTIGUOUS_B, int BYTES_A, int BYTES_B, int TEAM, int THREADS,
          int BLOCKS, bool ATOMICS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    tsmttsm(TsmttsmArgs<T> args, T* partials, unsigned* counters, int group) {
    // Fragments at the edge of C read past the last row.
    constexpr int slack = TILE::classes > 1 ? 32 : 16;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_a = ceil_div(ROWS * TILE::pitch_a + slack, unit) * unit;
    constexpr int size_b = SAME ? 0 : ceil_div(ROWS * TILE::pitch_b + slack, unit) * unit;
    constexpr int teams = THREADS / TEAM;
    const int team = teams == 1 ? 0 : threadIdx.x / TEAM;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % TEAM;
    T* const shared = dynamic_shared<T>();
    T* const stages = shared + team * (STAGES * (size_a + size_b));
    TILE tile(thread);

    const Chunks chunks{static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x,
                        (args.rows + ROWS - 1) / ROWS,
                        static_cast<std::int64_t>(gridDim.x) * teams};
    const auto add = [&](int stage) {
        const T* const a = stages + stage * (size_a + size_b);
        tile.template add<ROWS>(a, SAME ? a : a + size_a);
    };
    const auto prepare = [] {};
    const auto finish = [](std::int64_t) {};
    if constexpr (BYTES_A == 0) {
        __shared__ std::uint64_t barriers[teams * 2 * STAGES];
        const BulkCopy<T, ROWS, M, TILE::pitch_a, CONTIGUOUS_A> copy_a(args.a, args.lda, args.m,
                                                                       args.rows);
        const BulkCopy<T, ROWS, N, TILE::pitch_b, CONTIGUOUS_B> copy_b(args.b, args.ldb, args.n,
                                                                       args.rows);
        const auto start = [&](const Barrier& full, int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            const std::int64_t first = chunk * ROWS;
            copy_a.fill_up(a, first);
            if (!SAME) {
                copy_b.fill_up(a + size_a, first);
            }
            __syncwarp();
            if (thread == 0) {
                full.arrive_expecting(copy_a.bytes(first) + (SAME ? 0 : copy_b.bytes(first)));
            }
            __syncwarp();
            copy_a.start(full, a, first);
            if (!SAME) {
                copy_b.start(full, a + size_a, first);
            }
        };
        for_bulk_chunks<STAGES, TEAM>(barriers + team * (2 * STAGES), chunks, start, prepare, add,
                                      finish);
    } else {
        const RowCopy<T, TEAM, ROWS, M, TILE::pitch_a, EXACT, CONTIGUOUS_A, BYTES_A> copy_a(
            thread, args.a, args.lda, args.m);
        const RowCopy<T, TEAM, ROWS, N, TILE::pitch_b, EXACT, CONTIGUOUS_B, BYTES_B> copy_b(
            thread, args.b, args.ldb, args.n);
        const auto start = [&](int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            copy_a.start(a, args.a, chunk * ROWS, args.rows);
            if (!SAME) {
                copy_b.start(a + size_a, args.b, chunk * ROWS, args.rows);
            }
        };
        for_copied_chunks<STAGES, TEAM>(team, chunks, start, prepare, add, finish);
    }

    constexpr int shared_bytes = teams * STAGES * (size_a + size_b) * static_cast<int>(sizeof(T));
    // Calls use(i, j, sum, first) for what the block has of each entry (see sum_tiles), with SAME
    // of one triangle.
    const auto for_each_sum = [&](auto use) {
        sum_tiles<TEAM, THREADS, shared_bytes>(tile, shared,
                                               [&](int i, int j, T value, bool first) {
                                                   if (SAME && i > j) {
                                                       if (!tile.mirrors()) {
                                                           return;
                                                       }
                                                       const int row = i;
                                                       i = j;
                                                       j = row;
                                                       value = conjugate(value);
                                                   }
                                                   if (i >= 0 && i < M && j >= 0 && j < N) {
                                                       use(i, j, value, first);
                                                   }
                                               });
    };
    // Calls update(address, value) for an entry of C and, with SAME, its mirror image.
    const auto for_each_address = [&](int i, int j, T sum, auto update) {
        if ((!EXACT && (i >= args.m || j >= args.n)) || (SAME && i > j)) {
            return;
        }
        if (SAME && i == j) {
            sum = real_part(sum);
        }
        update(args.c + i * args.ldc + j, multiply(args.alpha, sum));
        if (SAME && i < j) {
            update(args.c + j * args.ldc + i, multiply(args.alpha, conjugate(sum)));
        }
    };
    if constexpr (ATOMICS) {
        for_each_sum([&](int i, int j, T value, bool) {
            for_each_address(i, j, value, [](T* c, T term) { atomic_add(c, term); });
        });
    } else {
        T* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (M * N);
        for_each_sum([&](int i, int j, T value, bool first) {
            T& sum = mine[i * N + j];
            sum = first ? value : sum + value;
        });
        sum_over_blocks<M * N, THREADS>(
            M * N, partials, counters, group, shared, [&](int e, T total) {
                for_each_address(e / N, e % N, total, [&](T* c, T term) {
                    *c = is_zero(args.beta) ? term : multiply_add(args.beta, *c, term);
                });
            });
    }
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// C = alpha A^H B + beta C after Ernst, Hager, Thies, Wellein, IJHPCA 2020, section 3, with what
// came later: rows travel to shared memory asynchronously, several stages ahead of the sums, and
// double precision may sum on the tensor cores.
#pragma once

#include "kernels/leaf_args.hpp"
#include "reduce.cuh"
#include "stage.cuh"
#include "tsmttsm_tiles.cuh"

namespace quiver {

/// M x N: shape of C, or with EXACT = false the next larger one that is compiled. SAME: A is B, C
/// its Gram matrix, one triangle is summed. TILE: FmaTile or MmaTile of a team of TEAM threads. For
/// each team ROWS of A and B make a stage in shared memory, STAGES of them are on their way.
/// CONTIGUOUS: without gaps between rows. BYTES_A, BYTES_B: what a thread copies at a time; 0: the
/// copy engine does, for one team, on behalf of a warp beyond THREADS. ATOMICS: C holds beta C
/// already and every block adds its sums to it, in any order; else the last block does, in one
/// order.
template <class T, int M, int N, bool EXACT, bool SAME, class TILE, int ROWS, int STAGES,
          bool CONTIGUOUS, int BYTES_A, int BYTES_B, int TEAM, int THREADS, int BLOCKS,
          bool ATOMICS>
__global__ void __launch_bounds__(THREADS + (BYTES_A == 0 ? 32 : 0), BLOCKS)
    tsmttsm(TsmttsmArgs<T> args, T* partials, unsigned* counters, int group) {
    // Fragments at the edge of C read past the last row.
    constexpr int slack = 16;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_a = ceil_div(ROWS * TILE::pitch_a + slack, unit) * unit;
    constexpr int size_b = SAME ? 0 : ceil_div(ROWS * TILE::pitch_b + slack, unit) * unit;
    constexpr int teams = THREADS / TEAM;
    const int team = teams == 1 ? 0 : threadIdx.x / TEAM;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % TEAM;
    T* const shared = dynamic_shared<T>();
    T* const stages = shared + team * (STAGES * (size_a + size_b));
    TILE tile(thread);

    const std::int64_t chunks = (args.rows + ROWS - 1) / ROWS;
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * teams;
    std::int64_t chunk = static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x;
    const auto add = [&](int index) {
        const T* const a = stages + index * (size_a + size_b);
        tile.template add<ROWS>(a, SAME ? a : a + size_a);
    };
    if constexpr (BYTES_A == 0) {
        static_assert(teams == 1);
        __shared__ std::uint64_t barriers[2 * STAGES];
        if (threadIdx.x == 0) {
            for (int index = 0; index < STAGES; ++index) {
                Barrier(barriers + index).init(1);
                Barrier(barriers + STAGES + index).init(THREADS / 32);
            }
        }
        __syncthreads();
        int index = 0;
        unsigned parity = 0;
        const auto advance = [&] {
            index = index == STAGES - 1 ? 0 : index + 1;
            parity ^= index == 0;
        };
        if (threadIdx.x >= THREADS) {
            const BulkCopy<T, ROWS, M, TILE::pitch_a, CONTIGUOUS> copy_a(args.a, args.lda, args.m,
                                                                         args.rows);
            const BulkCopy<T, ROWS, N, TILE::pitch_b, CONTIGUOUS> copy_b(args.b, args.ldb, args.n,
                                                                         args.rows);
            for (; chunk < chunks; chunk += stride, advance()) {
                const std::int64_t first = chunk * ROWS;
                const Barrier full(barriers + index);
                Barrier(barriers + STAGES + index).wait(parity ^ 1);
                T* const a = stages + index * (size_a + size_b);
                if (copy_a.is_last(first)) {
                    copy_a.fill_up(a, first);
                    if (!SAME) {
                        copy_b.fill_up(a + size_a, first);
                    }
                }
                __syncwarp();
                if (threadIdx.x == THREADS) {
                    full.arrive_expecting(copy_a.bytes(first) + (SAME ? 0 : copy_b.bytes(first)));
                }
                __syncwarp();
                copy_a.start(full, a, first);
                if (!SAME) {
                    copy_b.start(full, a + size_a, first);
                }
            }
        } else {
            for (; chunk < chunks; chunk += stride, advance()) {
                Barrier(barriers + index).wait(parity);
                add(index);
                __syncwarp();
                if (threadIdx.x % 32 == 0) {
                    Barrier(barriers + STAGES + index).arrive();
                }
            }
        }
    } else {
        const RowCopy<T, TEAM, ROWS, M, TILE::pitch_a, EXACT, CONTIGUOUS, BYTES_A> copy_a(
            thread, args.lda, args.m);
        const RowCopy<T, TEAM, ROWS, N, TILE::pitch_b, EXACT, CONTIGUOUS, BYTES_B> copy_b(
            thread, args.ldb, args.n);
        std::int64_t ahead = chunk;
        const auto stage = [&](int index) {
            if (ahead < chunks) {
                T* const a = stages + index * (size_a + size_b);
                copy_a.start(a, args.a, ahead * ROWS, args.rows);
                if (!SAME) {
                    copy_b.start(a + size_a, args.b, ahead * ROWS, args.rows);
                }
            }
            commit_copies();
            ahead += stride;
        };
#pragma unroll
        for (int index = 0; index < STAGES - 1; ++index) {
            stage(index);
        }
        int current = 0;
        for (; chunk < chunks; chunk += stride) {
            wait_for_copies<STAGES - 2>();
            // The stage has arrived for all threads, and all have left the one filled next.
            sync_team<TEAM>(team);
            stage(current == 0 ? STAGES - 1 : current - 1);
            add(current);
            current = current == STAGES - 1 ? 0 : current + 1;
        }
        wait_for_copies<0>();
    }

    constexpr int shared_bytes = teams * STAGES * (size_a + size_b) * static_cast<int>(sizeof(T));
    // Calls use(i, j, sum) for what the block has of each entry, with SAME of one triangle.
    const auto for_each_sum = [&](auto use) {
        sum_tiles<TEAM, THREADS, shared_bytes>(tile, shared, [&](int i, int j, T value) {
            if (SAME && i > j) {
                if (!tile.mirrors()) {
                    return;
                }
                const int row = i;
                i = j;
                j = row;
                value = conjugate(value);
            }
            if (i < M && j < N) {
                use(i, j, value);
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
        for_each_sum([&](int i, int j, T value) {
            for_each_address(i, j, value, [](T* c, T term) { atomic_add(c, term); });
        });
    } else {
        T* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (M * N);
        for_each_sum([&](int i, int j, T value) { mine[i * N + j] = value; });
        sum_over_blocks(M * N, partials, counters, group, [&](int e, T total) {
            for_each_address(e / N, e % N, total, [&](T* c, T term) {
                *c = is_zero(args.beta) ? term : multiply_add(args.beta, *c, term);
            });
        });
    }
}

}  // namespace quiver

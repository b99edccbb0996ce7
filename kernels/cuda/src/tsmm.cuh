// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha X C + beta Y, also in place, and Y = alpha X C + beta Y D, after Ernst, Hager, Thies,
// Wellein, IJHPCA 2020, section 4. Rows of X travel to shared memory asynchronously, stages ahead;
// whole rows, so a block has read what it overwrites.
#pragma once

#include "kernels/leaf_args.hpp"
#include "stage.cuh"
#include "tsmm_tiles.cuh"

namespace quiver {

template <int BYTES, class T>
struct UnitOf {
    using type = Pack<T, BYTES / sizeof(T)>;
    static constexpr int size = BYTES / sizeof(T);
};
template <int BYTES, class T>
requires(BYTES < sizeof(T)) struct UnitOf<BYTES, T> {
    struct type {
        T value[1];
    };
    static constexpr int size = 1;
};

/// The pitch of ROWS rows of results in shared memory: none of their own (FLAT) where a row is no
/// multiple of BYTES but the rows of Y follow each other without gaps.
template <int COLUMNS, bool FLAT, int BYTES, class T>
constexpr int result_pitch() {
    constexpr int unit = UnitOf<BYTES, T>::size;
    return FLAT ? COLUMNS : (ceil_div(COLUMNS, unit) | 1) * unit;
}

/// Y = alpha (the tile's sums) + beta Y for the first `present` rows, by way of shared memory.
template <int TEAM, int N, bool EXACT, bool FLAT, int BYTES, class T, class TILE>
void store_rows(const TILE& tile, int team, T* shared, const TsmmArgs<T>& args, T* y, int present,
                int n) {
    constexpr int rows = TILE::rows;
    constexpr int pitch = result_pitch<N, FLAT, BYTES, T>();
#pragma unroll
    for (int e = 0; e < TILE::entries; ++e) {
        if (tile.row(e) < rows && tile.col(e) < N) {
            shared[tile.row(e) * pitch + tile.col(e)] = multiply(args.alpha, tile.sum(e));
        }
    }
    sync_team<TEAM>(team);
    const int thread = threadIdx.x % TEAM;
    const bool accumulate = !is_zero(args.beta);
    const auto store = [&](auto bytes, int unit_row, int column) {
        using Unit = typename UnitOf<bytes.value, T>::type;
        Unit value = *reinterpret_cast<const Unit*>(shared + unit_row * pitch + column);
        auto* const to = reinterpret_cast<Unit*>(y + unit_row * args.ldy + column);
        if (accumulate) {
            const Unit before = *to;
#pragma unroll
            for (int v = 0; v < UnitOf<bytes.value, T>::size; ++v) {
                value.value[v] = multiply_add(args.beta, before.value[v], value.value[v]);
            }
        }
        *to = value;
    };
    if (FLAT && present == rows) {
        constexpr int unit = UnitOf<BYTES, T>::size;
        static_assert(rows * N % unit == 0);
#pragma unroll 4
        for (int u = thread; u < rows * N / unit; u += TEAM) {
            store(Constant<BYTES>{}, 0, u * unit);
        }
        return;
    }
    constexpr int bytes = FLAT ? minimum<int>(sizeof(T), 8) : BYTES;
    constexpr int unit = UnitOf<bytes, T>::size;
    constexpr int row_units = ceil_div(N, unit);
#pragma unroll 4
    for (int u = thread; u < present * row_units; u += TEAM) {
        if (EXACT || u % row_units * unit < n) {
            store(Constant<bytes>{}, u / row_units, u % row_units * unit);
        }
    }
}

/// M x N: shape of C, or with EXACT = false the next larger one that is compiled. SECOND > 0: the
/// last so many of the M are the columns of Y, of D, and rows of Y travel beside those of X,
/// BYTES_SECOND at a time. TILE: FmaRows or MmaRows of a team of TEAM threads. For each team STAGES
/// groups of TILE::rows rows of X are on their way. CONTIGUOUS: without gaps between them. BYTES_X:
/// what a thread copies at a time; 0: the copy engine does, for one team, on behalf of a warp
/// beyond THREADS. BYTES_Y > 0: results go through shared memory and leave BYTES_Y at a time
/// (FLAT_Y: whatever the width), else straight from the registers.
template <class T, int M, int N, int SECOND, bool EXACT, class TILE, int STAGES, bool CONTIGUOUS,
          int BYTES_X, int BYTES_SECOND, int BYTES_Y, bool FLAT_Y, int TEAM, int THREADS,
          int BLOCKS>
__global__ void __launch_bounds__(THREADS + (BYTES_X == 0 ? 32 : 0), BLOCKS)
    tsmm(TsmmArgs<T> args) {
    constexpr int rows = TILE::rows;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_x = ceil_div(rows * TILE::pitch_x, unit) * unit;
    constexpr int size_c = ceil_div(TILE::size_c, unit) * unit;
    constexpr int size_y =
        BYTES_Y == 0 ? 0 : ceil_div(rows * result_pitch<N, FLAT_Y, BYTES_Y, T>(), unit) * unit;
    constexpr int teams = THREADS / TEAM;
    constexpr int team_size = STAGES * size_x + size_y;
    constexpr int threads = THREADS + (BYTES_X == 0 ? 32 : 0);
    const int team = teams == 1 ? 0 : threadIdx.x / TEAM;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % TEAM;
    T* const staged_c = dynamic_shared<T>();
    T* const stages = staged_c + size_c + team * team_size;
    T* const results = stages + STAGES * size_x;

    // Beyond the matrix C is zero, and so is X, lest it be NaN.
    for (int e = threadIdx.x; e < size_c + teams * team_size; e += threads) {
        staged_c[e] = T{};
    }
    if constexpr (BYTES_X == 0) {
        fence_bulk_copies();
    }
    __syncthreads();
    const int n = EXACT ? N : args.n;
    const auto stage_c = [&](int depth, int first, auto entry) {
        for (int e = threadIdx.x; e < depth * N; e += threads) {
            const int k = e / N;
            const int j = e % N;
            if (j < n) {
                TILE::put(staged_c, first + k, j, entry(k, j));
            }
        }
    };
    constexpr int width_x = M - SECOND;
    if constexpr (SECOND == 0) {
        stage_c(args.m, 0, [&](int k, int j) { return args.c[k * args.ldc + j]; });
    } else {
        // [X Y] times alpha C above beta D; nothing is left to scale or to add.
        stage_c(args.m, 0,
                [&](int k, int j) { return multiply(args.alpha, args.c[k * args.ldc + j]); });
        stage_c(n, width_x,
                [&](int k, int j) { return multiply(args.beta, args.d[k * args.ldd + j]); });
        args.alpha = T{1};
        args.beta = T{};
    }

    const std::int64_t chunks = (args.rows + rows - 1) / rows;
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * teams;
    std::int64_t chunk = static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x;
    const bool accumulate = !is_zero(args.beta);
    const auto finish = [&](const TILE& tile) {
        const std::int64_t first = chunk * rows;
        const int present = static_cast<int>(minimum<std::int64_t>(rows, args.rows - first));
        T* const y = args.y + first * args.ldy;
        if constexpr (BYTES_Y == 0) {
            // All loads of Y before its first store, so that they overlap.
            T value[TILE::entries];
#pragma unroll
            for (int e = 0; e < TILE::entries; ++e) {
                value[e] = multiply(args.alpha, tile.sum(e));
                if (accumulate && tile.row(e) < present && tile.col(e) < n) {
                    value[e] =
                        multiply_add(args.beta, y[tile.row(e) * args.ldy + tile.col(e)], value[e]);
                }
            }
#pragma unroll
            for (int e = 0; e < TILE::entries; ++e) {
                if (tile.row(e) < present && tile.col(e) < n) {
                    y[tile.row(e) * args.ldy + tile.col(e)] = value[e];
                }
            }
        } else {
            store_rows<TEAM, N, EXACT, FLAT_Y, BYTES_Y>(tile, team, results, args, y, present, n);
        }
    };
    if constexpr (BYTES_X == 0) {
        static_assert(teams == 1 && SECOND == 0);
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
            const BulkCopy<T, rows, M, TILE::pitch_x, CONTIGUOUS> copy(args.x, args.ldx, args.m,
                                                                       args.rows);
            for (; chunk < chunks; chunk += stride, advance()) {
                const std::int64_t first = chunk * rows;
                const Barrier full(barriers + index);
                Barrier(barriers + STAGES + index).wait(parity ^ 1);
                T* const x = stages + index * size_x;
                if (copy.is_last(first)) {
                    copy.fill_up(x, first);
                }
                __syncwarp();
                if (threadIdx.x == THREADS) {
                    full.arrive_expecting(copy.bytes(first));
                }
                __syncwarp();
                copy.start(full, x, first);
            }
        } else {
            TILE tile(thread, staged_c);
            for (; chunk < chunks; chunk += stride, advance()) {
                Barrier(barriers + index).wait(parity);
                tile.multiply_rows(stages + index * size_x);
                if (BYTES_Y > 0) {
                    // The results of the rows before have left.
                    sync_team<TEAM>(team);
                }
                __syncwarp();
                if (threadIdx.x % 32 == 0) {
                    Barrier(barriers + STAGES + index).arrive();
                }
                finish(tile);
            }
        }
    } else {
        const RowCopy<T, TEAM, rows, width_x, TILE::pitch_x, EXACT, CONTIGUOUS, BYTES_X> copy(
            thread, args.ldx, args.m);
        // Without a second source another name of the first, which nobody uses.
        constexpr int width_second = SECOND > 0 ? SECOND : M;
        constexpr int bytes_second = SECOND > 0 ? BYTES_SECOND : BYTES_X;
        const RowCopy<T, TEAM, rows, width_second, TILE::pitch_x, EXACT, CONTIGUOUS, bytes_second>
            copy_second(thread, args.ldy, args.n);
        std::int64_t ahead = chunk;
        const auto stage = [&](int index) {
            if (ahead < chunks) {
                T* const x = stages + index * size_x;
                copy.start(x, args.x, ahead * rows, args.rows);
                if constexpr (SECOND > 0) {
                    copy_second.start(x + width_x, args.y, ahead * rows, args.rows);
                }
            }
            commit_copies();
            ahead += stride;
        };
#pragma unroll
        for (int index = 0; index < STAGES - 1; ++index) {
            stage(index);
        }
        __syncthreads();
        TILE tile(thread, staged_c);
        int current = 0;
        for (; chunk < chunks; chunk += stride) {
            wait_for_copies<STAGES - 2>();
            // The stage has arrived for all threads, and all have left the one filled next.
            sync_team<TEAM>(team);
            stage(current == 0 ? STAGES - 1 : current - 1);
            tile.multiply_rows(stages + current * size_x);
            current = current == STAGES - 1 ? 0 : current + 1;
            finish(tile);
        }
    }
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha X C + beta Y, also in place, and Y = alpha X C + beta Y D, after Ernst, Hager, Thies,
// Wellein, IJHPCA 2020, section 4. Rows of X travel to shared memory asynchronously, stages ahead;
// whole rows, so a block has read what it overwrites.
#pragma once

#include "kernels/operations/tsmm.hpp"
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
/// what a thread copies at a time; 0: the copy engine does. BYTES_Y: what leaves at a time at most.
/// STAGED_Y: by way of shared memory (FLAT_Y: whatever the width), else straight from the
/// registers.
template <class T, int M, int N, int SECOND, bool EXACT, class TILE, int STAGES, bool CONTIGUOUS,
          int BYTES_X, int BYTES_SECOND, bool STAGED_Y, int BYTES_Y, bool FLAT_Y, int TEAM,
          int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) tsmm(TsmmArgs<T> args) {
    constexpr int rows = TILE::rows;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_x = ceil_div(rows * TILE::pitch_x, unit) * unit;
    constexpr int size_c = ceil_div(TILE::size_c, unit) * unit;
    constexpr int size_y =
        !STAGED_Y ? 0 : ceil_div(rows * result_pitch<N, FLAT_Y, BYTES_Y, T>(), unit) * unit;
    constexpr int teams = THREADS / TEAM;
    constexpr int team_size = STAGES * size_x + size_y;
    const int team = teams == 1 ? 0 : threadIdx.x / TEAM;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % TEAM;
    T* const staged_c = dynamic_shared<T>();
    T* const stages = staged_c + size_c + team * team_size;
    T* const results = stages + STAGES * size_x;

    // Beyond the matrix C is zero, and so is X, lest it be NaN.
    for (int e = threadIdx.x; e < size_c; e += THREADS) {
        staged_c[e] = T{};
    }
    if constexpr (!EXACT || TILE::depth > M) {
        for (int e = threadIdx.x; e < teams * team_size; e += THREADS) {
            staged_c[size_c + e] = T{};
        }
        if (BYTES_X == 0) {
            fence_bulk_copies();
        }
    }
    __syncthreads();
    const int n = EXACT ? N : args.n;
    constexpr int width_x = M - SECOND;
    const int depth = EXACT || SECOND > 0 ? M : args.m;
    const TsmmArgs<T> given = args;
    if constexpr (SECOND > 0) {
        // [X Y] times alpha C above beta D; nothing is left to scale or to add.
        args.alpha = T{1};
        args.beta = T{};
    }

    const Chunks chunks{static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x,
                        (args.rows + rows - 1) / rows,
                        static_cast<std::int64_t>(gridDim.x) * teams};
    const bool accumulate = !is_zero(args.beta);
    const auto store = [&](const TILE& tile, std::int64_t chunk) {
        const std::int64_t first = chunk * rows;
        const int present = static_cast<int>(minimum<std::int64_t>(rows, args.rows - first));
        T* const y = args.y + first * args.ldy;
        if constexpr (!STAGED_Y) {
            constexpr int bytes = minimum<int>(BYTES_Y, TILE::vector * sizeof(T));
            constexpr int vector = UnitOf<bytes, T>::size;
            using Unit = typename UnitOf<bytes, T>::type;
            constexpr int units = TILE::entries / vector;
            // All loads of Y before its first store, so that they overlap.
            Unit value[units];
#pragma unroll
            for (int u = 0; u < units; ++u) {
                const int e = u * vector;
                const bool exists = tile.row(e) < present && tile.col(e) < n;
                Unit before{};
                if (accumulate && exists) {
                    before =
                        *reinterpret_cast<const Unit*>(y + tile.row(e) * args.ldy + tile.col(e));
                }
#pragma unroll
                for (int v = 0; v < vector; ++v) {
                    const T term = quiver::multiply(args.alpha, tile.sum(e + v));
                    value[u].value[v] =
                        accumulate ? multiply_add(args.beta, before.value[v], term) : term;
                }
            }
#pragma unroll
            for (int u = 0; u < units; ++u) {
                const int e = u * vector;
                if (tile.row(e) < present && tile.col(e) < n) {
                    *reinterpret_cast<Unit*>(y + tile.row(e) * args.ldy + tile.col(e)) = value[u];
                }
            }
        } else {
            if (BYTES_X == 0) {
                sync_team<TEAM>(team);  // the results of the rows before have left
            }
            store_rows<TEAM, N, EXACT, FLAT_Y, BYTES_Y>(tile, team, results, args, y, present, n);
        }
    };
    TILE tile(thread, staged_c);
    const auto stage_c = [&](int depth, int first, auto entry) {
        for (int e = threadIdx.x; e < depth * N; e += THREADS) {
            const int k = e / N;
            const int j = e % N;
            if (j < n) {
                TILE::put(staged_c, first + k, j, entry(k, j));
            }
        }
    };
    const auto prepare = [&] {
        if constexpr (SECOND == 0) {
            stage_c(args.m, 0, [&](int k, int j) { return args.c[k * args.ldc + j]; });
        } else {
            stage_c(args.m, 0, [&](int k, int j) {
                return quiver::multiply(given.alpha, args.c[k * args.ldc + j]);
            });
            stage_c(n, width_x, [&](int k, int j) {
                return quiver::multiply(given.beta, args.d[k * args.ldd + j]);
            });
        }
        __syncthreads();
        tile.begin();
    };
    const auto multiply = [&](int stage) { tile.multiply_rows(stages + stage * size_x, depth); };
    const auto finish = [&](std::int64_t chunk) { store(tile, chunk); };
    if constexpr (BYTES_X == 0) {
        __shared__ std::uint64_t barriers[teams * 2 * STAGES];
        const BulkCopy<T, rows, M, TILE::pitch_x, CONTIGUOUS> copy(args.x, args.ldx, args.m,
                                                                   args.rows);
        const auto start = [&](const Barrier& full, int stage, std::int64_t chunk) {
            T* const x = stages + stage * size_x;
            const std::int64_t first = chunk * rows;
            copy.fill_up(x, first);
            __syncwarp();
            if (thread == 0) {
                full.arrive_expecting(copy.bytes(first));
            }
            __syncwarp();
            copy.start(full, x, first);
        };
        for_bulk_chunks<STAGES, TEAM>(barriers + team * (2 * STAGES), chunks, start, prepare,
                                      multiply, finish);
    } else {
        const RowCopy<T, TEAM, rows, width_x, TILE::pitch_x, EXACT, CONTIGUOUS, BYTES_X> copy(
            thread, args.x, args.ldx, args.m);
        // Without a second source another name of the first, which nobody uses.
        constexpr int width_second = SECOND > 0 ? SECOND : M;
        constexpr int bytes_second = SECOND > 0 ? BYTES_SECOND : BYTES_X;
        const RowCopy<T, TEAM, rows, width_second, TILE::pitch_x, EXACT, CONTIGUOUS, bytes_second>
            copy_second(thread, args.y, args.ldy, args.n, width_x);
        const auto start = [&](int stage, std::int64_t chunk) {
            T* const x = stages + stage * size_x;
            copy.start(x, args.x, chunk * rows, args.rows);
            if constexpr (SECOND > 0) {
                copy_second.start(x + width_x, args.y, chunk * rows, args.rows);
            }
        };
        for_copied_chunks<STAGES, TEAM>(team, chunks, start, prepare, multiply, finish);
    }
}

}  // namespace quiver

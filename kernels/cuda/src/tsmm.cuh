// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha X C + beta Y, also in place, and Y = alpha X C + beta Y D, after Ernst, Hager, Thies,
// Wellein, IJHPCA 2020, section 4. Rows of X are copied to shared memory asynchronously, several
// stages ahead. A block copies whole rows and has therefore read everything that it overwrites.
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

/// Row pitch of the results in shared memory. FLAT: unpadded, for rows that are not a multiple of
/// BYTES in a Y without gaps.
template <int COLUMNS, bool FLAT, int BYTES, class T>
constexpr int result_pitch() {
    constexpr int unit = UnitOf<BYTES, T>::size;
    return FLAT ? COLUMNS : (ceil_div(COLUMNS, unit) | 1) * unit;
}

/// Y = alpha (sums of the tile) + beta Y for the first `present` rows, through shared memory.
template <TsmmConfig CFG, class T, class TILE>
void store_rows(const TILE& tile, int team, T* shared, const TsmmArgs<T>& args, T* y, int present,
                int n) {
    constexpr int rows = TILE::rows;
    constexpr int pitch = result_pitch<CFG.tile.n, CFG.flat_y, CFG.bytes_y, T>();
#pragma unroll
    for (int e = 0; e < TILE::entries; ++e) {
        if (tile.row(e) < rows && tile.col(e) < CFG.tile.n) {
            shared[tile.row(e) * pitch + tile.col(e)] = multiply(args.alpha, tile.sum(e));
        }
    }
    sync_team<CFG.tile.team>(team);
    const int thread = threadIdx.x % CFG.tile.team;
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
    if (CFG.flat_y && present == rows) {
        constexpr int unit = UnitOf<CFG.bytes_y, T>::size;
        static_assert(rows * CFG.tile.n % unit == 0);
#pragma unroll 4
        for (int u = thread; u < rows * CFG.tile.n / unit; u += CFG.tile.team) {
            store(Constant<CFG.bytes_y>{}, 0, u * unit);
        }
        return;
    }
    constexpr int bytes = CFG.flat_y ? minimum<int>(sizeof(T), 8) : CFG.bytes_y;
    constexpr int unit = UnitOf<bytes, T>::size;
    constexpr int row_units = ceil_div(CFG.tile.n, unit);
#pragma unroll 4
    for (int u = thread; u < present * row_units; u += CFG.tile.team) {
        if (CFG.exact || u % row_units * unit < n) {
            store(Constant<bytes>{}, u / row_units, u % row_units * unit);
        }
    }
}

/// Y = alpha (sums of the tile) + beta Y for the first `present` rows and `n` columns, directly
/// from registers, at most BYTES at a time.
template <int BYTES, class T, class TILE>
void store_entries(const TILE& tile, const TsmmArgs<T>& args, T* y, int present, int n) {
    constexpr int bytes = minimum<int>(BYTES, TILE::vector * sizeof(T));
    constexpr int vector = UnitOf<bytes, T>::size;
    using Unit = typename UnitOf<bytes, T>::type;
    constexpr int units = TILE::entries / vector;
    const bool accumulate = !is_zero(args.beta);
    // Issue all loads of Y before the first store, so that they overlap.
    Unit value[units];
#pragma unroll
    for (int u = 0; u < units; ++u) {
        const int e = u * vector;
        const bool exists = tile.row(e) < present && tile.col(e) < n;
        Unit before{};
        if (accumulate && exists) {
            before = *reinterpret_cast<const Unit*>(y + tile.row(e) * args.ldy + tile.col(e));
        }
#pragma unroll
        for (int v = 0; v < vector; ++v) {
            const T term = multiply(args.alpha, tile.sum(e + v));
            value[u].value[v] = accumulate ? multiply_add(args.beta, before.value[v], term) : term;
        }
    }
#pragma unroll
    for (int u = 0; u < units; ++u) {
        const int e = u * vector;
        if (tile.row(e) < present && tile.col(e) < n) {
            *reinterpret_cast<Unit*>(y + tile.row(e) * args.ldy + tile.col(e)) = value[u];
        }
    }
}

/// tile.m x tile.n: the shape of C or, unless `exact`, the next larger compiled shape. second > 0:
/// number of trailing columns (of the m) that belong to Y and D; rows of Y are then copied beside
/// those of X, bytes_second at a time. For each team `stages` groups of Tile::rows rows of X are in
/// flight. contiguous: no gaps between rows. bytes_x: bytes per copy of a thread; 0: the copy
/// engine copies. bytes_y: largest bytes per store. staged_y: results go through shared memory
/// (flat_y: for any width), otherwise directly from registers.
template <class T, TsmmConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks) tsmm(TsmmArgs<T> args) {
    using Tile = RowTile<T, CFG.tile>;
    constexpr int rows = Tile::rows;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_x = ceil_div(rows * CFG.tile.pitch, unit) * unit;
    constexpr int size_c = ceil_div(Tile::size_c, unit) * unit;
    constexpr int size_y =
        !CFG.staged_y
            ? 0
            : ceil_div(rows * result_pitch<CFG.tile.n, CFG.flat_y, CFG.bytes_y, T>(), unit) * unit;
    constexpr int teams = CFG.threads / CFG.tile.team;
    constexpr int team_size = CFG.stages * size_x + size_y;
    const int team = teams == 1 ? 0 : threadIdx.x / CFG.tile.team;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % CFG.tile.team;
    T* const staged_c = dynamic_shared<T>();
    T* const stages = staged_c + size_c + team * team_size;
    T* const results = stages + CFG.stages * size_x;

    // Pad C with zeros beyond its shape, and X too, because its padding could hold NaN.
    for (int e = threadIdx.x; e < size_c; e += CFG.threads) {
        staged_c[e] = T{};
    }
    if constexpr (!CFG.exact || Tile::depth > CFG.tile.m) {
        for (int e = threadIdx.x; e < teams * team_size; e += CFG.threads) {
            staged_c[size_c + e] = T{};
        }
        if (CFG.bytes_x == 0) {
            fence_bulk_copies();
        }
    }
    __syncthreads();
    const int n = CFG.exact ? CFG.tile.n : args.n;
    constexpr int width_x = CFG.tile.m - CFG.second;
    const int depth = CFG.exact || CFG.second > 0 ? CFG.tile.m : args.m;
    const TsmmArgs<T> given = args;
    if constexpr (CFG.second > 0) {
        // [X Y] times alpha C stacked on beta D; no scaling and no addition remain.
        args.alpha = T{1};
        args.beta = T{};
    }

    const Chunks chunks{static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x,
                        (args.rows + rows - 1) / rows,
                        static_cast<std::int64_t>(gridDim.x) * teams};
    const auto store = [&](const Tile& tile, std::int64_t chunk) {
        const std::int64_t first = chunk * rows;
        const int present = static_cast<int>(minimum<std::int64_t>(rows, args.rows - first));
        T* const y = args.y + first * args.ldy;
        if constexpr (!CFG.staged_y) {
            store_entries<CFG.bytes_y>(tile, args, y, present, n);
        } else {
            if (CFG.bytes_x == 0) {
                sync_team<CFG.tile.team>(team);  // the previous results have been stored
            }
            store_rows<CFG>(tile, team, results, args, y, present, n);
        }
    };
    Tile tile(thread, staged_c);
    const auto stage_c = [&](int depth, int first, auto entry) {
        for (int e = threadIdx.x; e < depth * CFG.tile.n; e += CFG.threads) {
            const int k = e / CFG.tile.n;
            const int j = e % CFG.tile.n;
            if (j < n) {
                Tile::put(staged_c, first + k, j, entry(k, j));
            }
        }
    };
    const auto prepare = [&] {
        if constexpr (CFG.second == 0) {
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
    if constexpr (CFG.bytes_x == 0) {
        __shared__ std::uint64_t barriers[teams * 2 * CFG.stages];
        const BulkCopy<T, rows, CFG.tile.m, CFG.tile.pitch, CFG.contiguous> copy(args.x, args.ldx,
                                                                                 args.m, args.rows);
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
        for_bulk_chunks<CFG.stages, CFG.tile.team>(barriers + team * (2 * CFG.stages), chunks,
                                                   start, prepare, multiply, finish);
    } else {
        const RowCopy<T, CFG.tile.team, rows, width_x, CFG.tile.pitch, CFG.exact, CFG.contiguous,
                      CFG.bytes_x>
            copy(thread, args.x, args.ldx, args.m);
        // Without a second source, this copy object is unused and has the types of the first.
        constexpr int width_second = CFG.second > 0 ? CFG.second : CFG.tile.m;
        constexpr int bytes_second = CFG.second > 0 ? CFG.bytes_second : CFG.bytes_x;
        const RowCopy<T, CFG.tile.team, rows, width_second, CFG.tile.pitch, CFG.exact,
                      CFG.contiguous, bytes_second>
            copy_second(thread, args.y, args.ldy, args.n, width_x);
        const auto start = [&](int stage, std::int64_t chunk) {
            T* const x = stages + stage * size_x;
            copy.start(x, args.x, chunk * rows, args.rows);
            if constexpr (CFG.second > 0) {
                copy_second.start(x + width_x, args.y, chunk * rows, args.rows);
            }
        };
        for_copied_chunks<CFG.stages, CFG.tile.team>(team, chunks, start, prepare, multiply,
                                                     finish);
    }
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// W = alpha V H + beta W and G = W^H W in one pass. Rows of V (and of W) are copied to shared
// memory as in tsmm.cuh; a tile of rows computes the rows of the new W, which are stored to global
// memory and stay in shared memory for a tile of sums as in tsmttsm.cuh.
#pragma once

#include "kernels/operations/tsmm_gram.hpp"
#include "reduce.cuh"
#include "tsmm.cuh"

namespace quiver {

/// Stores the first `present` rows of `n` columns from shared memory, where they have the layout
/// for the sums, bytes_w at a time.
template <TsmmGramConfig CFG, class T>
void store_block(int thread, const T* shared, T* y, std::int64_t ld, int present, int n) {
    using Unit = typename UnitOf<CFG.bytes_w, T>::type;
    constexpr int unit = UnitOf<CFG.bytes_w, T>::size;
    constexpr int row_units = ceil_div(CFG.update.n, unit);
#pragma unroll 4
    for (int u = thread; u < present * row_units; u += CFG.update.team) {
        const int row = u / row_units;
        const int column = u % row_units * unit;
        if (CFG.exact || column < n) {
            *reinterpret_cast<Unit*>(y + row * ld + column) =
                *reinterpret_cast<const Unit*>(shared + row * CFG.sums.pitch_a + column);
        }
    }
}

/// update.m x update.n: the shape of H or, unless `exact`, the next larger compiled shape. sums:
/// the tile of sums, n x n with `same`; the teams of both tiles have equal size. For each team
/// `stages` groups of Update::rows rows of V, and with `adds` (beta is not zero) of W, are in
/// flight, bytes_v and bytes_w at a time; rows of W are stored in pieces of bytes_w. contiguous: no
/// gaps between rows.
template <class T, TsmmGramConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    tsmm_gram(TsmmGramArgs<T> args, T* partials, unsigned* counters, int group) {
    using Update = RowTile<T, CFG.update>;
    using Sums = SumTile<T, CFG.sums>;
    const TsmmArgs<T>& update = args.update;
    constexpr int rows = Update::rows;
    // The sums may process more rows at a time: pad with zeros.
    constexpr int rows_w = ceil_div(rows, Sums::row_multiple) * Sums::row_multiple;
    constexpr int pitch_w = CFG.sums.pitch_a;
    // Fragments at the edge of G read past the last row.
    constexpr int slack = 16;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_c = ceil_div(Update::size_c, unit) * unit;
    constexpr int size_v = ceil_div(rows * CFG.update.pitch, unit) * unit;
    constexpr int size_w = ceil_div(rows_w * pitch_w + slack, unit) * unit;
    constexpr int teams = CFG.threads / CFG.update.team;
    constexpr int team_size = CFG.stages * size_v + (CFG.adds ? CFG.stages : 1) * size_w;
    static_assert(CFG.sums.pitch_b == pitch_w && CFG.sums.team == CFG.update.team);
    const int team = teams == 1 ? 0 : threadIdx.x / CFG.update.team;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % CFG.update.team;
    T* const staged_h = dynamic_shared<T>();
    T* const stages_v = staged_h + size_c + team * team_size;
    T* const stages_w = stages_v + CFG.stages * size_v;

    // Pad H with zeros beyond its shape, and V and W too, because their padding could hold NaN.
    for (int e = threadIdx.x; e < size_c + teams * team_size; e += CFG.threads) {
        staged_h[e] = T{};
    }
    __syncthreads();
    const int n = CFG.exact ? CFG.update.n : update.n;

    const Chunks chunks{static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x,
                        (update.rows + rows - 1) / rows,
                        static_cast<std::int64_t>(gridDim.x) * teams};
    const RowCopy<T, CFG.update.team, rows, CFG.update.m, CFG.update.pitch, CFG.exact,
                  CFG.contiguous, CFG.bytes_v>
        copy_v(thread, update.x, update.ldx, update.m);
    const RowCopy<T, CFG.update.team, rows, CFG.update.n, pitch_w, CFG.exact, CFG.contiguous,
                  CFG.bytes_w>
        copy_w(thread, update.y, update.ldy, update.n);
    const auto start = [&](int stage, std::int64_t chunk) {
        copy_v.start(stages_v + stage * size_v, update.x, chunk * rows, update.rows);
        if constexpr (CFG.adds) {
            copy_w.start(stages_w + stage * size_w, update.y, chunk * rows, update.rows);
        }
    };
    Update rows_of_w(thread, staged_h);
    Sums sums(thread);
    const auto prepare = [&] {
        for (int e = threadIdx.x; e < update.m * CFG.update.n; e += CFG.threads) {
            const int k = e / CFG.update.n;
            const int j = e % CFG.update.n;
            if (j < n) {
                Update::put(staged_h, k, j, multiply(update.alpha, update.c[k * update.ldc + j]));
            }
        }
        __syncthreads();
        rows_of_w.begin();
    };
    T* w = stages_w;
    const auto multiply_rows = [&](int stage) {
        rows_of_w.multiply_rows(stages_v + stage * size_v, CFG.exact ? CFG.update.m : update.m);
        w = stages_w + (CFG.adds ? stage * size_w : 0);
    };
    const auto finish = [&](std::int64_t chunk) {
        const std::int64_t first = chunk * rows;
        const int present = static_cast<int>(minimum<std::int64_t>(rows, update.rows - first));
#pragma unroll
        for (int e = 0; e < Update::entries; ++e) {
            const int row = rows_of_w.row(e);
            const int col = rows_of_w.col(e);
            if (row < rows && col < CFG.update.n) {
                T& entry = w[row * pitch_w + col];
                T value = rows_of_w.sum(e);
                if constexpr (CFG.adds) {
                    value = multiply_add(update.beta, entry, value);
                }
                // With an infinite H, rows beyond the block would become NaN.
                entry = row < present ? value : T{};
            }
        }
        sync_team<CFG.update.team>(team);
        store_block<CFG>(thread, w, update.y + first * update.ldy, update.ldy, present, n);
        sums.template add<rows_w>(w, w);
    };
    for_copied_chunks<CFG.stages, CFG.update.team>(team, chunks, start, prepare, multiply_rows,
                                                   finish);

    T* const mine =
        partials + static_cast<std::int64_t>(blockIdx.x) * (CFG.update.n * CFG.update.n);
    constexpr int shared_bytes = (size_c + teams * team_size) * static_cast<int>(sizeof(T));
    sum_tiles<CFG.update.team, CFG.threads, shared_bytes>(
        sums, staged_h, [&](int i, int j, T value, bool) {
            if (i < CFG.update.n && j < CFG.update.n && (i <= j || sums.mirrors())) {
                mine[i <= j ? i * CFG.update.n + j : j * CFG.update.n + i] =
                    i <= j ? value : conjugate(value);
            }
        });
    sum_over_blocks<CFG.update.n * CFG.update.n, CFG.threads>(
        CFG.update.n * CFG.update.n, partials, counters, group, staged_h, [&](int e, T total) {
            const int i = e / CFG.update.n;
            const int j = e % CFG.update.n;
            if (i <= j && (CFG.exact || j < update.n)) {
                args.g[i * args.ldg + j] = i == j ? real_part(total) : total;
                if (i < j) {
                    args.g[j * args.ldg + i] = conjugate(total);
                }
            }
        });
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// A panel of Z^T Z for Z = factor (X - 1 shift^T), and the sums of the columns of Z, in one pass
// over X. Rows are copied to shared memory asynchronously, several stages ahead. A team of warps
// covers the panel on the tensor cores: elements are converted to double and shifted on their way
// from shared memory to the fragments of the products.
#pragma once

#include "convert.cuh"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/operations/shifted_gram.hpp"
#include "mma.cuh"
#include "reduce.cuh"
#include "stage.cuh"

namespace quiver {

/// The sums of one warp: warp w of the `warps` warps of a team has the tiles of 16 x 8 whose
/// columns are 8 (warps q + w) .. + 7 for q = 0 .. own_n - 1. With `same`, tiles below the diagonal
/// are omitted; which ones depends on q only, because `warps` is 1 or 2. Then the right fragments
/// are the left ones of the same columns.
template <class In, ShiftedGramConfig CFG>
class ShiftedTiles {
    static constexpr int all_m = ceil_div(CFG.m, 16);
    static constexpr int all_n = ceil_div(CFG.n, 8);
    static constexpr int own_n = ceil_div(all_n, CFG.warps);
    static constexpr int products = all_m * own_n * 4;
    static_assert(CFG.warps == 1 || CFG.warps == 2);
    static_assert(!CFG.same || CFG.m == CFG.n);
    static constexpr bool needed(int i, int q) { return !CFG.same || i <= CFG.warps * q / 2; }

  public:
    static constexpr int classes = 1;
    static constexpr int slots = 32 * CFG.warps;
    static constexpr int lanes = 1;
    static constexpr int lane = 0;
    static constexpr int row_class = 0;
    static constexpr int entries = products + (CFG.same ? own_n : 0);

    /// shift_a, shift_b: those of the first column of A and of B.
    ShiftedTiles(int thread, const double* shift_a, const double* shift_b, double factor)
        : slot(thread),
          warp_(CFG.warps == 1 ? 0 : thread / 32),
          g_(thread % 32 / 4),
          t_(thread % 4),
          factor_(factor) {
#pragma unroll
        for (int h = 0; h < 2 * all_m; ++h) {
            const int column = 8 * h + g_;
            shift_a_[h] = column < CFG.m ? shift_a[column] : 0;
        }
#pragma unroll
        for (int q = 0; q < own_n; ++q) {
            const int column = first_column(q) + g_;
            shift_b_[q] = !CFG.same && column < CFG.n ? shift_b[column] : 0;
            column_sum_[q] = 0;
        }
    }

    /// Adds the products of the first `left` rows of a stage; the others are zeros.
    void add(const In* a, const In* b, int left) {
        a += t_ * CFG.pitch_a + g_;
        b += t_ * CFG.pitch_b + g_;
#pragma unroll 2
        for (int first = 0; first < CFG.rows; first += 4) {
            // No shift for rows that do not exist: their elements of Z are zeros.
            const double minus = first + t_ < left ? -1.0 : 0.0;
            double z[2 * all_m];
#pragma unroll
            for (int h = 0; h < 2 * all_m; ++h) {
                z[h] = shifted(a[first * CFG.pitch_a + 8 * h], shift_a_[h], minus);
            }
#pragma unroll
            for (int q = 0; q < own_n; ++q) {
                double right[1];
                if constexpr (CFG.same) {
                    right[0] = CFG.warps == 1 ? z[q] : choose(warp_ == 0, z[2 * q], z[2 * q + 1]);
                    column_sum_[q] += right[0];
                } else {
                    right[0] =
                        shifted(b[first * CFG.pitch_b + first_column(q)], shift_b_[q], minus);
                }
#pragma unroll
                for (int i = 0; i < all_m; ++i) {
                    if (needed(i, q)) {
                        const double tile[2] = {z[2 * i], z[2 * i + 1]};
                        mma<1>(sum_[i * own_n + q], tile, right);
                    }
                }
            }
        }
    }

    /// Completes the sums of the columns; call it before sum().
    void finish() {
#pragma unroll
        for (int q = 0; q < own_n; ++q) {
            column_sum_[q] += shuffle_xor(column_sum_[q], 1);
            column_sum_[q] += shuffle_xor(column_sum_[q], 2);
        }
    }

    double sum(int entry) const {
        return entry < products ? sum_[entry / 4][entry % 4] : column_sum_[entry - products];
    }
    /// The row of an entry in the panel, m for the sums of the columns; -1 if the entry does not
    /// exist.
    int row(int entry) const {
        if (entry >= products) {
            return t_ == 0 ? CFG.m : -1;
        }
        const int row = entry / 4 / own_n * 16 + g_ + entry % 4 / 2 * 8;
        return row < CFG.m ? row : -1;
    }
    /// The column of an entry; beyond the last one if the entry does not exist.
    int col(int entry) const {
        return entry < products ? first_column(entry / 4 % own_n) + 2 * t_ + entry % 2
                                : first_column(entry - products) + g_;
    }

    const int slot;

  private:
    int first_column(int q) const {
        return 8 * (CFG.warps * q + warp_);
    }
    double shifted(In element, double shift, double minus) const {
        const double z = multiply_add(shift, minus, Converter<double>::from(element));
        return CFG.scaled ? factor_ * z : z;
    }

    const int warp_;
    const int g_;
    const int t_;
    const double factor_;
    double shift_a_[2 * all_m];
    double shift_b_[own_n];
    double column_sum_[own_n];
    double sum_[all_m * own_n][4] = {};
};

/// The copies of the columns of A or of B of a stage.
template <class T, int TEAM, int ROWS, int COLUMNS, int PITCH, bool CONTIGUOUS, int BYTES>
struct StageCopy {
    using type = RowCopy<T, TEAM, ROWS, COLUMNS, PITCH, true, CONTIGUOUS, BYTES>;
};
template <class T, int TEAM, int ROWS, int COLUMNS, int PITCH, bool CONTIGUOUS>
struct StageCopy<T, TEAM, ROWS, COLUMNS, PITCH, CONTIGUOUS, 2> {
    using type = ElementCopy<T, TEAM, ROWS, COLUMNS, PITCH>;
};

/// A^T B for the columns A = first_a .. first_a + m - 1 and B = first_b .. first_b + n - 1 of Z.
/// same: A is B, and the sums of its columns are a last row. partials: a panel for each thread
/// block. `warps` warps are a team; for each team `stages` groups of `rows`
/// rows are in flight. bytes_a, bytes_b: bytes per copy of a thread.
template <class In, ShiftedGramConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    shifted_gram(ShiftedGramArgs<In> args, int first_a, int first_b, double* partials,
                 unsigned* counters, int group) {
    using Tiles = ShiftedTiles<In, CFG>;
    constexpr int slack = 16;  // fragments at the edge of the panel read past the last row
    constexpr int unit = 16 / static_cast<int>(sizeof(In));
    constexpr int size_a = ceil_div(CFG.rows * CFG.pitch_a + slack, unit) * unit;
    constexpr int size_b = CFG.same ? 0 : ceil_div(CFG.rows * CFG.pitch_b + slack, unit) * unit;
    constexpr int size = size_a + size_b;
    constexpr int width = 32 * CFG.warps;
    constexpr int teams = CFG.threads / width;
    const int team = threadIdx.x / width;
    const int thread = threadIdx.x % width;
    In* const stages = dynamic_shared<In>() + team * (CFG.stages * size);
    const In* const x_a = args.x + first_a;
    const In* const x_b = args.x + first_b;
    Tiles tiles(thread, args.shift + first_a, args.shift + first_b, args.factor);

    const typename StageCopy<In, width, CFG.rows, CFG.m, CFG.pitch_a, CFG.contiguous_a,
                             CFG.bytes_a>::type copy_a(thread, x_a, args.ldx, CFG.m);
    const typename StageCopy<In, width, CFG.rows, CFG.n, CFG.pitch_b, CFG.contiguous_b,
                             CFG.bytes_b>::type copy_b(thread, x_b, args.ldx, CFG.n);
    const Chunks chunks{static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x,
                        (args.rows + CFG.rows - 1) / CFG.rows,
                        static_cast<std::int64_t>(gridDim.x) * teams};
    std::int64_t left = args.rows - chunks.first * CFG.rows;
    const auto start = [&](int stage, std::int64_t chunk) {
        copy_a.start(stages + stage * size, x_a, chunk * CFG.rows, args.rows);
        if (!CFG.same) {
            copy_b.start(stages + stage * size + size_a, x_b, chunk * CFG.rows, args.rows);
        }
    };
    const auto add = [&](int stage) {
        const In* const a = stages + stage * size;
        tiles.add(a, CFG.same ? a : a + size_a,
                  static_cast<int>(minimum<std::int64_t>(left, CFG.rows)));
        left -= chunks.stride * CFG.rows;
    };
    for_copied_chunks<CFG.stages, width>(
        team, chunks, start, [] {}, add, [](std::int64_t) {});
    tiles.finish();

    constexpr int sums = (CFG.same ? CFG.m + 1 : CFG.m) * CFG.n;
    constexpr int shared_bytes = teams * CFG.stages * size * static_cast<int>(sizeof(In));
    double* const shared = dynamic_shared<double>();
    double* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * sums;
    sum_tiles<width, CFG.threads, shared_bytes>(
        tiles, shared, [&](int i, int j, double value, bool) {
            if (i >= 0 && j < CFG.n && (!CFG.same || i <= j || i == CFG.m)) {
                mine[i * CFG.n + j] = value;
            }
        });
    sum_over_blocks<sums, CFG.threads>(sums, partials, counters, group, shared,
                                       [&](int e, double total) {
                                           const int i = e / CFG.n;
                                           const int j = e % CFG.n;
                                           const std::int64_t n = args.n;
                                           if (i == CFG.m) {
                                               args.sums[n * n + first_b + j] = total;
                                           } else if (!CFG.same || i <= j) {
                                               args.sums[(first_a + i) * n + first_b + j] = total;
                                               args.sums[(first_b + j) * n + first_a + i] = total;
                                           }
                                       });
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// C = alpha A^T B + beta C for half precision and bfloat16 with sums in float, after Tang, Komatsu,
// Sato, Kobayashi, IJNC 11(2), 2021. Runs of rows are copied as bytes, several narrow rows form one
// operand of the tensor cores (kernels/cuda/fold.hpp), and the rows are divided among warps and
// blocks.
#pragma once

#include "kernels/cuda/fold.hpp"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/operations/tsmttsm.hpp"
#include "reduce.cuh"
#include "short_mma.cuh"

namespace quiver {

/// The work of a warp: a slab of the folded product, a share of B's chunks, and some of the rows.
template <class T, MixedTsmttsmConfig CFG>
class FoldedSums {
    static constexpr int m = CFG.m;
    static constexpr int n = CFG.n;
    static constexpr FoldedProduct product{
        {m, CFG.fold, CFG.split}, {n, CFG.fold, CFG.split}, CFG.same, CFG.shares};
    static constexpr int pairs = product.pairs();
    static constexpr int chunks = product.chunks();
    static constexpr int blocks = product.a.blocks();

  public:
    static constexpr int pitch_a = row_pitch(m, CFG.fold, CFG.bytes);
    static constexpr int pitch_b = row_pitch(n, CFG.fold, CFG.bytes);
    /// Elements that loads may read beyond the last row.
    static constexpr int slack = 64;

    FoldedSums(int slab, int share)
        : slab_(slab),
          first_chunk_(share * chunks),
          offset_a_(product.a.offset(slab)),
          offset_b_(product.b.offset(slab)) {
        const int lane = threadIdx.x % 32;
        const MatrixRow left = left_of_sums(lane);
        const MatrixRow right = right_of_sums(lane);
        address_a_ = (left.row * pitch_a + 8 * (product.a.chunk(slab) + left.chunk)) * 2;
        address_b_ =
            (right.row * pitch_b + 8 * (product.b.chunk(slab) + first_chunk_ + right.chunk)) * 2;
        zero();
    }

    /// Adds the products of 16 long rows; `a` and `b` are addresses in shared memory.
    void add(unsigned a, unsigned b) {
        unsigned left[pairs][4];
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
            load_matrices_transposed(left[p], a + address_a_ + p * 32);
        }
#pragma unroll
        for (int c = 0; c < chunks; c += 2) {
            unsigned right[4];
            if constexpr (CFG.same && CFG.shares == 1) {
                // The same elements in the order of the other operand.
                right[0] = left[c / 2][0];
                right[1] = left[c / 2][2];
                right[2] = left[c / 2][1];
                right[3] = left[c / 2][3];
            } else {
                load_matrices_transposed(right, b + address_b_ + c * 16);
            }
#pragma unroll
            for (int p = 0; p < pairs; ++p) {
                if (product.needed(p, c)) {
                    short_mma<T>(sum_[p][c], left[p], right[0], right[1]);
                }
                if (c + 1 < chunks && product.needed(p, c + 1)) {
                    short_mma<T>(sum_[p][c + 1 < chunks ? c + 1 : 0], left[p], right[2], right[3]);
                }
            }
        }
    }

    /// Adds the needed sums to area[block][M][N] and resets them to zero. Each element of the area
    /// has one thread.
    void flush(float* area) {
        const int lane = threadIdx.x % 32;
        float* const own = area + slab_ * blocks * (m * n);
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
#pragma unroll
            for (int c = 0; c < chunks; ++c) {
                if (product.needed(p, c)) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int i = 16 * p + result_row(lane, e) - offset_a_;
                        const int j = 8 * (c + first_chunk_) + result_column(lane, e) - offset_b_;
                        if (blocks == 1) {
                            if (i >= 0 && i < m && j >= 0 && j < n && (!CFG.same || i <= j)) {
                                own[i * n + j] += sum_[p][c][e];
                            }
                        } else if (i >= 0 && i < blocks * m && j >= 0 && j < blocks * n) {
                            const FoldedPlace at = folded_place(i, m);
                            const FoldedPlace with = folded_place(j, n);
                            if (at.block == with.block && (!CFG.same || at.column <= with.column)) {
                                own[at.block * (m * n) + at.column * n + with.column] +=
                                    sum_[p][c][e];
                            }
                        }
                    }
                }
            }
        }
        zero();
    }

  private:
    void zero() {
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
#pragma unroll
            for (int c = 0; c < chunks; ++c) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    sum_[p][c][e] = 0;
                }
            }
        }
    }

    const int slab_, first_chunk_, offset_a_, offset_b_;
    unsigned address_a_, address_b_;
    float sum_[pairs][chunks][4];
};

/// split x shares warps compute the parts of a product; row_warps such teams process `steps` times
/// 16 long rows each per stage. bytes: 0 if rows without gaps are copied unchanged (by the copy
/// engine if `bulk`); otherwise threads copy that many bytes at a time to padded rows, and fold is
/// 1. The rows of A and B have m and n elements.
template <class T, MixedTsmttsmConfig CFG>
__global__ void __launch_bounds__(32 * CFG.split * CFG.shares * CFG.row_warps, CFG.blocks)
    mixed_tsmttsm(MixedTsmttsmArgs<T, float> args, float* partials, unsigned* counters, int group) {
    using Sums = FoldedSums<T, CFG>;
    constexpr int m = CFG.m;
    constexpr int n = CFG.n;
    constexpr int threads = 32 * CFG.split * CFG.shares * CFG.row_warps;
    constexpr int rows = CFG.fold * 16 * CFG.steps * CFG.row_warps;
    constexpr int pitch_a = Sums::pitch_a;
    constexpr int pitch_b = Sums::pitch_b;
    constexpr int size_a = rows / CFG.fold * pitch_a;
    constexpr int size_b = CFG.same ? 0 : rows / CFG.fold * pitch_b;
    constexpr int copies = CFG.fold * CFG.row_warps;
    // Tensor cores truncate when they add, so their sums must stay short.
    constexpr int longest = 128;
    constexpr int stages_a_flush = longest / CFG.steps;

    T* const stages = dynamic_shared<T>();
    float* const areas =
        reinterpret_cast<float*>(stages + CFG.stages * (size_a + size_b) + Sums::slack);
    const int warp = threadIdx.x / 32;
    const int row_warp = warp / (CFG.split * CFG.shares);
    Sums sums(warp / CFG.shares % CFG.split, warp % CFG.shares);
    float* const area = areas + row_warp * (CFG.fold * m * n);
    for (int e = threadIdx.x; e < copies * m * n; e += threads) {
        areas[e] = 0;
    }
    __syncthreads();

    const Chunks chunks{blockIdx.x, (args.rows + rows - 1) / rows, gridDim.x};
    int unflushed = 0;
    const auto add = [&](int stage) {
        const unsigned a = shared_address(stages + stage * (size_a + size_b));
        const unsigned b = CFG.same ? a : a + 2 * size_a;
#pragma unroll 1
        for (int step = 0; step < CFG.steps; ++step) {
            const int first = (row_warp * CFG.steps + step) * 16;
            sums.add(a + first * (pitch_a * 2), b + first * (pitch_b * 2));
        }
        if (++unflushed == stages_a_flush) {
            sums.flush(area);
            unflushed = 0;
        }
    };
    const auto prepare = [] {};
    const auto finish = [](std::int64_t) {};
    if constexpr (CFG.bulk) {
        __shared__ std::uint64_t barriers[2 * CFG.stages];
        const FoldedCopy<T, rows, m, CFG.fold, pitch_a> copy_a(args.a, args.rows);
        const FoldedCopy<T, rows, n, CFG.fold, pitch_b> copy_b(args.b, args.rows);
        const auto start = [&](const Barrier& full, int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            const std::int64_t first = chunk * rows;
            copy_a.fill_up(a, first);
            if (!CFG.same) {
                copy_b.fill_up(a + size_a, first);
            }
            __syncwarp();
            if (threadIdx.x == 0) {
                full.arrive_expecting(copy_a.bytes(first) + (CFG.same ? 0 : copy_b.bytes(first)));
            }
            __syncwarp();
            copy_a.start(full, a, first);
            if (!CFG.same) {
                copy_b.start(full, a + size_a, first);
            }
        };
        for_bulk_chunks<CFG.stages, threads>(barriers, chunks, start, prepare, add, finish);
    } else {
        const auto start = [&](int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            const std::int64_t first = chunk * rows;
            if constexpr (CFG.bytes == 0) {
                const FoldedCopy<T, rows, m, CFG.fold, pitch_a> copy_a(args.a, args.rows);
                const FoldedCopy<T, rows, n, CFG.fold, pitch_b> copy_b(args.b, args.rows);
                copy_a.template start_by_threads<threads>(a, first);
                if constexpr (!CFG.same) {
                    copy_b.template start_by_threads<threads>(a + size_a, first);
                }
            } else {
                copy_rows<T, threads, rows, m, pitch_a, CFG.bytes>(a, args.a + first * args.lda,
                                                                   args.lda, args.rows - first);
                if constexpr (!CFG.same) {
                    copy_rows<T, threads, rows, n, pitch_b, CFG.bytes>(
                        a + size_a, args.b + first * args.ldb, args.ldb, args.rows - first);
                }
            }
        };
        for_copied_chunks<CFG.stages, threads>(0, chunks, start, prepare, add, finish);
    }

    sums.flush(area);
    __syncthreads();
    float* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (m * n);
    for (int e = threadIdx.x; e < m * n; e += threads) {
        float total = 0;
#pragma unroll
        for (int copy = 0; copy < copies; ++copy) {
            total += areas[copy * (m * n) + e];
        }
        mine[e] = total;
    }
    constexpr bool fits = CFG.stages * (size_a + size_b) * sizeof(T) >= threads * sizeof(float);
    float* const lanes = fits ? reinterpret_cast<float*>(stages) : nullptr;
    sum_over_blocks<m * n, threads>(
        m * n, partials, counters, group, lanes, [&](int e, float total) {
            const int i = e / n;
            const int j = e % n;
            const auto store = [&](int row, int column) {
                float& c = args.c[row * args.ldc + column];
                const float term = args.alpha * total;
                c = args.beta == 0 ? term : multiply_add(args.beta, c, term);
            };
            if (!CFG.same || i <= j) {
                store(i, j);
            }
            if (CFG.same && i < j) {
                store(j, i);
            }
        });
}

}  // namespace quiver

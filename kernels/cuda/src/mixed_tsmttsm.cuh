// SPDX-License-Identifier: BSD-3-Clause
// C = alpha A^T B + beta C for half precision and bfloat16 with sums in float, after Tang, Komatsu,
// Sato, Kobayashi, IJNC 11(2), 2021: runs of rows travel as bytes, several narrow rows make one
// operand of the tensor cores (kernels/cuda/fold.hpp), the rows are split among warps and blocks.
#pragma once

#include "kernels/cuda/fold.hpp"
#include "kernels/operations/tsmttsm.hpp"
#include "reduce.cuh"
#include "short_mma.cuh"

namespace quiver {

/// The part of a warp: a slab of the folded product, a share of B's chunks, some of the rows.
template <class T, int M, int N, bool SAME, int FOLD, int SPLIT, int SHARES, int PITCH_A,
          int PITCH_B>
class FoldedSums {
    static constexpr FoldedProduct product{{M, FOLD, SPLIT}, {N, FOLD, SPLIT}, SAME, SHARES};
    static constexpr int pairs = product.pairs();
    static constexpr int chunks = product.chunks();
    static constexpr int blocks = product.a.blocks();

  public:
    /// Elements that loads may reach beyond the last row.
    static constexpr int slack = 64;

    FoldedSums(int slab, int share)
        : slab_(slab),
          first_chunk_(share * chunks),
          offset_a_(product.a.offset(slab)),
          offset_b_(product.b.offset(slab)) {
        const int lane = threadIdx.x % 32;
        const MatrixRow left = left_of_sums(lane);
        const MatrixRow right = right_of_sums(lane);
        address_a_ = (left.row * PITCH_A + 8 * (product.a.chunk(slab) + left.chunk)) * 2;
        address_b_ =
            (right.row * PITCH_B + 8 * (product.b.chunk(slab) + first_chunk_ + right.chunk)) * 2;
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
            if constexpr (SAME && SHARES == 1) {
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

    /// Adds the wanted sums to area[block][M][N] and begins anew. Each has one thread.
    void flush(float* area) {
        const int lane = threadIdx.x % 32;
        float* const own = area + slab_ * blocks * (M * N);
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
                            if (i >= 0 && i < M && j >= 0 && j < N && (!SAME || i <= j)) {
                                own[i * N + j] += sum_[p][c][e];
                            }
                        } else if (i >= 0 && i < blocks * M && j >= 0 && j < blocks * N) {
                            const FoldedPlace at = folded_place(i, M);
                            const FoldedPlace with = folded_place(j, N);
                            if (at.block == with.block && (!SAME || at.column <= with.column)) {
                                own[at.block * (M * N) + at.column * N + with.column] +=
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

/// SPLIT x SHARES warps have the parts of a product; ROW_WARPS such teams take STEPS times 16 long
/// rows each of a stage. BYTES: 0 brings rows without gaps, BULK by the copy engine; else threads
/// copy that many bytes at a time to padded rows, and FOLD is 1. A's and B's rows are M and N wide.
template <class T, int M, int N, bool SAME, int FOLD, int SPLIT, int SHARES, int ROW_WARPS,
          int STEPS, int STAGES, int BYTES, bool BULK, int BLOCKS>
__global__ void __launch_bounds__(32 * SPLIT * SHARES * ROW_WARPS, BLOCKS)
    mixed_tsmttsm(MixedTsmttsmArgs<T, float> args, float* partials, unsigned* counters, int group) {
    constexpr int threads = 32 * SPLIT * SHARES * ROW_WARPS;
    constexpr int rows = FOLD * 16 * STEPS * ROW_WARPS;
    constexpr int pitch_a = BYTES == 0 ? bulk_pitch(FOLD * M) : padded_pitch(M);
    constexpr int pitch_b = BYTES == 0 ? bulk_pitch(FOLD * N) : padded_pitch(N);
    constexpr int size_a = rows / FOLD * pitch_a;
    constexpr int size_b = SAME ? 0 : rows / FOLD * pitch_b;
    constexpr int copies = FOLD * ROW_WARPS;
    using Sums = FoldedSums<T, M, N, SAME, FOLD, SPLIT, SHARES, pitch_a, pitch_b>;
    // The tensor cores cut off where they add, so their sums must not become long.
    constexpr int longest = 128;
    constexpr int stages_a_flush = longest / STEPS;

    T* const stages = dynamic_shared<T>();
    float* const areas =
        reinterpret_cast<float*>(stages + STAGES * (size_a + size_b) + Sums::slack);
    const int warp = threadIdx.x / 32;
    const int row_warp = warp / (SPLIT * SHARES);
    Sums sums(warp / SHARES % SPLIT, warp % SHARES);
    float* const area = areas + row_warp * (FOLD * M * N);
    for (int e = threadIdx.x; e < copies * M * N; e += threads) {
        areas[e] = 0;
    }
    __syncthreads();

    const Chunks chunks{blockIdx.x, (args.rows + rows - 1) / rows, gridDim.x};
    int unflushed = 0;
    const auto add = [&](int stage) {
        const unsigned a = shared_address(stages + stage * (size_a + size_b));
        const unsigned b = SAME ? a : a + 2 * size_a;
#pragma unroll 1
        for (int step = 0; step < STEPS; ++step) {
            const int first = (row_warp * STEPS + step) * 16;
            sums.add(a + first * (pitch_a * 2), b + first * (pitch_b * 2));
        }
        if (++unflushed == stages_a_flush) {
            sums.flush(area);
            unflushed = 0;
        }
    };
    const auto prepare = [] {};
    const auto finish = [](std::int64_t) {};
    if constexpr (BULK) {
        __shared__ std::uint64_t barriers[2 * STAGES];
        const FoldedCopy<T, rows, M, FOLD, pitch_a> copy_a(args.a, args.rows);
        const FoldedCopy<T, rows, N, FOLD, pitch_b> copy_b(args.b, args.rows);
        const auto start = [&](const Barrier& full, int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            const std::int64_t first = chunk * rows;
            copy_a.fill_up(a, first);
            if (!SAME) {
                copy_b.fill_up(a + size_a, first);
            }
            __syncwarp();
            if (threadIdx.x == 0) {
                full.arrive_expecting(copy_a.bytes(first) + (SAME ? 0 : copy_b.bytes(first)));
            }
            __syncwarp();
            copy_a.start(full, a, first);
            if (!SAME) {
                copy_b.start(full, a + size_a, first);
            }
        };
        for_bulk_chunks<STAGES, threads>(barriers, chunks, start, prepare, add, finish);
    } else {
        const auto start = [&](int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            const std::int64_t first = chunk * rows;
            if constexpr (BYTES == 0) {
                const FoldedCopy<T, rows, M, FOLD, pitch_a> copy_a(args.a, args.rows);
                const FoldedCopy<T, rows, N, FOLD, pitch_b> copy_b(args.b, args.rows);
                copy_a.template start_by_threads<threads>(a, first);
                if constexpr (!SAME) {
                    copy_b.template start_by_threads<threads>(a + size_a, first);
                }
            } else {
                copy_rows<T, threads, rows, M, pitch_a, BYTES>(a, args.a + first * args.lda,
                                                               args.lda, args.rows - first);
                if constexpr (!SAME) {
                    copy_rows<T, threads, rows, N, pitch_b, BYTES>(
                        a + size_a, args.b + first * args.ldb, args.ldb, args.rows - first);
                }
            }
        };
        for_copied_chunks<STAGES, threads>(0, chunks, start, prepare, add, finish);
    }

    sums.flush(area);
    __syncthreads();
    float* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (M * N);
    for (int e = threadIdx.x; e < M * N; e += threads) {
        float total = 0;
#pragma unroll
        for (int copy = 0; copy < copies; ++copy) {
            total += areas[copy * (M * N) + e];
        }
        mine[e] = total;
    }
    constexpr bool fits = STAGES * (size_a + size_b) * sizeof(T) >= threads * sizeof(float);
    float* const lanes = fits ? reinterpret_cast<float*>(stages) : nullptr;
    sum_over_blocks<M * N, threads>(
        M * N, partials, counters, group, lanes, [&](int e, float total) {
            const int i = e / N;
            const int j = e % N;
            const auto store = [&](int row, int column) {
                float& c = args.c[row * args.ldc + column];
                const float term = args.alpha * total;
                c = args.beta == 0 ? term : multiply_add(args.beta, c, term);
            };
            if (!SAME || i <= j) {
                store(i, j);
            }
            if (SAME && i < j) {
                store(j, i);
            }
        });
}

}  // namespace quiver

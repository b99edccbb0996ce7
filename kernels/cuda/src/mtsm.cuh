// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha B X + beta Y for a large B and a tall & skinny X, after TSM2R of Rivera et al., JPDC
// 151, 2021. Theirs of the parameters: t1 = DEPTH rows of X in shared memory, t2 = columns of a
// thread's sums, t3 = ROWS DEPTH / THREADS elements of B that a thread fetches at a time, ahead of
// the arithmetic; here through a ring of stages instead of registers.
//
// The work is one long line of units, ROWS rows of B times DEPTH terms, the terms of a row first;
// every block takes an equal piece of it. Rows that no block has to itself are summed in the order
// of the blocks by the last one to arrive: same bits on every run.
#pragma once

#include "kernels/operations/mtsm.hpp"
#include "mtsm_short.cuh"
#include "mtsm_tiles.cuh"
#include "reduce.cuh"
#include "stage.cuh"

namespace quiver {

template <class T>
struct RealOf {
    using type = T;
};
template <class R>
struct RealOf<Complex<R>> {
    using type = R;
};

/// copy_rows in the pieces that real parts allow: complex numbers may lie at any multiple of these.
template <class T, int THREADS, int ROWS, int COLUMNS, int PITCH, int BYTES>
void copy_lines(T* shared, const T* from, std::int64_t ld, std::int64_t rows,
                std::int64_t columns) {
    using R = typename RealOf<T>::type;
    constexpr int parts = sizeof(T) / sizeof(R);
    copy_rows<R, THREADS, ROWS, COLUMNS * parts, PITCH * parts, BYTES>(
        reinterpret_cast<R*>(shared), reinterpret_cast<const R*>(from), ld * parts, rows,
        columns * parts);
}

/// ALONG: B is stored along the sum. X_ROWS: X is stored by rows; else each element is copied on
/// its own. BYTES_A, BYTES_X: copied at a time. `parts`: 2 gridDim.x ROWS N elements; counters: one
/// for each block, zero before and after.
template <class A, class T, class SUMS, bool ALONG, int ROWS, int N, int DEPTH, int PITCH_A,
          int PITCH_X, int STAGES, int BYTES_A, int BYTES_X, bool X_ROWS, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    mtsm(MtsmArgs<A, T> args, T* parts, unsigned* counters) {
    constexpr int lines = ALONG ? ROWS : DEPTH;
    constexpr int length = ALONG ? DEPTH : ROWS;
    constexpr int bytes_x = ceil_div(DEPTH * PITCH_X * static_cast<int>(sizeof(T)), 16) * 16;
    constexpr int bytes_a = ceil_div(lines * PITCH_A * static_cast<int>(sizeof(A)), 16) * 16;
    constexpr int size = ROWS * N;
    constexpr int sum_bytes = 4 * THREADS * static_cast<int>(sizeof(T));
    static_assert(SUMS::lanes * SUMS::slots == THREADS);

    unsigned char* const stages = dynamic_shared<unsigned char>();
    const auto stage_x = [&](int stage) {
        return reinterpret_cast<T*>(stages + stage * (bytes_x + bytes_a));
    };
    const auto stage_a = [&](int stage) {
        return reinterpret_cast<A*>(stages + stage * (bytes_x + bytes_a) + bytes_x);
    };
    T* const shared = reinterpret_cast<T*>(stages + STAGES * (bytes_x + bytes_a));

    const std::int64_t depth = args.k > 0 ? (args.k + DEPTH - 1) / DEPTH : 1;
    const std::int64_t units = (args.m + ROWS - 1) / ROWS * depth;
    const std::int64_t blocks = gridDim.x;
    const Chunks mine{units * blockIdx.x / blocks, units * (blockIdx.x + 1) / blocks, 1};

    // The unit that is copied next.
    std::int64_t next_row = mine.first / depth * ROWS;
    std::int64_t next_term = mine.first % depth * DEPTH;
    const auto start = [&](int stage, std::int64_t) {
        const std::int64_t rows = args.m - next_row;
        const std::int64_t terms = args.k - next_term;
        copy_lines<A, THREADS, lines, length, PITCH_A, BYTES_A>(
            stage_a(stage),
            args.a + (ALONG ? next_row * args.lda + next_term : next_term * args.lda + next_row),
            args.lda, ALONG ? rows : terms, ALONG ? terms : rows);
        T* const x = stage_x(stage);
        const T* const from = args.x + next_term * args.x_row;
        if constexpr (X_ROWS) {
            copy_lines<T, THREADS, DEPTH, N, PITCH_X, BYTES_X>(x, from, args.x_row, terms, N);
        } else {
            constexpr int pieces = sizeof(T) / BYTES_X;
            for (int u = threadIdx.x; u < DEPTH * N * pieces; u += THREADS) {
                const int row = u / pieces % DEPTH;
                const int column = u / pieces / DEPTH;
                const bool inside = row < terms;
                const T* const element =
                    inside ? from + row * args.x_row + column * args.x_col : args.x;
                copy_async<BYTES_X>(
                    shared_address(x + row * PITCH_X + column) + u % pieces * BYTES_X,
                    reinterpret_cast<const unsigned char*>(element) + u % pieces * BYTES_X, inside);
            }
        }
        next_term += DEPTH;
        if (next_term >= args.k) {
            next_term = 0;
            next_row += ROWS;
        }
    };

    SUMS sums;
    const auto multiply_stage = [&](int stage) { sums.multiply(stage_a(stage), stage_x(stage)); };

    const auto store = [&](std::int64_t row, int column, T sum) {
        T& y = args.y[row * args.y_row + column * args.y_col];
        const T product = multiply(args.alpha, sum);
        y = is_zero(args.beta) ? product : multiply_add(args.beta, y, product);
    };
    // The row of Y that this block is at.
    std::int64_t row = mine.first / depth * ROWS;
    std::int64_t term = mine.first % depth * DEPTH;
    const auto finish = [&](std::int64_t unit) {
        term += DEPTH;
        const bool complete = term >= args.k;
        if (!complete && unit + 1 < mine.end) {
            return;
        }
        const std::int64_t first_unit = row / ROWS * depth;
        sums.finish();
        if (complete && mine.first <= first_unit) {
            sum_tiles<THREADS, THREADS, sum_bytes>(sums, shared, [&](int i, int j, T sum, bool) {
                if (i < ROWS && j < N && row + i < args.m) {
                    store(row + i, j, sum);
                }
            });
        } else {
            // Of a block's two parts at most the first is that of the rows it begins with.
            const auto part_of = [&](std::int64_t block, bool begins) {
                return parts + (2 * block + (begins ? 0 : 1)) * size;
            };
            T* const part = part_of(blockIdx.x, mine.first >= first_unit);
            sum_tiles<THREADS, THREADS, sum_bytes>(sums, shared, [&](int i, int j, T sum, bool) {
                if (i < ROWS && j < N) {
                    part[j * ROWS + i] = sum;
                }
            });
            // The block that has a unit.
            const auto owner = [&](std::int64_t u) { return ((u + 1) * blocks - 1) / units; };
            const std::int64_t first = owner(first_unit);
            const std::int64_t last = owner(first_unit + depth - 1);
            if (last_to_arrive(counters + first, static_cast<unsigned>(last - first + 1))) {
                const T* const begin = part_of(first, units * first / blocks >= first_unit);
                for (int e = threadIdx.x; e < size; e += THREADS) {
                    T sum = load_coherent(begin + e);
#pragma unroll 4
                    for (std::int64_t block = first + 1; block <= last; ++block) {
                        sum = sum + load_coherent(part_of(block, true) + e);
                    }
                    if (row + e % ROWS < args.m) {
                        store(row + e % ROWS, e / ROWS, sum);
                    }
                }
            }
        }
        sums.clear();
        if (complete) {
            term = 0;
            row += ROWS;
        }
    };
    for_copied_chunks<STAGES, THREADS>(
        0, mine, start, [] {}, multiply_stage, finish);
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha B X + beta Y for a large B and a tall & skinny X, after TSM2R of Rivera et al., JPDC
// 151, 2021. The parameters of the paper: t1 = `depth` rows of X in shared memory; t2 = columns of
// a thread's sums; t3 = rows depth / threads elements of B that a thread fetches at a time, ahead
// of the arithmetic. Here these elements go through a ring of stages instead of registers.
//
// The work is a sequence of units of `rows` rows of B times `depth` terms. The units of the same
// rows follow each other. Every block processes an equal part of the sequence. If several blocks
// share rows, the last block to arrive adds their sums in block order, which gives the same bits on
// every run.
#pragma once

#include "kernels/operations/mtsm.hpp"
#include "mtsm_short.cuh"
#include "mtsm_tiles.cuh"
#include "reduce.cuh"
#include "stage.cuh"

namespace quiver {

/// copy_rows in pieces of real parts, because complex numbers are aligned to these only.
template <class T, int THREADS, int ROWS, int COLUMNS, int PITCH, int BYTES>
void copy_lines(T* shared, const T* from, std::int64_t ld, std::int64_t rows,
                std::int64_t columns) {
    using R = typename RealOf<T>::type;
    constexpr int parts = sizeof(T) / sizeof(R);
    copy_rows<R, THREADS, ROWS, COLUMNS * parts, PITCH * parts, BYTES>(
        reinterpret_cast<R*>(shared), reinterpret_cast<const R*>(from), ld * parts, rows,
        columns * parts);
}

/// Copies the lines of ShiftedLines, LENGTH elements of each: pieces of 16 bytes, of which the
/// first begins before the line if the line does not start at a multiple of 16 bytes. Such a piece
/// belongs to the same 16 bytes of memory as the line. Elements beyond the first `lines` lines and
/// `length` elements become zeros.
template <class A, MtsmConfig CFG, int LINES, int LENGTH>
void copy_shifted_lines(A* shared, const A* from, std::int64_t ld, std::int64_t lines,
                        std::int64_t length) {
    using Shifted = ShiftedLines<A, CFG>;
    constexpr int size = sizeof(A);
    constexpr int real_size = size / Shifted::parts;
    constexpr int pieces = LENGTH * size / 16;
    static_assert(LENGTH * size % 16 == 0);
    const unsigned to = shared_address(shared);
    const char* const begin = reinterpret_cast<const char*>(from);
    const auto shift_of = [](const char* line) {
        return static_cast<int>(reinterpret_cast<std::uint64_t>(line) % 16);
    };
    const bool complete = lines >= LINES && length * size >= LENGTH * size + 16;
    const int present = static_cast<int>(minimum<std::int64_t>(length, LENGTH + 16)) * size;
    const auto copy = [&](auto all, int line, int piece) {
        const char* const address = begin + line * ld * size;
        const int shift = shift_of(address);
        const unsigned target = to + Shifted::begin(line) * real_size + piece * 16;
        if (all.value == 1) {
            copy_async<16>(target, address - shift + piece * 16, true);
        } else {
            const int left = present + shift - piece * 16;
            const bool exists = line < lines && left > 0;
            copy_async_part(target, exists ? address - shift + piece * 16 : begin - shift_of(begin),
                            exists ? minimum(left, 16) : 0);
        }
    };
    const auto copy_all = [&](auto all) {
#pragma unroll 4
        for (int u = threadIdx.x; u < LINES * pieces; u += CFG.threads) {
            copy(all, u / pieces, u % pieces);
        }
        for (int line = threadIdx.x; line < LINES; line += CFG.threads) {
            copy(all, line, pieces);
        }
    };
    if (complete) {
        copy_all(Constant<1>{});
    } else {
        copy_all(Constant<0>{});
    }
}

/// along_sum: B is stored along the sum. x_rows: X is stored by rows; otherwise each element is
/// copied separately. bytes_a, bytes_x: bytes per copy; if `shifted`, lines of B start at multiples
/// of bytes_a, and 16 bytes are copied at a time (ShiftedLines). `parts`: 2 gridDim.x rows n
/// elements; `counters`: one per block, zero before and after.
template <class A, class T, MtsmConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    mtsm(MtsmArgs<A, T> args, T* parts, unsigned* counters) {
    using TensorSums = typename Choice<sizeof(A) == 2, ShortSums<A, CFG>, MmaSums<T, CFG>>::type;
    using Sums = typename Choice<CFG.tensor, TensorSums, FmaSums<A, T, CFG>>::type;
    constexpr int lines = CFG.along_sum ? CFG.rows : CFG.depth;
    constexpr int length = CFG.along_sum ? CFG.depth : CFG.rows;
    constexpr int bytes_x =
        ceil_div(CFG.depth * CFG.pitch_x * static_cast<int>(sizeof(T)), 16) * 16;
    constexpr int bytes_a = ceil_div(lines * CFG.pitch_a * static_cast<int>(sizeof(A)), 16) * 16 +
                            (CFG.shifted ? ShiftedLines<A, CFG>::extra_bytes(lines) : 0);
    constexpr int size = CFG.rows * CFG.n;
    constexpr int sum_bytes = 4 * CFG.threads * static_cast<int>(sizeof(T));
    static_assert(Sums::lanes * Sums::slots == CFG.threads);

    unsigned char* const stages = dynamic_shared<unsigned char>();
    const auto stage_x = [&](int stage) {
        return reinterpret_cast<T*>(stages + stage * (bytes_x + bytes_a));
    };
    const auto stage_a = [&](int stage) {
        return reinterpret_cast<A*>(stages + stage * (bytes_x + bytes_a) + bytes_x);
    };
    T* const shared = reinterpret_cast<T*>(stages + CFG.stages * (bytes_x + bytes_a));

    const std::int64_t depth = args.k > 0 ? (args.k + CFG.depth - 1) / CFG.depth : 1;
    const std::int64_t units = (args.m + CFG.rows - 1) / CFG.rows * depth;
    const std::int64_t blocks = gridDim.x;
    const Chunks mine{units * blockIdx.x / blocks, units * (blockIdx.x + 1) / blocks, 1};

    // The next unit to copy.
    std::int64_t next_row = mine.first / depth * CFG.rows;
    std::int64_t next_term = mine.first % depth * CFG.depth;
    const auto start = [&](int stage, std::int64_t) {
        const std::int64_t rows = args.m - next_row;
        const std::int64_t terms = args.k - next_term;
        const A* const a = args.a + (CFG.along_sum ? next_row * args.lda + next_term
                                                   : next_term * args.lda + next_row);
        const std::int64_t left_lines = CFG.along_sum ? rows : terms;
        const std::int64_t left_length = CFG.along_sum ? terms : rows;
        if constexpr (CFG.shifted) {
            copy_shifted_lines<A, CFG, lines, length>(stage_a(stage), a, args.lda, left_lines,
                                                      left_length);
        } else {
            copy_lines<A, CFG.threads, lines, length, CFG.pitch_a, CFG.bytes_a>(
                stage_a(stage), a, args.lda, left_lines, left_length);
        }
        T* const x = stage_x(stage);
        const T* const from = args.x + next_term * args.x_row;
        if constexpr (CFG.x_rows) {
            copy_lines<T, CFG.threads, CFG.depth, CFG.n, CFG.pitch_x, CFG.bytes_x>(
                x, from, args.x_row, terms, CFG.n);
        } else {
            constexpr int pieces = sizeof(T) / CFG.bytes_x;
            for (int u = threadIdx.x; u < CFG.depth * CFG.n * pieces; u += CFG.threads) {
                const int row = u / pieces % CFG.depth;
                const int column = u / pieces / CFG.depth;
                const bool inside = row < terms;
                const T* const element =
                    inside ? from + row * args.x_row + column * args.x_col : args.x;
                copy_async<CFG.bytes_x>(
                    shared_address(x + row * CFG.pitch_x + column) + u % pieces * CFG.bytes_x,
                    reinterpret_cast<const unsigned char*>(element) + u % pieces * CFG.bytes_x,
                    inside);
            }
        }
        next_term += CFG.depth;
        if (next_term >= args.k) {
            next_term = 0;
            next_row += CFG.rows;
        }
    };

    Sums sums(args.a, args.lda);
    const auto multiply_stage = [&](int stage) { sums.multiply(stage_a(stage), stage_x(stage)); };

    const auto store = [&](std::int64_t row, int column, T sum) {
        T& y = args.y[row * args.y_row + column * args.y_col];
        const T product = multiply(args.alpha, sum);
        y = is_zero(args.beta) ? product : multiply_add(args.beta, y, product);
    };
    // The row of Y that this block currently computes.
    std::int64_t row = mine.first / depth * CFG.rows;
    std::int64_t term = mine.first % depth * CFG.depth;
    const auto finish = [&](std::int64_t unit) {
        term += CFG.depth;
        const bool complete = term >= args.k;
        if (!complete && unit + 1 < mine.end) {
            return;
        }
        const std::int64_t first_unit = row / CFG.rows * depth;
        sums.finish();
        if (complete && mine.first <= first_unit) {
            sum_tiles<CFG.threads, CFG.threads, sum_bytes>(
                sums, shared, [&](int i, int j, T sum, bool) {
                    if (i < CFG.rows && j < CFG.n && row + i < args.m) {
                        store(row + i, j, sum);
                    }
                });
        } else {
            // Parts of a block: the first for the rows in which it starts, the second for others.
            const auto part_of = [&](std::int64_t block, bool begins) {
                return parts + (2 * block + (begins ? 0 : 1)) * size;
            };
            T* const part = part_of(blockIdx.x, mine.first >= first_unit);
            sum_tiles<CFG.threads, CFG.threads, sum_bytes>(sums, shared,
                                                           [&](int i, int j, T sum, bool) {
                                                               if (i < CFG.rows && j < CFG.n) {
                                                                   part[j * CFG.rows + i] = sum;
                                                               }
                                                           });
            // The block that owns unit u.
            const auto owner = [&](std::int64_t u) { return ((u + 1) * blocks - 1) / units; };
            const std::int64_t first = owner(first_unit);
            const std::int64_t last = owner(first_unit + depth - 1);
            if (last_to_arrive(counters + first, static_cast<unsigned>(last - first + 1))) {
                const T* const begin = part_of(first, units * first / blocks >= first_unit);
                for (int e = threadIdx.x; e < size; e += CFG.threads) {
                    T sum = load_coherent(begin + e);
#pragma unroll 4
                    for (std::int64_t block = first + 1; block <= last; ++block) {
                        sum = sum + load_coherent(part_of(block, true) + e);
                    }
                    if (row + e % CFG.rows < args.m) {
                        store(row + e % CFG.rows, e / CFG.rows, sum);
                    }
                }
            }
        }
        sums.clear();
        if (complete) {
            term = 0;
            row += CFG.rows;
        }
    };
    for_copied_chunks<CFG.stages, CFG.threads>(
        0, mine, start, [] {}, multiply_stage, finish);
}

}  // namespace quiver

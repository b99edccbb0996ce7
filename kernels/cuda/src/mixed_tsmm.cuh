// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha X C + beta Y for X in half precision or bfloat16, accumulated in float on the tensor
// cores, after Tang, Komatsu, Sato, Kobayashi, IJNC 11(2), 2021. Rows of X are folded as in
// kernels/cuda/fold.hpp; the small matrix is then block diagonal with blocks C.
#pragma once

#include "kernels/cuda/fold.hpp"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/operations/tsmm.hpp"
#include "short_mma.cuh"

namespace quiver {

/// Writes the elements of C as T: unchanged, or for a float C the high and the low part of 2^-e c.
/// The exponent e of each column makes its largest entry at most 2^14, so that the parts neither
/// overflow nor lose bits to a short exponent.
template <class T, int M, int N, int THREADS, class SMALL>
void split_columns(const SMALL* c, std::int64_t ldc, T* parts, float* scales) {
    if constexpr (sizeof(SMALL) == sizeof(T)) {
        for (int e = threadIdx.x; e < M * N; e += THREADS) {
            parts[e] = c[e / N * ldc + e % N];
        }
    } else {
        for (int j = threadIdx.x; j < N; j += THREADS) {
            unsigned largest = 0;
            for (int i = 0; i < M; ++i) {
                const unsigned bits = __float_as_uint(c[i * ldc + j]) & 0x7fffffffU;
                // Ignore NaN and infinity: the results with such entries are computed again later.
                largest = bits < 0x7f800000U && bits > largest ? bits : largest;
            }
            // The exponent that scales the largest entry to at most 2^14, bounded so that both
            // powers of two are normal numbers.
            const int exponent = static_cast<int>(largest >> 23) - 127 - 13;
            const int bounded = exponent < -126 ? -126 : exponent;
            const float down = __uint_as_float(static_cast<unsigned>(127 - bounded) << 23);
            scales[j] = __uint_as_float(static_cast<unsigned>(127 + bounded) << 23);
            for (int i = 0; i < M; ++i) {
                const float value = c[i * ldc + j] * down;
                const T high = Converter<T>::from(value);
                parts[i * N + j] = high;
                parts[M * N + i * N + j] = Converter<T>::from(value - to_float(high));
            }
        }
    }
}

/// `split` warps have one slab of the folded columns each; row_warps such teams process `steps`
/// times 16 long rows each per stage. bytes: 0 if rows without gaps are copied unchanged (by the
/// copy engine if `bulk`); otherwise threads copy that many bytes at a time to padded rows, and
/// fold is 1. flat: Y has no gaps, and Y and its long rows start at multiples of 16 bytes. kept:
/// number of parts of C in registers; the others are in shared memory. HELD: the type of the staged
/// results, OUT or, if they must still be added to Y, float.
template <class T, class SMALL, class OUT, class HELD, MixedTsmmConfig CFG>
__global__ void __launch_bounds__(32 * CFG.split * CFG.row_warps, CFG.blocks)
    mixed_tsmm(MixedTsmmArgs<T, SMALL, OUT> args) {
    constexpr int m = CFG.m;
    constexpr int n = CFG.n;
    constexpr int threads = 32 * CFG.split * CFG.row_warps;
    constexpr int rows = CFG.fold * 16 * CFG.steps * CFG.row_warps;
    constexpr int parts = sizeof(SMALL) == sizeof(T) ? 1 : 2;
    constexpr FoldedProduct product{{m, CFG.fold, CFG.split}, {n, CFG.fold, CFG.split}, false, 1};
    constexpr int pairs = product.pairs();
    constexpr int chunks = product.chunks();
    constexpr int blocks = product.a.blocks();
    constexpr int tiles = pairs * chunks;
    constexpr int pitch_x = row_pitch(m, CFG.fold, CFG.bytes);
    constexpr int pitch_y = result_pitch(CFG.fold * n);
    constexpr int size_x = rows / CFG.fold * pitch_x;
    // At first, this memory holds the parts of C.
    constexpr int size_c = ceil_div(parts * m * n, 8) * 8;
    constexpr int size_y = -minimum(-size_c, -rows / CFG.fold * pitch_y);
    constexpr int slack = 64;

    T* const stages = dynamic_shared<T>();
    HELD* const results = reinterpret_cast<HELD*>(stages + CFG.stages * size_x + slack);
    uint2* const spilled = reinterpret_cast<uint2*>(results + size_y);
    float* const scales =
        reinterpret_cast<float*>(spilled + (parts - CFG.kept) * CFG.split * tiles * 32);
    const int lane = threadIdx.x % 32;
    const int slab = threadIdx.x / 32 % CFG.split;
    const int row_warp = threadIdx.x / 32 / CFG.split;
    const int row = result_row(lane, 0);
    const int column = result_column(lane, 0);
    const int offset_x = product.a.offset(slab);
    const int offset_y = product.b.offset(slab);
    const MatrixRow left_row = left_of_rows(lane);
    const unsigned lane_address =
        (left_row.row * pitch_x + 8 * (product.a.chunk(slab) + left_row.chunk)) * 2;

    // Loads reach elements beyond the rows and multiply them by zeros of C: they must be finite.
    for (int e = threadIdx.x; e < CFG.stages * size_x + slack; e += threads) {
        stages[e] = T{};
    }
    if (CFG.bulk) {
        fence_bulk_copies();
    }
    __syncthreads();

    unsigned kept[CFG.kept == 0 ? 1 : CFG.kept][tiles][2];
    const auto prepare = [&] {
        T* const elements = reinterpret_cast<T*>(results);
        split_columns<T, m, n, threads>(args.c, args.ldc, elements, scales);
        __syncthreads();
        const auto element = [&](int part, int x, int y) -> unsigned {
            const int j = y - offset_y;
            const int block = blocks == 1 ? 0 : j / n;
            const int i = x - offset_x - block * m;
            const bool inside = j >= 0 && j < blocks * n && i >= 0 && i < m;
            return inside ? elements[part * (m * n) + i * n + j - block * n].bits : 0U;
        };
        const auto words = [&](int part, int k, int c, int half) {
            const int x = 16 * k + operand_row(lane, half);
            const int y = 8 * c + operand_column(lane);
            return element(part, x, y) | element(part, x + 1, y) << 16;
        };
#pragma unroll
        for (int k = 0; k < pairs; ++k) {
#pragma unroll
            for (int c = 0; c < chunks; ++c) {
                if (product.needed(k, c)) {
#pragma unroll
                    for (int part = 0; part < parts; ++part) {
                        const unsigned low = words(part, k, c, 0);
                        const unsigned high = words(part, k, c, 1);
                        if (part < CFG.kept) {
                            kept[part][k * chunks + c][0] = low;
                            kept[part][k * chunks + c][1] = high;
                        } else if (row_warp == 0) {
                            spilled[(((part - CFG.kept) * CFG.split + slab) * tiles + k * chunks +
                                     c) *
                                        32 +
                                    lane] = {low, high};
                        }
                    }
                }
            }
        }
        __syncthreads();
    };

    const auto present_rows = [&](std::int64_t chunk) {
        return static_cast<int>(minimum<std::int64_t>(rows, args.rows - chunk * rows));
    };
    const auto put = [&](HELD* to, float low, float high, int y) {
        const int j = y - offset_y;
        if constexpr (parts == 2) {
            const int last = blocks * n - 1;
            const int at = j < 0 ? 0 : j > last ? last : j;
            const int next = j + 1 < 0 ? 0 : j + 1 > last ? last : j + 1;
            low *= scales[blocks == 1 ? at : at % n];
            high *= scales[blocks == 1 ? next : next % n];
        }
        const HELD first = Converter<HELD>::from(args.alpha * low);
        const HELD second = Converter<HELD>::from(args.alpha * high);
        if constexpr (CFG.split == 1) {
            *reinterpret_cast<Pack<HELD, 2>*>(to) = {{first, second}};
        } else {
            if (j >= 0 && j < blocks * n) {
                to[0] = first;
            }
            if (j + 1 >= 0 && j + 1 < blocks * n) {
                to[1] = second;
            }
        }
    };
    std::int64_t current = blockIdx.x;
    // Computes the results of a stage in shared memory.
    const auto multiply_rows = [&](int stage) {
        if (CFG.bulk) {
            __syncthreads();  // the previous results have been stored
        }
        const T* const x = stages + stage * size_x;
        const unsigned from = shared_address(x) + lane_address;
        float flaw = 0;
#pragma unroll 1
        for (int step = 0; step < CFG.steps; ++step) {
            const int first = (row_warp * CFG.steps + step) * 16;
            unsigned left[pairs][4];
#pragma unroll
            for (int k = 0; k < pairs; ++k) {
                load_matrices(left[k], from + first * (pitch_x * 2) + k * 32);
            }
            HELD* const target =
                results + (first + row) * pitch_y + 8 * product.b.chunk(slab) + column;
#pragma unroll
            for (int c = 0; c < chunks; ++c) {
                float sum[4] = {0, 0, 0, 0};
#pragma unroll
                for (int part = 0; part < parts; ++part) {
#pragma unroll
                    for (int k = 0; k < pairs; ++k) {
                        if (product.needed(k, c)) {
                            if (part < CFG.kept) {
                                const unsigned(&word)[2] =
                                    kept[part < CFG.kept ? part : 0][k * chunks + c];
                                short_mma<T>(sum, left[k], word[0], word[1]);
                            } else {
                                const uint2 word =
                                    spilled[(((part - CFG.kept) * CFG.split + slab) * tiles +
                                             k * chunks + c) *
                                                32 +
                                            lane];
                                short_mma<T>(sum, left[k], word.x, word.y);
                            }
                        }
                    }
                }
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    flaw = multiply_add(sum[e], 0.0F, flaw);
                }
                put(target + 8 * c, sum[0], sum[1], 8 * c + column);
                put(target + 8 * c + 8 * pitch_y, sum[2], sum[3], 8 * c + column);
            }
        }
        if (__syncthreads_or(flaw != 0.0F)) {
            // NaN or infinity has spread to the rows that share a product with it, or arose as
            // infinity minus infinity from the parts of C: compute these results again, one by one.
            const int present = present_rows(current);
            for (int e = threadIdx.x; e < present * n; e += threads) {
                const int i = e / n;
                const int j = e % n;
                HELD& result = results[i / CFG.fold * pitch_y + i % CFG.fold * n + j];
                if (!is_finite(Converter<float>::from(result))) {
                    const T* const x_row = x + i / CFG.fold * pitch_x + i % CFG.fold * m;
                    float sum = 0;
                    for (int k = 0; k < m; ++k) {
                        sum = multiply_add(to_float(x_row[k]),
                                           Converter<float>::from(args.c[k * args.ldc + j]), sum);
                    }
                    result = Converter<HELD>::from(args.alpha * sum);
                }
            }
            __syncthreads();
        }
    };
    const auto store_rows = [&](std::int64_t chunk) {
        OUT* const y = args.y + chunk * rows * args.ldy;
        const int count = present_rows(chunk) * n;
        const bool accumulate = args.beta != 0.0F;
        const auto updated = [&](HELD value, const OUT& before) {
            return accumulate ? Converter<OUT>::from(multiply_add(args.beta,
                                                                  Converter<float>::from(before),
                                                                  Converter<float>::from(value)))
                              : Converter<OUT>::from(value);
        };
        int stored = 0;
        if constexpr (CFG.flat) {
            constexpr int unit = 16 / static_cast<int>(sizeof(OUT));
            constexpr int row_units = CFG.fold * n / unit;
            // The staged results are also read 16 bytes at a time.
            constexpr int held = minimum<int>(unit, 16 / sizeof(HELD));
            using Unit = Pack<OUT, unit>;
            static_assert(CFG.fold * n % unit == 0);
#pragma unroll 4
            for (int u = threadIdx.x; u < count / unit; u += threads) {
                const auto* const from = reinterpret_cast<const Pack<HELD, held>*>(
                    results + u / row_units * pitch_y + u % row_units * unit);
                Unit* const to = reinterpret_cast<Unit*>(y) + u;
                Unit value{};
                if (accumulate) {
                    value = *to;
                }
#pragma unroll
                for (int v = 0; v < unit; v += held) {
                    const Pack<HELD, held> fresh = from[v / held];
#pragma unroll
                    for (int w = 0; w < held; ++w) {
                        value.value[v + w] = updated(fresh.value[w], value.value[v + w]);
                    }
                }
                *to = value;
            }
            stored = count / unit * unit;
        }
        for (int e = stored + threadIdx.x; e < count; e += threads) {
            const int i = e / n;
            const int j = e % n;
            OUT& to = y[i * args.ldy + j];
            to = updated(results[i / CFG.fold * pitch_y + i % CFG.fold * n + j], to);
        }
        current += gridDim.x;
    };

    const Chunks all{blockIdx.x, (args.rows + rows - 1) / rows, gridDim.x};
    if constexpr (CFG.bulk) {
        __shared__ std::uint64_t barriers[2 * CFG.stages];
        const FoldedCopy<T, rows, m, CFG.fold, pitch_x> copy(args.x, args.rows);
        const auto start = [&](const Barrier& full, int stage, std::int64_t chunk) {
            T* const x = stages + stage * size_x;
            copy.fill_up(x, chunk * rows);
            __syncwarp();
            if (threadIdx.x == 0) {
                full.arrive_expecting(copy.bytes(chunk * rows));
            }
            __syncwarp();
            copy.start(full, x, chunk * rows);
        };
        for_bulk_chunks<CFG.stages, threads>(barriers, all, start, prepare, multiply_rows,
                                             store_rows);
    } else {
        const auto start = [&](int stage, std::int64_t chunk) {
            T* const x = stages + stage * size_x;
            if constexpr (CFG.bytes == 0) {
                const FoldedCopy<T, rows, m, CFG.fold, pitch_x> copy(args.x, args.rows);
                copy.template start_by_threads<threads>(x, chunk * rows);
            } else {
                copy_rows<T, threads, rows, m, pitch_x, CFG.bytes>(
                    x, args.x + chunk * rows * args.ldx, args.ldx, args.rows - chunk * rows);
            }
        };
        for_copied_chunks<CFG.stages, threads>(0, all, start, prepare, multiply_rows, store_rows);
    }
}

}  // namespace quiver

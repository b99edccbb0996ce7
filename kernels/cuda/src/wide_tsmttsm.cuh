// SPDX-License-Identifier: BSD-3-Clause
// A^T B with sums in more precision than the blocks have, by multiply-adds: float blocks with sums
// in double, double blocks with sums of two doubles (Dot2 of Ogita, Rump, Oishi, SISC 26(6), 2005).
#pragma once

#include "kernels/operations/tsmttsm.hpp"
#include "reduce.cuh"

namespace quiver {

/// high + low, where high alone is nearly the sum.
struct Twofold {
    double high, low;
};

/// Adds value to high and what the rounding loses, and `rest`, to low.
inline Twofold add(Twofold sum, double value, double rest) {
    const double total = __dadd_rn(sum.high, value);
    const double part = __dadd_rn(total, -sum.high);
    const double lost =
        __dadd_rn(__dadd_rn(sum.high, -__dadd_rn(total, -part)), __dadd_rn(value, -part));
    return {total, __dadd_rn(sum.low, __dadd_rn(lost, rest))};
}
inline Twofold operator+(Twofold a, Twofold b) {
    return add(a, b.high, b.low);
}
inline Twofold load_coherent(const Twofold* from) {
    return {__ldcg(&from->high), __ldcg(&from->low)};
}

inline double add_product(double sum, double a, double b) {
    return __fma_rn(a, b, sum);
}
inline Twofold add_product(Twofold sum, double a, double b) {
    const double product = __dmul_rn(a, b);
    return add(sum, product, __fma_rn(a, b, -product));
}

/// What becomes of a whole sum.
inline void store_sum(const MixedTsmttsmArgs<float, double>& args, int i, int j, int, double sum) {
    double& c = args.c[i * args.ldc + j];
    const double term = args.alpha * sum;
    c = args.beta == 0 ? term : multiply_add(args.beta, c, term);
}
inline void store_sum(const TwofoldTsmttsmArgs& args, int i, int j, int n, Twofold sum) {
    const double total = __dadd_rn(sum.high, sum.low);
    args.sums[i * n + j] = total;
    args.sums[args.m * n + i * n + j] =
        is_zero(total - total) ? __dadd_rn(sum.low, -__dadd_rn(total, -sum.high)) : 0;
}

/// ARGS: MixedTsmttsmArgs<float, double> or TwofoldTsmttsmArgs, of SUM double or Twofold. M x N, at
/// most 64 x 64: the shape. A thread has TILE_M x TILE_N sums, of rows that are LANES apart where
/// fewer threads than the block has cover C. Rows are converted on their way to shared memory.
template <class ARGS, class SUM, int M, int N, int TILE_M, int TILE_N, int ROWS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    wide_tsmttsm(ARGS args, SUM* partials, unsigned* counters, int group) {
    constexpr int slots_m = ceil_div(M, TILE_M);
    constexpr int slots_n = ceil_div(N, TILE_N);
    constexpr int slots = slots_m * slots_n;
    constexpr int lanes = THREADS / slots;
    static_assert(lanes >= 1);
    constexpr int pitch_a = slots_m * TILE_M;
    constexpr int pitch_b = slots_n * TILE_N;
    double* const a = dynamic_shared<double>();
    double* const b = a + ROWS * pitch_a;
    const int lane = threadIdx.x / slots;
    const int slot = threadIdx.x % slots;
    const int i = slot / slots_n;
    const int j = slot % slots_n;

    // Columns beyond the matrix are zeros.
    for (int e = threadIdx.x; e < ROWS * (pitch_a + pitch_b); e += THREADS) {
        a[e] = 0;
    }
    SUM sum[TILE_M * TILE_N] = {};
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * ROWS;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * ROWS; first < args.rows;
         first += stride) {
        const int present = static_cast<int>(minimum<std::int64_t>(ROWS, args.rows - first));
        __syncthreads();
#pragma unroll 4
        for (int e = threadIdx.x; e < present * M; e += THREADS) {
            a[e / M * pitch_a + e % M] = args.a[(first + e / M) * args.lda + e % M];
        }
#pragma unroll 4
        for (int e = threadIdx.x; e < present * N; e += THREADS) {
            b[e / N * pitch_b + e % N] = args.b[(first + e / N) * args.ldb + e % N];
        }
        __syncthreads();
        if (lane < lanes) {
            for (int row = lane; row < present; row += lanes) {
                double left[TILE_M];
                double right[TILE_N];
#pragma unroll
                for (int p = 0; p < TILE_M; ++p) {
                    left[p] = a[row * pitch_a + p * slots_m + i];
                }
#pragma unroll
                for (int q = 0; q < TILE_N; ++q) {
                    right[q] = b[row * pitch_b + q * slots_n + j];
                }
#pragma unroll
                for (int p = 0; p < TILE_M; ++p) {
#pragma unroll
                    for (int q = 0; q < TILE_N; ++q) {
                        sum[p * TILE_N + q] = add_product(sum[p * TILE_N + q], left[p], right[q]);
                    }
                }
            }
        }
    }
    SUM* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (M * N);
#pragma unroll
    for (int e = 0; e < TILE_M * TILE_N; ++e) {
        SUM one[1] = {sum[e]};
        sum_over_lanes(one, lane, lanes, slots, reinterpret_cast<SUM*>(a));
        const int row = e / TILE_N * slots_m + i;
        const int column = e % TILE_N * slots_n + j;
        if (lane == 0 && row < M && column < N) {
            mine[row * N + column] = one[0];
        }
    }
    sum_over_blocks<M * N, THREADS>(
        M * N, partials, counters, group, reinterpret_cast<SUM*>(a),
        [&](int e, SUM total) { store_sum(args, e / N, e % N, N, total); });
}

}  // namespace quiver

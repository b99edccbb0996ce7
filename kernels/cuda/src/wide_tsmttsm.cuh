// SPDX-License-Identifier: BSD-3-Clause
// A^T B with sums in higher precision than the blocks, by multiply-adds: float blocks with sums in
// double, double blocks with sums of two doubles (Dot2 of Ogita, Rump, Oishi, SISC 26(6), 2005).
#pragma once

#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/operations/tsmttsm.hpp"
#include "reduce.cuh"

namespace quiver {

/// A sum in two parts, high + low, where low is a small correction.
struct Twofold {
    double high, low;
};

/// Adds value to high; the rounding error and `rest` go to low.
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

/// Stores a complete sum.
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

/// ARGS: MixedTsmttsmArgs<float, double> with SUM double, or TwofoldTsmttsmArgs with SUM Twofold. m
/// x n: the shape, at most 64 x 64. A thread has tile_m x tile_n sums; if fewer threads than the
/// block has cover C, several lanes of threads share the rows. Rows are converted on the way to
/// shared memory.
template <class ARGS, class SUM, WideTsmttsmConfig CFG>
__global__ void __launch_bounds__(CFG.threads)
    wide_tsmttsm(ARGS args, SUM* partials, unsigned* counters, int group) {
    constexpr int m = CFG.m;
    constexpr int n = CFG.n;
    constexpr int slots_m = ceil_div(m, CFG.tile_m);
    constexpr int slots_n = ceil_div(n, CFG.tile_n);
    constexpr int slots = slots_m * slots_n;
    constexpr int lanes = CFG.threads / slots;
    static_assert(lanes >= 1);
    constexpr int pitch_a = slots_m * CFG.tile_m;
    constexpr int pitch_b = slots_n * CFG.tile_n;
    double* const a = dynamic_shared<double>();
    double* const b = a + CFG.rows * pitch_a;
    const int lane = threadIdx.x / slots;
    const int slot = threadIdx.x % slots;
    const int i = slot / slots_n;
    const int j = slot % slots_n;

    // Pad with zeros beyond the matrix.
    for (int e = threadIdx.x; e < CFG.rows * (pitch_a + pitch_b); e += CFG.threads) {
        a[e] = 0;
    }
    SUM sum[CFG.tile_m * CFG.tile_n] = {};
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * CFG.rows;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * CFG.rows; first < args.rows;
         first += stride) {
        const int present = static_cast<int>(minimum<std::int64_t>(CFG.rows, args.rows - first));
        __syncthreads();
#pragma unroll 4
        for (int e = threadIdx.x; e < present * m; e += CFG.threads) {
            a[e / m * pitch_a + e % m] = args.a[(first + e / m) * args.lda + e % m];
        }
#pragma unroll 4
        for (int e = threadIdx.x; e < present * n; e += CFG.threads) {
            b[e / n * pitch_b + e % n] = args.b[(first + e / n) * args.ldb + e % n];
        }
        __syncthreads();
        if (lane < lanes) {
            for (int row = lane; row < present; row += lanes) {
                double left[CFG.tile_m];
                double right[CFG.tile_n];
#pragma unroll
                for (int p = 0; p < CFG.tile_m; ++p) {
                    left[p] = a[row * pitch_a + p * slots_m + i];
                }
#pragma unroll
                for (int q = 0; q < CFG.tile_n; ++q) {
                    right[q] = b[row * pitch_b + q * slots_n + j];
                }
#pragma unroll
                for (int p = 0; p < CFG.tile_m; ++p) {
#pragma unroll
                    for (int q = 0; q < CFG.tile_n; ++q) {
                        sum[p * CFG.tile_n + q] =
                            add_product(sum[p * CFG.tile_n + q], left[p], right[q]);
                    }
                }
            }
        }
    }
    SUM* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (m * n);
#pragma unroll
    for (int e = 0; e < CFG.tile_m * CFG.tile_n; ++e) {
        SUM one[1] = {sum[e]};
        sum_over_lanes(one, lane, lanes, slots, reinterpret_cast<SUM*>(a));
        const int row = e / CFG.tile_n * slots_m + i;
        const int column = e % CFG.tile_n * slots_n + j;
        if (lane == 0 && row < m && column < n) {
            mine[row * n + column] = one[0];
        }
    }
    sum_over_blocks<m * n, CFG.threads>(
        m * n, partials, counters, group, reinterpret_cast<SUM*>(a),
        [&](int e, SUM total) { store_sum(args, e / n, e % n, n, total); });
}

}  // namespace quiver

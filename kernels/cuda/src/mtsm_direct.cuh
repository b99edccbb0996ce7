// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha B X + beta Y for a tall B of few columns, B and Y stored by columns (TSM2L of Rivera et
// al., JPDC 151, 2021): the plans of MtsmPlan::direct. A thread reads adjacent rows of B from
// memory, several columns at a time, and keeps their sums in registers. X is in shared memory as a
// whole. No block needs the sums of another one.
#pragma once

#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/operations/mtsm.hpp"
#include "mtsm_tiles.cuh"
#include "stage.cuh"

namespace quiver {

/// The sums of the adjacent rows of a thread.
template <class T, MtsmDirectConfig CFG>
class DirectSums {
    static constexpr int unit = 16 / minimum<int>(16, sizeof(T));

  public:
    using Rows = Pack<T, CFG.vector>;
    /// Row stride of X in shared memory.
    static constexpr int pitch = ceil_div(CFG.n, unit) * unit;

    /// Adds the products of one column of B with `x`, a row of X in shared memory.
    void add(const Rows& left, const T* x) {
        T right[pitch];
#pragma unroll
        for (int j = 0; j < pitch; j += unit) {
            const auto pack = *reinterpret_cast<const Pack<T, unit>*>(x + j);
#pragma unroll
            for (int v = 0; v < unit; ++v) {
                right[j + v] = pack.value[v];
            }
        }
#pragma unroll
        for (int j = 0; j < CFG.n; ++j) {
#pragma unroll
            for (int v = 0; v < CFG.vector; ++v) {
                sum_[j][v] =
                    multiply_add(conjugate_if<CFG.conjugated>(left.value[v]), right[j], sum_[j][v]);
            }
        }
    }

    /// y = sums + beta y for columns that are y_col apart; beta = 0 does not read y.
    void store(T* y, std::int64_t y_col, T beta) const {
        const bool accumulate = !is_zero(beta);
#pragma unroll
        for (int j = 0; j < CFG.n; ++j) {
            Rows* const to = reinterpret_cast<Rows*>(y + j * y_col);
            Rows before{};
            if (accumulate) {
                before = *to;
            }
            Rows after;
#pragma unroll
            for (int v = 0; v < CFG.vector; ++v) {
                after.value[v] =
                    accumulate ? multiply_add(beta, before.value[v], sum_[j][v]) : sum_[j][v];
            }
            *to = after;
        }
    }

  private:
    T sum_[CFG.n][CFG.vector] = {};
};

/// Results of a single row.
template <class T, MtsmDirectConfig CFG>
void direct_row(const MtsmArgs<T, T>& args, const T* x, int pitch, std::int64_t row) {
    for (int j = 0; j < CFG.n; ++j) {
        T total{};
        for (int i = 0; i < args.k; ++i) {
            total = multiply_add(conjugate_if<CFG.conjugated>(args.a[row + i * args.lda]),
                                 x[i * pitch + j], total);
        }
        T& y = args.y[row + j * args.y_col];
        y = is_zero(args.beta) ? total : multiply_add(args.beta, y, total);
    }
}

/// Y = alpha B X + beta Y without shared memory and without prefetching (TSM2X, algorithms 1 and
/// 2), for experiments only. A thread computes a row of Y. outer: an element of B serves all
/// columns at once; otherwise the thread reads its row of B once for each column.
template <class T, int N, bool OUTER>
__global__ void __launch_bounds__(256) mtsm_plain(MtsmArgs<T, T> args, T*, unsigned*) {
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= args.m) {
        return;
    }
    constexpr int together = OUTER ? N : 1;
#pragma unroll 1
    for (int first = 0; first < N; first += together) {
        T sum[together] = {};
#pragma unroll 1
        for (std::int64_t i = 0; i < args.k; ++i) {
            const T left = args.a[row + i * args.lda];
#pragma unroll
            for (int j = 0; j < together; ++j) {
                sum[j] =
                    multiply_add(left, args.x[i * args.x_row + (first + j) * args.x_col], sum[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < together; ++j) {
            T& y = args.y[row * args.y_row + (first + j) * args.y_col];
            const T product = multiply(args.alpha, sum[j]);
            y = is_zero(args.beta) ? product : multiply_add(args.beta, y, product);
        }
    }
}

/// vector: adjacent rows of a thread; if more than 1, columns of B and Y start at multiples of
/// `vector` elements. ahead: columns of B whose loads are in flight together. conjugated: B is
/// conjugated. The rows of Y are adjacent (y_row = 1).
template <class T, MtsmDirectConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    mtsm_direct(MtsmArgs<T, T> args, T*, unsigned*) {
    using Sums = DirectSums<T, CFG>;
    using Rows = typename Sums::Rows;
    T* const x = dynamic_shared<T>();
    const int k = static_cast<int>(args.k);
    for (int e = threadIdx.x; e < k * CFG.n; e += CFG.threads) {
        x[e / CFG.n * Sums::pitch + e % CFG.n] =
            multiply(args.alpha, args.x[e / CFG.n * args.x_row + e % CFG.n * args.x_col]);
    }
    __syncthreads();
    constexpr int rows = CFG.threads * CFG.vector;
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * rows;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * rows + threadIdx.x * CFG.vector;
         row < args.m; row += stride) {
        if (row + CFG.vector > args.m) {
            for (int v = 0; row + v < args.m; ++v) {
                direct_row<T, CFG>(args, x, Sums::pitch, row + v);
            }
            continue;
        }
        Sums sums;
        const T* from = args.a + row;
        int i = 0;
#pragma unroll 1
        for (; i + CFG.ahead <= k; i += CFG.ahead) {
            Rows left[CFG.ahead];
#pragma unroll
            for (int u = 0; u < CFG.ahead; ++u) {
                left[u] = *reinterpret_cast<const Rows*>(from);
                from += args.lda;
            }
#pragma unroll
            for (int u = 0; u < CFG.ahead; ++u) {
                sums.add(left[u], x + (i + u) * Sums::pitch);
            }
        }
#pragma unroll 1
        for (; i < k; ++i) {
            sums.add(*reinterpret_cast<const Rows*>(from), x + i * Sums::pitch);
            from += args.lda;
        }
        sums.store(args.y + row, args.y_col, args.beta);
    }
}

}  // namespace quiver

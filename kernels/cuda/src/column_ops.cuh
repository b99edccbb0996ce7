// SPDX-License-Identifier: BSD-3-Clause
// Operations on the columns of blocks: axpby, dots, gather_columns, gather_rows, fill.
#pragma once

#include "columns.cuh"
#include "kernels/operations/axpby.hpp"
#include "kernels/operations/dots.hpp"
#include "kernels/operations/fill.hpp"
#include "kernels/operations/gather_columns.hpp"
#include "kernels/operations/spmmv.hpp"
#include "reduce.cuh"

namespace quiver {

template <class T>
__global__ void __launch_bounds__(256) axpby(AxpbyArgs<T> args, int panel) {
    const ColumnWalk walk(args.cols, panel);
    T alpha = args.alpha;
    T beta = args.beta;
    if (walk.active) {
        alpha = args.alphas != nullptr ? args.alphas[walk.column] : alpha;
        beta = args.betas != nullptr ? args.betas[walk.column] : beta;
    }
    const bool read_x = !is_zero(alpha);
    const bool read_y = !is_zero(beta);
    stream_rows(
        walk, args.rows,
        [&](std::int64_t row) {
            T value{};
            if (read_x) {
                value = multiply(alpha, args.x[row * args.ldx + walk.column]);
            }
            if (read_y) {
                value = multiply_add(beta, args.y[row * args.ldy + walk.column], value);
            }
            return value;
        },
        [&](std::int64_t row, T value) { args.y[row * args.ldy + walk.column] = value; });
}

/// Requires a one-dimensional grid and cols <= blockDim.x.
template <class T>
__global__ void __launch_bounds__(256)
    dots(DotsArgs<T> args, T* partials, unsigned* counters, int group) {
    __shared__ T shared[256];
    const int lane = threadIdx.x / args.cols;
    const int lanes = blockDim.x / args.cols;
    const ColumnWalk walk(args.cols);
    T sum[1] = {};
    if (walk.active) {
#pragma unroll 4
        for (std::int64_t row = walk.row; row < args.rows; row += walk.stride) {
            sum[0] = multiply_add(conjugate(args.x[row * args.ldx + walk.column]),
                                  args.y[row * args.ldy + walk.column], sum[0]);
        }
    }
    sum_over_lanes(sum, lane, lanes, args.cols, shared);
    if (lane == 0) {
        partials[static_cast<std::int64_t>(blockIdx.x) * args.cols + walk.column] = sum[0];
    }
    sum_over_blocks<256, 256>(args.cols, partials, counters, group, shared,
                              [&](int column, T total) { args.result[column] = total; });
}

template <class T>
__global__ void __launch_bounds__(256) gather_columns(GatherColumnsArgs<T> args, int panel) {
    const ColumnWalk walk(args.y_cols, panel);
    const T* const x = args.x + (walk.active ? args.source[walk.column] : 0);
    stream_rows(
        walk, args.rows, [&](std::int64_t row) { return x[row * args.ldx]; },
        [&](std::int64_t row, T value) { args.y[row * args.ldy + walk.column] = value; });
}

/// gather_columns with x == y: whole rows are read to shared memory (rows_per_block y_cols
/// elements) before any is written.
template <class T>
__global__ void __launch_bounds__(256)
    gather_columns_in_place(GatherColumnsArgs<T> args, int rows_per_block) {
    T* const staged = dynamic_shared<T>();
    const std::int64_t groups = (args.rows + rows_per_block - 1) / rows_per_block;
    for (std::int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
        const std::int64_t first = group * rows_per_block;
        const int elements =
            static_cast<int>(minimum<std::int64_t>(rows_per_block, args.rows - first)) *
            args.y_cols;
        __syncthreads();
        for (int e = threadIdx.x; e < elements; e += blockDim.x) {
            staged[e] = args.x[(first + e / args.y_cols) * args.ldx + args.source[e % args.y_cols]];
        }
        __syncthreads();
        for (int e = threadIdx.x; e < elements; e += blockDim.x) {
            args.y[(first + e / args.y_cols) * args.ldy + e % args.y_cols] = staged[e];
        }
    }
}

template <class T>
__global__ void __launch_bounds__(256) gather_rows(GatherRowsArgs<T> args, int panel) {
    const ColumnWalk walk(args.cols, panel);
    stream_rows(
        walk, args.rows,
        [&](std::int64_t row) { return args.x[args.row_of(row) * args.ldx + walk.column]; },
        [&](std::int64_t row, T value) { args.y[row * args.cols + walk.column] = value; });
}

template <class T>
__global__ void __launch_bounds__(256) fill(FillArgs<T> args, int panel) {
    const ColumnWalk walk(args.cols, panel);
    stream_rows(
        walk, args.rows, [&](std::int64_t) { return args.value; },
        [&](std::int64_t row, T value) { args.x[row * args.ldx + walk.column] = value; });
}

}  // namespace quiver

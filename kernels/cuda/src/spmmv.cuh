// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha (A - shift) X + beta Y for rows of compressed storage, with column dots in the same
// pass: Kreutzer et al., IPDPS 2015.
#pragma once

#include "kernels/leaf_args.hpp"
#include "reduce.cuh"

namespace quiver {

/// A row's threads: its columns times SPLIT (a power of two), which share the row's entries; width
/// SPLIT <= blockDim.x. The halo has rows of halo_ld elements.
template <class T, class Index, int SPLIT, bool DOTS>
__global__ void __launch_bounds__(256)
    spmmv(SpmmvArgs<T> args, const Index* column_of, std::int64_t halo_ld, T* partials,
          unsigned* counters, int group) {
    const int slots = args.width * SPLIT;
    const int lanes = blockDim.x / slots;
    const int lane = threadIdx.x / slots;
    const int column = threadIdx.x % slots / SPLIT;
    const int part = threadIdx.x % SPLIT;
    const T shift = args.shifts != nullptr ? args.shifts[column] : args.shift;
    const bool shifted = !is_zero(shift);
    const bool accumulate = !is_zero(args.beta);

    T dot[2] = {};
    // The block goes around together: all threads of a warp take part in the shuffles.
    for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * lanes; base < args.rows;
         base += static_cast<std::int64_t>(gridDim.x) * lanes) {
        const std::int64_t place = base + lane;
        const bool active = lane < lanes && place < args.rows;
        std::int64_t row = 0;
        T sum{};
        if (active) {
            row = args.list != nullptr ? args.list[place] : place;
            const std::int64_t end = args.row_start[row + 1];
#pragma unroll 4
            for (std::int64_t k = args.row_start[row] + part; k < end; k += SPLIT) {
                const std::int64_t source = load_constant(column_of + k);
                const T* from = source < args.own ? args.x + source * args.ldx
                                                  : args.halo + (source - args.own) * halo_ld;
                sum =
                    multiply_add(load_constant(args.value + k), load_constant(from + column), sum);
            }
        }
#pragma unroll
        for (int distance = SPLIT / 2; distance > 0; distance /= 2) {
            sum = sum + shuffle_xor(sum, distance);
        }
        if (active && part == 0) {
            T x{};
            if (shifted || DOTS) {
                x = load_constant(args.x + row * args.ldx + column);
            }
            if (shifted) {
                sum = multiply_add(-shift, x, sum);
            }
            T* const y = args.y + row * args.ldy + column;
            T value = multiply(args.alpha, sum);
            if (accumulate) {
                value = multiply_add(args.beta, *y, value);
            }
            *y = value;
            if constexpr (DOTS) {
                dot[0] = multiply_add(conjugate(value), value, dot[0]);
                dot[1] = multiply_add(conjugate(x), value, dot[1]);
            }
        }
    }
    if constexpr (DOTS) {
        __shared__ T shared[2 * 256];
        sum_over_lanes(dot, lane, lanes, slots, shared);
        if (lane == 0 && part == 0) {
            T* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (2 * args.width);
            mine[column] = dot[0];
            mine[args.width + column] = dot[1];
        }
        sum_over_blocks(2 * args.width, partials, counters, group, [&](int e, T total) {
            T* const result = e < args.width ? args.dot_yy : args.dot_xy;
            if (result != nullptr) {
                result[e % args.width] = total;
            }
        });
    }
}

}  // namespace quiver

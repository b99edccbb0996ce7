// SPDX-License-Identifier: BSD-3-Clause
// Prefix sums of whole numbers in three launches: the sums of tiles, the prefix sums of these, and
// the prefix sums within the tiles. A tile has ITEMS numbers for each of the 256 threads of a
// block.
#pragma once

#include "scalar.cuh"

namespace quiver {

inline constexpr int prefix_threads = 256;

/// Returns the sum of `value` over the threads before this one, and in `total` the sum over all.
/// All 256 threads must call this.
inline std::int64_t sum_before(std::int64_t value, std::int64_t& total) {
    __shared__ std::int64_t of_warp[prefix_threads / 32];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    std::int64_t sum = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const std::int64_t before = __shfl_up_sync(0xffffffffU, sum, distance);
        sum += lane >= distance ? before : 0;
    }
    __syncthreads();  // the sums of a former call have been read
    if (lane == 31) {
        of_warp[warp] = sum;
    }
    __syncthreads();
    std::int64_t warps_before = 0;
    total = 0;
#pragma unroll
    for (unsigned w = 0; w < prefix_threads / 32; ++w) {
        warps_before += w < warp ? of_warp[w] : 0;
        total += of_warp[w];
    }
    return warps_before + sum - value;
}

/// sums[b] = the sum of tile b, one tile a block.
template <int ITEMS>
__global__ void __launch_bounds__(prefix_threads)
    prefix_tiles(const std::int64_t* data, std::int64_t count, std::int64_t* sums) {
    constexpr int tile = prefix_threads * ITEMS;
    const std::int64_t begin = blockIdx.x * std::int64_t{tile};
    std::int64_t sum = 0;
    for (int i = threadIdx.x; i < tile; i += prefix_threads) {
        sum += begin + i < count ? data[begin + i] : 0;
    }
    std::int64_t total = 0;
    sum_before(sum, total);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = total;
    }
}

/// Replaces each of `count` numbers by the sum of those before it, in one block, and stores the sum
/// of all in data[count].
template <int ITEMS>
__global__ void __launch_bounds__(prefix_threads)
    prefix_of_tiles(std::int64_t* data, std::int64_t count) {
    std::int64_t before = 0;
    for (std::int64_t begin = 0; begin < count; begin += prefix_threads) {
        const std::int64_t i = begin + threadIdx.x;
        std::int64_t total = 0;
        const std::int64_t sum = sum_before(i < count ? data[i] : 0, total);
        if (i < count) {
            data[i] = before + sum;
        }
        before += total;
    }
    if (threadIdx.x == 0) {
        data[count] = before;
    }
}

/// Replaces the numbers of tile b by the sum of those before, where `sums` has the sums of the
/// tiles before each tile, one tile a block. data[count] becomes the sum of all.
template <int ITEMS>
__global__ void __launch_bounds__(prefix_threads)
    prefix_in_tiles(std::int64_t* data, std::int64_t count, const std::int64_t* sums) {
    const std::int64_t begin =
        (blockIdx.x * std::int64_t{prefix_threads} + threadIdx.x) * std::int64_t{ITEMS};
    std::int64_t value[ITEMS];
    std::int64_t sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        value[i] = begin + i < count ? data[begin + i] : 0;
        sum += value[i];
    }
    std::int64_t total = 0;
    std::int64_t before = sums[blockIdx.x] + sum_before(sum, total);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        if (begin + i < count) {
            data[begin + i] = before;
        }
        before += value[i];
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
        data[count] = sums[gridDim.x];
    }
}

}  // namespace quiver

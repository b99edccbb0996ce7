// SPDX-License-Identifier: BSD-3-Clause
// Sums over the threads of a block and over the blocks of a launch, in an order that the launch's
// shape alone fixes: same bits on every run.
#pragma once

#include "scalar.cuh"

namespace quiver {

/// Sums value[] over the lanes of a block, where thread lane * slots + slot works for (lane, slot);
/// threads with lane >= lanes are idle. The sums are in the value[] of lane 0. All threads call
/// this; `shared` holds COUNT * blockDim.x elements.
template <int COUNT, class T>
void sum_over_lanes(T (&value)[COUNT], int lane, int lanes, int slots, T* shared) {
    const int self = threadIdx.x;
    __syncthreads();
    if (lane < lanes) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            shared[i * blockDim.x + self] = value[i];
        }
    }
    for (int left = lanes; left > 1;) {
        const int half = (left + 1) / 2;
        __syncthreads();
        if (lane < left - half) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                value[i] = value[i] + shared[i * blockDim.x + self + half * slots];
                shared[i * blockDim.x + self] = value[i];
            }
        }
        left = half;
    }
}

/// True in all threads of the last of `expected` blocks that arrive, which then sees what all of
/// them have written. The counter is zero before the first and after the last arrival.
inline bool last_to_arrive(unsigned* counter, unsigned expected) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicInc(counter, expected - 1) == expected - 1;
    }
    __syncthreads();
    __threadfence();
    return last;
}

/// Sums partials[block * size + i] over all blocks of the launch (a grid of one dimension) and
/// calls store(i, sum) for i = 0 .. size - 1 in the last block. In two levels: the last block of
/// each `group` neighbours sums these, the last of those finishers the rest; so wide results of
/// many blocks are not read by one multiprocessor alone. Uses 1 + ceil(blocks / group) counters.
/// All threads call this after their block has written its partials.
template <class T, class Store>
void sum_over_blocks(int size, T* partials, unsigned* counters, int group, Store store) {
    const int blocks = gridDim.x;
    const int groups = ceil_div(blocks, group);
    const int mine = blockIdx.x / group;
    const int first = mine * group;
    const int members = minimum(group, blocks - first);
    if (!last_to_arrive(counters + 1 + mine, members)) {
        return;
    }
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        T* own = partials + static_cast<std::int64_t>(first) * size + i;
        T sum{};
#pragma unroll 8
        for (int member = 0; member < members; ++member) {
            sum = sum + load_coherent(own + static_cast<std::int64_t>(member) * size);
        }
        *own = sum;
    }
    if (!last_to_arrive(counters, groups)) {
        return;
    }
    const std::int64_t stride = static_cast<std::int64_t>(group) * size;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        T sum{};
#pragma unroll 8
        for (int finisher = 0; finisher < groups; ++finisher) {
            sum = sum + load_coherent(partials + finisher * stride + i);
        }
        store(i, sum);
    }
}

}  // namespace quiver

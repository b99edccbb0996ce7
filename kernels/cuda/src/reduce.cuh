// SPDX-License-Identifier: BSD-3-Clause
// Sums over the threads of a block and over the blocks of a launch, in an order that depends on the
// shape of the launch only: same bits on every run. Only atomic_add has an undefined order.
#pragma once

#include "scalar.cuh"

namespace quiver {

/// Sums value[] over the lanes of a block. `self` is lane * slots + slot, by default the thread's
/// number; threads with lane >= lanes are idle. The sums are returned in the value[] of lane 0. All
/// threads must call this; `shared` holds COUNT * blockDim.x elements.
template <int COUNT, class T>
void sum_over_lanes(T (&value)[COUNT], int lane, int lanes, int slots, T* shared,
                    int self = threadIdx.x) {
    if (lanes == 1) {
        return;
    }
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

/// Sums the entries of `tile` (see tsmttsm_tiles.cuh) over its lanes and over the other teams of
/// the block, and calls store(row, column, sum, first) once per entry and class of rows. If
/// `first`, store() must store the sum of the entry, otherwise add to it. All THREADS threads must
/// call this; `shared` holds SHARED_BYTES.
template <int TEAM, int THREADS, int SHARED_BYTES, class T, class TILE, class Store>
void sum_tiles(const TILE& tile, T* shared, Store store) {
    constexpr int entries = TILE::entries;
    constexpr int slots = TILE::slots;
    constexpr int warps = THREADS / 32;
    constexpr int in_warp = slots < 32 && 32 % slots == 0 ? 32 / slots : 1;
    if constexpr (TILE::classes == 1 && in_warp > 1 &&
                  warps * entries * slots * sizeof(T) <= SHARED_BYTES) {
        // In each step, a lane exchanges half of its entries with a partner and adds. Then the
        // first warp adds the values of the other warps.
        constexpr int own = ceil_div(entries, in_warp);
        T value[own * in_warp];
#pragma unroll
        for (int e = 0; e < own * in_warp; ++e) {
            value[e] = e < entries ? tile.sum(e) : T{};
        }
        int first = 0;
#pragma unroll
        for (int half = in_warp / 2; half > 0; half /= 2) {
            const bool upper = threadIdx.x / slots & half;
            const int count = half * own;
            first += upper ? count : 0;
#pragma unroll
            for (int e = 0; e < count; ++e) {
                const T given = upper ? value[e] : value[e + count];
                const T kept = upper ? value[e + count] : value[e];
                value[e] = kept + shuffle_xor(given, half * slots);
            }
        }
        __syncthreads();
        const int warp = threadIdx.x / 32;
#pragma unroll
        for (int e = 0; e < own; ++e) {
            shared[e * THREADS + threadIdx.x] = value[e];
        }
        __syncthreads();
        if (warp == 0) {
#pragma unroll
            for (int e = 0; e < own; ++e) {
#pragma unroll
                for (int other = 1; other < warps; ++other) {
                    value[e] = value[e] + shared[e * THREADS + other * 32 + threadIdx.x];
                }
                if (first + e < entries) {
                    store(tile.row(first + e), tile.col(first + e), value[e], true);
                }
            }
        }
    } else {
        constexpr int team_lanes = TILE::lanes / TILE::classes;
        constexpr int most = SHARED_BYTES / (THREADS * static_cast<int>(sizeof(T)));
        // All entries stay in registers until the last class, so few others fit.
        constexpr int batch = minimum(minimum(entries, most), TILE::classes > 1 ? 16 : entries);
        static_assert(batch >= 1);
#pragma unroll 1
        for (int row_class = 0; row_class < TILE::classes; ++row_class) {
            if (row_class > 0) {
                __syncthreads();  // store() adds to values that other threads have stored
            }
            const int lane =
                tile.lane < TILE::lanes && tile.row_class == row_class
                    ? static_cast<int>(threadIdx.x) / TEAM * team_lanes + tile.lane / TILE::classes
                    : THREADS;
#pragma unroll
            for (int begin = 0; begin < entries; begin += batch) {
                T part[batch] = {};
#pragma unroll
                for (int e = 0; e < batch; ++e) {
                    if (begin + e < entries) {
                        part[e] = tile.sum(begin + e);
                    }
                }
                sum_over_lanes(part, lane, THREADS / TEAM * team_lanes, slots, shared,
                               lane * slots + tile.slot);
#pragma unroll
                for (int e = 0; e < batch; ++e) {
                    if (lane == 0 && begin + e < entries) {
                        store(tile.row(begin + e), tile.col(begin + e), part[e], row_class == 0);
                    }
                }
            }
        }
    }
}

inline void atomic_add(float* to, float value) {
    atomicAdd(to, value);
}
inline void atomic_add(double* to, double value) {
    atomicAdd(to, value);
}
template <class R>
void atomic_add(Complex<R>* to, Complex<R> value) {
    atomicAdd(&to->re, value.re);
    atomicAdd(&to->im, value.im);
}

/// Returns true in all threads of the last of `expected` blocks to arrive; that block then sees all
/// values that the others have written. The counter is zero before the first and after the last
/// arrival.
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

/// Sums the entries begin, begin + THREADS, ... below size, BATCH of them, over `count` parts that
/// are `stride` elements apart, in order. The loads of AHEAD parts are in flight at once, because
/// nothing else hides their latency.
template <int BATCH, int THREADS, int AHEAD, class T>
void sum_in_order(T (&sum)[BATCH], int begin, int size, const T* parts, std::int64_t stride,
                  int count) {
    for (int part = 0; part < count; part += AHEAD) {
        T value[AHEAD][BATCH];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int i = begin + b * THREADS;
                if (part + a < count && i < size) {
                    value[a][b] = load_coherent(parts + (part + a) * stride + i);
                }
            }
        }
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (part + a < count) {
                    sum[b] = sum[b] + value[a][b];
                }
            }
        }
    }
}

/// Calls store(i, sum) for i = 0 .. size - 1 with the sums of `count` parts that are `stride`
/// elements apart. For a small result several lanes share the parts, each a contiguous range. All
/// THREADS threads must call this; `shared` holds THREADS elements or is null; size <= MOST.
template <int MOST, int THREADS, class T, class Store>
void sum_parts(int size, const T* parts, std::int64_t stride, int count, T* shared, Store store) {
    constexpr int ahead = 4;
    if (2 * size <= THREADS && shared != nullptr) {
        const int lanes = minimum(THREADS / size, count);
        const int lane = threadIdx.x / size;
        const int share = ceil_div(count, lanes);
        const int first = lane * share;
        T sum[1] = {};
        if (lane < lanes && first < count) {
            const int i = threadIdx.x % size;
            sum_in_order<1, THREADS, ahead>(sum, i, size, parts + first * stride, stride,
                                            minimum(share, count - first));
        }
        sum_over_lanes(sum, lane, lanes, size, shared);
        if (lane == 0) {
            store(static_cast<int>(threadIdx.x), sum[0]);
        }
        return;
    }
    // Four entries at once if there are more entries than threads; code that MOST rules out is not
    // compiled.
    constexpr int batch = MOST > THREADS ? 4 : 1;
    for (int begin = threadIdx.x; begin < size; begin += batch * THREADS) {
        T sum[batch] = {};
        sum_in_order<batch, THREADS, batch == 1 ? ahead : 4>(sum, begin, size, parts, stride,
                                                             count);
#pragma unroll
        for (int b = 0; b < batch; ++b) {
            if (begin + b * THREADS < size) {
                store(begin + b * THREADS, sum[b]);
            }
        }
    }
}

/// Sums partials[block * size + i] over all blocks of the launch (a one-dimensional grid) and calls
/// store(i, sum) for i = 0 .. size - 1 in the last block. If `panels` > 1, that many neighbouring
/// blocks count as one block, and each of them has written size / panels of its numbers. If the
/// launch has more than one `group` of blocks, the sum has two levels: the last block of each group
/// sums the group, and the last of these blocks sums the groups, so that a single multiprocessor
/// need not read wide results of many blocks. If `group` is 0, the partials are not summed. Uses 1
/// + ceil(blocks / group) counters. All threads must call this after their block has written its
/// partials; MOST, THREADS and `shared` are those of sum_parts.
template <int MOST, int THREADS, class T, class Store>
void sum_over_blocks(int size, T* partials, unsigned* counters, int group, T* shared, Store store,
                     int panels = 1) {
    if (group == 0) {
        return;
    }
    const int blocks = gridDim.x / panels;
    const int groups = ceil_div(blocks, group);
    const int mine = blockIdx.x / panels / group;
    const int first = mine * group;
    T* const own = partials + static_cast<std::int64_t>(first) * size;
    const T* parts = own;
    std::int64_t stride = size;
    int count = minimum(group, blocks - first);
    if (gridDim.x == 1) {
        __syncthreads();
    } else if (!last_to_arrive(counters + 1 + mine, count * panels)) {
        return;
    }
    // Both levels share this code: two copies of it would take half of a kernel's compilation time.
    bool last_level = groups == 1;
#pragma unroll 1
    while (true) {
        sum_parts<MOST, THREADS>(size, parts, stride, count, shared, [&](int i, T sum) {
            if (last_level) {
                store(i, sum);
            } else {
                own[i] = sum;
            }
        });
        if (last_level || !last_to_arrive(counters, groups)) {
            return;
        }
        parts = partials;
        stride = static_cast<std::int64_t>(group) * size;
        count = groups;
        last_level = true;
    }
}

}  // namespace quiver

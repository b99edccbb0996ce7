// SPDX-License-Identifier: BSD-3-Clause
// An all-reduce over the GPUs of a node in one step: each rank writes its values into the memory of
// all others and adds the received values. It uses no collective of a library and no multicast.
#pragma once

#include "kernels/cuda/peer_args.hpp"
#include "scalar.cuh"

namespace quiver {

inline void release_to_system(unsigned* to, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
inline unsigned acquire_from_system(const unsigned* from) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
inline long long nanoseconds() {
    long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

/// Block b has its share of the values and waits only for the blocks b of the other ranks. The
/// slots of two turns suffice: a rank that reaches turn t + 2 has received the flags of turn t + 1
/// from all others, which therefore have finished turn t. If a rank does not answer within
/// most_wait, all results of the block become NaN, and `late` gets the rank's number plus 1.
template <class R>
__global__ void __launch_bounds__(512) peer_sum(PeerSumArgs<R> args) {
    const int share = ceil_div(args.count, static_cast<int>(gridDim.x));
    const int begin = static_cast<int>(blockIdx.x) * share;
    const int end = minimum(begin + share, args.count);
    const int self = threadIdx.x;
    for (int i = begin + self; i < end; i += blockDim.x) {
        const R value = args.values[i];
        for (int p = 0; p < args.ranks; ++p) {
            if (p != args.rank) {
                args.payload(p, args.rank)[i] = value;
            }
        }
    }
    __syncthreads();
    bool lost = false;
    if (self < args.ranks && self != args.rank) {
        __threadfence_system();
        release_to_system(args.flag(self, args.rank, blockIdx.x), args.turn);
        const unsigned* const flag = args.flag(args.rank, self, blockIdx.x);
        const long long start = nanoseconds();
        while (!lost && acquire_from_system(flag) != args.turn) {
            lost = nanoseconds() - start > args.most_wait;
        }
        if (lost) {
            *static_cast<volatile unsigned*>(args.late) = static_cast<unsigned>(self) + 1;
            __threadfence_system();
        }
    }
    lost = __syncthreads_or(lost ? 1 : 0) != 0;
    for (int i = begin + self; i < end; i += blockDim.x) {
        R sum{};
        for (int p = 0; p < args.ranks; ++p) {
            const R value =
                p == args.rank ? args.values[i] : load_coherent(args.payload(args.rank, p) + i);
            sum = p == 0 ? value : sum + value;
        }
        args.values[i] = lost ? static_cast<R>(__int_as_float(0x7fffffff)) : sum;
    }
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The counter-based generator of kernels/random.hpp: the same bits as on the host.
#pragma once

#include "columns.cuh"
#include "kernels/operations/fill_random.hpp"

namespace quiver {

struct PhiloxWords {
    unsigned word[4];
};

/// Philox4x32-10: Salmon, Moraes, Dror, Shaw, SC 2011.
inline PhiloxWords philox(PhiloxWords counter, unsigned key0, unsigned key1) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned* c = counter.word;
        const unsigned high0 = __umulhi(0xD2511F53u, c[0]);
        const unsigned low0 = 0xD2511F53u * c[0];
        const unsigned high1 = __umulhi(0xCD9E8D57u, c[2]);
        const unsigned low1 = 0xCD9E8D57u * c[2];
        counter = {{high1 ^ c[1] ^ key0, low1, high0 ^ c[3] ^ key1, low0}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/// A number in [-1, 1) from the high bits of the words; every step is exact.
template <class R>
R symmetric_uniform(unsigned first, unsigned second);
template <>
inline float symmetric_uniform<float>(unsigned first, unsigned) {
    return static_cast<float>(first >> 8) * 0x1p-23f - 1.0f;
}
template <>
inline double symmetric_uniform<double>(unsigned first, unsigned second) {
    const std::uint64_t bits = (static_cast<std::uint64_t>(first) << 32 | second) >> 11;
    return static_cast<double>(bits) * 0x1p-52 - 1.0;
}

template <class T>
struct RandomScalar {
    static T from(const PhiloxWords& w) { return symmetric_uniform<T>(w.word[0], w.word[1]); }
};
template <class R>
struct RandomScalar<Complex<R>> {
    static Complex<R> from(const PhiloxWords& w) {
        return {symmetric_uniform<R>(w.word[0], w.word[1]),
                symmetric_uniform<R>(w.word[2], w.word[3])};
    }
};

template <class T>
__global__ void __launch_bounds__(256) fill_random(RandomArgs<T> args, int panel) {
    const ColumnWalk walk(args.cols, panel);
    const auto column = static_cast<unsigned>(args.first_column + walk.column);
    stream_rows(
        walk, args.rows,
        [&](std::int64_t row) {
            const auto global = static_cast<std::uint64_t>(args.first_row + row);
            return RandomScalar<T>::from(philox(
                {{static_cast<unsigned>(global), static_cast<unsigned>(global >> 32), column, 0u}},
                static_cast<unsigned>(args.seed), static_cast<unsigned>(args.seed >> 32)));
        },
        [&](std::int64_t row, T value) { args.x[row * args.ldx + walk.column] = value; });
}

}  // namespace quiver

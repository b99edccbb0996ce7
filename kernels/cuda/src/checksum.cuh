// SPDX-License-Identifier: BSD-3-Clause
// Checksums of chunks of rows, and parities of arrays: see kernels/checksum.hpp.
#pragma once

#include "kernels/leaf_args.hpp"
#include "reduce.cuh"

namespace quiver {

/// A sum of two doubles; + keeps what it loses (Knuth's two-sum).
struct Twofold {
    double high, low;
};
inline Twofold operator+(Twofold a, Twofold b) {
    const double sum = __dadd_rn(a.high, b.high);
    const double part = __dsub_rn(sum, a.high);
    const double rest = __dadd_rn(__dsub_rn(a.high, __dsub_rn(sum, part)), __dsub_rn(b.high, part));
    return {sum, __dadd_rn(__dadd_rn(a.low, b.low), rest)};
}

/// In what the columns of a type are summed, and a number of it.
template <class T>
struct SumOf;
template <>
struct SumOf<float> {
    using type = double;
};
template <>
struct SumOf<double> {
    using type = Twofold;
};
template <class R>
struct SumOf<Complex<R>> {
    using type = Complex<typename SumOf<R>::type>;
};

inline void add_to(double& sum, double value) {
    sum = __dadd_rn(sum, value);
}
inline void add_to(Twofold& sum, double value) {
    sum = sum + Twofold{value, 0.0};
}
template <class A>
void add_to(Complex<A>& sum, Complex<double> value) {
    add_to(sum.re, value.re);
    add_to(sum.im, value.im);
}
/// A real number to a real sum, or to the real part.
template <class A>
void add_real(A& sum, double value) {
    add_to(sum, value);
}
template <class A>
void add_real(Complex<A>& sum, double value) {
    add_to(sum.re, value);
}

template <class R>
double widened(R value) {
    return static_cast<double>(value);
}
template <class R>
Complex<double> widened(Complex<R> value) {
    return {static_cast<double>(value.re), static_cast<double>(value.im)};
}

// Products are rounded before they are summed: a contraction would break the two-sum.
inline double times(double w, double x) {
    return __dmul_rn(w, x);
}
inline Complex<double> times(double w, Complex<double> x) {
    return {__dmul_rn(w, x.re), __dmul_rn(w, x.im)};
}
inline double conjugate_times(double w, double x) {
    return __dmul_rn(w, x);
}
inline Complex<double> conjugate_times(Complex<double> w, Complex<double> x) {
    return {__fma_rn(w.re, x.re, __dmul_rn(w.im, x.im)),
            __fma_rn(w.re, x.im, __dmul_rn(-w.im, x.re))};
}
inline double squared(double x) {
    return __dmul_rn(x, x);
}
inline double squared(Complex<double> x) {
    return __fma_rn(x.re, x.re, __dmul_rn(x.im, x.im));
}

inline double total(double sum) {
    return sum;
}
inline double total(Twofold sum) {
    return __dadd_rn(sum.high, sum.low);
}
template <class A>
Complex<double> total(Complex<A> sum) {
    return {total(sum.re), total(sum.im)};
}

/// blockIdx.x counts chunks, blockIdx.y panels of columns.
template <class T, class S, bool GIVEN>
__global__ void __launch_bounds__(256) checksum(ChecksumArgs<T, S> args, int panel) {
    using A = typename SumOf<T>::type;
    constexpr int kinds = GIVEN ? 5 : 3;
    __shared__ A shared[kinds * 256];
    const int lanes = blockDim.x / panel;
    const int lane = threadIdx.x / panel;
    const int column = blockIdx.y * panel + threadIdx.x % panel;
    const bool active = lane < lanes && column < args.cols;
    const std::int64_t chunk_rows = std::int64_t{1} << args.log_chunk;
    const std::int64_t chunks = (args.rows + chunk_rows - 1) >> args.log_chunk;
    for (std::int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const std::int64_t first = chunk << args.log_chunk;
        const int rows = static_cast<int>(minimum(chunk_rows, args.rows - first));
        A sum[kinds] = {};
        if (active) {
            const T* const x = args.x + first * args.ldx + column;
#pragma unroll 8
            for (int row = lane; row < rows; row += lanes) {
                const auto value = widened(x[row * args.ldx]);
                add_to(sum[0], value);
                add_to(sum[1], times(mixed_row(row) * mixed_row_unit, value));
                add_real(sum[2], squared(value));
                if constexpr (GIVEN) {
                    const S* const w = args.weights + (first + row) * args.ldw;
                    add_to(sum[3], conjugate_times(load_constant(w), value));
                    add_to(sum[4], conjugate_times(load_constant(w + 1), value));
                }
            }
        }
        sum_over_lanes(sum, lane, lanes, panel, shared);
        if (active && lane == 0) {
#pragma unroll
            for (int k = 0; k < kinds; ++k) {
                args.sums[(chunk * kinds + k) * args.cols + column] = total(sum[k]);
            }
        }
    }
}

/// The exclusive or over all 256 threads, in thread 0.
inline unsigned long long xor_over_block(unsigned long long value, unsigned long long* shared) {
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        value ^= shuffle_xor(value, mask);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        shared[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 8; ++warp) {
            value ^= shared[warp];
        }
    }
    return value;
}

/// A block of 256 threads for each piece of 2^LOG_WORDS words.
template <int LOG_WORDS>
__global__ void __launch_bounds__(256) parity(ParityArgs args) {
    constexpr int low_bits = 8;
    __shared__ unsigned long long shared[8];
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) << LOG_WORDS;
    const std::int64_t words = args.bytes / 8;
    const auto* const data = static_cast<const unsigned long long*>(args.data);
    unsigned long long all = 0;
    unsigned long long high[LOG_WORDS - low_bits] = {};
    for (int run = 0; run < 1 << (LOG_WORDS - low_bits); ++run) {
        const std::int64_t i = first + (run << low_bits) + threadIdx.x;
        unsigned long long word = 0;
        if (i < words) {
            word = data[i];
        } else if (i == words && args.bytes % 8 != 0) {
            word = static_cast<const unsigned*>(args.data)[2 * words];
        }
        all ^= word;
#pragma unroll
        for (int bit = 0; bit < LOG_WORDS - low_bits; ++bit) {
            high[bit] ^= (run >> bit & 1) != 0 ? word : 0;
        }
    }
    std::uint64_t* const to = args.parity + static_cast<std::int64_t>(blockIdx.x) * (LOG_WORDS + 1);
#pragma unroll
    for (int bit = 0; bit <= LOG_WORDS; ++bit) {
        unsigned long long own = all;
        if (bit < low_bits) {
            own = (threadIdx.x >> bit & 1) != 0 ? all : 0;
        } else if (bit < LOG_WORDS) {
            own = high[bit < LOG_WORDS ? bit - low_bits : 0];
        }
        const unsigned long long sum = xor_over_block(own, shared);
        if (threadIdx.x == 0) {
            to[bit] = sum;
        }
    }
}

}  // namespace quiver

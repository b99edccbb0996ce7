// SPDX-License-Identifier: BSD-3-Clause
// Checksums of chunks of rows, and parities of arrays; see kernels/checksum.hpp.
#pragma once

#include "kernels/operations/checksum.hpp"
#include "reduce.cuh"
#include "twofold.cuh"

namespace quiver {

/// Checksums of words; see ChecksumWord.
struct WordTotals {
    unsigned long long plain, mixed;
};
inline void add_word(WordTotals& sum, unsigned factor, float value) {
    const unsigned word = __float_as_uint(value);
    sum.plain += word;
    sum.mixed += static_cast<unsigned long long>(factor) * word;
}
inline void add_word(WordTotals& sum, unsigned factor, double value) {
    const unsigned low = static_cast<unsigned>(__double2loint(value));
    const unsigned high = static_cast<unsigned>(__double2hiint(value));
    sum.plain += static_cast<unsigned long long>(__double_as_longlong(value));
    sum.mixed += static_cast<unsigned long long>(factor) * low;
    sum.mixed += static_cast<unsigned long long>(~factor) * high;
}
template <class R>
void add_words(WordTotals (&sum)[1], unsigned factor, R value) {
    add_word(sum[0], factor, value);
}
template <class R>
void add_words(WordTotals (&sum)[2], unsigned factor, Complex<R> value) {
    add_word(sum[0], factor, value.re);
    add_word(sum[1], factor, value.im);
}

/// Adds rows row, row + lanes, ... of the chunk of `rows` rows that starts at `first` to the sums
/// of a column. All loads are issued before the first addition; a test for the end of the chunk
/// between two loads would serialise them.
template <int ROWS, bool WORDS, class T, class S, class A, int KINDS, int REALS>
void add_rows(A (&sum)[KINDS], WordTotals (&words)[REALS], const ChecksumArgs<T, S>& args,
              std::int64_t first, int row, int rows, int lanes, int column) {
    constexpr bool given = KINDS == 5;
    T value[ROWS];
    S weight[given ? ROWS : 1][2];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const std::int64_t at = first + row + i * lanes;
        value[i] = args.x[at * args.ldx + column];
        if constexpr (given) {
            weight[i][0] = load_constant(args.weights + at * args.ldw);
            weight[i][1] = load_constant(args.weights + at * args.ldw + 1);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const auto number = widened(value[i]);
        const unsigned mixed = mixed_row(row + i * lanes);
        add_to(sum[0], number);
        add_to(sum[1], times(mixed * mixed_row_unit, number));
        if constexpr (WORDS) {
            add_words(words, word_factor(rows - row - i * lanes), value[i]);
        }
        add_square(leading(sum[2]), number);
        if constexpr (given) {
            add_to(sum[3], conjugate_times(weight[i][0], number));
            add_to(sum[4], conjugate_times(weight[i][1], number));
        }
    }
}

/// Blocks per multiprocessor; all sums of a complex column need the registers of two blocks.
template <class S, bool GIVEN, bool WORDS>
constexpr int checksum_blocks = !GIVEN || !WORDS || sizeof(S) == sizeof(double) ? 2 : 1;

/// blockIdx.x counts the panels of blocks of columns, so that a cache line shared by two panels is
/// read once; blockIdx.y counts chunks of rows.
template <class T, class S, bool GIVEN, bool WORDS>
__global__ void __launch_bounds__(512, checksum_blocks<S, GIVEN, WORDS>)
    checksum(ChecksumArgs<T, S> args, int panel) {
    using A = typename SumOf<T>::type;
    constexpr int kinds = GIVEN ? 5 : 3;
    constexpr int reals = sizeof(S) / sizeof(double);
    constexpr int ahead = sizeof(T) > 8 ? 4 : 8;
    __shared__ A shared[512];
    const int lanes = blockDim.x / panel;
    const int lane = threadIdx.x / panel;
    const int panels = (args.block + panel - 1) / panel;
    const int in_block = blockIdx.x % panels * panel + threadIdx.x % panel;
    const int column = blockIdx.x / panels * args.block + in_block;
    const bool active = lane < lanes && in_block < args.block && column < args.cols;
    const std::int64_t chunk_rows = std::int64_t{1} << args.log_chunk;
    const std::int64_t chunks = (args.rows + chunk_rows - 1) >> args.log_chunk;
    for (std::int64_t chunk = blockIdx.y; chunk < chunks; chunk += gridDim.y) {
        const std::int64_t first = chunk << args.log_chunk;
        const int rows = static_cast<int>(minimum(chunk_rows, args.rows - first));
        A sum[kinds] = {};
        WordTotals words[reals] = {};
        if (active) {
            int row = lane;
            for (; row < rows - (ahead - 1) * lanes; row += ahead * lanes) {
                add_rows<ahead, WORDS>(sum, words, args, first, row, rows, lanes, column);
            }
            for (; row < rows; row += lanes) {
                add_rows<1, WORDS>(sum, words, args, first, row, rows, lanes, column);
            }
        }
#pragma unroll
        for (int k = 0; k < kinds; ++k) {
            A part[1] = {sum[k]};
            sum_over_lanes(part, lane, lanes, panel, shared);
            if (active && lane == 0) {
                args.sums[(chunk * kinds + k) * args.cols + column] = total(part[0]);
            }
        }
        if constexpr (WORDS) {
#pragma unroll
            for (int r = 0; r < reals; ++r) {
                const unsigned long long both[2] = {words[r].plain, words[r].mixed};
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    unsigned long long part[1] = {both[k]};
                    sum_over_lanes(part, lane, lanes, panel,
                                   reinterpret_cast<unsigned long long*>(shared));
                    if (active && lane == 0) {
                        args.words[((chunk * 2 + k) * args.cols + column) * reals + r] = part[0];
                    }
                }
            }
        }
    }
}

/// The exclusive or over all 256 threads, returned in thread 0.
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

/// One block of 256 threads per piece of 2^LOG_WORDS words.
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

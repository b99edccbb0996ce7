// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of the checksums of the columns of a block, by chunks of rows.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// A permutation of 1 .. 2^16 in pseudo-random order: the second weight of a row is mixed_row /
/// 2^16. If the entries of a matrix column sum to zero, their weighted sum in general does not.
constexpr std::uint32_t mixed_row(std::uint32_t row) {
    row = row * 0x9e3bu & 0xffffu;
    row ^= row >> 8;
    row = row * 0x6f4bu & 0xffffu;
    row ^= row >> 7;
    return row + 1;
}
inline constexpr double mixed_row_unit = 0x1p-16;
/// The factor of a row's words when `left` rows of its chunk remain, itself included: 1 + left
/// (left - 1) / 2. Running sums of running sums apply it without a multiplication. See
/// ChecksumWord.
constexpr std::uint32_t word_factor(std::uint32_t left) {
    return 1 + left * (left - 1) / 2;
}

/// See checksum in kernels/checksum.hpp; S is checksum_t<T>.
template <class T, class S>
struct ChecksumArgs {
    std::int64_t rows;
    int cols;
    int log_chunk;
    const T* x;
    std::int64_t ldx;
    const S* weights;  // rows x 2, or null
    std::int64_t ldw;
    S* sums;               // (chunks 3) x cols, or (chunks 5) x cols with weights
    std::uint64_t* words;  // (chunks 2) x (cols reals), or null
    int block;             // group of columns summed independently of all others
};

/// bytes rows (sizeof(T) cols + 2 sizeof(S)), or sizeof(T) rows cols without given weights; flops 2
/// kinds rows cols (8 for complex), where `kinds` is 5 with given weights and 3 without. The sums
/// are small and not counted.
template <class T, class S>
constexpr Cost cost(const ChecksumArgs<T, S>& args) {
    const double rows = static_cast<double>(args.rows);
    const int weights = args.weights != nullptr ? 2 : 0;
    return {args.rows, weights, args.cols,
            rows * static_cast<double>(sizeof(T)) * args.cols +
                rows * static_cast<double>(sizeof(S)) * weights,
            flops_per_multiply_add<T> * (3 + weights) * rows * args.cols};
}

/// See parity in kernels/checksum.hpp.
struct ParityArgs {
    const void* data;
    std::int64_t bytes;
    std::uint64_t* parity;  // pieces x 17
};

/// bytes: the size of the data. The ledger records the number of 8-byte words as rows. No flops.
constexpr Cost cost(const ParityArgs& args) {
    return {args.bytes / 8, 0, 0, static_cast<double>(args.bytes), 0};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T, class S>
void checksum(int threads, const ChecksumArgs<T, S>& args);
void parity(int threads, const ParityArgs& args);
}  // namespace host
namespace cuda {
template <class T, class S>
void checksum(Context& ctx, const ChecksumArgs<T, S>& args);
void parity(Context& ctx, const ParityArgs& args);
}  // namespace cuda
#endif

}  // namespace quiver

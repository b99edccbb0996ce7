// SPDX-License-Identifier: BSD-3-Clause
// The ascending list of all bit words with a given number of ones. The combinatorial number system
// converts between a word and its index, without a table of all words.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/operations/hamiltonian.hpp"

namespace quiver {

inline constexpr int most_bits = 62;

/// C(n, k) at n binomial_stride + k, 0 <= k <= n <= most_bits; 0 for k > n.
inline constexpr auto binomials = [] {
    constexpr auto stride = static_cast<std::size_t>(binomial_stride);
    std::array<std::int64_t, stride * stride> c{};
    for (std::size_t n = 0; n <= most_bits; ++n) {
        c[n * stride] = 1;
        for (std::size_t k = 1; k <= n; ++k) {
            c[n * stride + k] = c[(n - 1) * stride + k - 1] + c[(n - 1) * stride + k];
        }
    }
    return c;
}();

/// The number of words of n bits with k ones, 0 <= n, k <= most_bits.
inline std::int64_t choose(int n, int k) {
    return binomials[static_cast<std::size_t>(n * binomial_stride + k)];
}

/// The words of `bits` bits with `ones` ones, or with ones = -1 all, without tables of ranks.
inline WordList word_list(int bits, int ones) {
    return {bits,
            ones,
            ones < 0 ? std::int64_t{1} << bits : choose(bits, ones),
            binomials.data(),
            0,
            nullptr,
            nullptr};
}

/// The word with index `rank` among the ascending words of `bits` bits with `ones` ones.
inline std::uint64_t word_of(std::int64_t rank, int bits, int ones) {
    return word_list(bits, ones).word(rank);
}

/// The inverse of word_of.
inline std::int64_t rank_of(std::uint64_t word) {
    return word_list(most_bits, count_ones(word)).rank(word);
}

}  // namespace quiver

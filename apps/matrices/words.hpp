// SPDX-License-Identifier: BSD-3-Clause
// The ascending list of all bit words with a given number of ones. The combinatorial number system
// converts between a word and its index, without a table of all words. Private to apps/matrices/.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace quiver::apps {

inline constexpr int most_bits = 62;

/// The number of words of n bits with k ones, 0 <= n, k <= most_bits.
inline std::int64_t choose(int n, int k) {
    constexpr auto size = static_cast<std::size_t>(most_bits) + 1;
    static constexpr auto table = [] {
        std::array<std::array<std::int64_t, size>, size> c{};
        for (std::size_t i = 0; i < size; ++i) {
            c[i][0] = 1;
            for (std::size_t j = 1; j <= i; ++j) {
                c[i][j] = c[i - 1][j - 1] + c[i - 1][j];
            }
        }
        return c;
    }();
    return table[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)];
}

/// The word with index `rank` among the ascending words of `bits` bits with `ones` ones.
inline std::uint64_t word_of(std::int64_t rank, int bits, int ones) {
    std::uint64_t word = 0;
    for (int bit = bits - 1; bit >= 0 && ones > 0; --bit) {
        if (rank >= choose(bit, ones)) {
            rank -= choose(bit, ones);
            --ones;
            word |= std::uint64_t{1} << bit;
        }
    }
    return word;
}

/// The inverse of word_of.
inline std::int64_t rank_of(std::uint64_t word) {
    std::int64_t rank = 0;
    for (int ones = 1; word != 0; ++ones) {
        rank += choose(std::countr_zero(word), ones);
        word &= word - 1;
    }
    return rank;
}

}  // namespace quiver::apps

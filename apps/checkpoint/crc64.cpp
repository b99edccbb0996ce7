// SPDX-License-Identifier: BSD-3-Clause
#include "apps/checkpoint/crc64.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

constexpr int slices = 8;
using Tables = std::array<std::array<std::uint64_t, 256>, slices>;

/// tables[s][b]: the contribution to the checksum of byte b that s further bytes follow.
constexpr Tables make_tables() {
    constexpr std::uint64_t polynomial = 0xc96c5795d7870f42u;
    Tables tables{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
        std::uint64_t word = byte;
        for (int bit = 0; bit < 8; ++bit) {
            word = (word >> 1) ^ ((word & 1) != 0 ? polynomial : 0);
        }
        tables[0][byte] = word;
    }
    for (std::size_t slice = 1; slice < slices; ++slice) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint64_t word = tables[slice - 1][byte];
            tables[slice][byte] = tables[0][word & 0xff] ^ (word >> 8);
        }
    }
    return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint64_t crc64(const void* data, std::size_t bytes, std::uint64_t before) {
    const auto* at = static_cast<const unsigned char*>(data);
    std::uint64_t crc = ~before;
    if constexpr (std::endian::native == std::endian::little) {
        for (; bytes >= slices; bytes -= slices, at += slices) {
            std::uint64_t word = 0;
            std::memcpy(&word, at, sizeof(word));
            word ^= crc;
            crc = 0;
            for (std::size_t slice = 0; slice < slices; ++slice) {
                crc ^= tables[slices - 1 - slice][(word >> (8 * slice)) & 0xff];
            }
        }
    }
    for (; bytes > 0; --bytes, ++at) {
        crc = tables[0][(crc ^ *at) & 0xff] ^ (crc >> 8);
    }
    return ~crc;
}

FileSum sum_of_file(const std::string& path) {
    constexpr std::size_t chunk = std::size_t{1} << 20;
    std::ifstream in(path, std::ios::binary);
    std::vector<char> buffer(chunk);
    FileSum sum;
    while (in.read(buffer.data(), chunk), in.gcount() > 0) {
        const auto count = static_cast<std::size_t>(in.gcount());
        sum.crc = crc64(buffer.data(), count, sum.crc);
        sum.bytes += in.gcount();
    }
    if (!in.eof()) {
        throw InputError("cannot read " + path + ": " + std::strerror(errno));
    }
    return sum;
}

std::string to_hex(std::uint64_t value) {
    return fmt::format("{:016x}", value);
}

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// Reads any bytes as a Matrix Market file. They must be refused with one line, or give the same
// matrix plain, gzip'd, and after writing and reading it again.
#include <complex>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <zlib.h>

#include "blockvec/comm.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "kernels/sparse/matrix_market_writer.hpp"
#include "tests/fuzz/fuzz_support.hpp"

namespace quiver::fuzz {
namespace {

using Complex = std::complex<double>;
/// Of matrices with more rows only the header is read, because the rows only cost memory.
constexpr std::int64_t most_rows = 1 << 16;

std::vector<std::uint8_t> gzipped(std::span<const std::uint8_t> bytes) {
    constexpr int window_and_gzip = 15 + 16;
    z_stream stream{};
    require(deflateInit2(&stream, 1, Z_DEFLATED, window_and_gzip, 8, Z_DEFAULT_STRATEGY) == Z_OK,
            "deflateInit2 failed");
    std::vector<std::uint8_t> packed(deflateBound(&stream, bytes.size()));
    stream.next_in = const_cast<std::uint8_t*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = packed.data();
    stream.avail_out = static_cast<uInt>(packed.size());
    require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate failed");
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

/// The rows, or the message of a refusal without the name of the file.
struct Outcome {
    std::optional<CsrRows<Complex>> rows;
    std::string refusal;
};

Outcome read(const Comm& comm, const std::string& path) {
    Outcome outcome;
    try {
        const MatrixMarketHeader header = read_matrix_market_header(comm, path);
        require(header.rows >= 0 && header.cols >= 0 && header.entries >= 0,
                "a header of negative size");
        if (header.rows <= most_rows && header.cols <= most_rows) {
            outcome.rows = read_matrix_market<Complex>(comm, path);
            require_sane(*outcome.rows, header.rows, header.cols);
        }
    } catch (const Error& error) {
        require(error.kind() == ErrorKind::input || error.kind() == ErrorKind::memory,
                std::string("neither an input nor a memory error: ") + error.what());
        require_message(error.what(), path);
        outcome.refusal = std::string(error.what()).substr(path.size());
    }
    return outcome;
}

bool same(const Outcome& one, const Outcome& other) {
    return one.refusal == other.refusal && one.rows.has_value() == other.rows.has_value() &&
           (!one.rows ||
            (one.rows->row_start == other.rows->row_start &&
             one.rows->column == other.rows->column && one.rows->value == other.rows->value));
}

void run(std::span<const std::uint8_t> bytes) {
    static MemoryFile plain_file;
    static MemoryFile packed_file;
    const Comm comm;
    plain_file.assign(bytes);
    const Outcome plain = read(comm, plain_file.path());
    const bool is_gzip = bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
    if (!is_gzip) {
        packed_file.assign(gzipped(bytes));
        const Outcome packed = read(comm, packed_file.path());
        require(same(plain, packed),
                "plain and gzip'd differ:" + plain.refusal + " |" + packed.refusal);
    }
    if (plain.rows) {
        static const std::string written = (std::filesystem::temp_directory_path() /
                                            ("quiver-fuzz-" + std::to_string(::getpid()) + ".mtx"))
                                               .string();
        write_matrix_market(comm, written, *plain.rows);
        const Outcome again = read(comm, written);
        std::filesystem::remove(written);
        require(same(plain, again), "the written file has other contents:" + again.refusal);
    }
}

}  // namespace
}  // namespace quiver::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    quiver::fuzz::run({data, size});
    return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// Common to the fuzz targets: failures with a reason, a file with given bytes, a check of rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::fuzz {

/// Aborts the process, which both drivers report as a failure.
[[noreturn]] inline void found(const std::string& what) {
    std::fprintf(stderr, "fuzz: %s\n", what.c_str());
    std::abort();
}

inline void require(bool holds, const std::string& what) {
    if (!holds) {
        found(what);
    }
}

/// Requires a message of one line that begins with `subject`.
inline void require_message(const std::string& message, const std::string& subject) {
    require(message.starts_with(subject), "the message does not name its subject: " + message);
    for (const char letter : message) {
        const auto code = static_cast<unsigned char>(letter);
        require(code >= 0x20 && code != 0x7f, "a control character in a message: " + message);
    }
}

/// A file in memory with a path, whose bytes can be replaced.
class MemoryFile {
  public:
    MemoryFile() : file_(::memfd_create("fuzz", 0)) { require(file_ >= 0, "memfd_create failed"); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { ::close(file_); }

    void assign(std::span<const std::uint8_t> bytes) {
        const auto size = static_cast<::off_t>(bytes.size());
        require(::ftruncate(file_, 0) == 0 && ::ftruncate(file_, size) == 0 &&
                    ::pwrite(file_, bytes.data(), bytes.size(), 0) == size,
                "the file in memory cannot be written");
    }
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

  private:
    int file_;
};

/// Checks all rows of a matrix on one rank: ascending columns in range, finite values, matching
/// array lengths.
template <class T>
void require_sane(const CsrRows<T>& rows, std::int64_t global_rows, std::int64_t global_cols) {
    const auto count = static_cast<std::size_t>(global_rows);
    require(rows.map.global_rows() == global_rows && rows.global_cols == global_cols,
            "the size is not the announced one");
    require(rows.row_start.size() == count + 1 && rows.row_start.front() == 0 &&
                rows.row_start.back() == static_cast<std::int64_t>(rows.column.size()) &&
                rows.column.size() == rows.value.size(),
            "the arrays' lengths disagree");
    for (std::size_t row = 0; row < count; ++row) {
        require(rows.row_start[row] <= rows.row_start[row + 1], "a row of negative length");
        std::int64_t before = -1;
        for (auto at = static_cast<std::size_t>(rows.row_start[row]);
             at < static_cast<std::size_t>(rows.row_start[row + 1]); ++at) {
            require(rows.column[at] > before && rows.column[at] < global_cols,
                    "columns out of order or range");
            before = rows.column[at];
            require(std::isfinite(std::abs(rows.value[at])), "a value that is not finite");
        }
    }
}

}  // namespace quiver::fuzz

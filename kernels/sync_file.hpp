// SPDX-License-Identifier: BSD-3-Clause
// sync_file: makes written data durable, so that they survive a crash of the machine.
#pragma once

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace quiver {

/// Synchronises a file, or the entries of a directory, to disk (fsync). Returns 0, or errno.
inline int sync_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const int code = file < 0 || ::fsync(file) != 0 ? errno : 0;
    if (file >= 0) {
        ::close(file);
    }
    return code;
}

}  // namespace quiver

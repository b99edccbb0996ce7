// SPDX-License-Identifier: BSD-3-Clause
// Simulates a full disk.
#pragma once

#include <csignal>

#include <sys/resource.h>

namespace quiver::test {

/// Limits the size of files, so that a write fails half-way, as on a full disk.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) {
        previous_signal_ = std::signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &previous_);
        const rlimit limit{bytes, previous_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    ~FileSizeLimit() {
        setrlimit(RLIMIT_FSIZE, &previous_);
        std::signal(SIGXFSZ, previous_signal_);
    }

  private:
    rlimit previous_{};
    void (*previous_signal_)(int) = nullptr;
};

}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// A full disk, for tests.
#pragma once

#include <csignal>

#include <sys/resource.h>

namespace quiver::test {

/// A limit on the size of files stands for a full disk: writes fail in the middle.
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

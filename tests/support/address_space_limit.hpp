// SPDX-License-Identifier: BSD-3-Clause
// Simulates a machine with little free memory.
#pragma once

#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace quiver::test {

/// Limits the address space of this process to its present size plus `bytes`. Tests with a
/// sanitizer cannot use it: see address_space_is_vast (sanitizers.hpp).
class AddressSpaceLimit {
  public:
    explicit AddressSpaceLimit(rlim_t bytes) {
        getrlimit(RLIMIT_AS, &previous_);
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlimit limit{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes,
                           previous_.rlim_max};
        setrlimit(RLIMIT_AS, &limit);
    }
    AddressSpaceLimit(const AddressSpaceLimit&) = delete;
    AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;
    ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &previous_); }

  private:
    rlimit previous_{};
};

}  // namespace quiver::test

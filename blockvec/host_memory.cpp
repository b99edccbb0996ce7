// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/host_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "blockvec/error.hpp"

namespace quiver {
namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();

/// Reads the line "MemAvailable:   23456 kB" of /proc/meminfo.
double available_to_the_kernel() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    double kilobytes = 0;
    std::string unit;
    while (file >> name >> kilobytes && std::getline(file, unit)) {
        if (name == "MemAvailable:") {
            return 1024 * kilobytes;
        }
    }
    return unknown;
}

/// Bytes left of the control groups in which a container or batch system runs this process: the
/// least of its own group and the groups that contain it.
double available_to_the_groups() {
    std::ifstream file("/proc/self/cgroup");
    std::string group;
    const std::string unified = "0::";
    while (std::getline(file, group) && !group.starts_with(unified)) {
    }
    group.erase(0, std::min(unified.size(), group.size()));
    double least = unknown;
    for (;;) {
        const std::string folder = "/sys/fs/cgroup" + group;
        double limit = 0;
        double used = 0;
        if (std::ifstream(folder + "/memory.max") >> limit &&
            std::ifstream(folder + "/memory.current") >> used) {
            least = std::min(least, std::max(limit - used, 0.0));
        }
        if (group.find_first_not_of('/') == std::string::npos) {
            return least;
        }
        group.erase(group.rfind('/'));
    }
}

}  // namespace

double available_host_bytes() {
    return std::min(available_to_the_kernel(), available_to_the_groups());
}

double available_address_space() {
    rlimit limit{};
    double pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !(std::ifstream("/proc/self/statm") >> pages)) {
        return unknown;
    }
    const double used = pages * static_cast<double>(sysconf(_SC_PAGE_SIZE));
    return std::max(static_cast<double>(limit.rlim_cur) - used, 0.0);
}

void require_host_memory(const Comm& comm, double bytes, const std::string& what) {
    const double together = comm.sum_on_node(bytes);
    comm.agree([&] {
        char numbers[160];
        const double mappable = available_address_space();
        if (bytes > mappable) {
            std::snprintf(numbers, sizeof numbers,
                          " %.0f MB of memory on this rank; its limit on the address space"
                          " leaves %.0f",
                          1e-6 * bytes, 1e-6 * mappable);
            throw MemoryError(what + numbers + " MB: raise the limit (ulimit -v)");
        }
        const double available = available_host_bytes();
        if (together > available) {
            std::snprintf(numbers, sizeof numbers,
                          " %.0f MB of memory on this rank and %.0f MB on its node, which has %.0f",
                          1e-6 * bytes, 1e-6 * together, 1e-6 * available);
            throw MemoryError(what + numbers + " MB left: use more nodes, or a smaller matrix");
        }
    });
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "apps/cpu_binding.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include <sched.h>

#include "blockvec/comm.hpp"

namespace quiver::apps {
namespace {

std::vector<int> cores_in(const cpu_set_t& set) {
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(static_cast<std::size_t>(core), &set) != 0) {
            cores.push_back(core);
        }
    }
    return cores;
}

cpu_set_t set_of(const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) {
        CPU_SET(static_cast<std::size_t>(core), &set);
    }
    return set;
}

/// The cores that the system reports as near a PCI device; empty if it reports none.
std::vector<int> cores_near(std::string pci_bus) {
    std::transform(pci_bus.begin(), pci_bus.end(), pci_bus.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    std::ifstream file("/sys/bus/pci/devices/" + pci_bus + "/local_cpulist");
    std::string text;
    std::getline(file, text);
    return parse_cpu_list(text);
}

std::vector<cpu_set_t> gather(MPI_Comm node, const cpu_set_t& mine) {
    int size = 1;
    check_mpi(MPI_Comm_size(node, &size), "MPI_Comm_size");
    std::vector<cpu_set_t> all(static_cast<std::size_t>(size));
    check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node),
              "MPI_Allgather");
    return all;
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
    std::vector<int> cores;
    std::istringstream list(text);
    for (std::string range; std::getline(list, range, ',');) {
        int first = 0;
        const char* const end = range.data() + range.size();
        auto [next, error] = std::from_chars(range.data(), end, first);
        int last = first;
        if (error == std::errc() && next != end && *next == '-') {
            const auto read = std::from_chars(next + 1, end, last);
            next = read.ptr;
            error = read.ec;
        }
        if (error != std::errc() || next != end || first < 0 || last < first ||
            last >= CPU_SETSIZE) {
            return {};
        }
        for (int core = first; core <= last; ++core) {
            cores.push_back(core);
        }
    }
    std::sort(cores.begin(), cores.end());
    cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
    return cores;
}

std::vector<int> share_of(const std::vector<int>& cores, int index, int parts) {
    const auto count = static_cast<int>(cores.size());
    if (count < parts) {
        return cores;
    }
    return {cores.begin() + count * index / parts, cores.begin() + count * (index + 1) / parts};
}

int bind_near_gpu(MPI_Comm node, const std::string& pci_bus) {
    int rank = 0;
    check_mpi(MPI_Comm_rank(node, &rank), "MPI_Comm_rank");
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    const bool free =
        known && std::getenv("OMP_PROC_BIND") == nullptr && std::getenv("OMP_PLACES") == nullptr;
    const std::vector<cpu_set_t> all = gather(node, free ? allowed : cpu_set_t{});
    const bool unbound = std::all_of(all.begin(), all.end(), [&](const cpu_set_t& other) {
        return CPU_EQUAL(&all.front(), &other) != 0 && CPU_COUNT(&other) > 0;
    });
    const std::vector<int> mine = cores_in(allowed);
    std::vector<int> near;
    const std::vector<int> local = pci_bus.empty() ? mine : cores_near(pci_bus);
    std::set_intersection(mine.begin(), mine.end(), local.begin(), local.end(),
                          std::back_inserter(near));
    const std::vector<cpu_set_t> wanted = gather(node, set_of(near.empty() ? mine : near));
    if (!unbound || wanted.size() == 1) {
        return 0;
    }
    const auto same = [&](const cpu_set_t& other) {
        return CPU_EQUAL(&wanted[static_cast<std::size_t>(rank)], &other) != 0;
    };
    const auto parts = std::count_if(wanted.begin(), wanted.end(), same);
    const auto index = std::count_if(wanted.begin(), wanted.begin() + rank, same);
    const std::vector<int> share =
        share_of(near.empty() ? mine : near, static_cast<int>(index), static_cast<int>(parts));
    const cpu_set_t chosen = set_of(share);
    return sched_setaffinity(0, sizeof chosen, &chosen) == 0 ? static_cast<int>(share.size()) : 0;
}

}  // namespace quiver::apps

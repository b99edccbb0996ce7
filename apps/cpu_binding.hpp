// SPDX-License-Identifier: BSD-3-Clause
// The cores that a rank with a GPU works on: those near the GPU, shared with the other ranks there.
#pragma once

#include <string>
#include <vector>

#include "blockvec/mpi.hpp"

namespace quiver::apps {

/// "0-3,8" as numbers, ascending; what is no such list is empty.
std::vector<int> parse_cpu_list(const std::string& text);

/// Part `index` of `parts` nearly equal ones of the cores, neighbours together; all of them where
/// there are fewer cores than parts.
std::vector<int> share_of(const std::vector<int>& cores, int index, int parts);

/// Where the launcher has left all ranks of a node on all its cores, and OMP_PROC_BIND and
/// OMP_PLACES are not set: keeps this rank, whose GPU has this bus address (empty: none), to its
/// share of the cores that the system calls near the GPU. Returns how many it has, 0 where nothing
/// was changed. Collective over `node`; before the first threads are made.
int bind_near_gpu(MPI_Comm node, const std::string& pci_bus);

}  // namespace quiver::apps

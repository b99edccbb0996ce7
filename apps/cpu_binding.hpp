// SPDX-License-Identifier: BSD-3-Clause
// Binds a rank with a GPU to cores near the GPU, which it shares with the other ranks there.
#pragma once

#include <string>
#include <vector>

#include "blockvec/mpi.hpp"

namespace quiver::apps {

/// Parses "0-3,8" to ascending numbers; empty for any other text.
std::vector<int> parse_cpu_list(const std::string& text);

/// Divides the cores into `parts` nearly equal groups of neighbours and returns group `index`; all
/// cores if there are fewer cores than parts.
std::vector<int> share_of(const std::vector<int>& cores, int index, int parts);

/// Binds this rank to its share of the cores that the system reports as near its GPU. `pci_bus` is
/// the GPU's bus address; empty: no GPU. Does nothing unless all ranks of the node may run on all
/// its cores, and OMP_PROC_BIND and OMP_PLACES are not set. Returns the number of cores, or 0 if
/// nothing was changed. Collective over `node`; call it before the first threads are created.
int bind_near_gpu(MPI_Comm node, const std::string& pci_bus);

}  // namespace quiver::apps

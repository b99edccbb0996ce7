// SPDX-License-Identifier: BSD-3-Clause
// Binds a rank to cores near its GPU. Ranks with the same near cores divide these among themselves.
#pragma once

#include <string>
#include <vector>

#include "blockvec/mpi.hpp"

namespace quiver::apps {

/// Parses a list such as "0-3,8" to ascending numbers without duplicates; empty for an invalid
/// text.
std::vector<int> parse_cpu_list(const std::string& text);

/// Divides the cores into `parts` nearly equal groups of neighbours and returns group `index`; all
/// cores if there are fewer cores than parts.
std::vector<int> share_of(const std::vector<int>& cores, int index, int parts);

/// Binds this rank to its share of the cores that the system reports as near its GPU, or of all
/// allowed cores if it reports none. `pci_bus` is the GPU's bus address; empty means no GPU, and a
/// share of all allowed cores. Does nothing for a single rank, if ranks of the node may run on
/// different cores (they are already bound), or if OMP_PROC_BIND or OMP_PLACES is set. Returns the
/// number of cores, or 0 if nothing was changed. Collective over `node`; call it before the first
/// threads are created.
int bind_near_gpu(MPI_Comm node, const std::string& pci_bus);

}  // namespace quiver::apps

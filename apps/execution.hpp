// SPDX-License-Identifier: BSD-3-Clause
// Chooses where a command runs: the option --device, the GPU of each rank of a node, threads per
// rank.
#pragma once

#include <string>

#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps {

struct Execution {
    Device device;
    /// auto: why the host was chosen, empty if GPUs were. mixed: how many ranks have a GPU.
    /// Otherwise empty.
    std::string note;
    /// True if GPUs and host cores of different ranks may work together (mixed).
    bool mixed = false;
};

/// `wanted` is auto, host, cuda or mixed; auto chooses GPUs if every rank sees one. The ranks of a
/// node are assigned to its GPUs in turn; with mixed each GPU has one rank, and the other ranks
/// work on the host. Threads: OMP_NUM_THREADS, else the cores that a rank may use, divided among
/// the ranks that may use the same cores. Collective. Throws UnsupportedError on all ranks: for
/// cuda if a rank sees no GPU, for mixed if no rank sees one.
Execution choose_execution(const Comm& comm, const std::string& wanted);

/// The number of threads of a rank, as described above. Collective.
int choose_threads(const Comm& comm);

}  // namespace quiver::apps

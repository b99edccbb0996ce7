// SPDX-License-Identifier: BSD-3-Clause
// Where a command runs: the option --device, the GPU of each rank of a node, threads per rank.
#pragma once

#include <string>

#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps {

struct Execution {
    Device device;
    /// Why `auto` took the host; empty otherwise.
    std::string note;
};

/// `wanted` is auto, host, cuda or mixed; auto chooses GPUs if every rank sees one. The ranks of a
/// node are assigned to its GPUs in turn; with mixed each GPU has one rank, and the other ranks
/// work on the host. Threads: OMP_NUM_THREADS, else the cores that a rank may use, divided
/// among the ranks that may use the same cores. Collective. Throws UnsupportedError on all ranks
/// for cuda and mixed without a GPU.
Execution choose_execution(const Comm& comm, const std::string& wanted);

/// The number of threads of a rank, as described above. Collective.
int choose_threads(const Comm& comm);

}  // namespace quiver::apps

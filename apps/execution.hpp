// SPDX-License-Identifier: BSD-3-Clause
// Where a command runs: the option --device, GPUs dealt to the ranks of a node, threads per rank.
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

/// `wanted` is auto, host or cuda; auto takes GPUs where every rank sees one. The ranks of a node
/// take its GPUs in turn. Threads: OMP_NUM_THREADS, else the cores that a rank may use, shared
/// with the ranks that may use the same. Collective. Throws UnsupportedError on all ranks for cuda
/// without a GPU.
Execution choose_execution(const Comm& comm, const std::string& wanted);

/// Threads of one rank as described above. Collective.
int choose_threads(const Comm& comm);

}  // namespace quiver::apps

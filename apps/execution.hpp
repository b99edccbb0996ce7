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

/// `wanted` is auto, host, cuda or mixed; auto takes GPUs where every rank sees one. The ranks of a
/// node take its GPUs in turn; with mixed each GPU goes to one rank, the other ranks work on the
/// host. Threads: OMP_NUM_THREADS, else the cores that a rank may use, shared
/// with the ranks that may use the same. Collective. Throws UnsupportedError on all ranks for cuda
/// and mixed without a GPU.
Execution choose_execution(const Comm& comm, const std::string& wanted);

/// Threads of one rank as described above. Collective.
int choose_threads(const Comm& comm);

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// Checks whether the host memory suffices before it is allocated: a system that overcommits memory
// kills a process that uses more memory than there is.
#pragma once

#include <string>

#include "blockvec/comm.hpp"

namespace quiver {

/// Bytes still available on this node: the kernel's MemAvailable or the rest of the control group's
/// limit, whichever is less. Infinity if neither is known.
double available_host_bytes();

/// Bytes that this process can still map below its limit on the address space (`ulimit -v`).
/// Infinity if there is no limit.
double available_address_space();

/// Throws MemoryError on all ranks if the ranks of one node together request more than the node has
/// available, or if one rank requests more than its limit on the address space allows. The message
/// begins with `what`, for instance "the factors take", and names the bytes. Collective, for set-up
/// only: splits the communicator by node, sums over the node, and calls Comm::agree().
void require_host_memory(const Comm& comm, double bytes, const std::string& what);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Whether the host memory suffices, asked before it is taken: a system that promises more than it
// has kills the process that believes it.
#pragma once

#include <string>

#include "blockvec/comm.hpp"

namespace quiver {

/// Bytes that this node can still give: what the kernel calls available, or what the control group
/// leaves, if that is less. Infinity where neither is known.
double available_host_bytes();

/// Bytes that this process can still map below its limit on the address space (`ulimit -v`).
/// Infinity where there is no limit.
double available_address_space();

/// Throws MemoryError on all ranks where the ranks of a node together ask for more than it can
/// give, or one rank for more than its limit on the address space leaves; the message names the
/// bytes and `what`. Collective, for set-up: makes a communicator of the node, sums over it, and
/// agrees.
void require_host_memory(const Comm& comm, double bytes, const std::string& what);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The distribution of the rows over the ranks: the option --weights.
#pragma once

#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps {

/// Measures the bandwidth of y = a x on the host or a GPU, in bytes per second. If all ranks
/// measure at the same time, ranks that share memory share its bandwidth. Takes about a tenth of a
/// second.
double stream_speed(const Device& device);

/// The weights of all ranks, the same on every rank; an empty result means equal weights. `text` is
/// `auto` (equal if all ranks work on the host or all on GPUs, else measured), `equal`, `measured`
/// (the bandwidth of each rank), or a list with a number for each rank. Collective. Throws
/// InputError on all ranks.
std::vector<double> rank_weights(const Comm& comm, const Device& device, const std::string& text);

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// How many of the rows each rank gets: the option --weights.
#pragma once

#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps {

/// Bytes per second that a Context's place streams (y = a x), as far as the other ranks, which
/// measure at the same time, leave it. Takes a tenth of a second.
double stream_speed(const Device& device);

/// A weight for each rank, the same on all ranks. `text` is `auto` (equal where all ranks work on
/// the host or all on GPUs, else by measured bandwidth), `equal`, `measured`, or a list of numbers,
/// one a rank. Empty: equal. Collective. Throws InputError on all ranks.
std::vector<double> rank_weights(const Comm& comm, const Device& device, const std::string& text);

}  // namespace quiver::apps

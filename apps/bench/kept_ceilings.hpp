// SPDX-License-Identifier: BSD-3-Clause
// The ceilings of a machine, measured once.
#pragma once

#include <functional>

#include "apps/bench/ceilings.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

/// measure_ceilings() with operands of `share` times the default size, so that those of all ranks
/// of a node or GPU together exceed its caches and fit its memory.
Ceilings measure_share(Context& ctx, double share);

/// The ceilings of this rank while all ranks of its node work.
///
/// They are read from a file of cache_folder(), whose name holds the processor and the number of
/// threads, or the GPU, and the number of ranks that share the node or the GPU. If a rank has no
/// such file, all ranks measure at the same time (a second or two each; longer with caches of
/// gigabytes) and keep the results; without a folder that can be written they are measured in every
/// run. Collective over the Context's ranks.
///
/// measure(alone, share) measures in a Context of this rank alone, with `share` of the memory that
/// one rank without others would use.
Ceilings kept_ceilings(const Context& ctx,
                       const std::function<Ceilings(Context&, double)>& measure = measure_share);

}  // namespace quiver::apps::bench

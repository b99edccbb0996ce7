// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench scaling`: products, solver steps and sums on 1, 2, 4, ... of the ranks there are.
#pragma once

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// No further matrix is made once the budget is spent.
struct ScalingOptions : CommonOptions {
    /// Edge of the Laplacian for strong scaling, and spins of the chain; 0: by the device.
    int nx = 0;
    int length = 0;
};

/// Runs every case on the first 1, 2, 4, ... ranks and on all, while the others wait, and prints
/// tables: weak and strong scaling of the sparse product at width 8 and of a step of block Lanczos,
/// sums of 64 x 64 doubles by each way there is, and what the model of docs/scaling.md says of all
/// this and of up to 1024 ranks. Collective. Returns whether the products of all numbers of ranks
/// agree to rounding.
bool run_scaling(const Comm& comm, const ScalingOptions& given);

}  // namespace quiver::apps::bench

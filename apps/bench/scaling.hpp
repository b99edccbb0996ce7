// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench scaling`: products, solver steps and reductions on 1, 2, 4, ... of the ranks.
#pragma once

#include "apps/bench/options.hpp"
#include "apps/row_distribution.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// No further matrix is measured once the budget is spent.
struct ScalingOptions : CommonOptions {
    /// Points per edge of the Laplacian for strong scaling, and spins of the chain; 0: a default
    /// for the device.
    int nx = 0;
    int length = 0;
    /// The distribution of the rows of every matrix.
    RowDistribution rows{"rows", "none", "auto", {}};
};

/// Runs every case on the first 1, 2, 4, ... ranks and on all ranks, while the others wait. Prints
/// tables of weak and strong scaling of the sparse product at width 8 and of a step of block
/// Lanczos, of reductions of 64 x 64 doubles by every available way, and of what the model of
/// docs/scaling.md predicts for these cases and for up to 1024 ranks. Collective. Returns true if
/// the products on all numbers of ranks agree up to rounding.
bool run_scaling(const Comm& comm, const ScalingOptions& given);

}  // namespace quiver::apps::bench

// SPDX-License-Identifier: BSD-3-Clause
// What `quiver bench scaling` measures on one set of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/scaling_model.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

constexpr int scaling_width = 8;
constexpr int scaling_sum = 64;  // a sum has that many squared doubles

/// One matrix on some ranks; seconds are those of the slowest rank.
struct ScalingPoint {
    std::string family;  // "laplace3d", "spinSZ"
    std::string matrix;
    double rows = 0;
    double nonzeros = 0;
    Load load;
    double product_seconds = 0;
    double step_seconds = 0;
    /// Sums over the ranks in a step, from the ledger.
    double sums_a_step = 0;
    /// Column norms of a product with columns that depend on the global row only.
    std::vector<double> norms;
    double setup_seconds = 0;
};

/// A sum of scaling_sum^2 doubles in the Context's place; seconds.
struct SumPoint {
    int ranks = 1;
    std::string way;
    /// One, all ranks ready: of the rank that comes last, and so waits for nobody.
    double alone = 0;
    double back_to_back = 0;
    /// What a tsmttsm to a host matrix takes longer than without the other ranks.
    double in_step = 0;
};

/// Product and steps with a generated matrix. Collective over the Context's ranks.
ScalingPoint measure_point(Context& ctx, const std::string& family, const std::string& matrix,
                           int repeat);
/// By each way that the ranks have; the first is the library's choice.
std::vector<SumPoint> measure_sums(Context& ctx, int repeat);
/// Seconds by bytes received: what matrices that only shift rows from rank to rank take longer than
/// the identity.
Curve measure_halo(Context& ctx, int repeat);

}  // namespace quiver::apps::bench

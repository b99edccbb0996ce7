// SPDX-License-Identifier: BSD-3-Clause
// The measurements of `quiver bench scaling` on one set of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/scaling_model.hpp"
#include "blockvec/context.hpp"
#include "kernels/sparse/reordering.hpp"

namespace quiver::apps::bench {

constexpr int scaling_width = 8;
constexpr int scaling_sum = 64;  // a reduction has scaling_sum^2 doubles

/// One matrix on some ranks; seconds are those of the slowest rank.
struct ScalingPoint {
    std::string family;  // "laplace3d", "spinSZ"
    std::string matrix;
    double rows = 0;
    double nonzeros = 0;
    Load load;
    double product_seconds = 0;
    double step_seconds = 0;
    /// Number of reductions over the ranks per step, from the ledger.
    double sums_a_step = 0;
    /// Column norms of a product whose input depends only on the global row, so that all numbers of
    /// ranks must agree.
    std::vector<double> norms;
    double setup_seconds = 0;
    /// The partition and order, and the halos that plan_reordering() counted.
    ReorderingFacts distribution;
};

/// Seconds of a reduction of scaling_sum^2 doubles in the Context's place.
struct SumPoint {
    int ranks = 1;
    std::string way;
    /// One reduction, on the last rank to enter it, which does not wait for others.
    double alone = 0;
    double back_to_back = 0;
    /// The additional time of a tsmttsm with its result in host memory, compared with one rank.
    double in_step = 0;
};

/// Measures products and solver steps with a matrix whose rows are distributed by `distribution`.
/// Collective over the Context's ranks.
ScalingPoint measure_point(Context& ctx, const std::string& family, const std::string& matrix,
                           int repeat, const ReorderingOptions& distribution);
/// Measures reductions in every available way; the first is the library's choice.
std::vector<SumPoint> measure_sums(Context& ctx, int repeat);
/// Seconds of an exchange by the bytes that a rank receives: the additional time of products with
/// matrices that shift rows to another rank, compared with the identity.
Curve measure_halo(Context& ctx, int repeat);

}  // namespace quiver::apps::bench

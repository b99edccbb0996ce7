// SPDX-License-Identifier: BSD-3-Clause
// Predicts the time of a sparse product and of a step of block Lanczos on p ranks: docs/scaling.md.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace quiver::apps::bench {

/// The model's data on one matrix and number of ranks; each number is that of the rank with the
/// most.
struct Load {
    int ranks = 1;
    double rows = 0;
    double nonzeros = 0;
    double boundary = 0;   // fraction of the rows that need rows of other ranks
    double halo_rows = 0;  // rows that a rank receives
};

/// Seconds as a function of an amount: linear between the measured points, and extrapolated from
/// the last two.
struct Curve {
    std::vector<std::pair<double, double>> points;  // amounts ascend

    double at(double amount) const;
    /// Adds the point (0, 0). Of points with the same amount the first counts.
    static Curve from_zero(std::vector<std::pair<double, double>> measured);
};

/// Seconds of the reduction of one step over p ranks. It is measured within a node; each doubling
/// beyond adds the time of a message between nodes.
struct SumModel {
    std::vector<std::pair<int, double>> measured;  // ranks, seconds
    double hop_seconds = 5e-6;
    double at(int ranks) const;
};

/// Everything is measured on the machine, except hop_seconds and predictions beyond one node.
struct ScalingModel {
    Curve product;  // one rank: seconds by its nonzeros
    Curve rest;     // one rank: seconds of a step without its product, by its rows
    Curve halo;     // seconds by the bytes that a rank receives
    SumModel sum;
    double sums_a_step = 0;
    double row_bytes = 64;

    /// max(interior, halo) + boundary
    double product_seconds(const Load& load) const;
    double halo_seconds(const Load& load) const;
    /// product + rest + sums
    double step_seconds(const Load& load) const;
};

/// A grid of nx x ny x nz points on `ranks` ranks: each rank has whole planes, or a block if fewer
/// than `least_planes` planes are left for each.
Load laplace3d_load(double nx, double ny, double nz, int ranks);

}  // namespace quiver::apps::bench

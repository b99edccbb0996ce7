// SPDX-License-Identifier: BSD-3-Clause
// Predicts the time of a sparse product and of a step of block Lanczos on p ranks: docs/scaling.md.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace quiver::apps::bench {

/// The model's data on one matrix and number of ranks. Each number is the maximum over the ranks.
struct Load {
    int ranks = 1;
    double rows = 0;
    double nonzeros = 0;
    double boundary = 0;   // fraction of the rows that need rows of other ranks
    double halo_rows = 0;  // rows that a rank receives
};

/// Seconds as a function of an amount: linear between the measured points, extrapolated from the
/// first or last two, and at least 0.
struct Curve {
    std::vector<std::pair<double, double>> points;  // amounts ascend

    double at(double amount) const;
    /// Adds the point (0, 0). Of points with the same amount the first counts.
    static Curve from_zero(std::vector<std::pair<double, double>> measured);
};

/// Seconds of one reduction over p ranks. It is measured within a node; between two measured
/// numbers of ranks the larger one counts. Each doubling beyond them adds the time of a message
/// between nodes.
struct SumModel {
    std::vector<std::pair<int, double>> measured;  // ranks, seconds
    double hop_seconds = 5e-6;
    double at(int ranks) const;
};

/// All data of the model are measured on the machine, except hop_seconds.
struct ScalingModel {
    Curve product;  // one rank: seconds by its nonzeros
    Curve rest;     // one rank: seconds of a step without its product, by its rows
    Curve halo;     // seconds by the bytes that a rank receives
    SumModel sum;
    double sums_a_step = 0;
    double row_bytes = 64;

    /// max(interior, halo) + boundary: the halo arrives while the interior rows are computed.
    double product_seconds(const Load& load) const;
    double halo_seconds(const Load& load) const;
    /// product + rest + sums
    double step_seconds(const Load& load) const;
};

/// The load of the Laplacian of a grid of nx x ny x nz points on `ranks` ranks, with rows in their
/// given order: each rank has whole planes or a part of one, and receives the planes next to them.
Load laplace3d_load(double nx, double ny, double nz, int ranks);

}  // namespace quiver::apps::bench

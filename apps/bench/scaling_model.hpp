// SPDX-License-Identifier: BSD-3-Clause
// What a sparse product and a step of block Lanczos should take on p ranks: docs/scaling.md.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace quiver::apps::bench {

/// What the model knows of one matrix on some ranks: those with the most to do.
struct Load {
    int ranks = 1;
    double rows = 0;       // of a rank
    double nonzeros = 0;   // of a rank
    double boundary = 0;   // the part of a rank's rows that needs rows of others
    double halo_rows = 0;  // that a rank receives
};

/// Seconds by an amount, straight between the measured points and on beyond the last two.
struct Curve {
    std::vector<std::pair<double, double>> points;  // amounts ascend

    double at(double amount) const;
    /// Through nothing for nothing, too; of points with the same amount the first counts.
    static Curve from_zero(std::vector<std::pair<double, double>> measured);
};

/// Seconds of a sum of one step's numbers over p ranks: measured within a node; each doubling
/// beyond it adds a message between nodes.
struct SumModel {
    std::vector<std::pair<int, double>> measured;  // ranks, seconds
    double hop_seconds = 5e-6;
    double at(int ranks) const;
};

/// Measured on the machine, apart from hop_seconds and what is said to be beyond the node.
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

/// A cube of nx^3 on p ranks: planes, or, from as many ranks as leave fewer than `least_planes`
/// to each, blocks.
Load laplace3d_load(double nx, double ny, double nz, int ranks);

}  // namespace quiver::apps::bench

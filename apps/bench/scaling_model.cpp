// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/scaling_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quiver::apps::bench {

Curve Curve::from_zero(std::vector<std::pair<double, double>> measured) {
    measured.emplace_back(0, 0);
    std::stable_sort(measured.begin(), measured.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    measured.erase(std::unique(measured.begin(), measured.end(), same), measured.end());
    return {std::move(measured)};
}

double Curve::at(double amount) const {
    if (points.size() < 2) {
        return points.empty() ? 0 : points.front().second;
    }
    std::size_t end = 1;
    while (end + 1 < points.size() && points[end].first < amount) {
        ++end;
    }
    const auto& [low, low_seconds] = points[end - 1];
    const auto& [high, high_seconds] = points[end];
    const double each = (high_seconds - low_seconds) / (high - low);
    return std::max(0.0, low_seconds + each * (amount - low));
}

double SumModel::at(int ranks) const {
    if (ranks <= 1 || measured.empty()) {
        return 0;
    }
    double seconds = measured.back().second;
    int reached = measured.back().first;
    for (const auto& [count, time] : measured) {
        if (count >= ranks) {
            return time;
        }
    }
    for (; reached < ranks; reached *= 2) {
        seconds += hop_seconds;
    }
    return seconds;
}

double ScalingModel::halo_seconds(const Load& load) const {
    return load.halo_rows == 0 ? 0 : halo.at(load.halo_rows * row_bytes);
}

double ScalingModel::product_seconds(const Load& load) const {
    const double work = product.at(load.nonzeros);
    return std::max(work * (1 - load.boundary), halo_seconds(load)) + work * load.boundary;
}

double ScalingModel::step_seconds(const Load& load) const {
    return product_seconds(load) + rest.at(load.rows) + sums_a_step * sum.at(load.ranks);
}

Load laplace3d_load(double nx, double ny, double nz, int ranks) {
    Load load;
    load.ranks = ranks;
    load.rows = nx * ny * nz / ranks;
    load.nonzeros = (7 * nx * ny * nz - 2 * (nx * ny + ny * nz + nx * nz)) / ranks;
    // With rows in their given order, a rank has whole planes or a part of one, and neighbours on
    // two sides.
    load.halo_rows =
        ranks == 1 ? 0 : std::min((ranks == 2 ? 1 : 2) * nx * ny, nx * ny * nz - load.rows);
    load.boundary = load.rows == 0 ? 0 : std::min(1.0, load.halo_rows / load.rows);
    return load;
}

}  // namespace quiver::apps::bench

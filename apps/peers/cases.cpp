// SPDX-License-Identifier: BSD-3-Clause
#include "apps/peers/cases.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

namespace quiver::peers {
namespace {

double line(int n, int i) {
    const double s = std::sin(0.5 * std::numbers::pi * (i + 1) / (n + 1));
    return 4 * s * s;
}

Case laplace3d(int n, int k) {
    // Every wanted one has indices below k.
    std::vector<double> values;
    const int most = std::min(n, k);
    for (int i = 0; i < most; ++i) {
        for (int j = 0; j < most; ++j) {
            for (int l = 0; l < most; ++l) {
                values.push_back(line(n, i) + line(n, j) + line(n, l));
            }
        }
    }
    std::sort(values.begin(), values.end());
    values.resize(static_cast<std::size_t>(k));
    return {fmt::format("laplace3d nx={}, {} smallest", n, k),
            fmt::format("gen:laplace3d,nx={}", n), false, std::move(values), 3 * line(n, n - 1)};
}

}  // namespace

std::vector<Case> cases(bool quick) {
    return {laplace3d(quick ? 24 : 60, 10)};
}

int missed(const std::vector<double>& known, const std::vector<double>& found, double error) {
    std::size_t next = 0;
    int count = 0;
    for (const double value : known) {
        while (next < found.size() && found[next] < value - error) {
            ++next;
        }
        if (next < found.size() && found[next] <= value + error) {
            ++next;
        } else {
            ++count;
        }
    }
    return count;
}

}  // namespace quiver::peers

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/verification.hpp"

#include <algorithm>
#include <cmath>

namespace quiver {
namespace {

/// The complement's extreme Ritz value counts as outside if its distance is at least this many
/// times its residual times the square root of the dimension: see docs/solvers.md.
constexpr double outside_margin = 100;

}  // namespace

ComplementVerdict judge_complement(double last, double theta, double rho, double threshold,
                                   double settled, std::int64_t dimensions) {
    const double gap = theta - last;
    const double margin = outside_margin * std::sqrt(static_cast<double>(dimensions));
    const double resolution = threshold + rho;
    const bool outside = gap > threshold && margin * rho <= gap;
    const bool finite = std::isfinite(gap) && std::isfinite(resolution);
    if (!finite || !(rho <= settled || outside)) {
        return ComplementVerdict::open;
    }
    if (gap < -resolution) {
        return ComplementVerdict::inside;
    }
    return gap <= resolution ? ComplementVerdict::tied : ComplementVerdict::outside;
}

double missing_growth(const std::vector<double>& keys, const std::vector<double>& residuals,
                      double next, int columns) {
    if (columns < least_free_columns) {
        return 0;
    }
    const auto avoided = static_cast<std::size_t>(columns - least_free_columns);
    double least = 1;
    std::vector<double> factors;
    for (std::size_t j = 0; j < keys.size(); ++j) {
        factors.clear();
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const double distance =
                std::max(0.0, std::abs(keys[i] - keys[j]) - residuals[i] - residuals[j]);
            factors.push_back(std::min(1.0, distance / (next - keys[i])));
        }
        std::sort(factors.begin(), factors.end());
        double growth = 1;
        for (std::size_t i = avoided; i < factors.size(); ++i) {
            growth *= factors[i];
        }
        least = std::min(least, growth);
    }
    // The free columns share the zeros of the polynomial.
    return std::pow(least, 1.0 / least_free_columns);
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/verification.hpp"

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

}  // namespace quiver

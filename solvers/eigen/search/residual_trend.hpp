// SPDX-License-Identifier: BSD-3-Clause
// Predicts the further steps of an iteration from its residuals so far. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <vector>

namespace quiver {

/// The residuals of an iteration that improves all wanted pairs together.
class ResidualTrend {
  public:
    /// Appends the residual of the first pair that has not converged, relative to the norm, after
    /// `step` steps. Steps ascend.
    void append(std::int64_t step, double residual);

    /// The predicted number of further steps: of the search, until the residual of the slowest pair
    /// has fallen from `worst` to `tolerance` (both relative to the norm), and of the verification.
    /// Model: residuals fall by a constant factor per step, measured over the second half of the
    /// steps so far; the rate of the slowest pair is that of the first one times the ratio of the
    /// logarithms of their residuals, at most 1. Negative if there is no prediction: too few
    /// residuals, residuals that do not fall or are 1 and more, a residual or tolerance of zero.
    double steps_until(double worst, double tolerance) const;

  private:
    struct Point {
        std::int64_t step;
        double residual;
    };
    std::vector<Point> points_;
};

}  // namespace quiver

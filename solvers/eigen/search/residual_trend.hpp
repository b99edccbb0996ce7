// SPDX-License-Identifier: BSD-3-Clause
// Estimates from the residuals of an iteration so far how many steps it still needs. Private to
// solvers/eigen.
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

    /// The steps that the search still needs until the residual of the slowest pair has fallen from
    /// `worst` to `tolerance`, and the steps of the verification. The residuals are taken to fall
    /// by a constant factor per step, as in the second half of the steps so far; the slowest pair
    /// falls more slowly than the first one, in the ratio of their logarithms. Infinity if the
    /// residuals do not fall; negative if there are too few of them.
    double steps_until(double worst, double tolerance) const;

  private:
    struct Point {
        std::int64_t step;
        double residual;
    };
    std::vector<Point> points_;
};

}  // namespace quiver

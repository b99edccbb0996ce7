// SPDX-License-Identifier: BSD-3-Clause
// Which eigenvalues are wanted first. Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <limits>

#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

/// The key of an eigenvalue, least for what is wanted most: the eigenvalue for an order from the
/// smallest, its negative for one from the largest, the distance to a window (0 inside).
class SpectralOrder {
  public:
    SpectralOrder(Which which) : which_(which) {}
    static SpectralOrder window(double low, double high) {
        SpectralOrder order(Which::smallest);
        order.low_ = low;
        order.high_ = high;
        return order;
    }

    double key(double value) const {
        if (low_ <= high_) {
            return std::max({low_ - value, value - high_, 0.0});
        }
        return which_ == Which::smallest ? value : -value;
    }

  private:
    Which which_;
    double low_ = std::numeric_limits<double>::infinity();
    double high_ = -std::numeric_limits<double>::infinity();
};

}  // namespace quiver

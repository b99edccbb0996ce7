// SPDX-License-Identifier: BSD-3-Clause
// Ritz pairs, and the order in which eigenvalues are wanted. Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

struct RitzPair {
    double value = 0;
    /// ||A x - lambda B x|| / ||x||_2
    double residual = 0;
};

/// The pairs with these values and residuals.
inline std::vector<RitzPair> ritz_pairs(const std::vector<double>& values,
                                        const std::vector<double>& residuals) {
    std::vector<RitzPair> pairs;
    for (std::size_t j = 0; j < values.size(); ++j) {
        pairs.push_back({values[j], residuals[j]});
    }
    return pairs;
}

/// The window in which computed values count as inside: wider at each end by `rounding` times the
/// larger of `norm` (of A; with B ||A|| / ||B||) and the |end|. Every copy of an eigenvalue at an
/// end is then inside, however it was rounded.
inline Window with_slack(const Window& window, double norm, double rounding) {
    const auto slack = [&](double end) { return rounding * std::max(norm, std::abs(end)); };
    return {window.low - slack(window.low), window.high + slack(window.high)};
}

/// Maps an eigenvalue to a key; the most wanted eigenvalue has the smallest key. The key is the
/// eigenvalue if the smallest are wanted, its negative if the largest are wanted, and with a window
/// the distance to the window (0 inside).
class SpectralOrder {
  public:
    SpectralOrder(Which which) : which_(which) {}
    static SpectralOrder window(const Window& window) {
        SpectralOrder order(Which::smallest);
        order.low_ = window.low;
        order.high_ = window.high;
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

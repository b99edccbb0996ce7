// SPDX-License-Identifier: BSD-3-Clause
// Detects that LOBPCG has stopped converging. Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "solvers/eigen/lobpcg/lobpcg_space.hpp"

namespace quiver {

/// Tracks whether residuals or Ritz values have decreased recently.
struct LobpcgProgress {
    double best_residual = std::numeric_limits<double>::infinity();
    double best_value = std::numeric_limits<double>::infinity();
    int since = 0;

    /// True if the first `wanted` pairs have improved in the last `patience` calls. Residuals below
    /// `tol` count as `tol`.
    template <class T>
    bool made(const LobpcgSpace<T>& space, int wanted, double tol, int patience) {
        double residual = 0;  // sum of log10 of the residuals
        double value = 0;
        double noise = 0;
        for (int j = 0; j < wanted; ++j) {
            residual += std::log10(std::max(space.relative_residual(j), std::max(tol, 1e-30)));
            value += space.key(j);
            noise += 100 * static_cast<double>(epsilon_v<T>) * space.scale(j);
        }
        const bool better = residual < best_residual - 0.05 || value < best_value - noise;
        since = better ? 0 : since + 1;
        if (better) {
            best_residual = std::min(best_residual, residual);
            best_value = std::min(best_value, value);
        }
        return since < patience;
    }
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Messages on infinite eigenvalues of a pencil. Private to solvers/eigen.
#pragma once

#include <string>

#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

/// What to request instead of infinite eigenvalues. `low` and `high`: this end may have finite
/// ones.
inline std::string finite_request(const EigenOptions& options, Which which, bool low, bool high) {
    if (options.window) {
        return "request a narrower window";
    }
    const std::string target = "those nearest a target";
    if (which != Which::smallest && low) {
        return "request the smallest, or " + target;
    }
    return "request " + (which != Which::largest && high ? "the largest, or " + target : target);
}

}  // namespace quiver

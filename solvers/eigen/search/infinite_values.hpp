// SPDX-License-Identifier: BSD-3-Clause
// Messages on infinite eigenvalues of a pencil. Private to solvers/eigen.
#pragma once

#include <string>

#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

/// The part of a message that says what to request instead of infinite eigenvalues. `low` and
/// `high`: the lower or the upper end may be finite.
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

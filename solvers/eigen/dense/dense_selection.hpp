// SPDX-License-Identifier: BSD-3-Clause
// The eigenvalues that the options of a solve select from a whole spectrum. Private to
// solvers/eigen.
#pragma once

#include <vector>

#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

struct PairChoice {
    /// Ascending indices of the selected values.
    std::vector<int> indices;
    /// How much farther the next eigenvalue is than the last selected one, in the order in which
    /// they are wanted; infinity if none is left, or with a window.
    double distance = 0;
};

/// The options with which a method that selects from a spectrum passes the checks of all methods,
/// which know one end, a target or a window.
EigenOptions as_one_end(const EigenOptions& options);

/// Selects from all `values`, ascending and not empty: those in options.window, else the options.k
/// values that `which` wants. Equal values count one by one. A value that is outside of the window
/// by at most `rounding` times the largest magnitude counts as inside.
PairChoice select_pairs(const std::vector<double>& values, const EigenOptions& options, Which which,
                        double rounding);

}  // namespace quiver

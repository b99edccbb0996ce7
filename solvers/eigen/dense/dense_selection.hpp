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
    /// The difference of the keys of the last selected eigenvalue and the next one, in the order in
    /// which they are wanted; infinity if no eigenvalue is left, or with a window.
    double distance = 0;
};

/// The options with every `which` except Which::target replaced by Which::smallest, so that
/// check_options() accepts them: for methods that select from a whole spectrum themselves.
EigenOptions as_one_end(const EigenOptions& options);

/// Selects from all `values`, ascending and not empty: those in with_slack(options.window, norm,
/// rounding), else the options.k values that `which` wants. Equal values count one by one.
PairChoice select_pairs(const std::vector<double>& values, const EigenOptions& options, Which which,
                        double norm, double rounding);

/// The ascending indices of the values that are not in `choice`, made by select_pairs(), but might
/// be if each value i had an error of up to errors[i].
std::vector<int> doubtful_pairs(const std::vector<double>& values,
                                const std::vector<double>& errors, const EigenOptions& options,
                                Which which, const PairChoice& choice);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The part of a known spectrum that the options of an eigensolve ask for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "solvers/eigen/eigen_options.hpp"

namespace quiver::test {

/// The key by which eigenvalues are selected: those with the smallest keys are wanted.
inline double unwanted(double value, const EigenOptions& options) {
    switch (options.which) {
        case Which::largest:
            return -value;
        case Which::target:
            return std::abs(value - options.target);
        case Which::smallest_magnitude:
            return std::abs(value);
        case Which::largest_magnitude:
            return -std::abs(value);
        default:
            return value;
    }
}

/// The wanted eigenvalues of an ascending spectrum, ascending.
inline std::vector<double> wanted(std::vector<double> spectrum, const EigenOptions& options) {
    if (options.window) {
        std::erase_if(spectrum, [&](double value) {
            return value < options.window->low || value > options.window->high;
        });
        return spectrum;
    }
    const auto k = static_cast<std::size_t>(options.k);
    if (options.which == Which::both_ends) {
        spectrum.erase(spectrum.begin() + static_cast<std::ptrdiff_t>(k / 2),
                       spectrum.end() - static_cast<std::ptrdiff_t>(k - k / 2));
        return spectrum;
    }
    std::stable_sort(spectrum.begin(), spectrum.end(), [&](double a, double b) {
        return unwanted(a, options) < unwanted(b, options);
    });
    spectrum.resize(k);
    std::sort(spectrum.begin(), spectrum.end());
    return spectrum;
}

}  // namespace quiver::test

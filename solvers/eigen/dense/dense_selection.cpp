// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/dense/dense_selection.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "solvers/eigen/search/spectral_order.hpp"

namespace quiver {
namespace {

/// The most wanted value has the smallest key.
double key_of(double value, double target, Which which) {
    switch (which) {
        case Which::largest:
            return -value;
        case Which::target:
            return std::abs(value - target);
        case Which::largest_magnitude:
            return -std::abs(value);
        case Which::smallest_magnitude:
            return std::abs(value);
        default:
            return value;
    }
}

}  // namespace

EigenOptions as_one_end(const EigenOptions& options) {
    EigenOptions one_end = options;
    if (options.which != Which::target) {
        one_end.which = Which::smallest;
    }
    return one_end;
}

PairChoice select_pairs(const std::vector<double>& values, const EigenOptions& options, Which which,
                        double norm, double rounding) {
    PairChoice choice{{}, std::numeric_limits<double>::infinity()};
    if (options.window) {
        const Window window = with_slack(*options.window, norm, rounding);
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] >= window.low && values[i] <= window.high) {
                choice.indices.push_back(static_cast<int>(i));
            }
        }
        return choice;
    }
    const auto k = static_cast<std::size_t>(options.k);
    if (which == Which::both_ends) {
        // Select by position: equal values at the cut are different pairs, and each belongs to one
        // end.
        const std::size_t low = k / 2;
        const std::size_t high = values.size() - (k - low);
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i < low || i >= high) {
                choice.indices.push_back(static_cast<int>(i));
            }
        }
        if (low > 0 && low < high) {
            choice.distance = values[low] - values[low - 1];
        }
        if (high > low && high < values.size()) {
            choice.distance = std::min(choice.distance, values[high] - values[high - 1]);
        }
        return choice;
    }
    std::vector<int> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int i) {
        return key_of(values[static_cast<std::size_t>(i)], options.target, which);
    };
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return key(i) < key(j); });
    if (k > 0 && k < order.size()) {
        choice.distance = key(order[k]) - key(order[k - 1]);
    }
    order.resize(k);
    std::sort(order.begin(), order.end());
    choice.indices = std::move(order);
    return choice;
}

std::vector<int> doubtful_pairs(const std::vector<double>& values, const EigenOptions& options,
                                Which which, const PairChoice& choice, double error) {
    const auto at = [&](int i) { return values[static_cast<std::size_t>(i)]; };
    const auto k = static_cast<std::size_t>(options.k);
    // The largest value of the lower end and the smallest one of the upper end, for both ends.
    const double low = which == Which::both_ends && k / 2 > 0
                           ? values[k / 2 - 1]
                           : -std::numeric_limits<double>::infinity();
    const double high = which == Which::both_ends ? values[values.size() - (k - k / 2)]
                                                  : std::numeric_limits<double>::infinity();
    double last = -std::numeric_limits<double>::infinity();
    for (const int i : choice.indices) {
        last = std::max(last, key_of(at(i), options.target, which));
    }
    const auto may_be_wanted = [&](double value) {
        if (options.window) {
            return value >= options.window->low - error && value <= options.window->high + error;
        }
        if (which == Which::both_ends) {
            return value - low <= 2 * error || high - value <= 2 * error;
        }
        return key_of(value, options.target, which) - last <= 2 * error;
    };
    std::vector<int> doubtful;
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
        if (may_be_wanted(at(i)) &&
            !std::binary_search(choice.indices.begin(), choice.indices.end(), i)) {
            doubtful.push_back(i);
        }
    }
    return doubtful;
}

}  // namespace quiver

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

std::vector<int> doubtful_pairs(const std::vector<double>& values,
                                const std::vector<double>& errors, const EigenOptions& options,
                                Which which, const PairChoice& choice) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    // A value is in doubt if its key may be smaller than the largest key of a chosen one. The keys
    // of both ends are those of the lower and of the upper end.
    const auto k = static_cast<std::size_t>(options.k);
    const std::size_t low = which == Which::both_ends ? k / 2 : 0;
    double last_low = -infinity;
    double last = -infinity;
    for (std::size_t j = 0; j < choice.indices.size(); ++j) {
        const auto i = static_cast<std::size_t>(choice.indices[j]);
        if (j < low) {
            last_low = std::max(last_low, values[i] + errors[i]);
        } else {
            const Which end = which == Which::both_ends ? Which::largest : which;
            last = std::max(last, key_of(values[i], options.target, end) + errors[i]);
        }
    }
    const auto may_be_wanted = [&](std::size_t i) {
        const double least = values[i] - errors[i];
        const double most = values[i] + errors[i];
        if (options.window) {
            return most >= options.window->low && least <= options.window->high;
        }
        if (which == Which::both_ends) {
            return least <= last_low || -most <= last;
        }
        return key_of(values[i], options.target, which) - errors[i] <= last;
    };
    std::vector<int> doubtful;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const int index = static_cast<int>(i);
        if (may_be_wanted(i) &&
            !std::binary_search(choice.indices.begin(), choice.indices.end(), index)) {
            doubtful.push_back(index);
        }
    }
    return doubtful;
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "apps/known_eigenvalues.hpp"

#include <algorithm>
#include <cmath>

#include "apps/matrices/generators.hpp"

namespace quiver::apps {

namespace {

/// Selects k values from both ends: those of largest |value|, or k / 2 of the smallest and the
/// others of the largest.
std::vector<double> known_at_both_ends(const Problem& problem, const EigenOptions& options) {
    const auto k = static_cast<std::size_t>(options.k);
    const auto low = exact_eigenvalues(problem.spec, options.k, true);
    const auto high = exact_eigenvalues(problem.spec, options.k, false);
    if (!low || !high || low->size() < k || high->size() < k) {
        return {};
    }
    std::size_t from_low = k / 2;
    if (options.which == Which::largest_magnitude) {
        for (from_low = 0; from_low < k; ++from_low) {
            if (std::abs((*low)[from_low]) <= std::abs((*high)[from_low])) {
                break;
            }
        }
    }
    std::vector<double> all(low->begin(), low->begin() + static_cast<std::ptrdiff_t>(from_low));
    all.insert(all.end(), high->begin() + static_cast<std::ptrdiff_t>(from_low), high->end());
    return all;
}

}  // namespace

std::vector<double> known_eigenvalues(const Problem& problem, const EigenOptions& options,
                                      std::int64_t rows) {
    constexpr std::int64_t most_rows = 50'000'000;
    const bool target = !options.window && options.which == Which::target;
    if (options.which == Which::largest_magnitude || options.which == Which::both_ends) {
        return known_at_both_ends(problem, options);
    }
    if (!options.window && !target) {
        return exact_eigenvalues(problem.spec, options.k, options.which == Which::smallest)
            .value_or(std::vector<double>{});
    }
    if (rows > most_rows) {
        return {};
    }
    std::vector<double> all = exact_eigenvalues(problem.spec, static_cast<int>(rows), true)
                                  .value_or(std::vector<double>{});
    if (target) {
        const auto nearer = [&](double a, double b) {
            return std::abs(a - options.target) < std::abs(b - options.target);
        };
        std::sort(all.begin(), all.end(), nearer);
        all.resize(std::min(all.size(), static_cast<std::size_t>(options.k)));
        std::sort(all.begin(), all.end());
        return all;
    }
    std::erase_if(all, [&](double value) {
        return value < options.window->low || value > options.window->high;
    });
    return all;
}

}  // namespace quiver::apps

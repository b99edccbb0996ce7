// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/chebyshev/filter_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace quiver {
namespace {

constexpr int most_filter_degree = 40000;
/// Widths of the filter's steps beside the window are tried by this factor.
constexpr double step_growth = 1.4;
/// A narrower step than the cheapest one is taken, for its smaller subspace, if it costs at most
/// this factor more.
constexpr double cost_for_memory = 1.2;
/// Cost of orthogonalising m columns, in products, is m^2 times this.
constexpr double orthogonalisation = 0.125;
/// Limits of what a sweep leaves of eigenvectors for which the subspace has no room.
constexpr double least_ripple = 1e-8;
constexpr double most_ripple = 1e-4;
constexpr double spare_columns = 16;
constexpr double usual_sweeps = 2;

}  // namespace

FilterStep choose_filter_step(double tolerance, double most_columns,
                              const std::function<double(double step)>& columns) {
    // Two sweeps reach the tolerance, with a hundredth to spare for the start.
    const double ripple = std::clamp(0.01 * std::sqrt(tolerance), least_ripple, most_ripple);
    std::vector<FilterStep> choices;
    double least = std::numeric_limits<double>::infinity();
    for (double step = WindowDesign{1, ripple}.degree() / double{most_filter_degree}; step < 4;
         step *= step_growth) {
        const WindowDesign design{step, ripple};
        const double width = columns(step);
        if (width > most_columns && !choices.empty()) {
            break;
        }
        choices.push_back({design, width, width * (design.degree() + orthogonalisation * width)});
        least = std::min(least, choices.back().products);
    }
    std::size_t chosen = 0;
    while (choices[chosen].products > cost_for_memory * least) {
        ++chosen;
    }
    return choices[chosen];
}

double filter_columns(double around, double error) {
    return 1.2 * around + 3 * error + spare_columns;
}

double filter_products(double tolerance, double inside, double angle) {
    return usual_sweeps *
           choose_filter_step(tolerance, std::numeric_limits<double>::infinity(), [&](double step) {
               return filter_columns(inside * (1 + 2 * step / angle), 0);
           }).products;
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The cheapest filter for a window, and the products that it takes. Private to solvers/eigen.
#pragma once

#include <functional>

#include "solvers/eigen/chebyshev/window_series.hpp"

namespace quiver {

/// A filter and the columns of its subspace.
struct FilterStep {
    WindowDesign design;
    double columns = 0;
    /// Cost of a sweep, with its orthogonalisation, in products with one column.
    double products = 0;
};

/// The filter with the narrowest step whose sweep costs at most 1.2 times as much as the cheapest.
/// A wider step has a lower degree, but passes more eigenvectors beside the window, for which the
/// subspace must have room: columns(step), a function that grows with the step. The subspace has at
/// most most_columns columns, unless even the narrowest step needs more. Two sweeps reach the
/// tolerance.
FilterStep choose_filter_step(double tolerance, double most_columns,
                              const std::function<double(double step)>& columns);

/// Columns of a subspace with room for `around` eigenvectors, a number that is known up to `error`.
double filter_columns(double around, double error);

/// Products of a solve for a window with `inside` eigenvalues, and the same density of them beside
/// it. `angle`: the width of the window in ChebyshevInterval::angle(). The verification, which
/// takes few columns, is not counted.
double filter_products(double tolerance, double inside, double angle);

}  // namespace quiver

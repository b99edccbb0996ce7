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
    /// Products of a sweep, and its orthogonalisation in products.
    double products = 0;
};

/// The filter with the width of its steps for which a sweep costs least. A wider step has a lower
/// degree, but passes more eigenvectors beside the window, for which the subspace must have room:
/// columns(step) for a step of this width, a function that grows. Two sweeps reach the tolerance.
/// If the filter with the narrowest step has more than `most_columns`, it is the result.
FilterStep choose_filter_step(double tolerance, double most_columns,
                              const std::function<double(double step)>& columns);

/// Columns of a subspace with room for `around` eigenvalues, which are known up to `error`.
double filter_columns(double around, double error);

/// Products of a solve for a window of `angle` in the angle of ChebyshevInterval, which has
/// `inside` eigenvalues, with the same density beside it. The verification, which takes few
/// columns, is not counted.
double filter_products(double tolerance, double inside, double angle);

}  // namespace quiver

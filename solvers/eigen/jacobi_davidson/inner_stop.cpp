// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/jacobi_davidson/inner_stop.hpp"

#include <algorithm>
#include <cmath>

namespace quiver {

InnerStop::Estimate InnerStop::estimate(const Column& column, const LinearStep& step, double sign) {
    const double alpha = column.theta - column.shift - sign * step.bx;
    const double omega = 1 + step.xx / column.xx;
    const double value = (alpha - sign * step.xr) / omega;
    const double squares = step.residual * step.residual * column.xx + alpha * alpha;
    return {step.residual / std::sqrt(column.xx),
            std::sqrt(std::max(squares / omega - value * value, 0.0)) / column.xx};
}

bool InnerStop::operator()(const LinearStep& step) {
    const Column& column = columns_[static_cast<std::size_t>(step.column)];
    History& history = history_[static_cast<std::size_t>(step.column)];
    const Estimate now = estimate(column, step, sign_);
    const Estimate last = std::exchange(history.last, now);
    return now.eigen <= column.wanted || (++history.steps > free_steps_ &&
                                          (last.linear <= now.eigen || last.eigen <= now.linear));
}

}  // namespace quiver

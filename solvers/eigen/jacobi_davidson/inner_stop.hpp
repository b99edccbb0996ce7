// SPDX-License-Identifier: BSD-3-Clause
// When to stop the inner solver of block Jacobi-Davidson. Private to solvers/eigen.
#pragma once

#include <utility>
#include <vector>

#include "solvers/linear/linear_problem.hpp"

namespace quiver {

/// Stops a column of a correction equation when further steps would not improve its eigenpair. For
/// (A - sigma B) t = r on the complement of x, with x^H B x = 1 and the linear residual g, the pair
/// of u = x - t has
///
///    alpha = theta - sigma - r^H t,  omega = 1 + t^H B t
///    lambda - sigma = (alpha - t^H g) / omega
///    ||(A - lambda B) u||^2 / ||u||^2 = (||g||^2 + alpha^2) / omega - (lambda - sigma)^2
///
/// The last line holds for B = I. Any other B counts as a multiple of I, its Rayleigh quotient
/// 1 / ||x||^2. Parts of the residual along other Ritz vectors are left out, because the next
/// Rayleigh-Ritz step removes them. A column stops
///
///    when this residual is at most the wanted one, or
///    after the first `free_steps`, when it is not below the linear residual of the step before, or
///    its value before the step is not above the linear residual.
///
/// Source: Stathopoulos, SIAM J. Sci. Comput. 29 (2007) 481.
class InnerStop {
  public:
    struct Column {
        double theta = 0;
        double shift = 0;
        /// The residual ||(A - theta B) x|| / ||x|| at which the search accepts the pair.
        double wanted = 0;
        /// ||x||^2
        double xx = 1;
    };
    struct Estimate {
        /// ||g|| / ||x||, and the residual of u.
        double linear = 0;
        double eigen = 0;
    };

    /// `sign`: -1 if the inner solver has been given the negative operator, else 1.
    InnerStop(std::vector<Column> columns, double sign, int free_steps)
        : columns_(std::move(columns)),
          history_(columns_.size()),
          sign_(sign),
          free_steps_(free_steps) {}
    /// True if column step.column should stop. Call it once for each step of a column.
    bool operator()(const LinearStep& step);
    static Estimate estimate(const Column& column, const LinearStep& step, double sign);

  private:
    struct History {
        Estimate last;
        int steps = 0;
    };

    std::vector<Column> columns_;
    std::vector<History> history_;
    double sign_;
    int free_steps_;
};

}  // namespace quiver

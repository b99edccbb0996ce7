// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues from both ends of the spectrum, by a solve for each end. Private to solvers/eigen.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// True for largest_magnitude and both_ends without a window. A window overrides options.which.
inline bool asks_for_both_ends(const EigenOptions& options) {
    return !options.window && wants_both_ends(options.which);
}

/// eigensolve() for Which::largest_magnitude and Which::both_ends with a method that takes one end,
/// or Method::automatic, which may choose another method for each end. For largest_magnitude the
/// first end is the one where a few Lanczos steps find the larger |value|; the second solve is
/// omitted if a coarse solve for one pair shows that the other end is too close to zero.
///
/// The vectors of the second end are made orthonormal to those of the first. If too little of them
/// is left, or if their residuals then exceed 4 times the tolerance, a third solve repeats the
/// second end with the vectors of the first as constraints. Work and seconds of all solves are
/// added; `method` is that of the last one. If the first solve does not converge, its pairs are the
/// result; if the second one does not, its pairs are part of the result, which has not converged.
///
/// The options have no window. Throws InputError on all ranks for a checkpoint, which belongs to
/// one solve, and the errors of eigensolve(). Collective. Cost: two or three solves, each for at
/// most k pairs, for the largest magnitude also the coarse one; a product of B with the vectors of
/// the second end and, if these change, products with A and B.
template <class T>
EigenResult<T> solve_both_ends(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues from both ends of the spectrum, in two solves. Private to solvers/eigen.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// eigensolve() for Which::largest_magnitude and Which::both_ends with a method that takes one end,
/// or Method::automatic, which may choose another method for each end. For largest_magnitude the
/// first end is the one where a few Lanczos steps find the larger |value|; the second solve is
/// omitted if a coarse solve for one pair shows that the other end is too close to zero. If the
/// vectors of the two ends are not orthogonal, because a cluster belongs to both, a third solve
/// repeats the second end with the vectors of the first as constraints, so that no copy of an
/// eigenvalue is returned twice. Work and seconds of all solves are added; `method` is that of the last
/// solve. If the first solve does not converge, its pairs are the result.
///
/// The options have no window. Throws InputError on all ranks for a checkpoint, which belongs to
/// one solve, and the errors of eigensolve(). Collective. Cost: two or three solves, each for at
/// most k pairs.
template <class T>
EigenResult<T> solve_both_ends(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options);

}  // namespace quiver

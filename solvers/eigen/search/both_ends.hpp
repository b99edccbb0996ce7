// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues from both ends of the spectrum, in two solves. Private to solvers/eigen.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// True if the wanted eigenvalues may lie at both ends: Which::largest_magnitude and
/// Which::both_ends.
bool wants_both_ends(Which which);

/// eigensolve() for these two values of Which. The first solve takes one end; the second solve
/// takes the other end, with the eigenvectors found as constraints, so that all vectors are
/// orthonormal and no copy of an eigenvalue is returned twice. For largest_magnitude the first end
/// is the one where a few Lanczos steps find the larger |value|; the second solve is omitted if a
/// coarse solve for one pair shows that the other end is too close to zero. Work and seconds of all
/// solves are added. If the first solve does not converge, its pairs are the result.
///
/// The options have no window. Throws InputError on all ranks for a checkpoint, which belongs to
/// one solve, and the errors of eigensolve(). Collective. Cost: two solves, each for at most k
/// pairs.
template <class T>
EigenResult<T> solve_both_ends(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options);

}  // namespace quiver

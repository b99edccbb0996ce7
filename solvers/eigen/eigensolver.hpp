// SPDX-License-Identifier: BSD-3-Clause
// The common entry point of all eigensolvers.
#pragma once

#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// An algorithm and a short reason for its choice.
struct MethodChoice {
    Method method = Method::lanczos;
    std::string reason;
    /// Iterations after which a dense solve continues if the method has not converged; 0: never.
    std::int64_t dense_after = 0;
};

/// Resolves Method::automatic; any other method is returned unchanged. Collective; at most one
/// broadcast.
///
/// A dense solve is chosen by shape alone, where it takes less time than an iteration that is not
/// easy: up to 1,024 rows; up to 3,000 rows for a window or for a target without an inverse; up to
/// 4,096 rows for k of at least an eighth of the rows. Other problems up to 3,000 rows begin with
/// the method that is fastest if they are easy, and a dense solve follows after n^2 / 1000
/// iterations, which take about as long. The limits are half as large without LAPACK. An operator
/// without stored entries is gathered by products and gets a dense solve up to 512 rows. Problems
/// with a checkpoint or protection never do: a dense solve has neither.
template <class T>
MethodChoice choose_method(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options);

/// Solves A x = lambda B x by options.method: the k eigenpairs at an end of the spectrum, at both
/// ends, of largest or smallest |lambda|, or nearest a target, or all in a window. Except by a
/// dense solve, eigenvalues at both ends and of largest |lambda| take two solves (Which). The
/// result names the method that ran and the reason; all methods verify multiplicities in the same
/// sense. Throws the errors of check_problem() (for instance if options differ between the ranks),
/// check_options() and the chosen method, and InputError if the method cannot solve the problem.
/// Collective.
template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options);

}  // namespace quiver

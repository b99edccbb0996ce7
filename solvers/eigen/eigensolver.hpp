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
};

/// Resolves Method::automatic; any other method is returned unchanged. No communication.
template <class T>
MethodChoice choose_method(const EigenProblem<T>& problem, const EigenOptions& options);

/// Solves A x = lambda B x by options.method: the k eigenpairs at an end of the spectrum, at both
/// ends, of largest or smallest |lambda|, or nearest a target, or all in a window. Eigenvalues at
/// both ends and of largest |lambda| take two solves (Which). The result names the method that ran
/// and the reason; all methods verify multiplicities in the same sense. Throws the errors of
/// check_problem() (for instance if options differ between the ranks), check_options() and the
/// chosen method, and InputError if the method cannot solve the problem. Collective.
template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// One door to all eigensolvers.
#pragma once

#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// An algorithm and why it was taken, in a few words.
struct MethodChoice {
    Method method = Method::lanczos;
    std::string reason;
};

/// What Method::automatic stands for; any other method is kept. No communication.
template <class T>
MethodChoice choose_method(const EigenProblem<T>& problem, const EigenOptions& options);

/// The k smallest or largest eigenpairs of A x = lambda B x by options.method. The result names the
/// method that ran and the reason for it; all methods verify multiplicities in the same sense.
/// Throws what check_problem() and check_options() do, and InputError for a method that cannot do
/// what the problem asks; what the method's own function throws. Collective.
template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options);

}  // namespace quiver

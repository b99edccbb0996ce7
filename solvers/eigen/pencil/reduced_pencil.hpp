// SPDX-License-Identifier: BSD-3-Clause
// A x = lambda B x for methods that solve standard problems: the reduction by a factorisation of B.
// Private to solvers/eigen.
#pragma once

#include <functional>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// A solver of a standard problem.
template <class T>
using StandardSolve =
    std::function<EigenResult<T>(Context&, const EigenProblem<T>&, const EigenOptions&)>;

/// True for the methods that solve A x = lambda B x by solve_reduced().
constexpr bool reduces_pencil(Method method) {
    return method == Method::lanczos || method == Method::chebyshev || method == Method::filter;
}

/// Solves A x = lambda B x by the method `solve`, called `method` in messages, for C y = lambda' y:
///
///     B = 2^e G G^H,  C = G^-1 A G^-H,  x = 2^(-e/2) G^-H y,  lambda = 2^-e lambda'
///
/// C has the eigenvalues of the pencil, with their multiplicities, and orthonormal y give
/// B-orthonormal x. If G is diagonal and A is stored, the entries of C are stored; otherwise a
/// product with C takes one with A and two solves with G. Start vectors and constraints X become
/// G^H X.
///
/// The residuals are those of the pencil, from fresh products: ||A x - lambda B x|| / ||x||. A pair
/// has converged if this is at most tol (||A|| + |lambda| ||B||), with estimated norms. In terms of
/// r = C y - lambda' y with ||y|| = 1 the residual is at most ||B|| ||r|| / 2^e, so that C is
/// solved with the smaller tolerance tol ||A|| / (||B|| ||C|| / 2^e), within limits. If residuals
/// are still too large, a second solve with a smaller tolerance starts from the pairs found. If
/// they stay too large, the result has not converged; the message names the condition number of B
/// and other methods. The error of lambda is at most 2^-e ||r||. The verification by
/// `solve` holds for C: it resolves a few times its tolerance times max |lambda|.
///
/// Throws the errors of check_problem(), check_options() and factor_mass(), and InputError for a
/// checkpoint or protection, which belong to products with A alone. Collective. Cost:
/// factor_mass(), two short Lanczos runs (three if G is not diagonal), one or two solves, and a
/// product with A and B for each pair.
template <class T>
EigenResult<T> solve_reduced(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options, Method method,
                             const StandardSolve<T>& solve);

}  // namespace quiver

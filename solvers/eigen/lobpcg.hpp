// SPDX-License-Identifier: BSD-3-Clause
// LOBPCG for A x = lambda B x, with a robust choice of its basis and verified multiplicities.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The k smallest or largest eigenpairs of A x = lambda B x, Hermitian A, positive definite B or
/// none; no equation is solved with either.
///
/// One step: W = T (A X - B X Theta) of the columns that have not converged (T the preconditioner,
/// or I), orthonormalised against locked pairs and [X P]; Rayleigh-Ritz on S = [X P W]; X = S C_x
/// with the best Ritz vectors C_x, P = S C_p with C_p the orthonormal basis, taken from the other
/// Ritz vectors, of what C_x lacks of the old X. A X, A P, B X, B P take the same updates; they are
/// multiplied anew every 40 steps and before a pair counts as converged. Columns that have
/// converged stay in X without directions W and P (soft locking); where k exceeds the block, they
/// leave it for good (hard locking).
///
/// block: columns of X, by default k and some guards; up to 64. A space of less than 3 k or
/// k + 3 block dimensions is solved densely. Residuals of a generalised problem are ||A x - lambda
/// B x|| / ||x||_2 and converged when at most tol (||A|| + |lambda| ||B||); norm_estimate is then
/// ||A|| + max |lambda| ||B||, and the vectors are B-orthonormal.
///
/// The result is verified as block_lanczos() does it. With B the complement of the k pairs X is
/// searched for negative eigenvalues of P^H (A - lambda_k B) P, P = I - X X^H B: as many as
/// there are eigenvalues of the pencil below lambda_k beyond those of X (docs/solvers.md).
///
/// Throws InputError as check_problem() and check_options(), and for dependent constraints;
/// NumericalError, naming iteration and column, where A is found not to be Hermitian, B not to be
/// positive definite, or a product of A, B or T not to be finite. Collective. Cost of a step with m
/// active columns, B = T = I: one product with m columns, 23 passes over m columns, 36 rows m^2
/// flops (144 for complex), 3 all-reduces; memory 6 m columns, 12 m with B.
/// Sources: Knyazev, SIAM J. Sci. Comput. 23 (2001) 517; Hetmaniuk and Lehoucq, J. Comput. Phys.
/// 218 (2006) 324 (orthonormal basis); Duersch, Shao, Yang, Gu, SIAM J. Sci. Comput. 40 (2018)
/// C655, sections 3 and 4 (basis selection, detached residuals, implicit products).
template <class T>
EigenResult<T> lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options);

}  // namespace quiver

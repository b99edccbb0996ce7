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
/// One step: W = T (A X - B X Theta) of the columns that have not converged, orthonormalised
/// against locked pairs and [X P]; Rayleigh-Ritz on S = [X P W]; X = S C_x with the best Ritz
/// vectors C_x, P = S C_p with C_p an orthonormal basis, made from the other Ritz vectors, of what
/// C_x lacks of the old X. A X, A P, B X, B P take the same updates; they are multiplied anew every
/// 40 steps and before a pair counts as converged. Columns that have converged stay in X without
/// directions of their own (soft locking); where k exceeds the block, they leave it for good (hard
/// locking). T is the problem's preconditioner; without one and without B it is a polynomial of A
/// of degree 5 (chebyshev_inverse.hpp), so that a step multiplies 6 times.
///
/// block: columns of X, by default k and some guards; up to 64. max_basis is not looked at: S has 3
/// blocks. A space of few dimensions (less than 3 k, or k + 3 blocks) is solved densely. With B a
/// residual is ||A x - lambda B x|| / ||x||_2 and has converged when at most tol (||A|| + |lambda|
/// ||B||).
///
/// Verified by a search of the complement from 4 random columns, by the rule of
/// judge_complement(): without B by these same steps in the complement of X (and of guards that are
/// outside for sure; where pairs were hard locked, by verify_pairs()), with B by block Lanczos for
/// negative eigenvalues of P^H (A - lambda_k B) P, P = I - X X^H B, of which there are as many as
/// copies missing (docs/solvers.md).
///
/// Throws InputError as check_options(), and for dependent constraints; ShapeError as
/// check_problem(); NumericalError, naming iteration and column, where A is found not to be
/// Hermitian, B not to be positive definite, or a product of A, B or T not to be finite.
/// Collective. Cost of a step with m columns: docs/solvers.md; memory 8 m columns, 9 m with B.
/// Sources: Knyazev, SIAM J. Sci. Comput. 23 (2001) 517; Hetmaniuk and Lehoucq, J. Comput. Phys.
/// 218 (2006) 324 (orthonormal basis); Duersch, Shao, Yang, Gu, SIAM J. Sci. Comput. 40 (2018) C655
/// (basis selection, implicit products).
template <class T>
EigenResult<T> lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// LOBPCG for A x = lambda B x, with a robust choice of its basis and verified multiplicities.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The k smallest or largest eigenpairs of A x = lambda B x; A Hermitian, B positive definite or
/// absent. No linear system is solved with A or B.
///
/// One step: W = T (A X - B X Theta) of the unconverged columns, orthonormalised against locked
/// pairs and [X P]; Rayleigh-Ritz on S = [X P W]; X = S C_x with the best Ritz vectors C_x. P = S
/// C_p, where C_p is an orthonormal basis, made from the other Ritz vectors, of the part of the old
/// X that C_x lacks. A X, A P, B X, B P are updated in the same way; fresh products replace them
/// every 40 steps and before a pair counts as converged. Converged columns stay in X without
/// directions of their own (soft locking); if k exceeds the block, they leave X permanently (hard
/// locking). T is the problem's preconditioner; without a preconditioner and without B, T is a
/// polynomial of A of degree 5 (chebyshev_inverse.hpp), so that a step makes 6 products.
///
/// `block`: columns of X, by default k plus some guard vectors; at most 64. max_basis is ignored: S
/// has 3 blocks. A space of few dimensions (less than 3 k, or k + 3 blocks) is solved densely. With
/// B a pair has converged when ||A x - lambda B x|| / ||x||_2 <= tol (||A|| + |lambda| ||B||).
///
/// Verification searches the complement from 4 random columns and judges by the rule of
/// judge_complement(). Without B it makes the same steps in the complement of X (and of guard
/// vectors that are certainly outside); if pairs were hard locked, it calls verify_pairs(). With B
/// it searches by block Lanczos for negative eigenvalues (for the largest end: positive ones) of
/// P^H (A - lambda_k B) P with P = I - X X^H B: there are as many as missing copies
/// (docs/solvers.md).
///
/// If the rows of B differ by more than a factor of 256, the pencil is solved in other units of the
/// unknowns (solve_balanced()), so that the result does not depend on the units of x.
///
/// Throws InputError as check_options(), and for dependent constraints; ShapeError as
/// check_problem(); NumericalError, naming iteration and column, if A is found not to be Hermitian,
/// B not to be positive definite (IndefiniteError; also if a wanted Ritz vector x has an x^H B x
/// that is rounding noise), or a product of A, B or T not to be finite. Collective. Cost of a step
/// with m columns: docs/solvers.md; memory 8 m columns, 9 m with B. Sources: Knyazev, SIAM J. Sci.
/// Comput. 23 (2001) 517; Hetmaniuk and Lehoucq, J. Comput. Phys. 218 (2006) 324 (orthonormal
/// basis); Duersch, Shao, Yang, Gu, SIAM J. Sci. Comput. 40 (2018) C655 (basis selection, implicit
/// products).
template <class T>
EigenResult<T> lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options);

}  // namespace quiver

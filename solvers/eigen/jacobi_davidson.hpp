// SPDX-License-Identifier: BSD-3-Clause
// Block Jacobi-Davidson for ends of the spectrum and for interior eigenvalues.
#pragma once

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The k eigenpairs of A x = lambda B x at an end of the spectrum or nearest a target; A Hermitian,
/// B positive definite or absent. B is not inverted.
///
/// One step takes the first `block` unconverged Ritz pairs (X, Theta) of a B-orthonormal basis V
/// and R = A X - B X Theta. Pairs with small residuals are locked in Q. With P = [Q X],
///    (I - BP P^H) (A - sigma_j B) (I - P BP^H) t_j = r_j
/// is solved approximately for all columns at once by the solver options.inner, with the problem's
/// preconditioner projected to the complement of P; then V <- [V T]. The first steps of every new
/// search take T = R, or T = K R with a preconditioner K; with the problem's `inverse` as K every
/// step takes T = K R. The tolerance of a column halves with each step in which its pair is in the
/// block; a column also stops when the residual of its pair, estimated from the scalars of the
/// inner solver, has reached the tolerance or no longer falls (not with gmres and a
/// preconditioner). cg refuses a target; gmres takes any linear operator as preconditioner. When V
/// is full, its best Ritz vectors are kept. For a target, vectors are chosen by ||(A
/// - target B) x|| (refined extraction, then Rayleigh-Ritz on the better half of V; with B on all
/// of V), which excludes spurious Ritz values.
///
/// Residuals, norm_estimate and convergence of a generalised problem are those of lobpcg():
/// ||A x - lambda B x|| / ||x||_2 at most tol (||A|| + |lambda| ||B||); norm_estimate is the
/// largest ||A|| + |lambda| ||B||, and the vectors are B-orthonormal.
///
/// If the rows of B differ by more than a factor of 256 and there is no protection, the pencil is
/// solved in other units of the unknowns (solve_balanced()).
///
/// Verification searches the complement with this method, from at least 2 (for a target 8) fresh
/// random columns, and judges by the rule of all solvers (judge_complement). The correction
/// equation of the first column has the shift of its Ritz pair; the other shifts are at the wanted
/// end of the locked values, or at the target. For a target the keys are the distances to it:
/// docs/solvers.md states what this proves.
///
/// `iterations` and max_iterations count block products, including those of the inner solver.
/// Throws the errors of check_problem() and check_options(); NumericalError if A is found not to be
/// Hermitian, B or the preconditioner not to be positive definite, or a product not to be finite.
/// Collective. Cost of an inner step of minres with b columns, B = I, no preconditioner, q columns
/// of P: one product, 18 b + 2 q passes over a column, 4 all-reduces. Cost of an outer step with p
/// columns of V: one product, 2 p passes to form X and R, 4 (p + q) to orthogonalise, 2 (p + q) for
/// H, 8 all-reduces. Memory: q + b + 2 max_basis + k + 10 b columns. Sources: Roehrig-Zoellner et
/// al., SIAM J. Sci. Comput. 37 (2015) C697; Stathopoulos, SIAM J. Sci. Comput. 29 (2007) 481
/// (shifts, stopping); Wu, Romero, Stathopoulos, SIAM J. Sci. Comput. 39 (2017) S248, and Jia,
/// Linear Algebra Appl. 259 (1997) 1 (refined extraction).
template <class T>
EigenResult<T> jacobi_davidson(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options);

}  // namespace quiver

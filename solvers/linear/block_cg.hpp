// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients for many right-hand sides.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// X = (A - shift I)^-1 B for a Hermitian positive definite A - shift I.
///
/// If all columns have one shift, the method is block conjugate gradients with orthonormal
/// residuals: R = Q delta, Q^H Q = I, with search directions S that are conjugate from step to
/// step,
///
///     alpha = (S^H A S)^-1 Gamma,  Gamma = Q^H M Q;   X += S alpha delta
///     Q' rho = Q - A S alpha (orthonormalised);       delta' = rho delta
///     beta = Gamma^-1 rho^H Gamma';                   S' = M Q' + S beta
///
/// so that every column is minimised over the sum of all columns' Krylov spaces. Linearly dependent
/// residuals are removed from Q and S, at the start or later. A converged column is removed from X
/// and delta; when at most half as many columns as directions are left, the remaining columns
/// restart with as many directions as columns. If S^H A S is not positive definite, the columns
/// continue one by one (FallbackEvent), which identifies the column that fails.
///
/// With different shifts the Krylov spaces differ, and the columns cannot share them: plain
/// conjugate gradients, in which all columns advance by the same kernels and converged columns are
/// removed.
///
/// X: rows x n, the guess (options.x_is_guess) and the result; must not overlap B. Shifts must be
/// real. A column whose p^H (A - shift) p or r^H M r is not positive ends as `breakdown`, with the
/// value in its message. All columns of the block form end as `breakdown` if it finds that M is not
/// Hermitian: Gamma differs from Gamma^H by more than 5 % of its largest diagonal element, and 20
/// steps have not halved the largest residual. If columns fail for another reason, or in the plain
/// form, their messages say so if M is not Hermitian; this costs one application of M to two
/// columns after the solve. Throws ShapeError and InputError for invalid arguments. Collective.
/// Cost of a step: one product and one application of M. Block form: 16 passes over a block (18
/// with M) besides the product, 3 all-reduces (4 with M). Plain form: 10 passes (12 with M), 2
/// all-reduces. Memory: 6 blocks (7 with M), one less without options.fresh_residuals. Sources:
/// O'Leary, Linear Algebra Appl. 29 (1980) 293; Dubrulle, ETNA 12 (2001) 216 (algorithm BCGrQ, here
/// with M).
template <class T>
LinearResult block_cg(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                      const LinearOptions& options, LinearWorkspace<T>& workspace);

}  // namespace quiver

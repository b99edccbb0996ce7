// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients for many right-hand sides.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// X = (A - shift I)^-1 B for a Hermitian positive definite A - shift I.
///
/// Where all columns have one shift: block conjugate gradients with orthonormal residuals. R = Q
/// delta, Q^H Q = I; search directions S, conjugate to each other from step to step,
///
///     alpha = (S^H A S)^-1 Gamma,  Gamma = Q^H M Q;   X += S alpha delta
///     Q' rho = Q - A S alpha (orthonormalised);       delta' = rho delta
///     beta = Gamma^-1 rho^H Gamma';                   S' = M Q' + S beta
///
/// so that every column is minimised over the sum of all columns' Krylov spaces. Dependent
/// residuals drop out of Q and S (from the start, or once they become so); a column that has
/// converged is taken out of X and delta, and when no more than half as many columns as directions
/// are left, the others start afresh with as many directions as columns. If S^H A S is not positive
/// definite, the columns go on one by one (FallbackEvent), which names the one to blame.
///
/// With a shift per column the spaces differ and share nothing: plain conjugate gradients, all
/// columns advanced by the same kernels, converged ones swapped out.
///
/// X: rows x n, the guess (options.x_is_guess) and the result; does not overlap B. Shifts are real.
/// A column whose p^H (A - shift) p or r^H M r is not positive ends as `breakdown`, with the
/// number. Throws ShapeError and InputError for arguments that do not fit. Collective. One product
/// and one application of M a step. Block form, n columns: 11 passes over a block (14 with M)
/// besides the product, 4 all-reduces (5 with M). Plain form: 10 passes (13), 2 all-reduces.
/// Memory: 5 blocks (6 with M). Sources: O'Leary, Linear Algebra Appl. 29 (1980) 293; Dubrulle,
/// ETNA 12 (2001) 216 (algorithm BCGrQ, here with M).
template <class T>
LinearResult block_cg(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                      const LinearOptions& options, LinearWorkspace<T>& workspace);

}  // namespace quiver

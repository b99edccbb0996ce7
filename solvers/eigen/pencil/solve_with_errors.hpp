// SPDX-License-Identifier: BSD-3-Clause
// Bounds of the errors of eigenvalues, and solves whose residuals are also judged in balanced
// units. Private to solvers/eigen.
#pragma once

#include <vector>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"
#include "solvers/eigen/pencil/balanced_pencil.hpp"

namespace quiver {

struct EigenvalueErrors {
    /// Of each eigenvalue.
    std::vector<double> bounds;
    /// The largest UnitResiduals::Residual::relative of the pairs; 0 if UnitResiduals are not
    /// needed.
    double largest_residual = 0;
};

/// Bounds of the errors of the eigenvalues of `result`.
///
/// Without B: r = residuals[j]; or r^2 / (g - r) where a verified result shows that all other
/// eigenvalues are farther than g > 2 r; plus 8 eps ||A|| for rounding. For shift_invert() and a
/// stiff A (IdentityMass): the smaller of this bound and that of the pencil with B = I, if the
/// latter is at most |lambda| / 16.
///
/// With B: (r + 8 eps s) ||x||^2 for x^H B x = 1 and r = residuals[j], where s = ||A|| + |lambda|
/// ||B|| for the largest |lambda|. To first order in r, this is the change of lambda by a change of
/// A and B that makes the pair exact. Where the rows of B differ much, or for shift_invert() A is
/// stiff, the bound is computed in the units of UnitResiduals: in others a small r can be a large
/// change of a row. There, bounds of methods that iterate are at least UnitResiduals::distances(),
/// or the square of these divided by a known distance from other eigenvalues: in balanced units a
/// rigid motion of stiff parts has a small residual, although it changes the value by its size.
/// Each bound covers what the errors of the other values add to the uncertainty of its number in
/// the order of the spectrum.
///
/// Collective; throws the errors of UnitBalance. Cost with B, or of shift_invert() for a stiff A: a
/// product of B with 8 columns, and the passes of needed_exponents(); in other units also the cost
/// of UnitResiduals. Sources: Parlett, The Symmetric Eigenvalue Problem, sections 4.5, 11.7;
/// Stewart and Sun, Matrix Perturbation Theory (1990), chapter VI.
template <class T>
EigenvalueErrors eigenvalue_errors(Context& ctx, const EigenProblem<T>& problem,
                                   const EigenOptions& options, const EigenResult<T>& result);

/// Solves by `solve` and sets `errors` of the result (not if it is interrupted and there is a B).
///
/// Without B and without a protection, eigenvalues of methods that iterate become Rayleigh
/// quotients lambda + x^H (A x - lambda x) / x^H x, which do not have the error of ||x||. Cost: one
/// product with A for each pair.
///
/// Most methods judge residuals relative to ||A|| in the units of the problem, where a pair may
/// meet the tolerance although no digit of its eigenvalue is right. If a residual in the units of
/// UnitResiduals is above the tolerance, another solve with a smaller one starts from the pairs
/// found (not with a checkpoint, whose state belongs to the first solve). "Above" means more than 4
/// times the larger of the tolerance and attainable_slack attainable_tolerance(0), because the
/// norms are lower bounds. There are at most three solves; if a residual is then still above, the
/// result has not converged. If the result has cluster_cut, bounds near the end of the wanted set
/// are at least cut_depth minus their distance from it. Cost: up to three calls of `solve`, each
/// with eigenvalue_errors().
/// dense_eigen() and shift_invert() judge their pairs in other units themselves. Collective. Throws
/// the errors of `solve` and of eigenvalue_errors().
template <class T>
EigenResult<T> solve_with_errors(Context& ctx, const EigenProblem<T>& problem,
                                 const EigenOptions& options, const PencilSolve<T>& solve);

}  // namespace quiver

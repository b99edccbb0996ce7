// SPDX-License-Identifier: BSD-3-Clause
// Input, options and result of every linear solver.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "blockvec/view.hpp"
#include "kernels/operator.hpp"

namespace quiver {

template <class T>
class ProtectedMatrix;

/// (A - shift_j I) x_j = b_j, j = 0 .. n - 1. All operators must have the same row map and outlive
/// the solve; all blocks must be in the Context's place.
template <class T>
struct LinearProblem {
    /// With a ProtectedMatrix (solvers/abft), every solver compares its memory with the checksums
    /// before a column counts as converged.
    Operator<T>& a;
    /// rows x n.
    BlockView<const T> b;
    /// Empty: no shift; one element: the same for all columns; n elements: one per column.
    /// Operators receive the shifts of the active columns through ApplyOptions::shift.
    std::span<const T> shift = {};
    /// M, an approximation of the inverse of A - shift I. Hermitian positive definite for cg and
    /// minres (where it acts as a split preconditioner), any linear operator for gmres and bicgstab
    /// (where it acts on the right, so that residuals remain those of the system). Null means M =
    /// I.
    Operator<T>* preconditioner = nullptr;
    /// Optional: `a` as a ProtectedMatrix, or the one whose products `a` returns unchanged.
    /// linear_solve() then computes the residuals of converged columns again from the audited
    /// matrix (LinearOptions::fresh_residuals) and, if the protection's options request `updates`,
    /// checks block products and block updates one by one.
    ProtectedMatrix<T>* protection = nullptr;
};

/// A column after a step, x being its solution so far and r = b - (A - shift) x. The first guess
/// was 0.
struct LinearStep {
    int column = 0;
    /// ||r||
    double residual = 0;
    /// The real parts of b^H x and x^H r, and ||x||^2.
    double bx = 0, xr = 0, xx = 0;
};

struct LinearOptions {
    /// Column j has converged when ||b_j - (A - shift_j I) x_j|| <= tol ||b_j||. With 0 the solver
    /// makes max_iterations steps, unless a residual vanishes.
    double tol = 1e-10;
    /// One tolerance per column instead of `tol`, unless empty.
    std::span<const double> column_tol = {};
    /// Maximal number of steps of a column; a step makes one product, with bicgstab two.
    std::int64_t max_iterations = 1000;
    /// True if X holds a first guess; otherwise the contents of X are ignored, and the guess is 0.
    bool x_is_guess = false;
    /// Steps of gmres before it restarts: memory for restart + 1 blocks.
    int restart = 30;
    /// cg uses the block method if all columns have the same shift. Otherwise, or if false, each
    /// column has its own Krylov space, but all columns advance together.
    bool share_search_space = true;
    /// Makes one more product at the end to compute residuals without accumulated rounding errors,
    /// and continues if they are above the tolerance. Inner solvers do not need this product.
    bool fresh_residuals = true;
    /// For inner solvers: called after each step of a column; if it returns true, the column ends
    /// as out_of_iterations with its present x. It must be set on all ranks or on none; its
    /// arguments are the same on all ranks, and its results must be. It needs a first guess of 0
    /// and is called in the first cycle of minres, of gmres without a preconditioner, and of cg
    /// with separate search spaces. Cost with minres and cg: one pass over X and one all-reduce a
    /// step.
    std::function<bool(const LinearStep&)> stop = {};
};

enum class LinearStatus : std::uint8_t {
    converged,
    out_of_iterations,
    /// The residual no longer decreases: because of rounding, or over a restart of gmres.
    stagnated,
    /// The method cannot continue: an indefinite operator or preconditioner, orthogonal directions,
    /// or a residual that has grown beyond ||b||, which indicates a singular operator.
    breakdown,
    /// NaN or infinity in B, in X or in a product.
    not_finite,
    /// The column met its tolerance, but checksums of the operator (solvers/abft) found faults that
    /// were not repaired, or its residual from the audited matrix is above the tolerance.
    faulty,
};

const char* to_string(LinearStatus status);

/// One right-hand side.
struct LinearColumn {
    LinearStatus status = LinearStatus::converged;
    /// ||b - (A - shift I) x||, from a fresh product if options.fresh_residuals, and ||b||.
    double residual = 0;
    double b_norm = 0;
    /// Steps in which this column took part.
    std::int64_t iterations = 0;
    /// True if the cause of a breakdown is a preconditioner that is not Hermitian positive
    /// definite.
    bool preconditioner_is_unfit = false;
    /// Why the column has not converged, with values, iteration and column.
    std::string message;
};

/// The result of a linear solver, the same on all ranks.
struct LinearResult {
    std::vector<LinearColumn> columns;
    bool converged = false;
    /// Steps of all cycles together; at least as many as any column's.
    std::int64_t iterations = 0;
    /// Products with the operator and the preconditioner, counted by column.
    std::int64_t operator_applications = 0;
    std::int64_t preconditioner_applications = 0;
    double seconds = 0;
    /// The message of the first column that has not converged.
    std::string message;
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// What every linear solver is asked, how it is told to work, and what it answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "blockvec/view.hpp"
#include "kernels/operator.hpp"

namespace quiver {

/// (A - shift_j I) x_j = b_j, j = 0 .. n - 1. Operators have one row map and outlive the solve;
/// blocks are in the Context's place.
template <class T>
struct LinearProblem {
    Operator<T>& a;
    /// rows x n.
    BlockView<const T> b;
    /// Empty: none; one element: the same for all columns; n elements: one a column. Operators get
    /// those of the columns still at work through ApplyOptions::shift.
    std::span<const T> shift = {};
    /// M, close to the inverse of A - shift I. Hermitian positive definite for cg and minres (where
    /// it acts as a split preconditioner), any linear operator for gmres and bicgstab (on the
    /// right, so that residuals stay those of the system). None means M = I.
    Operator<T>* preconditioner = nullptr;
};

struct LinearOptions {
    /// Column j has converged when ||b_j - (A - shift_j I) x_j|| <= tol ||b_j||. 0 asks for
    /// max_iterations steps, unless a residual vanishes.
    double tol = 1e-10;
    /// One a column instead of `tol`, unless empty.
    std::span<const double> column_tol = {};
    /// Steps of a column before the solver gives it up; products with it: one a step, two with
    /// bicgstab.
    std::int64_t max_iterations = 1000;
    /// X holds a first guess; otherwise X may hold anything, and 0 is the guess.
    bool x_is_guess = false;
    /// Steps of gmres before it restarts: memory for restart + 1 blocks.
    int restart = 30;
    /// cg takes the block method where all columns have the same shift; otherwise, and without
    /// this, columns advance together but each in its own Krylov space.
    bool share_search_space = true;
    /// One more product at the end, for residuals that rounding has not touched, and for going on
    /// where they are above the tolerance. An inner solver saves it.
    bool fresh_residuals = true;
};

enum class LinearStatus : std::uint8_t {
    converged,
    out_of_iterations,
    /// The residual no longer falls: because of rounding, or over a restart of gmres.
    stagnated,
    /// The method cannot go on: an indefinite operator or preconditioner, orthogonal directions, a
    /// residual that has grown beyond ||b||, as a singular operator makes it.
    breakdown,
    /// NaN or infinity in B, in X or in a product.
    not_finite,
};

const char* to_string(LinearStatus status);

/// One right-hand side.
struct LinearColumn {
    LinearStatus status = LinearStatus::converged;
    /// ||b - (A - shift I) x||, from a fresh product unless that was not wanted, and ||b||.
    double residual = 0;
    double b_norm = 0;
    /// Steps that this column took part in.
    std::int64_t iterations = 0;
    /// Why the column has not converged: numbers, the iteration, the column.
    std::string message;
};

/// The same on all ranks.
struct LinearResult {
    std::vector<LinearColumn> columns;
    bool converged = false;
    /// Steps of all cycles together, no less than any column's.
    std::int64_t iterations = 0;
    /// Products with the operator and the preconditioner, counted by column.
    std::int64_t operator_applications = 0;
    std::int64_t preconditioner_applications = 0;
    double seconds = 0;
    /// The message of the first column that has not converged.
    std::string message;
};

}  // namespace quiver

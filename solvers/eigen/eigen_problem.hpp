// SPDX-License-Identifier: BSD-3-Clause
// The input of every eigensolver: A x = lambda B x, and what the caller knows about its solution.
#pragma once

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"
#include "kernels/operator.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver {

template <class T>
class ProtectedMatrix;

/// A x = lambda B x with Hermitian A. All operators must have the same row map and outlive the
/// solve; all blocks must be in the Context's place.
template <class T>
struct EigenProblem {
    Operator<T>& a;
    /// Hermitian positive definite; shift_invert() also takes a semidefinite B. Null means B = I.
    ///
    /// lobpcg() and jacobi_davidson() only multiply with B. block_lanczos(), chebyshev_subspace()
    /// and window_filter() factorise B = G G^H and solve G^-1 A G^-H y = lambda y, x = G^-H y. They
    /// take a SparseMatrix that is diagonal, or on one rank any with at most 50,000 rows, neither
    /// checkpoint nor protection: else InputError. A B that is not positive definite is an
    /// IndefiniteError. With any method a pair has converged when ||A x - lambda B x|| <= tol
    /// (||A|| + |lambda| ||B||) ||x||.
    Operator<T>* b = nullptr;
    /// Hermitian positive definite, close to the inverse of A (or of A - sigma B near the wanted
    /// end). Each solver documents whether it ignores the preconditioner. jacobi_davidson() with
    /// options.inner == gmres takes any linear operator, for instance a rough solver of the caller.
    Operator<T>* preconditioner = nullptr;
    /// An approximation of (A - sigma B)^-1, Hermitian but possibly indefinite, sigma near the
    /// wanted eigenvalues: shift and invert. jacobi_davidson applies it instead of solving
    /// correction equations.
    Operator<T>* inverse = nullptr;
    /// Guesses of wanted eigenvectors; any number of columns, which may be dependent or exact.
    /// Empty: random start.
    BlockView<const T> start = {};
    /// Only eigenvectors B-orthogonal to these columns are wanted; the columns must be linearly
    /// independent. If the columns are eigenvectors, the solver finds the next eigenvectors.
    /// Otherwise it finds eigenvectors of P A P, where P is the projection onto the complement.
    BlockView<const T> constraints = {};
    /// Receives the solver's states and may hold a state to resume from; may be null.
    Checkpoint<T>* checkpoint = nullptr;
    /// `a` itself if it checks its products (solvers/abft), else null. An `a` that returns the
    /// products of a ProtectedMatrix unchanged may name that ProtectedMatrix here; with other
    /// products, for instance 2 A, results are withdrawn. block_lanczos then also checks its basis;
    /// eigensolve() also checks the block updates of the other solvers if the protection's options
    /// request `updates`.
    ProtectedMatrix<T>* protection = nullptr;
};

/// The state from which the solver resumes; null if it starts from the beginning.
template <class T>
const SavedState<T>* saved_state(const EigenProblem<T>& problem) {
    return problem.checkpoint == nullptr ? nullptr : problem.checkpoint->saved();
}

/// The dimension of the searched space: all rows minus the number of constraints.
template <class T>
std::int64_t dimensions(const EigenProblem<T>& problem) {
    return problem.a.row_map().global_rows() - problem.constraints.cols;
}

/// The first call of every solver. Throws on all ranks: InputError unless all ranks pass the same
/// options and the same parts of the problem (the message names the option with its smallest and
/// largest value); ShapeError unless the shapes and places of all parts match. Two all-reduces.
template <class T>
void check_problem(const Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options);

/// The first half of check_problem(), for callers that read the options before a solver does. One
/// all-reduce.
template <class T>
void require_equal_options(const Comm& comm, const EigenProblem<T>& problem,
                           const EigenOptions& options);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// What every eigensolver is asked: A x = lambda B x, and what the caller knows of it.
#pragma once

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"
#include "kernels/operator.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver {

template <class T>
class ProtectedMatrix;

/// A x = lambda B x with Hermitian A. All operators have the same row map and outlive the solve;
/// blocks are in the Context's place.
template <class T>
struct EigenProblem {
    Operator<T>& a;
    /// Hermitian positive definite; none means B = I.
    Operator<T>* b = nullptr;
    /// Hermitian positive definite, close to the inverse of A (or of A - sigma B near the wanted
    /// end). Solvers that have no use for one say so in their documentation.
    Operator<T>* preconditioner = nullptr;
    /// (A - sigma B)^-1 to some digits, Hermitian of any sign, sigma near the wanted eigenvalues:
    /// shift and invert. jacobi_davidson takes it in place of correction equations.
    Operator<T>* inverse = nullptr;
    /// Guesses of wanted eigenvectors; any width, may be dependent or exact. Empty: random.
    BlockView<const T> start = {};
    /// Only eigenvectors B-orthogonal to these columns are wanted. They are linearly independent;
    /// with eigenvectors here the solver finds the following ones. Of columns that are no
    /// eigenvectors, those of P A P are found, P the projection onto the complement.
    BlockView<const T> constraints = {};
    /// Takes the solver's states, and may have one to go on from.
    Checkpoint<T>* checkpoint = nullptr;
    /// `a` again, where it checks its products (solvers/abft): block_lanczos then checks its basis,
    /// too, and eigensolve, where its options ask for `updates`, those of the other solvers'
    /// blocks.
    ProtectedMatrix<T>* protection = nullptr;
};

/// The state that a solver goes on from; null: it begins.
template <class T>
const SavedState<T>* saved_state(const EigenProblem<T>& problem) {
    return problem.checkpoint == nullptr ? nullptr : problem.checkpoint->saved();
}

/// The dimension of the space that is searched: the rows without the constraints.
template <class T>
std::int64_t dimensions(const EigenProblem<T>& problem) {
    return problem.a.row_map().global_rows() - problem.constraints.cols;
}

/// Shapes and places of all parts of a problem. Throws ShapeError, on all ranks. One all-reduce.
template <class T>
void check_problem(const Context& ctx, const EigenProblem<T>& problem);

/// Of solvers that would need the inverse of B. Throws InputError, alike on all ranks, if B is
/// there; `solver` is the name to begin with.
template <class T>
void require_standard(const EigenProblem<T>& problem, const char* solver);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// What every eigensolver is asked: A x = lambda B x, and what the caller knows of it.
#pragma once

#include "blockvec/view.hpp"
#include "kernels/operator.hpp"

namespace quiver {

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
    /// Guesses of wanted eigenvectors; any width, may be dependent or exact. Empty: random.
    BlockView<const T> start = {};
    /// Only eigenvectors B-orthogonal to these columns are wanted. They are linearly independent;
    /// with eigenvectors here the solver finds the following ones.
    BlockView<const T> constraints = {};
};

}  // namespace quiver

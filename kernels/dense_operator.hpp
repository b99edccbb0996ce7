// SPDX-License-Identifier: BSD-3-Clause
// DenseOperator: the base of operators that multiply by a stored dense matrix.
#pragma once

#include "kernels/operator.hpp"

namespace quiver {

/// An operator whose products multiply by a stored dense matrix. Derive from this class instead of
/// Operator to tell eigensolve() that one product with all columns of the identity, which gathers
/// the matrix for a dense solve, costs less than that solve. The class adds no member functions.
template <class T>
class DenseOperator : public Operator<T> {};

}  // namespace quiver

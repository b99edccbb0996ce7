// SPDX-License-Identifier: BSD-3-Clause
// The eigenpairs of a projected operator that is equal on every rank. Private to solvers/.
#pragma once

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

/// hermitian_eigen(h), with the same bits on all ranks. A large H goes to LAPACK on rank 0, which
/// sends the result, because Eigen takes ten times as long. Collective; throws NumericalError if
/// LAPACK fails. O(n^3).
template <Scalar T>
HermitianEigen<T> projected_eigen(Context& ctx, const SmallMatrix<T>& h);

}  // namespace quiver

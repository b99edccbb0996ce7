// SPDX-License-Identifier: BSD-3-Clause
// The eigenpairs of a projected operator that is equal on every rank. Private to solvers/.
#pragma once

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

/// hermitian_eigen(h) of an H that is equal on all ranks, with the same bits on all ranks. From 256
/// rows on, rank 0 computes the pairs in double precision by DensePencil and broadcasts them
/// (LAPACK takes a third of the time of Eigen for 1331 rows on one core). Throws the errors of
/// DensePencil. Collective. O(n^3).
template <Scalar T>
HermitianEigen<T> projected_eigen(Context& ctx, const SmallMatrix<T>& h);

}  // namespace quiver

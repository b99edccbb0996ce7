// SPDX-License-Identifier: BSD-3-Clause
// All rows of a distributed matrix on one rank, for methods that factorise it there. Private to the
// project.
#pragma once

#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// All rows of the matrix on rank 0, with global columns; no rows on the other ranks. Collective.
/// Cost: one product with a column, and one exchange of the entries. Columns are numbers of T: rows
/// up to 2^24 for s and c.
template <class T>
CsrRows<T> rows_on_rank_0(Context& ctx, SparseMatrix<T>& a);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The rows of a distributed matrix, read back: all on one rank, scaled on their ranks, or as the
// rows of the adjoint. Private to the project.
#pragma once

#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// All rows of the matrix on rank 0, with global columns; no rows on the other ranks. Collective.
/// Cost: one product with two columns, and one exchange of the entries.
template <class T>
CsrRows<T> rows_on_rank_0(Context& ctx, SparseMatrix<T>& a);

/// This rank's rows of S A S with global columns; S is the diagonal matrix of `s`, a block of one
/// column with real elements. Entries (i, j) and (j, i) of a Hermitian A remain conjugates of each
/// other, bit by bit. Collective. Cost: products with one and with two columns, one pass over the
/// entries.
template <class T>
CsrRows<T> scaled_rows(Context& ctx, SparseMatrix<T>& a, BlockView<const T> s);

/// This rank's rows of A^H with global columns: those of a.domain_map(). Collective. Cost: one
/// product with two columns, one pass over the entries, and one exchange of the entries.
template <class T>
CsrRows<T> adjoint_rows(Context& ctx, SparseMatrix<T>& a);

}  // namespace quiver

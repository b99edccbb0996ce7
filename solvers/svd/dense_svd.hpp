// SPDX-License-Identifier: BSD-3-Clause
// Some singular triplets of a large dense matrix.
#pragma once

#include "blockvec/context.hpp"
#include "blockvec/matrix_view.hpp"
#include "blockvec/row_map.hpp"
#include "solvers/svd/sparse_svd.hpp"

namespace quiver {

/// The k largest or smallest singular triplets A v = s u, A^H u = s v of a dense matrix, square or
/// rectangular.
///
/// A: rows x columns, stored by rows or by columns, this rank's rows of a matrix that `map`
/// distributes, in the Context's place. It is read by products (mtsm) and never copied or changed,
/// unless it has at most 512 rows or columns: then tall_svd() decomposes a copy of at most 1 GiB.
/// Algorithm, errors and result are those of svds() for a sparse matrix; `right` is distributed as
/// map.evenly(columns). In addition eigensolve() may choose a dense solve of A^H A or A A^H, which
/// it gathers by products, up to 3,000 rows or columns; and if values are too small for products
/// with A^H A, tall_svd() decomposes a copy with up to 2,048 rows or columns. For all singular
/// values of a matrix with few columns call tall_svd().
///
/// Throws on all ranks: InputError for k < 1 or above min(rows, columns), options out of range or
/// different between ranks, NaN or infinity in A (naming the column); ShapeError if A, the map and
/// the Context disagree; and the errors of mtsm() and eigensolve(). Collective. Cost: for each
/// product, counted in SparseSvd::products, 2 rows columns flops (8 for complex); the products of a
/// step share one pass over A. Each rank communicates the elements of X of mtsm(), columns times
/// the width of the step. Memory: the basis of the eigensolver, 4 blocks of k columns.
template <class T>
SparseSvd<T> svds(Context& ctx, const RowMap& map, MatrixView<const T> a,
                  const SvdsOptions& options = {});

}  // namespace quiver

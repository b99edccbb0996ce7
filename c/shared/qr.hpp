// SPDX-License-Identifier: BSD-3-Clause
// The QR factorisation that the interfaces to other languages share.
#pragma once

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver::doors {

/// X = Q R with R upper triangular, by Cholesky-QR twice, or by TSQR if X is too ill-conditioned
/// for it. Q starts as a copy of X; R is in host memory.
template <class T>
void qr(Context& ctx, BlockView<const T> x, BlockView<T> q, BlockView<T> r) {
    require_shape(q.rows == x.rows && q.cols == x.cols, "qr", "Q must have the shape of X",
                  [&] { return "X: " + describe(x) + "; Q: " + describe(q); });
    require_shape(r.rows == x.cols && r.cols == x.cols, "qr",
                  "R must be square with the columns of X",
                  [&] { return "R: " + describe(r) + "; X: " + describe(x); });
    require_shape(!overlap(x, q), "qr", "X and Q overlap",
                  [&] { return "X: " + describe(x) + "; Q: " + describe(q); });
    const RowMap map = RowMap::by_local_rows(ctx.comm(), x.rows);
    const BlockView<const T> none(nullptr, x.rows, 0, 0, ctx.place());
    OrthOptions options;
    for (const OrthMethod method : {OrthMethod::cholesky_qr2, OrthMethod::tsqr}) {
        options.method = method;
        copy(ctx, x, q);
        const OrthResult<T> result = block_gram_schmidt(ctx, map, none, q, options);
        if (result.breakdown < 0) {
            copy(ctx, result.r.view(), r);
            return;
        }
    }
    throw NumericalError("qr: neither Cholesky-QR nor TSQR succeeded");
}

}  // namespace quiver::doors

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/gathered_rows.hpp"

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/exchange.hpp"

namespace quiver {
namespace {

/// The global numbers of the rows of X that products of this rank receive from others: a product
/// with the row numbers as X receives them.
template <class T>
std::vector<std::int64_t> halo_columns(Context& ctx, SparseMatrix<T>& a) {
    const RowMap& map = a.row_map();
    BlockVector<T> x;
    BlockVector<T> y;
    ctx.comm().agree([&] {
        x = BlockVector<T>(ctx, map, 1);
        y = BlockVector<T>(ctx, map, 1);
        SmallMatrix<T> numbers(static_cast<int>(map.local_rows()), 1);
        for (int i = 0; i < numbers.rows(); ++i) {
            numbers(i, 0) = T(static_cast<real_t<T>>(map.first_row() + i));
        }
        copy(ctx, std::as_const(numbers).view(), x.view());
    });
    a.apply(ctx, std::as_const(x).view(), y.view());
    std::vector<std::int64_t> columns;
    if (a.halo_size() > 0) {
        SmallMatrix<T> received(static_cast<int>(a.halo_size()), 1);
        copy(ctx, a.received(1), received.view());
        for (int i = 0; i < received.rows(); ++i) {
            columns.push_back(std::llround(std::real(received(i, 0))));
        }
    }
    return columns;
}

}  // namespace

template <class T>
CsrRows<T> rows_on_rank_0(Context& ctx, SparseMatrix<T>& a) {
    const RowMap& map = a.row_map();
    const std::vector<std::int64_t> halo = halo_columns(ctx, a);
    std::vector<Entry<T>> mine;
    ctx.comm().agree([&] {
        a.for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
            const std::int64_t own = map.local_rows();
            mine.push_back({map.first_row() + static_cast<std::int64_t>(row),
                            column < own ? map.first_row() + column
                                         : halo[static_cast<std::size_t>(column - own)],
                            value});
        });
    });
    std::vector<Entry<T>> all;
    exchange<Entry<T>>(
        ctx.comm(), static_cast<std::int64_t>(mine.size()),
        [&](std::int64_t i) { return mine[static_cast<std::size_t>(i)]; },
        [](const Entry<T>&) { return 0; },
        [&](int, std::span<const Entry<T>> items) {
            all.insert(all.end(), items.begin(), items.end());
        });
    CsrRows<T> rows;
    ctx.comm().agree([&] {
        if (ctx.comm().rank() == 0) {
            const std::int64_t n = map.global_rows();
            rows = rows_from_entries<T>(Comm(), n, n, a.symmetry(), std::move(all));
        }
    });
    return rows;
}

#define QUIVER_INSTANTIATE(T) template CsrRows<T> rows_on_rank_0(Context&, SparseMatrix<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/gathered_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <tuple>
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

/// The rows of X that a product of this rank receives from others, in host memory. Cost: one
/// product.
template <class T>
SmallMatrix<T> received_rows(Context& ctx, SparseMatrix<T>& a, BlockView<const T> x) {
    BlockVector<T> y;
    ctx.comm().agree([&] { y = BlockVector<T>(ctx, a.range_map(), x.cols); });
    a.apply(ctx, x, y.view());
    SmallMatrix<T> received(static_cast<int>(a.halo_size()), x.cols);
    if (received.rows() > 0) {
        copy(ctx, a.received(x.cols), received.view());
    }
    return received;
}

/// The global numbers of the rows of X that products of this rank receive from others: a product
/// with the row numbers as X receives them. Each number has two parts, which are exact in single
/// precision.
template <class T>
std::vector<std::int64_t> halo_columns(Context& ctx, SparseMatrix<T>& a) {
    constexpr std::int64_t base = 1 << 20;
    const RowMap& map = a.domain_map();
    BlockVector<T> x;
    ctx.comm().agree([&] {
        x = BlockVector<T>(ctx, map, 2);
        SmallMatrix<T> numbers(static_cast<int>(map.local_rows()), 2);
        for (int i = 0; i < numbers.rows(); ++i) {
            const std::int64_t row = map.first_row() + i;
            const std::int64_t high = row / base;
            numbers(i, 0) = T(static_cast<real_t<T>>(high));
            numbers(i, 1) = T(static_cast<real_t<T>>(row - base * high));
        }
        copy(ctx, std::as_const(numbers).view(), x.view());
    });
    const SmallMatrix<T> received = received_rows<T>(ctx, a, std::as_const(x).view());
    std::vector<std::int64_t> columns;
    columns.reserve(static_cast<std::size_t>(received.rows()));
    for (int i = 0; i < received.rows(); ++i) {
        columns.push_back(base * std::llround(std::real(received(i, 0))) +
                          std::llround(std::real(received(i, 1))));
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

template <class T>
CsrRows<T> scaled_rows(Context& ctx, SparseMatrix<T>& a, BlockView<const T> s) {
    const RowMap& map = a.row_map();
    const std::int64_t own = map.local_rows();
    const std::vector<std::int64_t> halo = halo_columns(ctx, a);
    const SmallMatrix<T> halo_scales = received_rows(ctx, a, s);
    CsrRows<T> rows;
    ctx.comm().agree([&] {
        SmallMatrix<T> scales(static_cast<int>(own), 1);
        copy(ctx, s, scales.view());
        const auto scale_of = [&](std::int64_t column) {
            return std::real(column < own ? scales(static_cast<int>(column), 0)
                                          : halo_scales(static_cast<int>(column - own), 0));
        };
        std::vector<Entry<T>> entries;
        entries.reserve(static_cast<std::size_t>(a.local_nonzeros()));
        a.for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
            const auto at = static_cast<std::int64_t>(row);
            const std::int64_t global = column < own ? map.first_row() + column
                                                     : halo[static_cast<std::size_t>(column - own)];
            entries.push_back({at, global, value * (scale_of(at) * scale_of(column))});
        });
        std::sort(entries.begin(), entries.end(), [](const Entry<T>& x, const Entry<T>& y) {
            return std::tie(x.row, x.column) < std::tie(y.row, y.column);
        });
        rows.map = map;
        rows.global_cols = map.global_rows();
        rows.symmetry = a.symmetry();
        rows.row_start.assign(static_cast<std::size_t>(own) + 1, 0);
        for (const Entry<T>& entry : entries) {
            ++rows.row_start[static_cast<std::size_t>(entry.row) + 1];
            rows.column.push_back(entry.column);
            rows.value.push_back(entry.value);
        }
        std::partial_sum(rows.row_start.begin(), rows.row_start.end(), rows.row_start.begin());
    });
    return rows;
}

template <class T>
CsrRows<T> adjoint_rows(Context& ctx, SparseMatrix<T>& a) {
    const RowMap& range = a.range_map();
    const RowMap& domain = a.domain_map();
    const std::int64_t own = domain.local_rows();
    const std::vector<std::int64_t> halo = halo_columns(ctx, a);
    std::vector<Entry<T>> entries;
    ctx.comm().agree([&] {
        entries.reserve(static_cast<std::size_t>(a.local_nonzeros()));
        a.for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
            entries.push_back({column < own ? domain.first_row() + column
                                            : halo[static_cast<std::size_t>(column - own)],
                               range.first_row() + static_cast<std::int64_t>(row),
                               conjugate(value)});
        });
    });
    return rows_from_entries<T>(ctx.comm(), domain, range, a.symmetry(), std::move(entries));
}

#define QUIVER_INSTANTIATE(T)                                       \
    template CsrRows<T> adjoint_rows(Context&, SparseMatrix<T>&);   \
    template CsrRows<T> rows_on_rank_0(Context&, SparseMatrix<T>&); \
    template CsrRows<T> scaled_rows(Context&, SparseMatrix<T>&, BlockView<const T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

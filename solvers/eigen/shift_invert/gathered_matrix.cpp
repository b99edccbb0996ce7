// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/exchange.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

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
CsrRows<DoubleOf<T>> gather_rows(Context& ctx, Operator<T>& a, const char* name) {
    using Wide = DoubleOf<T>;
    auto* const stored = dynamic_cast<SparseMatrix<T>*>(&a);
    if (stored == nullptr) {
        InputError error(std::string("shift-invert: ") + name +
                         " has no stored entries to factorise; use a method that iterates");
        error.set_collective();
        throw error;
    }
    const RowMap& map = a.row_map();
    const std::vector<std::int64_t> halo = halo_columns(ctx, *stored);
    std::vector<Entry<Wide>> mine;
    ctx.comm().agree([&] {
        stored->for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
            if (!is_finite(value)) {
                throw NumericalError(std::string("shift-invert: an entry of ") + name +
                                     " is not finite");
            }
            const std::int64_t own = map.local_rows();
            mine.push_back({map.first_row() + static_cast<std::int64_t>(row),
                            column < own ? map.first_row() + column
                                         : halo[static_cast<std::size_t>(column - own)],
                            static_cast<Wide>(value)});
        });
    });
    std::vector<Entry<Wide>> all;
    exchange<Entry<Wide>>(
        ctx.comm(), static_cast<std::int64_t>(mine.size()),
        [&](std::int64_t i) { return mine[static_cast<std::size_t>(i)]; },
        [](const Entry<Wide>&) { return 0; },
        [&](int, std::span<const Entry<Wide>> items) {
            all.insert(all.end(), items.begin(), items.end());
        });
    CsrRows<Wide> rows;
    ctx.comm().agree([&] {
        if (ctx.comm().rank() != 0) {
            return;
        }
        const std::int64_t n = map.global_rows();
        rows = rows_from_entries<Wide>(Comm(), n, n, stored->symmetry(), std::move(all));
        double largest = 0;
        for (const Wide& value : rows.value) {
            largest = std::max(largest, static_cast<double>(std::abs(value)));
        }
        if (hermitian_defect(rows) > 100 * static_cast<double>(epsilon_v<T>) * largest) {
            throw NumericalError(std::string("shift-invert: ") + name + " is not Hermitian");
        }
    });
    return rows;
}

template <class W>
int scale_to_one(CsrRows<W>& rows) {
    double largest = 0;
    for (const W& value : rows.value) {
        largest = std::max(largest, static_cast<double>(std::abs(value)));
    }
    const int exponent = even_exponent(largest);
    const double factor = std::ldexp(1.0, -exponent);
    for (W& value : rows.value) {
        value *= factor;
    }
    return exponent;
}

template int scale_to_one(CsrRows<double>&);
template int scale_to_one(CsrRows<std::complex<double>>&);

#define QUIVER_INSTANTIATE(T) \
    template CsrRows<DoubleOf<T>> gather_rows(Context&, Operator<T>&, const char*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/dense/root_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"

namespace quiver {
namespace {

template <class T>
SmallMatrix<T> all_rows(Context& ctx, const RowMap& map, BlockView<const T> x) {
    SmallMatrix<T> all(static_cast<int>(map.global_rows()), x.cols);
    copy(ctx, x, all.view().row_range(map.first_row(), x.rows));
    const auto count = static_cast<std::size_t>(all.rows()) * static_cast<std::size_t>(x.cols);
    ctx.comm().sum(std::span<T>(all.data(), count));
    return all;
}

template <class T>
WideMatrix<T> matrix_of_products(Context& ctx, Operator<T>& a, WideMatrix<T> dense) {
    const RowMap& map = a.row_map();
    const auto n = static_cast<int>(map.global_rows());
    const bool is_root = dense.rows() > 0;
    BlockVector<T> unit;
    BlockVector<T> image;
    ctx.comm().agree([&] {
        unit = BlockVector<T>(ctx, map, root_panel);
        image = BlockVector<T>(ctx, map, root_panel);
    });
    for (int first = 0; first < n; first += root_panel) {
        const int width = std::min(root_panel, n - first);
        SmallMatrix<T> rows(static_cast<int>(map.local_rows()), width);
        for (int j = 0; j < width; ++j) {
            const std::int64_t row = first + j - map.first_row();
            if (row >= 0 && row < map.local_rows()) {
                rows(static_cast<int>(row), j) = T(1);
            }
        }
        copy(ctx, std::as_const(rows).view(), unit.columns(0, width));
        checked_product(ctx, Method::dense, a, std::as_const(unit).columns(0, width),
                        image.columns(0, width));
        const SmallMatrix<T> all = all_rows(ctx, map, std::as_const(image).columns(0, width));
        for (int i = 0; i < n && is_root; ++i) {
            for (int j = 0; j < width; ++j) {
                dense(i, first + j) = Wide<T>(all(i, j));
            }
        }
    }
    // Products round, so that A is only nearly Hermitian.
    for (int i = 0; i < n && is_root; ++i) {
        for (int j = 0; j < i; ++j) {
            dense(i, j) = 0.5 * (dense(i, j) + conjugate(dense(j, i)));
            dense(j, i) = conjugate(dense(i, j));
        }
    }
    return dense;
}

}  // namespace

template <class T>
WideMatrix<T> matrix_on_root(Context& ctx, Operator<T>& a, std::int64_t& products) {
    const auto n = static_cast<int>(a.row_map().global_rows());
    WideMatrix<T> dense;
    ctx.comm().agree([&] {
        if (ctx.comm().rank() == 0) {
            dense = WideMatrix<T>(n, n);
        }
    });
    const auto* stored = dynamic_cast<const SparseMatrix<T>*>(&a);
    if (stored == nullptr || ctx.comm().size() > 1) {
        products += n;
        return matrix_of_products(ctx, a, std::move(dense));
    }
    stored->for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
        if (!is_finite(value)) {
            throw NumericalError("dense: an entry of row " + std::to_string(row) +
                                 " is not finite");
        }
        dense(static_cast<int>(row), static_cast<int>(column)) += Wide<T>(value);
    });
    return dense;
}

template <class T>
WideMatrix<T> all_columns(Context& ctx, const BlockVector<T>& x) {
    if (x.width() == 0) {
        return {};
    }
    const SmallMatrix<T> all = all_rows(ctx, x.row_map(), x.view());
    WideMatrix<T> wide(all.rows(), all.cols());
    for (int i = 0; i < all.rows(); ++i) {
        for (int j = 0; j < all.cols(); ++j) {
            wide(i, j) = Wide<T>(all(i, j));
        }
    }
    return wide;
}

template <class W>
ScaledMatrix<W> scaled(SmallMatrix<W> a) {
    const auto count = static_cast<std::size_t>(a.rows()) * static_cast<std::size_t>(a.cols());
    W* const entries = a.data();
    double largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        largest = std::max(largest, std::abs(entries[i]));
    }
    ScaledMatrix<W> result;
    result.exponent = even_exponent(largest);
    const double factor = std::ldexp(1.0, -result.exponent);
    double squares = 0;
    for (int i = 0; i < a.rows(); ++i) {  // rows and columns of a Hermitian matrix are alike
        double row = 0;
        for (int j = 0; j < a.cols(); ++j) {
            a(i, j) *= factor;
            row += std::norm(a(i, j));
        }
        squares = std::max(squares, row);
    }
    result.column_norm = std::ldexp(std::sqrt(squares), result.exponent);
    result.entries = std::move(a);
    return result;
}

template <class W>
SmallMatrix<W> in_units(SmallMatrix<W> m, const std::vector<int>& units, int exponent) {
    for (int i = 0; i < m.rows(); ++i) {
        const int unit = units[static_cast<std::size_t>(i)] - exponent;
        for (int j = 0; j < m.cols(); ++j) {
            m(i, j) *= std::ldexp(1.0, unit + units[static_cast<std::size_t>(j)]);
        }
    }
    return m;
}

#define QUIVER_INSTANTIATE(T)                                                     \
    template WideMatrix<T> matrix_on_root(Context&, Operator<T>&, std::int64_t&); \
    template WideMatrix<T> all_columns(Context&, const BlockVector<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

template ScaledMatrix<double> scaled(SmallMatrix<double>);
template ScaledMatrix<std::complex<double>> scaled(SmallMatrix<std::complex<double>>);
template SmallMatrix<double> in_units(SmallMatrix<double>, const std::vector<int>&, int);
template SmallMatrix<std::complex<double>> in_units(SmallMatrix<std::complex<double>>,
                                                    const std::vector<int>&, int);

}  // namespace quiver

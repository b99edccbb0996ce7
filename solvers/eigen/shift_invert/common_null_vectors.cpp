// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/common_null_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <span>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/number_text.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {
namespace {

constexpr int most_null_vectors = 8;
constexpr int inverse_steps = 4;
/// ||A v|| / ||A|| and ||B v|| / ||B|| of a common null vector are at most this, or the rounding of
/// the entries if that is larger.
constexpr double least_null_residual = 1e-11;
/// A generic ratio of the two matrices, so that A + ratio B is singular only if both have a common
/// null vector.
constexpr double generic_ratio = 0.6180339887;
/// The shift of the inverse iteration: far above rounding, far below eigenvalues that are not 0.
constexpr double null_shift = 1e-8;

/// The norms of the columns of M X, divided by `norm`, and M X.
template <class W>
std::vector<double> relative_images(Context& ctx, SparseMatrix<W>& m, double norm,
                                    BlockView<const W> x, BlockView<W> mx) {
    m.apply(ctx, x, mx);
    std::vector<double> lengths(static_cast<std::size_t>(x.cols));
    norms(ctx, BlockView<const W>(mx), std::span<double>(lengths));
    for (double& length : lengths) {
        length /= norm;
    }
    return lengths;
}

/// Rows in which the columns of X are linearly independent, by elimination with complete pivoting.
template <class W>
std::vector<std::int64_t> independent_rows(BlockView<const W> x) {
    const auto columns = static_cast<std::size_t>(x.cols);
    std::vector<std::vector<W>> left(columns);
    for (int j = 0; j < x.cols; ++j) {
        for (std::int64_t i = 0; i < x.rows; ++i) {
            left[static_cast<std::size_t>(j)].push_back(x.data[i * x.ld + j]);
        }
    }
    std::vector<std::int64_t> rows;
    for (std::size_t step = 0; step < columns; ++step) {
        std::size_t column = step;
        std::size_t row = 0;
        for (std::size_t j = step; j < columns; ++j) {
            for (std::size_t i = 0; i < left[j].size(); ++i) {
                if (std::abs(left[j][i]) > std::abs(left[column][row])) {
                    column = j;
                    row = i;
                }
            }
        }
        std::swap(left[step], left[column]);
        for (std::size_t j = step + 1; j < columns; ++j) {
            const W factor = left[j][row] / left[step][row];
            for (std::size_t i = 0; i < left[j].size(); ++i) {
                left[j][i] -= factor * left[step][i];
            }
        }
        rows.push_back(static_cast<std::int64_t>(row));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
}

/// A / ||A|| + generic_ratio B / ||B||.
template <class W>
CsrRows<W> generic_sum(const ShiftedPencil<W>& pencil, double norm_a) {
    return rows_from_callback<W>(
        Comm(), pencil.rows(), Symmetry::general, [&](std::int64_t row, RowEntries<W>& entries) {
            visit_row(pencil.a(), row, [&](std::int64_t column, const W& value) {
                entries.add(column, value / norm_a);
            });
            visit_row(*pencil.b(), row, [&](std::int64_t column, const W& value) {
                entries.add(column, generic_ratio / pencil.norm_b() * value);
            });
        });
}

/// X <- an orthonormal basis of the space nearest the null space of `sum`; false if there is no
/// factorisation.
template <class W>
bool find_near_null_space(Context& ctx, const CsrRows<W>& sum, Factorisation<W>& factorisation,
                          BlockVector<W>& x) {
    if (!factorisation.factor(sum, nullptr, -null_shift).complete) {
        return false;
    }
    fill_random(ctx, 1, x);
    for (int step = 0; step < inverse_steps; ++step) {
        factorisation.solve(x.view());
        block_gram_schmidt<W>(ctx, x.row_map(), {}, x.view());
    }
    return true;
}

}  // namespace

std::string CommonNullVectors::words() const {
    if (count == 0) {
        return "";
    }
    std::string list;
    for (const std::int64_t row : rows) {
        list += (list.empty() ? "" : ", ") + std::to_string(row);
    }
    const bool one = count == 1 && !at_least;
    return "A and B have " +
           (one ? std::string("a common null vector v")
                : (at_least ? "at least " : "") + std::to_string(count) +
                      " common null vectors v") +
           " to rounding (||A v|| = " + number_text(a, 2) +
           " ||A||, ||B v|| = " + number_text(b, 2) +
           " ||B||), so that every number is an eigenvalue; add a positive number to the diagonal "
           "of B in " +
           (one ? "row " : "the rows ") + list + " (counted from 0): then v has the eigenvalue 0" +
           (at_least ? "; repeat this for the other v" : "");
}

template <class W>
CommonNullVectors find_common_null_vectors(
    ShiftedPencil<W>& pencil, double rounding,
    const std::function<std::unique_ptr<Factorisation<W>>(const CsrRows<W>&)>& make) {
    Context& ctx = pencil.ctx();
    const int columns = static_cast<int>(std::min<std::int64_t>(most_null_vectors, pencil.rows()));
    const double norm_a = pencil.norm() > 0 ? pencil.norm() : 1;
    const double norm_b = pencil.norm_b();
    CommonNullVectors result;
    BlockVector<W> x(ctx, pencil.map(), columns);
    const CsrRows<W> sum = generic_sum(pencil, norm_a);
    if (!find_near_null_space(ctx, sum, *make(sum), x)) {
        return result;
    }
    // Ritz vectors of (A / ||A||)^2 + (B / ||B||)^2: those with the least values are null vectors.
    SparseMatrix<W> a(ctx, pencil.a());
    SparseMatrix<W> b(ctx, *pencil.b());
    BlockVector<W> ax(ctx, pencil.map(), columns);
    BlockVector<W> bx(ctx, pencil.map(), columns);
    relative_images(ctx, a, norm_a, std::as_const(x).view(), ax.view());
    relative_images(ctx, b, norm_b, std::as_const(x).view(), bx.view());
    SmallMatrix<W> squares(columns, columns);
    tsmttsm(ctx, W(1 / (norm_a * norm_a)), std::as_const(ax).view(), std::as_const(ax).view(), W(0),
            squares);
    tsmttsm(ctx, W(1 / (norm_b * norm_b)), std::as_const(bx).view(), std::as_const(bx).view(), W(1),
            squares);
    const HermitianEigen<W> eigen = projected_eigen(ctx, squares);
    if (!eigen.converged) {
        return result;
    }
    BlockVector<W> v(ctx, pencil.map(), columns);
    tsmm(ctx, W(1), std::as_const(x).view(), eigen.vectors.view(), W(0), v.view());
    const std::vector<double> in_a =
        relative_images(ctx, a, norm_a, std::as_const(v).view(), ax.view());
    const std::vector<double> in_b =
        relative_images(ctx, b, norm_b, std::as_const(v).view(), bx.view());
    const auto is_null = [&](int j) {
        const auto at = static_cast<std::size_t>(j);
        return std::max(in_a[at], in_b[at]) <= std::max(least_null_residual, rounding);
    };
    while (result.count < columns && is_null(result.count)) {
        result.a = std::max(result.a, in_a[static_cast<std::size_t>(result.count)]);
        result.b = std::max(result.b, in_b[static_cast<std::size_t>(result.count)]);
        ++result.count;
    }
    result.at_least = result.count == columns && columns < pencil.rows();
    result.rows = independent_rows(std::as_const(v).view().columns(0, result.count));
    return result;
}

template CommonNullVectors find_common_null_vectors(
    ShiftedPencil<double>&, double,
    const std::function<std::unique_ptr<Factorisation<double>>(const CsrRows<double>&)>&);
template CommonNullVectors find_common_null_vectors(
    ShiftedPencil<std::complex<double>>&, double,
    const std::function<std::unique_ptr<Factorisation<std::complex<double>>>(
        const CsrRows<std::complex<double>>&)>&);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The entries of a distributed matrix on rank 0, in double precision. Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

template <class T>
using DoubleOf = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

/// All rows of the matrix on rank 0, none on the others. Throws on all ranks: InputError unless the
/// operator is a SparseMatrix, NumericalError for entries that are not finite or a matrix that is
/// not Hermitian; the messages begin with `name`, as in "shift-invert: A". Collective. Cost: one
/// product with two columns, and one exchange of the entries.
template <class T>
CsrRows<DoubleOf<T>> gather_rows(Context& ctx, Operator<T>& a, const char* name);

/// Multiplies the entries by 2^-e, without rounding, so that the largest is near 1; returns e, an
/// even number. A zero matrix is not changed.
template <class W>
int scale_to_one(CsrRows<W>& rows);

/// Calls visit(column, value) for the entries of a row.
template <class W, class Visit>
void visit_row(const CsrRows<W>& rows, std::int64_t row, Visit&& visit) {
    for (auto e = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(row)]);
         e < static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(row) + 1]); ++e) {
        visit(rows.column[e], rows.value[e]);
    }
}

/// The real part of the diagonal entry of a row; 0 if none is stored.
template <class W>
double diagonal_entry(const CsrRows<W>& rows, std::int64_t row) {
    double sum = 0;
    visit_row(rows, row, [&](std::int64_t column, const W& value) {
        sum += column == row ? std::real(value) : 0;
    });
    return sum;
}

/// Bounds of the eigenvalues of a Hermitian matrix by Gershgorin's discs.
template <class W>
Window gershgorin_bounds(const CsrRows<W>& rows) {
    Window bounds{std::numeric_limits<double>::infinity(),
                  -std::numeric_limits<double>::infinity()};
    for (std::int64_t row = 0; row < rows.map.global_rows(); ++row) {
        double centre = 0;
        double radius = 0;
        visit_row(rows, row, [&](std::int64_t column, const W& value) {
            (column == row ? centre : radius) += column == row ? std::real(value) : std::abs(value);
        });
        bounds.low = std::min(bounds.low, centre - radius);
        bounds.high = std::max(bounds.high, centre + radius);
    }
    return bounds;
}

/// Bounds of the eigenvalues of A x = lambda B x (null: B = I); infinite if Gershgorin's discs do
/// not show that B is positive definite.
template <class W>
Window value_bounds(const CsrRows<W>& a, const CsrRows<W>* b) {
    const Window bounds = gershgorin_bounds(a);
    if (b == nullptr) {
        return bounds;
    }
    const double least = gershgorin_bounds(*b).low;
    const double largest = least > 0 ? std::max(std::abs(bounds.low), std::abs(bounds.high)) / least
                                     : std::numeric_limits<double>::infinity();
    return {-largest, largest};
}

/// Where the eigenvalues of A x = lambda B x are likely to end: far_factor times the largest
/// quotient of a row sum of |A| and a positive diagonal entry of B.
template <class W>
double far_value(const CsrRows<W>& a, const CsrRows<W>& b) {
    constexpr double far_factor = 64;
    double largest = 0;
    for (std::int64_t row = 0; row < a.map.global_rows(); ++row) {
        double sum = 0;
        visit_row(a, row, [&](std::int64_t, const W& value) { sum += std::abs(value); });
        const double mass = diagonal_entry(b, row);
        largest = mass > 0 ? std::max(largest, sum / mass) : largest;
    }
    return far_factor * largest;
}

/// The largest sum of |entries| of a row, a bound of the norm of a Hermitian matrix.
template <class W>
double largest_row_sum(const CsrRows<W>& rows) {
    double largest = 0;
    for (std::int64_t row = 0; row < rows.map.global_rows(); ++row) {
        double sum = 0;
        visit_row(rows, row, [&](std::int64_t, const W& value) { sum += std::abs(value); });
        largest = std::max(largest, sum);
    }
    return largest;
}

}  // namespace quiver

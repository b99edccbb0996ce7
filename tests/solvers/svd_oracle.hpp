// SPDX-License-Identifier: BSD-3-Clause
// Singular values in long double, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <span>
#include <type_traits>
#include <vector>

#include "tests/support/fixtures.hpp"

namespace quiver::test {

template <class T>
using wide_number = std::conditional_t<is_complex_v<T>, std::complex<long double>, long double>;

inline long double conjugated(long double value) {
    return value;
}
inline std::complex<long double> conjugated(std::complex<long double> value) {
    return std::conj(value);
}

/// Descending, by one-sided Jacobi rotations of the columns (Hestenes 1958): each value is accurate
/// to long double of the largest, and usually of itself.
template <class W>
std::vector<long double> singular_values_of(std::vector<std::vector<W>> column) {
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < 60; ++sweep) {
        rotated = false;
        for (std::size_t p = 0; p < column.size(); ++p) {
            for (std::size_t q = p + 1; q < column.size(); ++q) {
                long double pp = 0;
                long double qq = 0;
                W pq(0);
                for (std::size_t i = 0; i < column[p].size(); ++i) {
                    pp += std::norm(column[p][i]);
                    qq += std::norm(column[q][i]);
                    pq += conjugated(column[p][i]) * column[q][i];
                }
                const long double size = std::abs(pq);
                if (!(size > 1e-18L * std::sqrt(pp) * std::sqrt(qq))) {
                    continue;
                }
                rotated = true;
                const long double zeta = (qq - pp) / (2 * size);
                const long double t =
                    (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
                const long double c = 1 / std::sqrt(1 + t * t);
                const W s = c * t * (pq / size);
                for (std::size_t i = 0; i < column[p].size(); ++i) {
                    const W x = column[p][i];
                    const W y = column[q][i];
                    column[p][i] = c * x - conjugated(s) * y;
                    column[q][i] = s * x + c * y;
                }
            }
        }
    }
    std::vector<long double> values;
    for (const auto& each : column) {
        long double squares = 0;
        for (const W& value : each) {
            squares += std::norm(value);
        }
        values.push_back(std::sqrt(squares));
    }
    std::sort(values.begin(), values.end(), std::greater<>());
    return values;
}

template <class T>
std::vector<std::vector<wide_number<T>>> wide_columns(const Global<T>& x) {
    std::vector<std::vector<wide_number<T>>> columns(static_cast<std::size_t>(x.cols));
    for (int j = 0; j < x.cols; ++j) {
        for (std::int64_t i = 0; i < x.rows; ++i) {
            columns[static_cast<std::size_t>(j)].emplace_back(x(i, j));
        }
    }
    return columns;
}

template <class T>
std::vector<long double> singular_values(const Global<T>& x) {
    return singular_values_of(wide_columns(x));
}

/// All rows of a block, on every rank.
template <class T>
Global<T> on_all_ranks(Context& ctx, const BlockVector<T>& block) {
    const RowMap& map = block.row_map();
    Global<T> all(map.global_rows(), block.width());
    copy(ctx, block.view(),
         BlockView<T>(all.values.data() + map.first_row() * all.cols, map.local_rows(), all.cols,
                      all.cols));
    ctx.comm().sum(std::span(all.values));
    return all;
}

}  // namespace quiver::test

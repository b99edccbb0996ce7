// SPDX-License-Identifier: BSD-3-Clause
// Small matrices with known spectra for the tests of solvers, made row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::test {

template <class T>
SparseMatrix<T> matrix_from_rows(Context& ctx, std::int64_t rows,
                                 const std::function<void(std::int64_t, RowEntries<T>&)>& make,
                                 const SparseFormat& format = {}) {
    const Symmetry symmetry = is_complex_v<T> ? Symmetry::hermitian : Symmetry::symmetric;
    return SparseMatrix<T>(ctx, rows_from_callback<T>(ctx.comm(), rows, symmetry, make), format);
}

template <class T>
SparseMatrix<T> diagonal(Context& ctx, const std::vector<double>& values) {
    return matrix_from_rows<T>(ctx, static_cast<std::int64_t>(values.size()),
                               [&](std::int64_t row, RowEntries<T>& entries) {
                                   const double value = values[static_cast<std::size_t>(row)];
                                   if (value != 0) {
                                       entries.add(row, T(static_cast<real_t<T>>(value)));
                                   }
                               });
}

/// The Dirichlet Laplacian on an nx x ny x nz grid; complex scalars get Peierls phases that a
/// diagonal unitary transformation removes, so that the spectrum stays.
template <class T>
SparseMatrix<T> laplace3d(Context& ctx, int nx, int ny, int nz, const SparseFormat& format = {}) {
    return matrix_from_rows<T>(
        ctx, std::int64_t{nx} * ny * nz,
        [=](std::int64_t row, RowEntries<T>& entries) {
            const std::int64_t x = row % nx;
            const std::int64_t y = row / nx % ny;
            const std::int64_t z = row / nx / ny;
            const auto phase = [](std::int64_t i) { return 0.3 * static_cast<double>(i % 17); };
            const auto hop = [&](std::int64_t to, bool inside) {
                if (!inside) {
                    return;
                }
                if constexpr (is_complex_v<T>) {
                    const double angle = phase(row) - phase(to);
                    entries.add(to, T(static_cast<real_t<T>>(-std::cos(angle)),
                                      static_cast<real_t<T>>(-std::sin(angle))));
                } else {
                    entries.add(to, T(-1));
                }
            };
            entries.add(row, T(6));
            hop(row - 1, x > 0);
            hop(row + 1, x + 1 < nx);
            hop(row - nx, y > 0);
            hop(row + nx, y + 1 < ny);
            hop(row - std::int64_t{nx} * ny, z > 0);
            hop(row + std::int64_t{nx} * ny, z + 1 < nz);
        },
        format);
}

/// Its eigenvalues, ascending, every copy.
inline std::vector<double> laplace3d_spectrum(int nx, int ny, int nz) {
    const auto line = [](int n, int i) {
        const double s = std::sin(0.5 * std::numbers::pi * (i + 1) / (n + 1));
        return 4 * s * s;
    };
    std::vector<double> values;
    for (int i = 0; i < nx; ++i) {
        for (int j = 0; j < ny; ++j) {
            for (int l = 0; l < nz; ++l) {
                values.push_back(line(nx, i) + line(ny, j) + line(nz, l));
            }
        }
    }
    std::sort(values.begin(), values.end());
    return values;
}

}  // namespace quiver::test

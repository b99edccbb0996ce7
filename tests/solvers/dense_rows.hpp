// SPDX-License-Identifier: BSD-3-Clause
// Small matrices as vectors of rows, complete on every rank; conversions to SparseMatrix and Eigen.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {

template <class T>
using DenseRows = std::vector<std::vector<T>>;

/// A SparseMatrix of the nonzero entries, times `factor`.
template <class T>
SparseMatrix<T> stored(Context& ctx, const DenseRows<T>& a, double factor = 1) {
    return matrix_from_rows<T>(ctx, static_cast<std::int64_t>(a.size()),
                               [&](std::int64_t row, RowEntries<T>& entries) {
                                   for (std::size_t j = 0; j < a.size(); ++j) {
                                       const T value = a[static_cast<std::size_t>(row)][j];
                                       if (value != T(0)) {
                                           entries.add(static_cast<std::int64_t>(j),
                                                       value * static_cast<real_t<T>>(factor));
                                       }
                                   }
                               });
}

template <class T>
Eigen::MatrixXcd as_oracle(const DenseRows<T>& a) {
    const auto n = static_cast<Eigen::Index>(a.size());
    Eigen::MatrixXcd result(n, n);
    for (Eigen::Index i = 0; i < n; ++i) {
        for (Eigen::Index j = 0; j < n; ++j) {
            result(i, j) =
                std::complex<double>(a[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
        }
    }
    return result;
}

}  // namespace quiver::test

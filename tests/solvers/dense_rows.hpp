// SPDX-License-Identifier: BSD-3-Clause
// Small matrices as vectors of rows, complete on every rank; conversions to SparseMatrix and Eigen.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {

template <class T>
using DenseRows = std::vector<std::vector<T>>;

template <class T>
T random_scalar(std::mt19937_64& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    const double real = uniform(random);
    if constexpr (is_complex_v<T>) {
        return T(static_cast<real_t<T>>(real), static_cast<real_t<T>>(uniform(random)));
    } else {
        return static_cast<T>(real);
    }
}

/// A Hermitian matrix with `per_row` random entries left of the diagonal; positive definite if
/// `dominant`.
template <class T>
DenseRows<T> random_matrix(std::mt19937_64& random, int n, int per_row, bool dominant) {
    const auto size = static_cast<std::size_t>(n);
    DenseRows<T> a(size, std::vector<T>(size));
    for (std::size_t i = 0; i < size; ++i) {
        a[i][i] = T(static_cast<real_t<T>>(std::real(random_scalar<T>(random))));
        for (int e = 0; e < per_row && i > 0; ++e) {
            const std::size_t j = random() % i;
            a[i][j] = random_scalar<T>(random);
            a[j][i] = conjugate(a[i][j]);
        }
    }
    for (std::size_t i = 0; i < size && dominant; ++i) {
        real_t<T> sum = 1;
        for (std::size_t j = 0; j < size; ++j) {
            sum += j == i ? 0 : std::abs(a[i][j]);
        }
        a[i][i] = T(sum);
    }
    return a;
}

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

// SPDX-License-Identifier: BSD-3-Clause
// Small random matrices for the factorisations of shift-invert, and the backward errors of solves.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/small_matrix.hpp"
#include "solvers/eigen/shift_invert/factorisation.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {

template <class W>
CsrRows<W> rows_of(const DenseRows<W>& a) {
    return rows_from_callback<W>(Comm(), static_cast<std::int64_t>(a.size()), Symmetry::general,
                                 [&](std::int64_t row, RowEntries<W>& entries) {
                                     for (std::size_t j = 0; j < a.size(); ++j) {
                                         const W value = a[static_cast<std::size_t>(row)][j];
                                         if (value != W(0)) {
                                             entries.add(static_cast<std::int64_t>(j), value);
                                         }
                                     }
                                 });
}

/// A random Hermitian matrix: about a `fraction` of the entries is nonzero, in [-1, 1]; the
/// diagonal is full, with `shift` added.
template <class W>
DenseRows<W> random_rows(std::mt19937_64& random, int n, double fraction, double shift) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto size = static_cast<std::size_t>(n);
    DenseRows<W> a(size, std::vector<W>(size));
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (std::abs(uniform(random)) < fraction) {
                if constexpr (is_complex_v<W>) {
                    a[i][j] = W(uniform(random), uniform(random));
                } else {
                    a[i][j] = uniform(random);
                }
                a[j][i] = conjugate(a[i][j]);
            }
        }
        a[i][i] = W(uniform(random) + shift);
    }
    return a;
}

/// The Laplacian of separate paths: semidefinite, with one eigenvalue 0 for each path.
template <class W>
DenseRows<W> disjoint_paths(std::size_t copies, std::size_t length) {
    DenseRows<W> a(copies * length, std::vector<W>(copies * length));
    for (std::size_t i = 0; i + 1 < a.size(); ++i) {
        if ((i + 1) % length != 0) {
            a[i][i + 1] = a[i + 1][i] = -1;
            a[i][i] += 1;
            a[i + 1][i + 1] += 1;
        }
    }
    return a;
}

/// A bound of backward_error() for n rows: 3 n units of rounding without growth (Higham, Accuracy
/// and Stability of Numerical Algorithms, chapter 11), and 48 for the residual itself.
inline double backward_bound(std::size_t n) {
    return 3 * static_cast<double>(n + 16) * std::numeric_limits<double>::epsilon();
}

/// ||(A - sigma B) X - C|| relative to (||A|| + |sigma| ||B||) ||X||, for the solution X of random
/// C. X is a part of a wider block, whose other columns must not change.
template <class W>
double backward_error(Factorisation<W>& factorisation, const DenseRows<W>& a, const DenseRows<W>* b,
                      double sigma, std::mt19937_64& random) {
    const auto n = static_cast<int>(a.size());
    constexpr int width = 3;
    const W other = 7;
    SmallMatrix<W> x(n, width + 2);
    std::uniform_real_distribution<double> uniform(-1, 1);
    Eigen::MatrixXcd right(n, width);
    for (int i = 0; i < n; ++i) {
        x(i, 0) = x(i, width + 1) = other;
        for (int j = 0; j < width; ++j) {
            x(i, j + 1) = W(uniform(random));
            right(i, j) = x(i, j + 1);
        }
    }
    factorisation.solve(x.view().columns(1, width));
    const Eigen::MatrixXcd left = as_oracle(a);
    const Eigen::MatrixXcd mass =
        b != nullptr ? as_oracle(*b) : Eigen::MatrixXcd(Eigen::MatrixXcd::Identity(n, n));
    const Eigen::MatrixXcd shifted = left - sigma * mass;
    Eigen::MatrixXcd solution(n, width);
    for (int i = 0; i < n; ++i) {
        EXPECT_TRUE(x(i, 0) == other && x(i, width + 1) == other) << "row " << i;
        for (int j = 0; j < width; ++j) {
            solution(i, j) = x(i, j + 1);
        }
    }
    return (oracle::product(shifted, solution) - right).norm() /
           ((left.norm() + std::abs(sigma) * mass.norm()) * solution.norm());
}

}  // namespace quiver::test

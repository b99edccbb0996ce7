// SPDX-License-Identifier: BSD-3-Clause
// Parts and products of projected matrices. Private to solvers/eigen.
#pragma once

#include <cstddef>
#include <vector>

#include "blockvec/small_matrix.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

template <class T>
SmallMatrix<T> adjoint(const SmallMatrix<T>& a) {
    SmallMatrix<T> result(a.cols(), a.rows());
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            result(j, i) = conjugate(a(i, j));
        }
    }
    return result;
}

/// Columns columns[from] .. columns[to - 1] of `a`.
template <class T>
SmallMatrix<T> select_columns(const SmallMatrix<T>& a, const std::vector<int>& columns, int from,
                              int to) {
    SmallMatrix<T> result(a.rows(), to - from);
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = from; j < to; ++j) {
            result(i, j - from) = a(i, columns[static_cast<std::size_t>(j)]);
        }
    }
    return result;
}

/// S^H A S, its Hermitian part.
template <class T>
SmallMatrix<T> congruence(const SmallMatrix<T>& s, const SmallMatrix<T>& a) {
    SmallMatrix<T> result = product(adjoint(s), product(a, s));
    for (int i = 0; i < result.rows(); ++i) {
        for (int j = 0; j <= i; ++j) {
            const T mean = (result(i, j) + conjugate(result(j, i))) / real_t<T>(2);
            result(i, j) = mean;
            result(j, i) = conjugate(mean);
        }
    }
    return result;
}

/// `a` in the upper left corner of a larger matrix of zeros.
template <class T>
SmallMatrix<T> enlarged(const SmallMatrix<T>& a, int size) {
    SmallMatrix<T> result(size, size);
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            result(i, j) = a(i, j);
        }
    }
    return result;
}

}  // namespace quiver

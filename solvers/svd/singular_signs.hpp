// SPDX-License-Identifier: BSD-3-Clause
// The signs of singular vectors. Private to solvers/.
#pragma once

#include <cmath>
#include <vector>

#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

/// For each column of V the factor of modulus 1 that makes its element of largest modulus positive
/// (the first of equals to a millionth, so that rounding errors do not decide).
template <class T>
std::vector<T> phases_of(const SmallMatrix<T>& v) {
    std::vector<T> phases(static_cast<std::size_t>(v.cols()), T(1));
    for (int j = 0; j < v.cols(); ++j) {
        T largest(0);
        for (int i = 0; i < v.rows(); ++i) {
            if (std::abs(v(i, j)) > (1 + real_t<T>(1e-6)) * std::abs(largest)) {
                largest = v(i, j);
            }
        }
        if (largest != T(0)) {
            phases[static_cast<std::size_t>(j)] = conjugate(largest) / std::abs(largest);
        }
    }
    return phases;
}

/// V(:, j) <- V(:, j) phases[j].
template <class T>
void multiply_columns(SmallMatrix<T>& v, const std::vector<T>& phases) {
    for (int i = 0; i < v.rows(); ++i) {
        for (int j = 0; j < v.cols(); ++j) {
            v(i, j) *= phases[static_cast<std::size_t>(j)];
        }
    }
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The singular value decomposition of small matrices that are equal on every rank. Private to
// solvers/.
#pragma once

#include <vector>

#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

/// A = U diag(values) V^H.
template <class T>
struct SmallSvd {
    std::vector<double> values;  // descending, min(rows, cols) of them
    SmallMatrix<T> u;            // rows x min(rows, cols)
    SmallMatrix<T> v;            // cols x min(rows, cols)
};

/// By QR with column pivoting and Jacobi rotations: each value has an error of c eps values[0] at
/// most. T is double or complex double. O(n^3).
template <class T>
SmallSvd<T> small_svd(const SmallMatrix<T>& a);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Dense algebra on small matrices that are equal on every rank. Implemented with Eigen, in one .cpp
// for real and one for complex scalars, so that no other file compiles Eigen's dense solvers.
#pragma once

#include <cmath>
#include <vector>

#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

template <class T>
struct HermitianEigen {
    std::vector<real_t<T>> values;  // ascending
    SmallMatrix<T> vectors;         // A vectors = vectors diag(values)
    bool converged = false;
};

/// Eigenpairs of a Hermitian matrix; reads only the lower triangle. O(n^3).
template <Scalar T>
HermitianEigen<T> hermitian_eigen(const SmallMatrix<T>& a);

/// The upper triangular R with A = R^H R; `positive` is false if a pivot is not positive (R is then
/// invalid).
template <class T>
struct Cholesky {
    SmallMatrix<T> r;
    bool positive = false;
};
template <Scalar T>
Cholesky<T> cholesky(const SmallMatrix<T>& a);

/// The inverse of an upper triangular matrix without zeros on its diagonal.
template <Scalar T>
SmallMatrix<T> inverse_of_upper(const SmallMatrix<T>& r);

/// The inverse of any square matrix, by Gaussian elimination with partial pivoting; infinite or NaN
/// if a pivot is 0.
template <Scalar T>
SmallMatrix<T> inverse_of(const SmallMatrix<T>& a);

/// An orthonormal basis, a.rows() x rank, of the span of A's columns. Ignores columns of length <=
/// `least` and columns that depend on the others to sqrt(eps) of their length.
template <Scalar T>
SmallMatrix<T> orthonormal_columns(const SmallMatrix<T>& a, real_t<T> least);

/// ||A||_F, or ||A - I||_F.
template <Scalar T>
double frobenius_norm(const SmallMatrix<T>& a, bool minus_identity = false) {
    double squares = 0;
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            const T taken = minus_identity && i == j ? T(1) : T(0);
            squares += static_cast<double>(abs_squared(a(i, j) - taken));
        }
    }
    return std::sqrt(squares);
}

/// A B.
template <Scalar T>
SmallMatrix<T> product(const SmallMatrix<T>& a, const SmallMatrix<T>& b);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The implementation of small_dense.hpp. small_dense_real.cpp and small_dense_complex.cpp
// instantiate it for two scalars each, because Eigen's templates take long to compile.
#pragma once

#include <complex>

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include "blockvec/eigen_interop.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

template <Scalar T>
HermitianEigen<T> hermitian_eigen(const SmallMatrix<T>& a) {
    // Compute in double also for s and c: the matrix is small, and rotations in single precision
    // would increase the residuals of the Ritz vectors by about n units of round-off.
    using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;
    using Matrix = Eigen::Matrix<Wide, Eigen::Dynamic, Eigen::Dynamic>;
    HermitianEigen<T> result{{}, SmallMatrix<T>(a.rows(), a.rows()), true};
    if (a.rows() == 0) {
        return result;
    }
    const Matrix wide = as_eigen(a.view()).template cast<Wide>();
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(wide);
    result.converged = solver.info() == Eigen::Success;
    for (const double value : solver.eigenvalues()) {
        result.values.push_back(static_cast<real_t<T>>(value));
    }
    as_eigen(result.vectors.view()) = solver.eigenvectors().template cast<T>();
    return result;
}

template <Scalar T>
Cholesky<T> cholesky(const SmallMatrix<T>& a) {
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    const Eigen::LLT<Matrix> factor(Matrix(as_eigen(a.view())));
    Cholesky<T> result{SmallMatrix<T>(a.rows(), a.rows()), factor.info() == Eigen::Success};
    as_eigen(result.r.view()) = Matrix(factor.matrixU());
    return result;
}

template <Scalar T>
SmallMatrix<T> inverse_of_upper(const SmallMatrix<T>& r) {
    SmallMatrix<T> result = SmallMatrix<T>::identity(r.rows());
    auto inverse = as_eigen(result.view());
    as_eigen(r.view()).template triangularView<Eigen::Upper>().solveInPlace(inverse);
    return result;
}

template <Scalar T>
SmallMatrix<T> inverse_of(const SmallMatrix<T>& a) {
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    SmallMatrix<T> result(a.rows(), a.rows());
    if (a.rows() > 0) {
        as_eigen(result.view()) = Matrix(as_eigen(a.view())).partialPivLu().inverse();
    }
    return result;
}

template <Scalar T>
SmallMatrix<T> orthonormal_columns(const SmallMatrix<T>& a, real_t<T> least) {
    using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;
    using Matrix = Eigen::Matrix<Wide, Eigen::Dynamic, Eigen::Dynamic>;
    Matrix unit = as_eigen(a.view()).template cast<Wide>();
    Eigen::Index count = 0;
    for (Eigen::Index j = 0; j < unit.cols(); ++j) {
        const double length = unit.col(j).norm();
        if (length > static_cast<double>(least)) {
            unit.col(count) = unit.col(j) / length;
            ++count;
        }
    }
    if (count == 0) {
        return SmallMatrix<T>(a.rows(), 0);
    }
    unit.conservativeResize(Eigen::NoChange, count);
    Eigen::ColPivHouseholderQR<Matrix> factor(unit);
    factor.setThreshold(std::sqrt(static_cast<double>(epsilon_v<T>)));
    const Matrix q = factor.householderQ() * Matrix::Identity(unit.rows(), factor.rank());
    SmallMatrix<T> result(a.rows(), static_cast<int>(q.cols()));
    as_eigen(result.view()) = q.template cast<T>();
    return result;
}

template <Scalar T>
SmallMatrix<T> product(const SmallMatrix<T>& a, const SmallMatrix<T>& b) {
    SmallMatrix<T> result(a.rows(), b.cols());
    as_eigen(result.view()).noalias() = as_eigen(a.view()) * as_eigen(b.view());
    return result;
}

/// Instantiates all functions for one scalar.
#define QUIVER_INSTANTIATE_SMALL_DENSE(T)                                          \
    template HermitianEigen<T> hermitian_eigen(const SmallMatrix<T>&);             \
    template Cholesky<T> cholesky(const SmallMatrix<T>&);                          \
    template SmallMatrix<T> inverse_of_upper(const SmallMatrix<T>&);               \
    template SmallMatrix<T> inverse_of(const SmallMatrix<T>&);                     \
    template SmallMatrix<T> orthonormal_columns(const SmallMatrix<T>&, real_t<T>); \
    template SmallMatrix<T> product(const SmallMatrix<T>&, const SmallMatrix<T>&);

}  // namespace quiver

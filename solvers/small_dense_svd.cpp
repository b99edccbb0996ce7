// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/small_dense_svd.hpp"

#include <complex>

#include <Eigen/Dense>
#include <Eigen/SVD>

#include "blockvec/eigen_interop.hpp"

namespace quiver {

template <class T>
SmallSvd<T> small_svd(const SmallMatrix<T>& a) {
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    const int rank = std::min(a.rows(), a.cols());
    SmallSvd<T> result{{}, SmallMatrix<T>(a.rows(), rank), SmallMatrix<T>(a.cols(), rank)};
    if (rank == 0) {
        return result;
    }
    const Eigen::JacobiSVD<Matrix> svd(as_eigen(a.view()),
                                       Eigen::ComputeThinU | Eigen::ComputeThinV);
    for (const double value : svd.singularValues()) {
        result.values.push_back(value);
    }
    as_eigen(result.u.view()) = svd.matrixU();
    as_eigen(result.v.view()) = svd.matrixV();
    return result;
}

template SmallSvd<double> small_svd(const SmallMatrix<double>&);
template SmallSvd<std::complex<double>> small_svd(const SmallMatrix<std::complex<double>>&);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include <complex>

#include "solvers/small_dense_eigen.hpp"

namespace quiver {

template HermitianEigen<std::complex<double>> hermitian_eigen(
    const SmallMatrix<std::complex<double>>&);
template Cholesky<std::complex<double>> cholesky(const SmallMatrix<std::complex<double>>&);
template SmallMatrix<std::complex<double>> inverse_of_upper(
    const SmallMatrix<std::complex<double>>&);
template SmallMatrix<std::complex<double>> orthonormal_columns(
    const SmallMatrix<std::complex<double>>&, double);
template SmallMatrix<std::complex<double>> product(const SmallMatrix<std::complex<double>>&,
                                                   const SmallMatrix<std::complex<double>>&);

}  // namespace quiver

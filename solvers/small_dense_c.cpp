// SPDX-License-Identifier: BSD-3-Clause
#include <complex>

#include "solvers/small_dense_eigen.hpp"

namespace quiver {

template HermitianEigen<std::complex<float>> hermitian_eigen(
    const SmallMatrix<std::complex<float>>&);
template Cholesky<std::complex<float>> cholesky(const SmallMatrix<std::complex<float>>&);
template SmallMatrix<std::complex<float>> inverse_of_upper(const SmallMatrix<std::complex<float>>&);
template SmallMatrix<std::complex<float>> orthonormal_columns(
    const SmallMatrix<std::complex<float>>&, float);
template SmallMatrix<std::complex<float>> product(const SmallMatrix<std::complex<float>>&,
                                                  const SmallMatrix<std::complex<float>>&);

}  // namespace quiver

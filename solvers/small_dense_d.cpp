// SPDX-License-Identifier: BSD-3-Clause
#include <complex>

#include "solvers/small_dense_eigen.hpp"

namespace quiver {

template HermitianEigen<double> hermitian_eigen(const SmallMatrix<double>&);
template Cholesky<double> cholesky(const SmallMatrix<double>&);
template SmallMatrix<double> inverse_of_upper(const SmallMatrix<double>&);
template SmallMatrix<double> orthonormal_columns(const SmallMatrix<double>&, double);
template SmallMatrix<double> product(const SmallMatrix<double>&, const SmallMatrix<double>&);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include <complex>

#include "solvers/small_dense_eigen.hpp"

namespace quiver {

template HermitianEigen<float> hermitian_eigen(const SmallMatrix<float>&);
template Cholesky<float> cholesky(const SmallMatrix<float>&);
template SmallMatrix<float> inverse_of_upper(const SmallMatrix<float>&);
template SmallMatrix<float> orthonormal_columns(const SmallMatrix<float>&, float);
template SmallMatrix<float> product(const SmallMatrix<float>&, const SmallMatrix<float>&);

}  // namespace quiver

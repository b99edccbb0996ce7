// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/small_dense_eigen.hpp"

namespace quiver {

QUIVER_INSTANTIATE_SMALL_DENSE(float)
QUIVER_INSTANTIATE_SMALL_DENSE(double)

}  // namespace quiver

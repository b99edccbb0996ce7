// SPDX-License-Identifier: BSD-3-Clause
// The Gram matrix of a block in twice the block's precision, and its Cholesky factor.
#pragma once

#include <type_traits>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "solvers/orth/gram_factors.hpp"

namespace quiver {

/// The unevaluated sum of a double and a smaller double: 106 bits.
struct Twofold {
    double high = 0;
    double low = 0;
};

/// W^H W, summed in double for s and c, in two doubles for d and z. A complex matrix is stored as
/// the real matrix of twice the size in which x + i y is the 2 x 2 block (x, -y; y, x): the
/// Cholesky factor of the real matrix, and its inverse, represent those of the complex matrix.
template <class T>
class WideGram {
  public:
    /// W must be in the Context's place. One all-reduce with twice the bytes of tsmttsm's. Errors
    /// and cost of the sums: see tsmttsm and gram_twofold in kernels/mixed.hpp; a device rounds the
    /// columns of d and z to 2^-62 of their largest element.
    WideGram(Context& ctx, BlockView<const T> w);

    /// The Gram matrix rounded to the block's own precision.
    SmallMatrix<T> rounded() const;
    /// cholesky_step of D^-1 (W^H W) D^-1 with D = diag(length), computed in the wide precision and
    /// rounded at the end: the columns of W s are orthonormal to u kappa(W), not u kappa(W)^2.
    /// Source: Yamazaki, Tomov, Dongarra, SIAM J. Sci. Comput. 37 (2015) C307.
    GramStep<T> factor(const std::vector<real_t<T>>& length) const;

  private:
    using Wide = std::conditional_t<std::is_same_v<real_t<T>, float>, double, Twofold>;

    int n_;
    /// The real matrix, stored by rows.
    std::vector<Wide> values_;
};

}  // namespace quiver

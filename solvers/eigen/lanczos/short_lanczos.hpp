// SPDX-License-Identifier: BSD-3-Clause
// A short Lanczos run with one vector, which estimates the ends of an operator's spectrum. Private
// to solvers/eigen.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/operator.hpp"

namespace quiver {

struct ShortLanczos {
    /// True if all steps were made; otherwise only `products` is valid.
    bool complete = false;
    /// Distinct Ritz values, ascending, and the residuals ||A x - theta x|| of their vectors.
    std::vector<double> values;
    std::vector<double> residuals;
    /// Length of the last, unnormalised vector: the residual norm of the whole space.
    double coupling = 0;
    /// The largest |Ritz value|.
    double norm = 0;
    std::int64_t products = 0;
};

/// Makes `steps` >= 1 Lanczos steps in the complement of the orthonormal `constraints`. Each vector
/// is orthogonalised only against the two before it: for about 20 steps this suffices to find the
/// ends of the spectrum, and all steps use the same kernels. It does not suffice once the space is
/// nearly exhausted. The run therefore ends with `complete` false at a vector shorter than a
/// hundredth of the norm; the caller should then use a LanczosBasis.
///
/// Throws NumericalError on all ranks if A is found not to be Hermitian, if its norm is so small
/// that squares underflow, or if a product is not finite or failed on some rank (that rank throws
/// A's exception). Collective. Cost of a step: a product with one column, 2 all-reduces, 1 more
/// with constraints. Source: Zhou and Li, Linear Algebra Appl. 435 (2011) 480.
template <class T>
ShortLanczos short_lanczos(Context& ctx, Operator<T>& op, BlockView<const T> constraints, int steps,
                           std::uint64_t seed);

}  // namespace quiver

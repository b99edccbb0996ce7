// SPDX-License-Identifier: BSD-3-Clause
// A short Lanczos run with one vector: where the spectrum of an operator ends. Private to
// solvers/eigen.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/operator.hpp"

namespace quiver {

struct ShortLanczos {
    /// All steps were made; else there is nothing but `products`.
    bool complete = false;
    /// Distinct Ritz values, ascending, and ||A x - theta x|| of their vectors.
    std::vector<double> values;
    std::vector<double> residuals;
    /// Length of the vector that came last: the residual of the whole space.
    double coupling = 0;
    /// The largest |Ritz value|.
    double norm = 0;
    std::int64_t products = 0;
};

/// `steps` steps, at least one, in the complement of the orthonormal `constraints`. Each vector is
/// made orthogonal to the two before it only: in some 20 steps that does for the ends of the
/// spectrum, and the kernels of all steps are the same. It does not where the space is exhausted:
/// the run ends, not complete, at a vector shorter than a hundredth of the norm, and a LanczosBasis
/// has to do it.
///
/// NumericalError on all ranks where A is found not to be Hermitian, where its norm is so small
/// that squares underflow, and where a product is not finite or failed on some rank (that one
/// throws what A threw). Collective. Cost of a step: a product with one column, 2 all-reduces, 2
/// more for constraints. Source: Zhou and Li, Linear Algebra Appl. 435 (2011) 480.
template <class T>
ShortLanczos short_lanczos(Context& ctx, Operator<T>& op, BlockView<const T> constraints, int steps,
                           std::uint64_t seed);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// gram_factor: the Cholesky factor of a Gram matrix and its inverse, computed in the Context's
// place.
#pragma once

#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"

namespace quiver {

inline constexpr int largest_gram_factor = 64;

/// G = R^H R and S = R^-1, with R and S upper triangular and zeros below: if G = W^H W, then W S
/// has orthonormal columns.
///
/// G, R, S: n x n, n up to 64, all in the Context's place, no two overlap. Only the upper triangle
/// of G is read. If G is not positive definite, R and S contain NaN or infinity from the first bad
/// pivot on, and no error is thrown: callers must check R on the host. On a device the work is
/// enqueued. No communication: G is equal on all ranks, and so are R and S.
/// Throws ShapeError. Cost: bytes 3 sizeof(T) n^2, flops 2/3 n^3 (4 times that for complex).
template <class T>
void gram_factor(Context& ctx, std::type_identity_t<BlockView<const T>> g, BlockView<T> r,
                 BlockView<T> s);

}  // namespace quiver

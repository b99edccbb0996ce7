// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factor of a Gram matrix and its inverse, where the kernels work.
#pragma once

#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"

namespace quiver {

inline constexpr int largest_gram_factor = 64;

/// R and S = R^-1, both upper triangular with zeros below, with G = R^H R: W S has orthonormal
/// columns where G = W^H W.
///
/// G, R, S: n x n, n up to 64, all in the Context's place, no two overlap. The upper triangle of G
/// is read. Where G is not positive definite numbers that are not finite follow from the first bad
/// pivot on, and nothing else happens: who has R on the host sees it there. On a device the work is
/// enqueued. No communication: G is equal on all ranks, so R and S are.
/// Throws ShapeError. Cost: bytes 3 sizeof(T) n^2, flops 2/3 n^3 (4 times that for complex).
template <class T>
void gram_factor(Context& ctx, std::type_identity_t<BlockView<const T>> g, BlockView<T> r,
                 BlockView<T> s);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm that is checked, and mended, as it is made.
//
// The walk of one call of C = alpha A^H B + beta C:
//  1. This rank's part P = alpha A^H B, by the kernel of kernels/tsmttsm.hpp.
//  2. Checksum columns: B E with the weights E = [1, (j + 1) / 2^p], n x 2, by tsmm, and
//     Q = alpha A^H (B E), m x 2, by tsmttsm. Norms of the columns of A and B, if not known.
//  3. P E = Q must hold in every row i and both columns to
//         4 eps (sqrt(rows) + sqrt(n) + 8) |alpha| ||a_i|| sum_j E_jk ||b_j||,
//     twice that for complex scalars, rows and norms of this rank.
//  4. Where that fails P is made again, the same bits as without the fault, and Q if need be. One
//     element that differs from the first P is a mended one, more are a redone product. The same P
//     and Q twice are rounding.
//  5. One all-reduce sums P over the ranks, as without the check.
#pragma once

#include <type_traits>

#include "kernels/tsmttsm.hpp"
#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// tsmttsm of kernels/tsmttsm.hpp, C = alpha A^H B + beta C, checked by the walk above; shapes and
/// errors as there. known_a, known_b: sums of A and B, for their norms.
///
/// Found is what changes a row of P by more than twice the bound: faults of the arithmetic, of the
/// result before it is summed over the ranks. Not seen: faults of A and B themselves (both sides
/// read them as they are), the sum over the ranks, C afterwards. Where norms are not finite, or
/// their squares overflow, nothing is compared, and the call is not counted as checked. `detect`
/// changes nothing.
/// Cost: besides the product reads of A and B, 4 columns written and read, the same again where the
/// norms are not known; flops 4 rows (m + n) (16 for complex) against 2 rows m n (8): of the
/// product's own time the more, the narrower it is (docs/abft.md has numbers: with known norms as
/// much as the product made twice at 32 columns, more below). Source: Huang and Abraham, IEEE
/// Trans. Comput. C-33 (1984) 518, section III, columns alone.
template <class T>
void protected_tsmttsm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                       std::type_identity_t<BlockView<const T>> a,
                       std::type_identity_t<BlockView<const T>> b, std::type_identity_t<T> beta,
                       BlockView<T> c, Reduce reduce = Reduce::all_ranks,
                       const std::type_identity_t<Checksum<T>>* known_a = nullptr,
                       const std::type_identity_t<Checksum<T>>* known_b = nullptr);

}  // namespace quiver

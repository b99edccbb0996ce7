// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm with checks and repair.
//
// Steps of one call of C = alpha A^H B + beta C:
// 1. Compute this rank's part P = alpha A^H B by the kernel of kernels/tsmttsm.hpp.
// 2. Compute checksum columns: B E with the weights E = [1, (j + 1) / 2^p], n x 2, by tsmm, and
//    Q = alpha A^H (B E), m x 2, by tsmttsm; and the norms of the columns of A and B, if unknown.
// 3. P E = Q must hold in every row i and both columns, up to
//        4 eps (sqrt(rows) + sqrt(n) + 8) |alpha| ||a_i|| sum_j E_jk ||b_j||,
//    twice that for complex scalars. Rows and norms are those of this rank.
// 4. If it does not, compute P again, which gives the same bits without the fault, and Q if
//    necessary. One element that differs from the first P counts as mended, more count as a redone
//    product. If both P and Q are the same twice, the alarm was rounding.
// 5. One all-reduce sums P over the ranks, as without the check.
#pragma once

#include <type_traits>

#include "kernels/tsmttsm.hpp"
#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// tsmttsm of kernels/tsmttsm.hpp, C = alpha A^H B + beta C, with the checks above; shapes and
/// errors as there. known_a, known_b: checksums of A and B, used for their norms.
///
/// Detects faults that change a row of P by more than twice the bound: faults of the arithmetic,
/// and of the result before the all-reduce. Not detected: faults of A and B themselves (both sides
/// of the check read them), faults in the all-reduce, faults of C afterwards. If norms are not
/// finite, or their squares overflow, nothing is compared, and the call does not count as checked.
/// `detect` changes nothing. Cost besides the product: reads of A and B, 4 columns written and
/// read, and a second read of A and B if the norms are unknown; flops 4 rows (m + n) (16 for
/// complex) compared with 2 rows m n (8). The narrower the product, the larger the relative cost
/// (docs/abft.md: with known norms as much as a second product at 32 columns, more below). Source:
/// Huang and Abraham, IEEE Trans. Comput. C-33 (1984) 518, section III, columns only.
template <class T>
void protected_tsmttsm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                       std::type_identity_t<BlockView<const T>> a,
                       std::type_identity_t<BlockView<const T>> b, std::type_identity_t<T> beta,
                       BlockView<T> c, Reduce reduce = Reduce::all_ranks,
                       const std::type_identity_t<Checksum<T>>* known_a = nullptr,
                       const std::type_identity_t<Checksum<T>>* known_b = nullptr);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// shifted_gram: the Gram matrix of rows relative to a point, and the sum of these rows, in one
// pass.
#pragma once

#include <span>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// G = Z^T Z and s = Z^T 1 for Z = factor (X - 1 shift^T), over the rows of all ranks. With d = s /
/// rows, G - rows d d^T is the sum of the products of the centred rows times factor^2; it loses no
/// digits if the shift is near the mean of the rows.
///
/// X: rows x n in the Context's place, s, d, h (half) or b (bfloat16), n >= 1; shift: n numbers.
/// S: (n + 1) x n, G and below it s^T, equal on every rank; G is symmetric. Elements are converted
/// to double before the shift is subtracted, and all products and sums are in double. With u =
/// 2^-53 and the columns z_i of the exact Z, |error| of G_ij <= (258 + rows / 2^20) 2 u ||z_i||
/// ||z_j||; in the bound of s_j, sqrt(rows) takes the place of ||z_i||. NaN or infinity in a column
/// of X stays in the row and the column of S with this number.
///
/// Throws ShapeError if shapes or places disagree.
/// Cost: bytes sizeof(In) rows n, flops 2 rows n (n + 1) (a GPU computes half of G), one all-reduce
/// of (n + 1) n doubles unless `reduce` is this_rank. X is read once if it has at most 256 columns
/// on a host or 64 on a GPU; wider blocks are computed in p panels of at most this width, and each
/// panel is read p times. Collective unless `reduce` is this_rank. The same numbers of ranks and
/// threads on the same device give the same bits. Source: Chan, Golub, LeVeque, Am. Statistician
/// 37(3), 1983, for the shift; tsmttsm for the sums.
template <class In>
void shifted_gram(Context& ctx, std::type_identity_t<BlockView<const In>> x,
                  std::span<const double> shift, double factor, SmallMatrix<double>& sums,
                  Reduce reduce = Reduce::all_ranks);

}  // namespace quiver

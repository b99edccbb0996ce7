// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm: the product of a transposed tall & skinny matrix and a tall & skinny matrix.
#pragma once

#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// The rows over which a sum runs: those of all ranks, or only this rank's.
enum class Reduce : std::uint8_t { all_ranks, this_rank };

/// C = alpha A^H B + beta C, summed over the rows of all ranks.
///
/// A: rows x m, B: rows x n, both in the Context's place; C: m x n in host or device memory, equal
/// on every rank before and after. beta = 0 overwrites C, even NaN and infinity. A and B may be the
/// same or overlap; C overlaps neither. A C in host memory is ready when the call returns, a C in
/// device memory in stream order.
///
/// Throws ShapeError if shapes or places disagree.
/// Cost: bytes sizeof(T) rows (m + n) (rows m if A is B), flops 2 rows m n (8 for complex), one
/// all-reduce of m n elements unless `reduce` is this_rank. The same ranks, device and threads give
/// the same bits, unless atomics are chosen for this Context (choose_plans in kernels/tuning.hpp).
/// Source: Ernst, Hager, Thies, Wellein, IJHPCA 2020, sections 3 and 4.
template <class T>
void tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
             std::type_identity_t<BlockView<const T>> a, std::type_identity_t<BlockView<const T>> b,
             std::type_identity_t<T> beta, BlockView<T> c, Reduce reduce = Reduce::all_ranks);

template <class T>
void tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
             std::type_identity_t<BlockView<const T>> a, std::type_identity_t<BlockView<const T>> b,
             std::type_identity_t<T> beta, SmallMatrix<T>& c, Reduce reduce = Reduce::all_ranks) {
    tsmttsm(ctx, alpha, a, b, beta, c.view(), reduce);
}

/// C = alpha A^H diag(w) B + beta C, summed over the rows of all ranks, in one pass over A and B.
///
/// w: rows x 1, real weights of any sign in the Context's place, such as a diagonal mass matrix or
/// quadrature weights; w may be a column of a block (a stride between its elements). A, B, C and
/// the errors as in tsmttsm. If A is B, C is Hermitian up to rounding.
/// Cost: that of tsmttsm, plus bytes sizeof(real_t<T>) rows and flops rows min(m, n) (2 for
/// complex). The same ranks, device and threads give the same bits.
/// Source: as tsmttsm; the weights multiply the rows of B on their way to the sums.
template <class T>
void weighted_tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
                      std::type_identity_t<BlockView<const T>> a,
                      std::type_identity_t<BlockView<const real_t<T>>> w,
                      std::type_identity_t<BlockView<const T>> b, std::type_identity_t<T> beta,
                      BlockView<T> c, Reduce reduce = Reduce::all_ranks);

template <class T>
void weighted_tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
                      std::type_identity_t<BlockView<const T>> a,
                      std::type_identity_t<BlockView<const real_t<T>>> w,
                      std::type_identity_t<BlockView<const T>> b, std::type_identity_t<T> beta,
                      SmallMatrix<T>& c, Reduce reduce = Reduce::all_ranks) {
    weighted_tsmttsm(ctx, alpha, a, w, b, beta, c.view(), reduce);
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// kmeans_step: one pass of Lloyd's iteration over a block of points.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// The most columns and the most centres of kmeans_step.
inline constexpr int largest_kmeans = 64;

/// The scalar of the centres for points of type In: float for half precision and bfloat16,
/// otherwise In itself.
template <class In>
using centre_t = std::conditional_t<sizeof(In) == 2, float, In>;

/// Optional results of kmeans_step for each row of X, in the Context's place; an empty span
/// requests none.
template <class In>
struct KmeansRows {
    std::span<int> labels = {};
    /// The squared distance to the nearest centre.
    std::span<centre_t<In>> distances = {};
};

/// For every row x_i of X: label_i = argmin_j ||x_i - origin - c_j||^2 (the first of equals). For
/// every centre j, over the rows with label j of all ranks: S(j, 0 .. d-1) = sum of x_i - origin,
/// S(j, d) = number of rows, S(j, d+1) = sum of ||x_i - origin - c_j||^2.
///
/// X: rows x d in the Context's place, s, d, h or b; origin: d numbers; centres C: k x d in host
/// memory, relative to the origin; S: k x (d+2), equal on every rank. d and k from 1 to 64. The
/// nearest centre is the one with the least ||c_j||^2 / 2 - (x_i - origin)^T c_j; an origin near
/// the points, such as their mean, keeps this accurate if they are far from zero. A device may
/// compute it in double for all precisions. The distances in
/// S and in `rows_out` are sums of squared differences. NaN or infinity in X makes the sum of the
/// distances NaN or infinite; nothing is thrown.
///
/// Throws ShapeError if shapes or places disagree.
/// Cost: bytes sizeof(In) rows d, and those of `rows_out`; flops rows d (2 k + 5); one all-reduce
/// of k (d+2) doubles unless `reduce` is this_rank. A label and a distance depend only on the row,
/// the origin and the centres. The same numbers of ranks and threads on the same device give the
/// same bits of S.
/// Source: Lloyd, IEEE Trans. Inf. Theory 28(2), 1982.
template <class In>
void kmeans_step(Context& ctx, std::type_identity_t<BlockView<const In>> x,
                 std::span<const centre_t<In>> origin, const SmallMatrix<centre_t<In>>& centres,
                 SmallMatrix<double>& sums, const KmeansRows<In>& rows_out = {},
                 Reduce reduce = Reduce::all_ranks);

}  // namespace quiver

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

/// What kmeans_step writes for each row of X, in the Context's place. An empty span is not written.
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
/// memory, relative to the origin; S: k x (d+2), equal on every rank. d and k from 1 to 64. A point
/// inside the cloud as the origin, such as its mean, keeps the comparison of distances accurate if
/// the cloud is far from zero. The distances of S are formed from the differences themselves. NaN
/// or infinity in X makes the sum of the distances NaN or infinite; nothing is thrown.
///
/// Throws ShapeError if shapes or places disagree.
/// Cost: bytes sizeof(In) rows d, and those of `rows_out`; flops rows d (2 k + 5); one all-reduce
/// of k (d+2) doubles unless `reduce` is this_rank. A label and a distance depend only on the row,
/// origin and centres. The same ranks, device and threads give the same bits of S.
/// Source: Lloyd, IEEE Trans. Inf. Theory 28(2), 1982.
template <class In>
void kmeans_step(Context& ctx, std::type_identity_t<BlockView<const In>> x,
                 std::span<const centre_t<In>> origin, const SmallMatrix<centre_t<In>>& centres,
                 SmallMatrix<double>& sums, const KmeansRows<In>& rows_out = {},
                 Reduce reduce = Reduce::all_ranks);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// k-means: clusters of points around their means, by Lloyd's iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/event.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/kmeans_step.hpp"

namespace quiver {

struct KmeansOptions {
    /// The number of clusters, from 1 to 64 and at most the number of points.
    int k = 8;
    /// An iteration has converged when the sum of the squared shifts of all centres is at most
    /// tol times the mean variance of the columns, as in scikit-learn. With 0 it ends when no
    /// centre moves any more.
    double tol = 1e-4;
    int max_iterations = 300;
    /// Runs of the iteration from different starts; the result is the run with the least inertia,
    /// the first of those whose inertias differ by rounding errors only. With given starts there is
    /// one run.
    int runs = 1;
    std::uint64_t seed = 0;
    /// Called after each iteration; if it returns false on any rank, the solve ends on all ranks.
    /// It must be set on all ranks or on none.
    std::function<bool(const IterationEvent&)> keep_going = {};
};

/// The result of kmeans, the same on all ranks.
template <class In>
struct KmeansResult {
    /// k x d: the means of the clusters of the last iteration. Afterwards the points are assigned
    /// once more; the labels, sizes and inertias are those of these clusters, which differ from the
    /// clusters of the last iteration unless no centre has moved in it. The centre of an empty
    /// cluster is where it became empty.
    SmallMatrix<centre_t<In>> centres;
    /// For each cluster the number of its points, and the sum of their squared distances to the
    /// centre. A size is 0 if there are fewer different points than clusters, or if the last
    /// assignment has emptied the cluster.
    std::vector<std::int64_t> sizes;
    std::vector<double> inertias;
    /// The sum of the squared distances of all points to the nearest centre.
    double inertia = 0;
    bool converged = false;
    /// True if keep_going has ended the iteration.
    bool interrupted = false;
    int iterations = 0;
    /// The number of times that an empty cluster got a new centre, over all iterations.
    int relocated = 0;
    /// The inertia before each iteration.
    std::vector<double> history;
    /// The run with the least inertia, from 0. The fields above are those of this run.
    int run = 0;
    double seconds = 0;
};

/// Clusters the rows x_i of X: centres c_j and labels l_i that make sum_i ||x_i - c_(l_i)||^2
/// small. One iteration assigns each point to the nearest centre (the first of equals) and moves
/// each centre to the mean of its points, in one pass over X. An empty cluster gets the point that
/// is farthest from the centre of its cluster, and the point leaves that cluster.
///
/// X: rows x d, this rank's rows of a global block that `map` distributes, in the Context's place;
/// s, d, h (half) or b (bfloat16) with centres and sums as in kmeans_step. `labels`: one for each
/// row in the Context's place, or empty. `starts`: k x d first centres, the same on all ranks. If
/// it is 0 x 0, greedy k-means++ chooses the first centres among max(4096, 256 k) random points of
/// X, or among all if there are fewer. The choice is the same for any number of ranks, in either
/// place.
///
/// Throws on all ranks: InputError for options out of range, k above the number of points, more
/// than 64 columns, starts of another shape, NaN or infinity in X (naming the first row that has
/// one) or squares that overflow, options that differ between ranks; ShapeError if the block, the
/// map or the labels disagree.
/// Cost: two passes over X (mean, variance); for each run iterations + 1 passes (the last one is
/// the last assignment), and one more for an iteration with empty clusters. A pass has one
/// all-reduce of at most k (d + 2) doubles. For each run k-means++ adds an all-reduce of the random
/// points and max(4096, 256 k) k d (2 + log k) multiply-adds on every rank. The same numbers of
/// ranks and threads on the same device give the same bits.
/// Source: Lloyd 1982; Arthur, Vassilvitskii, SODA 2007, with the greedy choice among 2 + log k
/// candidates that their section 5 proposes and scikit-learn uses.
template <class In>
KmeansResult<In> kmeans(Context& ctx, const RowMap& map, BlockView<const In> x,
                        const KmeansOptions& options, std::span<int> labels = {},
                        const SmallMatrix<centre_t<In>>& starts = {});

}  // namespace quiver

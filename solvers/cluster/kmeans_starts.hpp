// SPDX-License-Identifier: BSD-3-Clause
// First centres of k-means. Private to solvers/.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// `count` rows of a global block: one at random out of each of `count` equal ranges of rows. All
/// rows if count is their number. The same bits on every rank, for any number of ranks and in
/// either place. Collective; one all-reduce of count x columns doubles.
template <class In>
SmallMatrix<double> sample_rows(Context& ctx, const RowMap& map, BlockView<const In> x, int count,
                                std::uint64_t seed);

/// The row numbers of k first centres by greedy k-means++. The first is drawn at random. For each
/// further centre 2 + log k candidates are drawn, with probabilities proportional to the squared
/// distance to the nearest centre so far; the candidate that leaves the least sum of these
/// distances is chosen. The result depends on the arguments only.
std::vector<int> choose_starts(const SmallMatrix<double>& points, int k, std::uint64_t seed);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// `quiver info MATRIX --ranks LIST`: the halos that products would exchange, counted without these
// ranks.
#pragma once

#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/reordering.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// One line of the table.
struct HaloLine {
    int ranks = 0;
    /// "rows", "rcm", "graph": `eigs` with --partition rows, with --order rcm, with --partition
    /// graph.
    std::string distribution;
    HaloCounts counts;
    /// Of the new order and the partition; 0 for "rows".
    double seconds = 0;
};

/// Numbers separated by commas, as "2,4,8". Throws InputError for anything else.
std::vector<int> parse_ranks(const std::string& text);

/// Counts on rank 0, which gathers the pattern; no lines on the other ranks. "rows" are ranges with
/// equal numbers of rows if `by_rows`, else with equal numbers of nonzeros. No lines "graph" in a
/// build without the partitioner. Collective. Throws ShapeError on all ranks if the matrix is not
/// square.
template <class T>
std::vector<HaloLine> count_halo_lines(const Comm& comm, const CsrRows<T>& rows, bool by_rows,
                                       const std::vector<int>& ranks);

std::string to_table(const std::vector<HaloLine>& lines);

}  // namespace quiver::apps

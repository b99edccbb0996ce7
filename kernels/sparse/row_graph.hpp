// SPDX-License-Identifier: BSD-3-Clause
// The pattern of a square matrix as a graph of its rows: orders, parts and the halos that they
// cause. Private to the project.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/reordering.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Bytes for each nonzero on the rank that partitions: the pattern, the graph, and the graphs of
/// SCOTCH.
inline constexpr double graph_bytes = 100;

/// The columns of some rows of a matrix, ascending within a row.
struct RowPattern {
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;

    std::int64_t rows() const { return std::ssize(row_start) - 1; }
    std::int64_t entries() const { return std::ssize(column); }
    std::int64_t length(std::int64_t row) const {
        const auto at = static_cast<std::size_t>(row);
        return row_start[at + 1] - row_start[at];
    }
    std::span<const std::int64_t> columns(std::int64_t row) const {
        const auto at = static_cast<std::size_t>(row);
        return {column.data() + row_start[at], static_cast<std::size_t>(length(row))};
    }
};

/// The columns of this rank's rows of A or, with B, the union of the columns of both. A and B have
/// the same row map.
template <class T>
RowPattern pattern_of(const CsrRows<T>& a, const CsrRows<T>* b = nullptr);

/// All rows of a distributed pattern on rank 0; no rows on the other ranks. Collective.
RowPattern pattern_on_rank_0(const Comm& comm, const RowPattern& pattern);

/// The undirected graph of a pattern of all rows: i and j are neighbours if the matrix has an entry
/// (i, j) or (j, i). No row is its own neighbour.
RowPattern graph_of(const RowPattern& pattern);

/// The rows in the order of reverse Cuthill-McKee, one connected component after the other. The
/// search of a component starts at one end of a long path (a pseudo-peripheral row of small
/// degree). Cost: a few breadth-first searches. Sources: Cuthill and McKee, Proc. ACM 24, 1969;
/// George and Liu, ACM TOMS 5, 1979.
std::vector<std::int64_t> reverse_cuthill_mckee(const RowPattern& graph);

/// The new numbers of all rows, and the distribution of the new numbers over ranks.
struct RowPlacement {
    std::vector<std::int64_t> position;
    std::vector<std::int64_t> offsets;
};

/// Rows in the order `order` (empty: natural), cut into one range for each rank. The nonzeros of
/// the ranges are equal or, if `weights` is not empty, in proportion to it.
RowPlacement place_by_ranges(const RowPattern& pattern, std::span<const std::int64_t> order,
                             int ranks, std::span<const double> weights);

/// Row i on rank parts[i]; within a rank the rows have the order `order` (empty: natural).
RowPlacement place_by_parts(const std::vector<int>& parts, std::span<const std::int64_t> order,
                            int ranks);

/// The halos that products of the placed matrix exchange. Cost: one pass over the pattern.
HaloCounts count_halos(const RowPattern& pattern, const RowPlacement& placement);

/// The rank of each row, by the graph partitioner: few neighbours are on different ranks. The
/// nonzeros (plus one per row) of the ranks are equal or, if `weights` is not empty, in proportion
/// to it, within a few percent. The same graph gives the same parts. Throws UnsupportedError
/// without the partitioner, or for a graph that is too large for the partitioner's integers.
std::vector<int> partition_graph(const RowPattern& graph, int ranks,
                                 std::span<const double> weights);

/// Why there is no partitioner (missing or switched off) and the cure, for messages; empty if there
/// is one.
std::string why_no_partitioner();

}  // namespace quiver

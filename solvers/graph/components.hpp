// SPDX-License-Identifier: BSD-3-Clause
// The connected components of a graph. Private to solvers/.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Components are numbered by descending size, and equal sizes by their first rows.
struct GraphComponents {
    /// The number of the component of each of this rank's rows, from 0.
    std::vector<std::int64_t> labels;
    /// The number of rows of each component, descending; the same on all ranks.
    std::vector<std::int64_t> sizes;
};

/// The components of the graph with an edge for every nonzero a_ij of a symmetric matrix with
/// ascending columns in each row. The result does not depend on the number of ranks or threads.
/// Collective. Cost: one pass over the entries; memory on every rank: 16 bytes for each component
/// and for each row that any rank needs of another.
/// Source: Tarjan, J. ACM 22, 1975 (union-find); links as in Jayanti and Tarjan, PODC 2016.
template <class T>
GraphComponents connected_components(const Comm& comm, const CsrRows<T>& adjacency, int threads);

}  // namespace quiver

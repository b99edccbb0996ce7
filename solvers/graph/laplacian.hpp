// SPDX-License-Identifier: BSD-3-Clause
// The Laplacian of an undirected graph, from its adjacency matrix. Private to solvers/.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Throws InputError on all ranks unless the matrix is square and all its entries, the weights of
/// edges, are finite, not negative, and symmetric up to 100 units of round-off. The message names
/// the first entry that is not. `symmetrise`: any square matrix becomes (A + A^T) / 2 instead. On
/// return the matrix is exactly symmetric. Collective. Cost: one pass over the entries, unless
/// the matrix has to be changed, which sends and sorts all entries.
template <class T>
void require_graph(const Comm& comm, CsrRows<T>& adjacency, bool symmetrise, int threads);

template <class T>
struct GraphLaplacian {
    /// I - D^-1/2 A D^-1/2 or D - A.
    CsrRows<T> rows;
    /// The square root of the degree of each of this rank's nodes; 1 for an isolated node. All 1
    /// for D - A. The degree is the sum of the weights without the diagonal.
    std::vector<double> root_degree;
    /// The number of isolated nodes, over all ranks.
    std::int64_t isolated = 0;
    /// An upper bound of the norm.
    double norm = 0;
};

/// The Laplacian without self-loops: the diagonal of A is ignored, and an isolated node has an
/// empty row, as in scipy.sparse.csgraph.laplacian. The result is exactly symmetric if A is.
/// Collective; throws InputError on all ranks if a degree overflows. Cost: three passes over the
/// entries; every rank sends and receives one number for each row that its products need of another
/// rank.
template <class T>
GraphLaplacian<T> form_laplacian(const Comm& comm, const CsrRows<T>& adjacency, bool normalised,
                                 int threads);

}  // namespace quiver

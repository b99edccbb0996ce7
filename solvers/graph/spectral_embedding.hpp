// SPDX-License-Identifier: BSD-3-Clause
// Spectral embedding: eigenvectors of the Laplacian of a graph as coordinates of its nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// With the weights A, without self-loops, and the degrees D:
/// symmetric     L = I - D^-1/2 A D^-1/2, L u = lambda u
/// random_walk   I - D^-1 A, with the same eigenvalues; its eigenvectors are D^-1/2 u
/// combinatorial L = D - A
/// The row of an isolated node is empty in all three.
enum class LaplacianKind : std::uint8_t { symmetric, random_walk, combinatorial };

/// "symmetric", "random-walk", "combinatorial".
const char* to_string(LaplacianKind kind);

/// The scaling of the vectors, where u is an eigenvector of L of length 1.
/// scikit_learn: D^-1/2 u (combinatorial: u), as sklearn.manifold.spectral_embedding
/// pyg: u, for random_walk D^-1/2 u scaled to length 1, as AddLaplacianEigenvectorPE of PyG
/// In both the element of each vector that is largest in magnitude (the first of equals) is
/// positive, as in scikit-learn; PyG leaves signs to chance.
enum class EmbeddingScale : std::uint8_t { scikit_learn, pyg };

/// "scikit-learn", "pyg".
const char* to_string(EmbeddingScale scale);

struct SpectralEmbeddingOptions {
    /// The number of vectors, from 1 to the number of nodes (one fewer with drop_first).
    int k = 2;
    LaplacianKind laplacian = LaplacianKind::symmetric;
    EmbeddingScale scale = EmbeddingScale::scikit_learn;
    /// Omits the first vector, which is the same on all nodes of a connected graph.
    bool drop_first = true;
    /// Takes (A + A^T) / 2 for a directed graph, which is an error otherwise.
    bool symmetrise = false;
    /// The options of the solve for the vectors that are not null vectors; k, which, target and
    /// window are ignored.
    EigenOptions solver;
};

/// The result of spectral_embedding. `labels` has this rank's nodes; all other numbers are the same
/// on all ranks.
template <class T>
struct SpectralEmbedding {
    /// The eigenvalues of L, ascending, and the residuals ||L u - lambda u||. `vectors` is the
    /// embedding, n x k; fewer columns if the solver gave up. cluster_cut is also true if the graph
    /// has more components than vectors were computed.
    EigenResult<T> pairs;
    /// The number of vectors that are null vectors of L.
    int null_vectors = 0;
    /// The component of each node. Components are numbered by descending size, and equal sizes by
    /// their first nodes.
    std::vector<std::int64_t> labels;
    /// The number of nodes of each component.
    std::vector<std::int64_t> sizes;
    /// The number of nodes without neighbours.
    std::int64_t isolated = 0;
};

/// Eigenvectors of the k smallest eigenvalues of the Laplacian of a graph.
///
/// The graph has an edge for each nonzero of the symmetric matrix `adjacency`, whose entries are
/// the weights. Self-loops are ignored. The components are found by a search of the graph. Each
/// gives one null vector: D^1/2 on its nodes (combinatorial: 1), 0 elsewhere, in the order of the
/// components. eigensolve() then finds the other eigenvectors, beginning with the null vectors as
/// start vectors (Method::lanczos: as constraints), and the null vectors are separated from its
/// result. It is not called if there are at least as many components as vectors.
///
/// Throws on all ranks: InputError for k out of range, a matrix that is not square, a weight that
/// is negative or not finite, a directed graph without `symmetrise`, degrees that overflow, or
/// options that differ between ranks; the errors of eigensolve().
/// Cost: some passes over the entries on the host (all threads) and the set-up of a SparseMatrix,
/// then the solve, and one product with all vectors. Memory on every rank: 16 bytes for each
/// component, and for each row that a rank needs of another.
/// The same numbers of ranks and threads on the same device give the same bits.
/// Source: Belkin and Niyogi, Neural Computation 15, 2003; Dwivedi et al., JMLR 24, 2023.
template <class T>
SpectralEmbedding<T> spectral_embedding(Context& ctx, CsrRows<T> adjacency,
                                        const SpectralEmbeddingOptions& options);

}  // namespace quiver

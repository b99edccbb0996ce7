// SPDX-License-Identifier: BSD-3-Clause
// Thick-restart block Lanczos on (A - sigma B)^-1 in the inner product of B. Private to
// solvers/eigen.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/eigen/shift_invert/shifted_pencil.hpp"

namespace quiver {

/// A Ritz pair of (A - sigma B)^-1 B: theta approximates 1 / (lambda - sigma).
struct InversePair {
    double theta = 0;
    /// ||(A - sigma B)^-1 B x - theta x||_B for x^H B x = 1.
    double residual = 0;
};

/// The basis V is B-orthonormal and B-orthogonal to the known vectors. The projected matrix H = V^H
/// B (A - sigma B)^-1 B V is computed by its definition. A step orthonormalises the image of the
/// last block and appends it; random directions replace directions that vanish, so that a basis may
/// fill the whole space. Cost of a step of b columns with p columns in the basis: two triangular
/// solves, two products with B, and two passes of Gram-Schmidt with 4 n b (p + near) flops each.
///
/// Every step is projected against the known vectors, except the far ones: a step multiplies a
/// component along a known vector by its theta, and only components with one of the largest |theta|
/// grow. When the basis is full, its components along the far vectors are measured and removed,
/// 4 n (p + b) far flops. The span of the known vectors is invariant, so that the recurrence holds
/// without these components, and V stays B-orthonormal up to their squares. If a component is
/// larger than 1e-9, the basis starts again and projects every step against all known vectors.
///
/// Source: Wu and Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602; Grimes, Lewis, Simon, SIAM J.
/// Matrix Anal. Appl. 15 (1994) 228.
template <class W>
class InverseLanczos {
  public:
    /// `known`: B-orthonormal eigenvectors, to which the basis is kept B-orthogonal. The first
    /// `far` of them lie far from the shift. `columns`: columns of the basis before a restart, at
    /// most rows - known. `pencil` and `factor` must outlive this object. Throws the errors of
    /// block_gram_schmidt().
    InverseLanczos(ShiftedPencil<W>& pencil, const ShiftedFactor& factor,
                   const std::vector<BlockVector<W>>& known, int far, int block, int columns,
                   std::uint64_t seed);

    /// Extends the basis until it is full, and computes its Ritz pairs, those with the largest
    /// |theta| first. Throws Error if the dense eigensolver fails.
    const std::vector<InversePair>& fill_basis();
    /// True if the basis spans the whole complement of the known vectors.
    bool spans_all() const { return next_ == 0; }
    /// V <- the first `keep` Ritz vectors.
    void restart(int keep);
    /// (A - sigma B)^-1 B x_j for these Ritz vectors, orthonormalised: the solve damps components
    /// far from sigma, which rounding has left in x_j. Returns fewer columns if some are linearly
    /// dependent.
    BlockVector<W> vectors(const std::vector<int>& pairs);

  private:
    void take_known(const std::vector<BlockVector<W>>& known);
    void start();
    void step();
    /// Removes the components of the basis along the far vectors; false if they are too large.
    bool purge_far();
    void multiply_next(int count, int at);
    BlockView<const W> images(int first, int count) const;
    /// S, the coordinates of the Ritz vectors with these numbers.
    SmallMatrix<W> coordinates(const std::vector<int>& pairs) const;

    ShiftedPencil<W>& pencil_;
    const ShiftedFactor& factor_;
    int known_ = 0;
    /// The number of far vectors, the first ones of the known vectors.
    int far_ = 0;
    int columns_;
    int block_;
    std::uint64_t seed_;
    /// The known vectors, V and the next block; and their images under B if there is a B.
    BlockVector<W> basis_;
    BlockVector<W> b_basis_;
    int size_ = 0;
    int next_ = 0;
    SmallMatrix<W> projected_;
    /// R of the next block: (A - sigma B)^-1 B V_last = V H + V_next R.
    SmallMatrix<W> coupling_;
    SmallMatrix<W> eigenvectors_;
    std::vector<int> order_;
    std::vector<InversePair> pairs_;
};

}  // namespace quiver

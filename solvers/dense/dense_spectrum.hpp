// SPDX-License-Identifier: BSD-3-Clause
// The eigenvalues of a dense Hermitian pencil with bounds of their rounding errors, each from the
// most accurate of several solves. Private to solvers/.
#pragma once

#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/dense/dense_pencil.hpp"
#include "solvers/dense/shifted_spectrum.hpp"

namespace quiver {

template <class W>
class DenseSpectrum {
  public:
    /// See DensePencil.
    DenseSpectrum(Context& ctx, SmallMatrix<W> a, SmallMatrix<W> b);

    /// DensePencil::solve(), but without a value for PencilKind::degenerate: add_shift() finds
    /// them.
    PencilKind solve(const SmallMatrix<W>& constraints, double rounding);
    const InfiniteEigenvalues& infinite() const { return pencil_.infinite(); }
    /// Gives back the matrices, which solve() overwrites, for add_shift().
    void set_matrices(SmallMatrix<W> a, SmallMatrix<W> b);
    /// Finds the eigenvalues near sigma more accurately; without constraints only. No change if
    /// sigma is an eigenvalue to rounding. Throws the errors of shifted_spectrum().
    void add_shift(double sigma);

    /// The finite eigenvalues that were found, ascending. All of them, unless the pencil is
    /// degenerate: then those nearest the shifts.
    const std::vector<double>& values() const { return values_; }
    /// True if the smallest finite eigenvalue is among them, or the largest.
    bool has_smallest() const { return has_smallest_; }
    bool has_largest() const { return has_largest_; }
    /// Bounds of their errors.
    const std::vector<double>& errors() const { return errors_; }
    /// The eigenvectors of values()[order[j]], n x order.size(). Each has length 1 in B; those of
    /// one solve are orthogonal in B.
    SmallMatrix<W> vectors(std::span<const int> order);
    /// Makes vectors(order) B-orthonormal if they come from several solves. Returns an entry of
    /// `order` whose vector depends on those before it; -1 if there is none, and after that `x` is
    /// B-orthonormal.
    int orthonormalise(std::span<const int> order, SmallMatrix<W>& x) const;
    /// The Rayleigh quotients of the columns of X; needs set_matrices(). Their errors are the
    /// squares of those of the vectors.
    std::vector<double> quotients(const SmallMatrix<W>& x) const;

  private:
    /// A column of the vectors of a shift, or an index of the pencil's values if `shift` is -1.
    struct Place {
        int shift = -1;
        int column = 0;
    };
    void collect();

    Context& ctx_;
    int n_;
    DensePencil<W> pencil_;
    PencilKind kind_ = PencilKind::regular;
    SmallMatrix<W> a_;
    SmallMatrix<W> b_;
    std::vector<ShiftedSpectrum<W>> shifts_;
    std::vector<double> values_;
    std::vector<double> errors_;
    std::vector<Place> places_;
    bool has_smallest_ = false;
    bool has_largest_ = false;
};

}  // namespace quiver

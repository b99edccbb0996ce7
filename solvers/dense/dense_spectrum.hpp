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

    /// DensePencil::solve(). A PencilKind::degenerate has no values yet: add_shift() finds them.
    PencilKind solve(const SmallMatrix<W>& constraints, double rounding);
    const InfiniteEigenvalues& infinite() const { return pencil_.infinite(); }
    /// The matrices again, for add_shift() and quotients(): solve() has overwritten them. They are
    /// D A D and D B D with D = diag(2^exponents): a vector y of theirs is x = D y of the pencil.
    void set_matrices(SmallMatrix<W> a, SmallMatrix<W> b, std::vector<int> exponents);
    /// Finds the eigenvalues near sigma more accurately; needs set_matrices(), and a solve()
    /// without constraints. False, and a no-op, if A - sigma B is singular to rounding. Throws the
    /// errors of semidefinite_root() and shifted_spectrum().
    bool add_shift(double sigma);

    /// The finite eigenvalues that were found, ascending. All of them, unless the pencil is
    /// degenerate: then those nearest the shifts.
    const std::vector<double>& values() const { return values_; }
    /// True if values() contains the smallest finite eigenvalue, or the largest one.
    bool has_smallest() const { return has_smallest_; }
    bool has_largest() const { return has_largest_; }
    /// True if all finite eigenvalues are among them.
    bool is_complete() const { return is_complete_; }
    /// Bounds of the errors of values().
    const std::vector<double>& errors() const { return errors_; }
    /// The eigenvectors of values()[order[j]], n x order.size(). Each has length 1 in B; those of
    /// one solve are orthogonal in B.
    SmallMatrix<W> vectors(std::span<const int> order);
    /// Makes x = vectors(order) B-orthonormal if these come from several solves, and returns -1. If
    /// a vector depends on those before it, returns its entry of `order` and does not change x.
    int orthonormalise(std::span<const int> order, SmallMatrix<W>& x) const;
    /// The Rayleigh quotients of the columns of X; needs set_matrices(). Their errors are of the
    /// order of the squares of the errors of X.
    std::vector<double> quotients(const SmallMatrix<W>& x) const;

  private:
    /// The solve of a value: a column of the vectors of a shift or, if `shift` is -1, an index of
    /// the pencil's values.
    struct Origin {
        int shift = -1;
        int column = 0;
    };
    void collect();
    /// diag(2^(sign exponents)) X.
    SmallMatrix<W> in_units(SmallMatrix<W> x, int sign) const;

    Context& ctx_;
    int n_;
    DensePencil<W> pencil_;
    PencilKind kind_ = PencilKind::regular;
    /// Eigenvalues of B up to this fraction of ||B|| are 0.
    double rounding_ = 0;
    SmallMatrix<W> a_;
    SmallMatrix<W> b_;
    /// D of set_matrices().
    std::vector<int> exponents_;
    SmallMatrix<W> root_of_b_;
    std::vector<ShiftedSpectrum<W>> shifts_;
    std::vector<double> values_;
    std::vector<double> errors_;
    std::vector<Origin> origins_;
    bool has_smallest_ = false;
    bool has_largest_ = false;
    bool is_complete_ = false;
};

}  // namespace quiver

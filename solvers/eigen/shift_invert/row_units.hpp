// SPDX-License-Identifier: BSD-3-Clause
// Units of the unknowns of a pencil whose rows are all on this process. Private to solvers/eigen.
#pragma once

#include <optional>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/pencil/unit_balance.hpp"

namespace quiver {

/// The diagonal D of UnitBalance for stored A and B: shift_invert() solves D A D y = lambda D B D y
/// and returns x = D y. By Sylvester's law the inertia of D (A - sigma B) D is that of A - sigma B,
/// and products with powers of two do not round, so that counts of eigenvalues hold for A and B.
///
/// The rounding errors of a factorisation move an eigenvalue by up to eps (||A|| + |sigma| ||B||)
/// ||x||^2 for x^H B x = 1. In the units of D, chosen for |lambda|, this is near the least value
/// that any units give.
template <class W>
class RowUnits {
  public:
    /// The target and the window of `options` are those of the pencil A, B. Throws the errors of
    /// UnitBalance, which takes `ratio`. Cost: two sparse matrices, which this object keeps.
    RowUnits(const CsrRows<W>& a, const CsrRows<W>& b, EigenOptions options, Which which,
             double ratio);
    RowUnits(const RowUnits&) = delete;
    RowUnits& operator=(const RowUnits&) = delete;

    /// False if the rows of B, and of A, differ by so little that other units would change nothing.
    bool is_needed() const { return balance_->is_needed(); }
    /// True if the rows of B alone make other units necessary.
    bool is_needed_for_b() const { return balance_->is_needed_for_b(); }
    /// Chooses D for eigenvalues of this size.
    void choose_for(double size);
    /// Chooses D for eigenvalues of the size that `options` and the norms of rows suggest.
    void choose();
    /// Chooses D for eigenvalues of this size if it is far from the size of the current D. Returns
    /// true if D has changed by so much that the pencil must be solved again; D may also change by
    /// less.
    bool choose_others(double size);
    /// Chooses D for the largest eigenvalues, after choose(): the rows of D B D that are not zero
    /// are alike. Returns true if D has changed by so much that the pencil must be solved again.
    bool choose_for_largest();
    /// M <- D M D.
    void apply(CsrRows<W>& m) const;
    /// The exponents of D.
    const std::vector<int>& exponents() const { return balance_->exponents(); }
    /// Estimates of ||A|| and ||B||, not in the units of D; 0 if D is not needed.
    double norm_a() const { return norm_a_; }
    double norm_b() const { return norm_b_; }

  private:
    Context ctx_;
    EigenOptions options_;
    Which which_;
    std::optional<SparseMatrix<W>> a_;
    std::optional<SparseMatrix<W>> b_;
    std::optional<EigenProblem<W>> problem_;
    std::optional<UnitBalance<W>> balance_;
    double size_ = 0;
    double largest_ = 0;
    double norm_a_ = 0;
    double norm_b_ = 0;
};

}  // namespace quiver

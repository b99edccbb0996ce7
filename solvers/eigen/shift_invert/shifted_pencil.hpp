// SPDX-License-Identifier: BSD-3-Clause
// A - sigma B in double precision with all rows on this process, and its factorisations. Private to
// solvers/eigen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/shift_invert/factorisation.hpp"
#include "solvers/orth/inner_product.hpp"
#include "solvers/precond/chebyshev.hpp"

namespace quiver {

/// The facts about a factorisation of A - sigma B. The pencil holds only the factors of the last
/// one.
struct ShiftedFactor {
    double sigma = 0;
    bool complete = false;
    /// The number of eigenvalues below sigma, by Sylvester's law of inertia.
    std::int64_t below = 0;
    /// `below` is right if no eigenvalue lies within `error` of sigma (with B: within error ||x||^2
    /// for the eigenvectors x, x^H B x = 1, to first order).
    double error = 0;
    /// The backward error of a solve with the factors.
    double backward = 0;
};

/// For vectors x_j: values q_j = x_j^H A x_j, and ||A x_j - q_j B x_j|| / ((||A|| + |q_j| ||B||)
/// ||x_j||).
struct RayleighPairs {
    std::vector<double> values;
    std::vector<double> residuals;
};

/// A pencil A - sigma B with all rows on this process, the norms of A and B, and the factors of the
/// last shift. Throws the errors of the factorisation, NumericalError if a product is not finite,
/// and IndefiniteError of inner_product().
template <class W>
class ShiftedPencil {
  public:
    /// Takes all rows of A and B (null: B = I). `factorisation` must outlive this object.
    ShiftedPencil(int threads, CsrRows<W> a, std::optional<CsrRows<W>> b,
                  Factorisation<W>& factorisation);

    Context& ctx() { return ctx_; }
    const CsrRows<W>& a() const { return a_; }
    const std::optional<CsrRows<W>>& b() const { return b_; }
    const RowMap& map() const { return a_.map; }
    std::int64_t rows() const { return a_.map.global_rows(); }
    const InnerProduct<W>& inner() const { return inner_; }
    bool has_b() const { return inner_.b != nullptr; }
    /// Estimates of ||A|| and ||B|| (1 without B).
    double norm() const { return norm_; }
    double norm_b() const { return norm_b_; }
    /// The least ratio of two diagonal entries a_ii / b_ii, an upper bound of the least eigenvalue.
    double least_ratio() const;
    /// The least Ritz value of A in a short Lanczos run: an upper bound of the least eigenvalue of
    /// A.
    double least_ritz_value() const { return sign_ > 0 ? ends_.least : -ends_.largest; }
    /// The larger of two numbers of which the first is and the second is likely to be at most the
    /// least eigenvalue of A: the least Gershgorin bound a_ii - sum_j |a_ij|, and the least Ritz
    /// value minus the length of the last Lanczos vector. Cost: a pass over the entries.
    double lower_bound() const;

    /// A <- -A.
    void negate();

    /// Factorises A - sigma B. If a pivot is so small that digits are lost, sigma moves by 1e4, 1e6
    /// or 1e8 units of rounding of scale(sigma) / ||B|| in either direction, until the factors are
    /// good and their error is smaller than the move, so that (with B = I) an eigenvalue at the
    /// requested shift does not spoil the count; otherwise the best attempt is taken.
    /// Cost: a factorisation, up to 7 more if the shift moves; with MUMPS or cuDSS 8 solves each.
    ShiftedFactor factor(double sigma);
    /// Y = (A - sigma B)^-1 X with the factors of the last call of factor(), which returned
    /// `factor`; one step of iterative refinement follows if they have lost digits. X and Y do not
    /// overlap.
    void solve(const ShiftedFactor& factor, BlockView<const W> x, BlockView<W> y);

    std::int64_t factorisations() const { return factorisations_; }
    std::int64_t solves() const { return solves_; }
    /// The largest move of a shift sigma, relative to scale(sigma); 0 if none has moved.
    double largest_move() const { return largest_move_; }

    /// ||A|| + |sigma| ||B||, to which rounding errors are relative; 1 if that is 0.
    double scale(double sigma) const;
    /// The Rayleigh quotients and residuals of the columns of X, x_j^H B x_j = 1. Cost: a product
    /// with A and one with B.
    RayleighPairs rayleigh_pairs(BlockView<const W> x);

  private:
    ShiftedFactor try_factor(double sigma);
    void measure(ShiftedFactor& factor);
    /// R = X - (A - sigma B) Y.
    void residual(double sigma, BlockView<const W> x, BlockView<const W> y, BlockView<W> r);

    Factorisation<W>& factorisation_;
    Context ctx_;
    CsrRows<W> a_;
    std::optional<CsrRows<W>> b_;
    std::optional<SparseMatrix<W>> matrix_;
    std::optional<SparseMatrix<W>> mass_;
    InnerProduct<W> inner_;
    double sign_ = 1;
    /// Of A before negate().
    SpectrumEstimate ends_;
    double norm_ = 0;
    double norm_b_ = 1;
    double largest_move_ = 0;
    std::int64_t factorisations_ = 0;
    std::int64_t solves_ = 0;
};

}  // namespace quiver

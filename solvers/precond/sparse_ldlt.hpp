// SPDX-License-Identifier: BSD-3-Clause
// A sparse factorisation of one process's rows, for inertia counts and preconditioners. Private to
// solvers/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Larger matrices are refused: their factors would take too much memory.
constexpr std::int64_t most_ldlt_rows = 50000;

/// P (A - shift B) P^T = L D L^H in double precision; D real and diagonal, L with unit diagonal, P
/// an approximate minimum degree ordering. There is no pivoting for stability, so an indefinite
/// matrix may break down or lose digits. Cost: that of a sparse Cholesky factorisation. Source:
/// Eigen::SimplicialLDLT; Davis, Direct Methods for Sparse Linear Systems, chapters 4, 7.
template <class T>
class SparseLdlt {
  public:
    /// Factors the diagonal block of this rank's rows, which must be Hermitian; uses the same block
    /// of `b`, or B = I if `b` is null. No communication. Throws InputError, on this rank only, for
    /// more than most_ldlt_rows rows.
    SparseLdlt(const CsrRows<T>& rows, const CsrRows<T>* b, double shift);
    ~SparseLdlt();

    /// True if no pivot was exactly zero; otherwise there are no factors.
    bool complete() const;
    /// The largest |entry| of A, or |shift| if that is larger.
    double norm() const { return norm_; }
    /// A bound of ||P (A - shift B) P^T - L D L^H||_2: eps (sqrt(most entries of a row of L) + 4)
    /// || |L| |D| |L^H| ||_inf. The bound grows with every small pivot that is not the last;
    /// it is infinite or NaN if an entry of the factors is.
    /// Source: Higham, Accuracy and Stability of Numerical Algorithms, section 11.1;
    /// docs/notes/abft.md explains the square root.
    double error() const;
    /// The diagonal of D.
    std::vector<double> pivots() const;
    /// The positions of A's rows: row i of A is row places()[i] of P (A - shift B) P^T.
    std::vector<std::int64_t> places() const;
    /// L left of the diagonal, and D L^H (or |D| L^H) from the diagonal on, as
    /// IncompleteLu::from_factors() expects. Pivots smaller than `least` are raised to it.
    CsrRows<T> factors(double least, bool absolute) const;
    /// X <- (A - shift B)^-1 X in double precision, for X in host memory with this rank's rows; no
    /// communication. Cost: a pass over L for each of two triangular solves, on one thread.
    void solve(BlockView<T> x) const;

    // The halves of the solution, for positive D: A - shift B = G G^H with G = P^T L D^1/2. X is in
    // host memory with this rank's rows. No communication. Cost: a pass over L on one thread.

    /// X <- G^-1 X.
    void solve_lower_half(BlockView<T> x) const;
    /// X <- G^-H X.
    void solve_upper_half(BlockView<T> x) const;
    /// X <- G^H X.
    void multiply_upper_half(BlockView<T> x) const;

  private:
    struct Data;
    RowMap map_;
    double norm_ = 0;
    std::unique_ptr<Data> data_;
};

/// The size of the factor L of SparseLdlt, without its unit diagonal.
struct LdltFill {
    std::int64_t entries = 0;
    /// Multiply-adds of the factorisation.
    double products = 0;
};

/// The fill of SparseLdlt(rows, b, any shift), from the ordering and the elimination tree, without
/// a factorisation. Counting ends once `entries` is above `most`. Throws like SparseLdlt. Cost: the
/// ordering, and one visit of each entry of L. Source: Davis, Direct Methods for Sparse Linear
/// Systems, sections 4.1, 4.4.
template <class T>
LdltFill predict_fill(const CsrRows<T>& rows, const CsrRows<T>* b, std::int64_t most);

/// max |a_ij - conj a_ji| over the diagonal block of these rows.
template <class T>
double hermitian_defect(const CsrRows<T>& rows);

}  // namespace quiver

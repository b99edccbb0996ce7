// SPDX-License-Identifier: BSD-3-Clause
// A sparse factorisation of the rows that one process has: inertia counts and preconditioners.
// Private to solvers/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Larger matrices are refused: their factors would take too much memory.
constexpr std::int64_t most_ldlt_rows = 50000;

/// P (A - shift B) P^T = L D L^H in double precision, D real and diagonal, L of unit diagonal, P an
/// approximate minimum degree ordering; no pivots beyond that, so that an indefinite matrix may
/// break down or lose digits. Cost: that of a sparse Cholesky factorisation.
/// Source: Eigen::SimplicialLDLT; Davis, Direct Methods for Sparse Linear Systems, chapters 4, 7.
template <class T>
class SparseLdlt {
  public:
    /// The diagonal block of this rank's rows, Hermitian; of `b`, too, or B = I without it. No
    /// communication. Throws InputError, on the rank that sees it, for more than most_ldlt_rows
    /// rows.
    SparseLdlt(const CsrRows<T>& rows, const CsrRows<T>* b, double shift);
    ~SparseLdlt();

    /// No pivot was exactly zero; without it there are no factors.
    bool complete() const;
    /// The largest entry of A, or the shift where that is larger.
    double norm() const { return norm_; }
    /// Of P (A - shift B) P^T - L D L^H, a bound of its 2-norm: eps (sqrt(most entries of a row of
    /// L)
    /// + 4) || |L| |D| |L^H| ||_inf, which grows with every small pivot that others follow. Source:
    /// Higham, Accuracy and Stability of Numerical Algorithms, section 11.1; for the root
    /// docs/abft.md.
    double error() const;
    /// D.
    std::vector<double> pivots() const;
    /// Where row i stands in P (A - shift B) P^T.
    std::vector<std::int64_t> places() const;
    /// L left of the diagonal and D L^H from there on, or |D| L^H, as IncompleteLu::from_factors()
    /// takes them; a pivot smaller than `least` becomes that small.
    CsrRows<T> factors(double least, bool absolute) const;

  private:
    struct Data;
    RowMap map_;
    double norm_ = 0;
    std::unique_ptr<Data> data_;
};

/// max |a_ij - conj a_ji| of the diagonal block of these rows.
template <class T>
double hermitian_defect(const CsrRows<T>& rows);

}  // namespace quiver

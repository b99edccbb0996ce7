// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues below a shift, counted by a sparse factorisation: a proof of completeness for
// matrices that one process can factor.
#pragma once

#include <cstdint>

#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {

/// Larger matrices are refused, as by every sparse factorisation.
constexpr std::int64_t most_inertia_rows = most_ldlt_rows;

/// The signs of D in P (A - shift I) P^T = L D L^H; by Sylvester's law those of A - shift I.
struct Inertia {
    std::int64_t below = 0;
    std::int64_t above = 0;
    /// No pivot vanished. Without pivoting a factorisation may break down next to an eigenvalue of
    /// A or of one of its leading blocks; another shift helps then.
    bool reliable = false;
    /// The counts are those of a matrix that differs from A - shift I by at most this, in the
    /// 2-norm: right for A where no eigenvalue is as close to the shift.
    double error = 0;
};

/// Counts the eigenvalues of a Hermitian matrix below and above `shift`, in double precision. All
/// rows are on this process; no communication. Throws InputError for more than most_inertia_rows
/// rows. Cost: that of a sparse Cholesky factorisation (Eigen::SimplicialLDLT, approximate minimum
/// degree). Source: Parlett, The Symmetric Eigenvalue Problem, section 3.3.
template <class T>
Inertia inertia(const CsrRows<T>& rows, double shift);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The number of eigenvalues below a shift, from a sparse factorisation: proves completeness for
// matrices that one process can factor.
#pragma once

#include <cstdint>

#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {

/// SparseLdlt refuses larger matrices.
constexpr std::int64_t most_inertia_rows = most_ldlt_rows;

/// The numbers of negative (below) and positive (above) entries of D in P (A - shift I) P^T = L D
/// L^H; by Sylvester's law A - shift I has as many eigenvalues of each sign.
struct Inertia {
    std::int64_t below = 0;
    std::int64_t above = 0;
    /// True if no pivot vanished. Because the factorisation does not pivot, it may break down if
    /// the shift is close to an eigenvalue of A or of one of its leading blocks; then use another
    /// shift.
    bool reliable = false;
    /// The counts are exact for a matrix that differs from A - shift I by at most this in the
    /// 2-norm. They are exact for A if no eigenvalue lies within this distance of the shift.
    double error = 0;
};

/// Counts the eigenvalues of a Hermitian matrix below and above `shift`, in double precision. All
/// rows are on this process; no communication. Throws InputError for more than most_inertia_rows
/// rows. Cost: that of a sparse Cholesky factorisation (Eigen::SimplicialLDLT, approximate minimum
/// degree). Source: Parlett, The Symmetric Eigenvalue Problem, section 3.3.
template <class T>
Inertia inertia(const CsrRows<T>& rows, double shift);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// How far a matrix is from Hermitian, by random sums over its entries.
#pragma once

#include <cmath>
#include <cstdint>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

struct HermitianCheck {
    /// Estimate of ||A - A^H||_F.
    double asymmetry = 0;
    /// ||A||_F; not finite when an entry is not.
    double norm = 0;
    /// Asymmetry that rounding may leave: 100 eps ||A||_F with eps of the scalar type.
    double tolerance = 0;
    bool hermitian() const { return std::isfinite(asymmetry) && asymmetry <= tolerance; }
};

/// Four sums D = sum over i < j of r_ij (a_ij - conj(a_ji)), with r_ij uniform in [-1, 1) and a
/// function of i and j alone, have E|D|^2 = ||A - A^H||_F^2 / 6, so that 6 mean |D|^2 estimates
/// it; a single wrong entry is missed by a factor of 100 with a probability below 1e-7. Needs no
/// entry of another rank. Collective. Cost: two passes over the entries, two all-reduces.
template <class T>
HermitianCheck check_hermitian(const Comm& comm, const CsrRows<T>& rows);

/// Two entries that a Hermitian matrix has equal; rows and columns from 0.
template <class T>
struct UnequalPair {
    std::int64_t row = 0;
    std::int64_t column = 0;
    /// a(row, column) and conj(a(column, row)), 0 where it is not stored.
    T entry{};
    T transposed{};
    bool transposed_is_stored = true;
};

/// The pair with the largest |a(i, j) - conj(a(j, i))|; of equal ones that with the least row, then
/// column. Takes finite entries, of which there is at least one. Collective; the same on all ranks
/// of any number. Cost: every entry travels once, in bounded messages.
template <class T>
UnequalPair<T> most_unequal_pair(const Comm& comm, const CsrRows<T>& rows);

}  // namespace quiver::apps

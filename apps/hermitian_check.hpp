// SPDX-License-Identifier: BSD-3-Clause
// Measures how far a matrix is from Hermitian, by random sums over its entries.
#pragma once

#include <cmath>
#include <cstdint>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

struct HermitianCheck {
    /// Estimate of ||A - A^H||_F.
    double asymmetry = 0;
    /// ||A||_F; not finite if an entry is not finite.
    double norm = 0;
    /// The asymmetry that rounding may cause: 100 eps ||A||_F with eps of the scalar type.
    double tolerance = 0;
    bool hermitian() const { return std::isfinite(asymmetry) && asymmetry <= tolerance; }
};

/// Estimates the asymmetry from four random sums
///   D = sum_{i < j} r_ij (a_ij - conj(a_ji)) + sum_i r_ii i sqrt(2) Im a_ii,
/// where r_ij is uniform in (-1, 1) and depends only on i and j. Since
/// E|D|^2 = ||A - A^H||_F^2 / 6, 6 mean |D|^2 estimates the square of the asymmetry. For a single
/// wrong entry the estimate is too small by a factor of 100 with a probability below 1e-7. Needs no
/// entry of another rank.
/// Collective; the same for any number of threads. Cost: two passes over the entries, three
/// all-reduces.
template <class T>
HermitianCheck check_hermitian(const Comm& comm, const CsrRows<T>& rows, int threads);

/// An entry and the conjugate of its transposed entry, which are equal in a Hermitian matrix. Rows
/// and columns count from 0.
template <class T>
struct UnequalPair {
    std::int64_t row = 0;
    std::int64_t column = 0;
    /// a(row, column), and conj(a(column, row)) or 0 if the latter is not stored.
    T entry{};
    T transposed{};
    bool transposed_is_stored = true;
};

/// The pair with the largest |a(i, j) - conj(a(j, i))|; if several are equally large, the one with
/// the least row, then the least column. The matrix must have at least one entry, and only finite
/// ones. Collective; the result is the same on all ranks and for any number of ranks. Cost: every
/// entry is sent once, in bounded messages.
template <class T>
UnequalPair<T> most_unequal_pair(const Comm& comm, const CsrRows<T>& rows);

}  // namespace quiver::apps

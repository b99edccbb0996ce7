// SPDX-License-Identifier: BSD-3-Clause
// RowCheck: compares the checksums of a block with the expected ones, and recovers the block if
// they differ.
#pragma once

#include <functional>
#include <vector>

#include "solvers/abft/recovery.hpp"

namespace quiver {

/// 4 eps, twice as much for complex scalars: the factor by which a threshold exceeds the rounding
/// error of an element of maximal size.
template <class T>
constexpr double rounding_units() {
    return 4 * (is_complex_v<T> ? 2 : 1) * static_cast<double>(epsilon_v<T>);
}
/// The rounding error of a sum of n products, in units of the rounding error of one product (Higham
/// and Mary, SIAM J. Sci. Comput. 41, 2019).
double rounding_length(double n);

/// The plain (k = 0) and mixed (1) checksums that a block must have, by chunk and column, with
/// bounds of their rounding errors.
template <class T>
class WantedSums {
  public:
    using Sum = checksum_t<T>;

    WantedSums(std::int64_t rows, int columns, int log_chunk);
    /// One checksum of a column over all rows, as chunk 0.
    WantedSums(std::int64_t rows, int columns);
    /// Adds a term and a rounding error to the checksum of a chunk and column. If either is not
    /// finite, this checksum is no longer compared. `size`: |term|, if the caller knows it.
    void add(std::int64_t chunk, int k, int column, Sum term, double size, double rounding);
    void add(std::int64_t chunk, int k, int column, Sum term, double rounding) {
        add(chunk, k, column, term, std::abs(term), rounding);
    }
    /// Adds factors[j] term with the rounding error sizes[j] rounding in every column j of a chunk;
    /// sizes[j] = |factors[j]|. A size of 0 adds nothing, even if the term is not finite.
    void add_multiples(std::int64_t chunk, int k, Sum term, double rounding, const Sum* factors,
                       const double* sizes);
    /// True if the checksums of Y are within the bounds, in all chunks or in one.
    bool holds(const Checksum<T>& y) const;
    bool holds(const Checksum<T>& y, std::int64_t chunk) const;
    /// True if the checksums of `other` are within the bounds of these.
    bool near(const WantedSums& other) const;
    std::int64_t chunks() const { return chunks_; }
    ChunkSums<T> of_chunk(std::int64_t chunk) const;
    /// True if every chunk and column is compared.
    bool complete() const;
    /// The bound of checksum k of a column of a chunk at (2 chunk + k) columns + column; not finite
    /// if that checksum is not compared.
    const std::vector<double>& bounds() const { return bounds_; }

  private:
    std::size_t index(std::int64_t chunk, int k, int column) const {
        return static_cast<std::size_t>((2 * chunk + k) * columns_ + column);
    }
    std::int64_t chunks_;
    int columns_;
    int log_chunk_;  // -1: over all rows
    std::vector<Sum> sums_;
    std::vector<double> bounds_;
};

/// A block that an operation has computed, and how to compute it again.
template <class T>
struct RowCheck {
    /// The name of the operation in events.
    const char* operation;
    BlockView<T> y;
    WantedSums<T> wanted;
    /// Computes Y again, in place, with the same bits from the same operands. Empty if an operand
    /// was overwritten.
    std::function<void()> again;
    /// Compares the operands with their checksums, repairs them with `correct`, and updates
    /// `wanted` if an operand cannot be restored exactly.
    std::function<OperandRepair(WantedSums<T>&)> repair;
    /// The caller computes a lost operand again: the fault counts as redone, not as failed.
    bool caller_redoes = false;
};

/// Checks Y and, if the check fails, recovers it by recovery.hpp. The counts go to the guard; a
/// fault that cannot be repaired is counted as failed, and Y is the result of its present operands.
/// `detect` puts the first Y back. Returns the checksums of the present Y. Local. Cost: one read of
/// Y; after an alarm scratch of its size, and the operation once or more.
template <class T>
Checksum<T> check_rows(Context& ctx, OperationGuard& guard, RowCheck<T> check);
/// The second part of check_rows. `sums` are on entry the checksums of Y that raised the alarm, and
/// on return those of the present Y. Returns false if no repetition agreed with its checksums or
/// with an earlier result; always true with `detect`.
template <class T>
bool recover_rows(Context& ctx, OperationGuard& guard, RowCheck<T>& check, Checksum<T>& sums);

}  // namespace quiver

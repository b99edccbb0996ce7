// SPDX-License-Identifier: BSD-3-Clause
// RowCheck: compares the sums of a block with what they must be, and has it made again where they
// differ.
#pragma once

#include <functional>
#include <vector>

#include "solvers/abft/operand.hpp"

namespace quiver {

/// 4 eps, twice as much for complex scalars: how many times the rounding of an element that is as
/// large as it can be a threshold allows.
template <class T>
constexpr double rounding_units() {
    return 4 * (is_complex_v<T> ? 2 : 1) * static_cast<double>(epsilon_v<T>);
}
/// How a sum of n products rounds, in units of the roundings of one (Higham and Mary, SIAM J. Sci.
/// Comput. 41, 2019).
double rounding_length(double n);

/// Plain (k = 0) and mixed (1) sums that a block must have, by chunk and column, and how far
/// rounding may take it from them.
template <class T>
class WantedSums {
  public:
    using Sum = checksum_t<T>;

    WantedSums(std::int64_t rows, int columns, int log_chunk);
    /// Of a chunk and column: more of both. A term or rounding that is not finite ends the check
    /// there. `size`: |term|, where it is known.
    void add(std::int64_t chunk, int k, int column, Sum term, double size, double rounding);
    void add(std::int64_t chunk, int k, int column, Sum term, double rounding) {
        add(chunk, k, column, term, std::abs(term), rounding);
    }
    /// In every column j of a chunk factors[j] term, rounded by sizes[j] rounding, sizes[j] =
    /// |factors[j]|; where that is 0 nothing, whatever the term.
    void add_multiples(std::int64_t chunk, int k, Sum term, double rounding, const Sum* factors,
                       const double* sizes);
    bool holds(const Checksum<T>& y) const;
    bool holds(const Checksum<T>& y, std::int64_t chunk) const;
    std::int64_t chunks() const { return chunks_; }
    ChunkSums<T> of_chunk(std::int64_t chunk) const;
    /// Whether every chunk and column is compared.
    bool complete() const;
    /// Of sum k of a column of a chunk at (2 chunk + k) columns + column; not finite where it is
    /// not compared.
    const std::vector<double>& bounds() const { return bounds_; }

  private:
    std::size_t index(std::int64_t chunk, int k, int column) const {
        return static_cast<std::size_t>((2 * chunk + k) * columns_ + column);
    }
    std::int64_t chunks_;
    int columns_;
    int log_chunk_;
    std::vector<Sum> sums_;
    std::vector<double> bounds_;
};

/// A block that an operation has made, and how to make it again.
template <class T>
struct RowCheck {
    /// For events.
    const char* operation;
    BlockView<T> y;
    WantedSums<T> wanted;
    /// Makes Y once more, in its place, with the same bits from the same operands. Empty where what
    /// it read is gone.
    std::function<void()> again;
    /// Compares the operands with what they were, mends them with `correct`, and makes `wanted`
    /// anew where they can not be what they were.
    std::function<OperandRepair(WantedSums<T>&)> repair;
};

/// Compares and, where that fails, makes Y again, up to three times. If it passes then, Y was hit,
/// and is as it should be, bit for bit. If not, operands are mended. What has the same sums twice
/// with sound operands is rounding, and left. `detect` puts the first Y back. Counts go to the
/// guard; what can not be mended is counted as failed, and Y is what its operands give. Returns the
/// sums of Y as it is. Local. Cost: one read of Y; after an alarm scratch of its size, and the
/// operation once or more.
template <class T>
Checksum<T> check_rows(Context& ctx, OperationGuard& guard, RowCheck<T> check);

}  // namespace quiver

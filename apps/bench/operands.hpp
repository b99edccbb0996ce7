// SPDX-License-Identifier: BSD-3-Clause
// Operands of the cases, and the error bounds of results.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

#include "apps/bench/case.hpp"
#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

/// Rows of blocks repeat after this many (a prime). Therefore sums over one period in long double,
/// weighted by how often each row occurs, are the exact result for any number of rows, and cost
/// almost nothing.
inline constexpr std::int64_t period = 1021;

/// How many of `rows` rows are equal to row `p` of the first period, itself among them.
constexpr long double repeats(std::int64_t rows, std::int64_t p) {
    const std::int64_t count = (rows - p + period - 1) / period;
    return static_cast<long double>(count);
}

/// The layout of the copies of the operands, which calls use in turn.
struct Sets {
    std::int64_t rows = 0;
    /// Elements between the rows of a block, which no call may read or write.
    int gap = 0;
    /// Rows from the start of a set to the start of the next. Every set starts on a cache line for
    /// any width.
    std::int64_t stride = 0;
    std::int64_t count = 1;

    Sets(const Case& c, double row_bytes, double least_bytes);
};

/// A block of random rows that repeat, with all sets below each other and NaN between the rows.
template <class T>
class PeriodicBlock {
  public:
    PeriodicBlock(Context& ctx, const Sets& sets, int cols, std::uint64_t seed);

    BlockView<T> view(std::int64_t set) { return all().row_range(set * sets_.stride, sets_.rows); }
    BlockView<T> all() { return block_.view().columns(0, cols_); }
    /// Row `row` of a set, with the values of its creation or of the last refill.
    const T* row(std::int64_t set, std::int64_t row) const {
        return period_.data() + (set * sets_.stride + row) % period * cols_;
    }
    void refill();
    /// Writes the values into `other`, which has as many rows and columns.
    void refill(BlockView<T> other) const;

  private:
    Context& ctx_;
    Sets sets_;
    int cols_;
    std::uint64_t seed_;
    BlockVector<T> block_;
    std::vector<T> period_;
};

template <class T>
using Wide = std::conditional_t<is_complex_v<T>, std::complex<long double>, long double>;

template <class T>
Wide<T> wide(T value) {
    return Wide<T>(value);
}
template <class T>
long double norm_squared(T value) {
    return std::norm(wide(value));
}

/// Rounding of a sum of `terms` products relative to the norms of its factors: the form of Higham,
/// Accuracy and Stability of Numerical Algorithms, section 3.1, with the square root that errors of
/// random sign allow.
template <class T>
long double rounding(double terms) {
    return (is_complex_v<T> ? 4 : 2) * static_cast<long double>(epsilon_v<T>) *
           (std::sqrt(static_cast<long double>(terms)) + 2);
}

/// The largest error over its bound; infinite if a value is not finite.
template <class T>
struct Worst {
    double ratio = 0;
    void compare(T computed, const Wide<T>& exact, long double bound);
};

/// Allocates a block.
template <class T>
BlockVector<T> make_block(Context& ctx, std::int64_t rows, int cols);

/// A block in host memory, row by row.
template <class T>
std::vector<T> to_host(Context& ctx, BlockView<const T> block);

/// Checks a tall result: all elements must be finite. Calls check_row(row, elements of the row) for
/// the first and last rows (up to `edge`) and for 64 random ones.
template <class T>
double check_tall(Context& ctx, BlockView<const T> y, std::int64_t edge,
                  const std::function<void(std::int64_t, const T*, Worst<T>&)>& check_row);

}  // namespace quiver::apps::bench

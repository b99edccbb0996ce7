// SPDX-License-Identifier: BSD-3-Clause
// Operands of the cases and the bounds that results are held to.
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

/// Rows of blocks repeat after this many (a prime): so long double sums over one period, weighted
/// by how often each of its rows occurs, are the exact result of any number of rows, at next to no
/// cost.
inline constexpr std::int64_t period = 1021;

/// How many of `rows` rows are equal to row `p` of the first period, itself among them.
constexpr long double repeats(std::int64_t rows, std::int64_t p) {
    const std::int64_t count = (rows - p + period - 1) / period;
    return static_cast<long double>(count);
}

/// Copies of the operands that calls take in turn.
struct Sets {
    std::int64_t rows = 0;
    /// Elements between the rows of a block, which nobody may use.
    int gap = 0;
    /// From one set's first row to the next one's: a set starts on a cache line whatever the width.
    std::int64_t stride = 0;
    std::int64_t count = 1;

    Sets(const Case& c, double row_bytes, double least_bytes);
};

/// A block of random rows that repeat, all sets below each other; NaN between the rows.
template <class T>
class PeriodicBlock {
  public:
    PeriodicBlock(Context& ctx, const Sets& sets, int cols, std::uint64_t seed);

    BlockView<T> view(std::int64_t set) { return all().row_range(set * sets_.stride, sets_.rows); }
    BlockView<T> all() { return block_.view().columns(0, cols_); }
    /// Row `row` of a set as it was made or last refilled.
    const T* row(std::int64_t set, std::int64_t row) const {
        return period_.data() + (set * sets_.stride + row) % period * cols_;
    }
    void refill();
    /// Into `other`, which has as many rows and columns.
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

/// The largest error over its bound; what is not finite counts as infinite.
template <class T>
struct Worst {
    double ratio = 0;
    void compare(T computed, const Wide<T>& exact, long double bound);
};

/// A block of its own.
template <class T>
BlockVector<T> make_block(Context& ctx, std::int64_t rows, int cols);

/// A block in host memory, row by row.
template <class T>
std::vector<T> to_host(Context& ctx, BlockView<const T> block);

/// Checks a tall result: every element for being finite; the first and last rows (up to `edge`)
/// and 64 random ones with check_row(row, elements of the row).
template <class T>
double check_tall(Context& ctx, BlockView<const T> y, std::int64_t edge,
                  const std::function<void(std::int64_t, const T*, Worst<T>&)>& check_row);

}  // namespace quiver::apps::bench

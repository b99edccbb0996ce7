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

/// The rows of a block repeat with this period (a prime). A sum over one period in long double,
/// with each row weighted by repeats(), is therefore the exact result for any number of rows, at
/// almost no cost.
inline constexpr std::int64_t period = 1021;

/// How many of `rows` rows are equal to row `p` of the first period, including row `p` itself.
constexpr long double repeats(std::int64_t rows, std::int64_t p) {
    const std::int64_t count = (rows - p + period - 1) / period;
    return static_cast<long double>(count);
}

/// The layout of the copies of the operands, which calls use in turn.
struct Sets {
    std::int64_t rows = 0;
    /// Elements between the rows of a block, which no call may read or write.
    int gap = 0;
    /// Rows from the start of a set to the start of the next. The constructor rounds them up to a
    /// multiple of 16, so that every set is aligned to at least 32 bytes for any width.
    std::int64_t stride = 0;
    std::int64_t count = 1;

    Sets(const Case& c, double row_bytes, double least_bytes);
};

/// A block of random rows that repeat. All sets are stacked in it, with NaN in the gaps between
/// rows.
template <class T>
class PeriodicBlock {
  public:
    PeriodicBlock(Context& ctx, const Sets& sets, int cols, std::uint64_t seed);

    BlockView<T> view(std::int64_t set) { return all().row_range(set * sets_.stride, sets_.rows); }
    BlockView<T> all() { return block_.view().columns(0, cols_); }
    /// Row `row` of a set, as the constructor and refill() fill it.
    const T* row(std::int64_t set, std::int64_t row) const {
        return period_.data() + (set * sets_.stride + row) % period * cols_;
    }
    void refill();
    /// Writes the same values into `other`, which has the shape of all().
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

/// The rounding error of a sum of `terms` products, relative to the norms of its factors. The bound
/// has the form of Higham, Accuracy and Stability of Numerical Algorithms, section 3.1, with
/// sqrt(terms) instead of terms, since rounding errors have random signs.
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

template <class T>
BlockVector<T> make_block(Context& ctx, std::int64_t rows, int cols);

/// A copy of the block in host memory, row by row without gaps.
template <class T>
std::vector<T> to_host(Context& ctx, BlockView<const T> block);

/// Returns the largest error of a tall result over its bound, or infinity if any element is not
/// finite. Calls check_row(row, elements of the row, worst) for the first and last `edge` rows and
/// for 64 random rows.
template <class T>
double check_tall(Context& ctx, BlockView<const T> y, std::int64_t edge,
                  const std::function<void(std::int64_t, const T*, Worst<T>&)>& check_row);

}  // namespace quiver::apps::bench

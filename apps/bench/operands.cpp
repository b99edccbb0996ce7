// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/operands.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr std::int64_t align_rows = 16;

}  // namespace

Sets::Sets(const Case& c, double row_bytes, double least_bytes)
    : rows(c.rows), gap(c.ld_extra), stride((c.rows + align_rows - 1) / align_rows * align_rows) {
    const double set_bytes = row_bytes * static_cast<double>(stride);
    count =
        std::max(static_cast<std::int64_t>(std::ceil(least_bytes / set_bytes)), std::int64_t{1});
}

template <class T>
BlockVector<T> make_block(Context& ctx, std::int64_t rows, int cols) {
    return BlockVector<T>(ctx, RowMap::by_rows(ctx.comm(), rows), cols);
}

template <class T>
std::vector<T> to_host(Context& ctx, BlockView<const T> block) {
    std::vector<T> host(static_cast<std::size_t>(block.rows) *
                        static_cast<std::size_t>(block.cols));
    copy(ctx, block, BlockView<T>(host.data(), block.rows, block.cols, block.cols));
    return host;
}

template <class T>
PeriodicBlock<T>::PeriodicBlock(Context& ctx, const Sets& sets, int cols, std::uint64_t seed)
    : ctx_(ctx),
      sets_(sets),
      cols_(cols),
      seed_(seed),
      block_(make_block<T>(ctx, sets.stride * sets.count, cols + sets.gap)),
      period_(static_cast<std::size_t>(std::min(period, block_.rows())) *
              static_cast<std::size_t>(cols)) {
    fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()),
         block_.view().columns(cols, sets.gap));
    refill();
    Context host;
    fill_random(host, seed, 0, 0,
                BlockView<T>(period_.data(), std::min(period, block_.rows()), cols, cols));
}

template <class T>
void PeriodicBlock<T>::refill() {
    refill(all());
}

/// Fills one period with random numbers, then doubles the number of filled rows by copies.
template <class T>
void PeriodicBlock<T>::refill(BlockView<T> other) const {
    std::int64_t filled = std::min(period, other.rows);
    fill_random(ctx_, seed_, 0, 0, other.row_range(0, filled));
    while (filled < other.rows) {
        const std::int64_t count = std::min(filled, other.rows - filled);
        copy(ctx_, other.row_range(0, count), other.row_range(filled, count));
        filled += count;
    }
}

template <class T>
void Worst<T>::compare(T computed, const Wide<T>& exact, long double bound) {
    const long double distance = std::abs(wide(computed) - exact);
    const bool good = is_finite(computed) && std::isfinite(distance);
    const auto found = static_cast<double>(
        distance == 0 ? 0 : distance / std::max(bound, std::numeric_limits<long double>::min()));
    ratio = good ? std::max(ratio, found) : std::numeric_limits<double>::infinity();
}

template <class T>
double check_tall(Context& ctx, BlockView<const T> y, std::int64_t edge,
                  const std::function<void(std::int64_t, const T*, Worst<T>&)>& check_row) {
    std::vector<T> squares(static_cast<std::size_t>(y.cols));
    dots<T>(ctx, y, y, squares);
    if (!std::all_of(squares.begin(), squares.end(), [](T square) { return is_finite(square); })) {
        return std::numeric_limits<double>::infinity();
    }
    Worst<T> worst;
    const auto check_range = [&](std::int64_t begin, std::int64_t count) {
        const std::vector<T> rows = to_host(ctx, y.row_range(begin, count));
        for (std::int64_t i = 0; i < count; ++i) {
            check_row(begin + i, rows.data() + i * y.cols, worst);
        }
    };
    const std::int64_t most = std::min(edge, y.rows);
    check_range(0, most);
    check_range(y.rows - most, most);
    std::mt19937_64 generator(1);
    std::uniform_int_distribution<std::int64_t> any(0, y.rows - 1);
    for (int i = 0; i < 64; ++i) {
        check_range(any(generator), 1);
    }
    return worst.ratio;
}

#define QUIVER_INSTANTIATE(T)                                              \
    template BlockVector<T> make_block(Context&, std::int64_t, int);       \
    template std::vector<T> to_host(Context&, BlockView<const T>);         \
    template class PeriodicBlock<T>;                                       \
    template struct Worst<T>;                                              \
    template double check_tall(Context&, BlockView<const T>, std::int64_t, \
                               const std::function<void(std::int64_t, const T*, Worst<T>&)>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE
template BlockVector<half_t> make_block(Context&, std::int64_t, int);
template BlockVector<bfloat16_t> make_block(Context&, std::int64_t, int);

}  // namespace quiver::apps::bench

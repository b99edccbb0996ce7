// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/workload.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "apps/bench/stencil.hpp"
#include "apps/matrices/generators.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr std::int64_t period = 1021;
constexpr std::int64_t align_rows = 16;  // a set starts on a cache line whatever the width
constexpr std::uint64_t x_seed = 11;
constexpr std::uint64_t y_seed = 12;
constexpr std::uint64_t small_seed = 13;

template <class T>
using Wide = std::conditional_t<is_complex_v<T>, std::complex<long double>, long double>;

template <class T>
Wide<T> wide(T value) {
    return Wide<T>(value);
}

template <class T>
Wide<T> conjugate_wide(T value) {
    return wide(conjugate(value));
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

}  // namespace

/// The largest error over its bound; what is not finite counts as infinite.
template <class T>
struct Workload<T>::Worst {
    double ratio = 0;
    void compare(T computed, const Wide<T>& exact, long double bound) {
        const long double distance = std::abs(wide(computed) - exact);
        const bool good = is_finite(computed) && std::isfinite(distance);
        const auto found = static_cast<double>(
            distance == 0 ? 0
                          : distance / std::max(bound, std::numeric_limits<long double>::min()));
        ratio = good ? std::max(ratio, found) : std::numeric_limits<double>::infinity();
    }
};

template <class T>
BlockVector<T> Workload<T>::make_block(std::int64_t rows, int cols) const {
    return Block(ctx_, RowMap::by_rows(ctx_.comm(), rows), cols);
}

/// `block_rows` is all of them: one period at random, then copies of what is there, twice as many
/// rows each time.
template <class T>
void Workload<T>::fill_periodic(std::uint64_t seed, Block& block, std::vector<T>& first_period) {
    const BlockView<T> all = block.view();
    std::int64_t filled = std::min(period, all.rows);
    fill_random(ctx_, seed, 0, 0, all.row_range(0, filled));
    while (filled < all.rows) {
        const std::int64_t count = std::min(filled, all.rows - filled);
        copy(ctx_, all.row_range(0, count), all.row_range(filled, count));
        filled += count;
    }
    first_period.resize(static_cast<std::size_t>(period * all.cols));
    Context host;
    fill_random(host, seed, 0, 0, BlockView<T>(first_period.data(), period, all.cols, all.cols));
}

template <class T>
Workload<T>::Workload(Context& ctx, const Case& c, double least_bytes) : ctx_(ctx), case_(c) {
    const int x_cols = c.shape.m;
    const int y_cols = c.shape.n;
    stride_ = (c.rows + align_rows - 1) / align_rows * align_rows;
    const double set_bytes = static_cast<double>(sizeof(T)) * static_cast<double>(stride_) *
                             static_cast<double>(x_cols + y_cols);
    sets_ =
        std::max(static_cast<std::int64_t>(std::ceil(least_bytes / set_bytes)), std::int64_t{1});
    x_ = make_block(stride_ * sets_, x_cols);
    y_ = make_block(stride_ * sets_, y_cols);
    fill_periodic(x_seed, x_, x_period_);
    fill_periodic(y_seed, y_, y_period_);
    if (has_two_widths(c.kernel)) {
        small_ = make_block(x_cols, y_cols);
        fill_random(ctx_, small_seed, small_);
        small_host_.resize(static_cast<std::size_t>(x_cols) * static_cast<std::size_t>(y_cols));
        copy(ctx_, small_.view(), BlockView<T>(small_host_.data(), x_cols, y_cols, y_cols));
    }
    if (c.kernel == Kernel::dots) {
        result_.resize(static_cast<std::size_t>(y_cols));
    }
    if (c.kernel == Kernel::spmmv) {
        const Stencil grid(c.rows);
        matrix_.emplace(ctx_, generate<T>(ctx_.comm(),
                                          fmt::format("gen:laplace3d,nx={},ny={},nz={}", grid.nx,
                                                      grid.nx, grid.nz),
                                          ctx_.threads()));
    }
}

template <class T>
Operands<T> Workload<T>::operands(std::int64_t set) {
    return {x_.view().row_range(set * stride_, case_.rows),
            y_.view().row_range(set * stride_, case_.rows), small_.view(), result_,
            matrix_ ? &*matrix_ : nullptr};
}

template <class T>
void Workload<T>::reset() {
    const T nan(std::numeric_limits<real_t<T>>::quiet_NaN());
    switch (case_.kernel) {
        case Kernel::tsmttsm:
            fill(ctx_, nan, small_.view());
            return;
        case Kernel::axpby:
            fill_periodic(y_seed, y_, y_period_);
            return;
        case Kernel::dots:
            std::fill(result_.begin(), result_.end(), nan);
            return;
        default:
            fill(ctx_, nan, y_.view());
    }
}

/// tsmttsm and dots: sums over the rows.
template <class T>
void Workload<T>::check_small(std::int64_t first, Worst& worst) {
    const auto [m, n] = case_.shape;
    const bool columns_only = case_.kernel == Kernel::dots;
    std::vector<T> computed = result_;
    if (!columns_only) {
        computed.resize(small_host_.size());
        copy(ctx_, small_.view(), BlockView<T>(computed.data(), m, n, n));
    }
    std::vector<Wide<T>> exact(computed.size());
    std::vector<long double> x_norm(static_cast<std::size_t>(m));
    std::vector<long double> y_norm(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < std::min(period, case_.rows); ++p) {
        // Row p of the set and every period-th one after it.
        const auto times = static_cast<long double>((case_.rows - p + period - 1) / period);
        const std::int64_t row = (first + p) % period;
        const T* x = x_period_.data() + row * m;
        const T* y = y_period_.data() + row * n;
        for (int i = 0; i < m; ++i) {
            x_norm[static_cast<std::size_t>(i)] += times * norm_squared(x[i]);
            const Wide<T> factor = conjugate_wide(x[i]) * times;
            for (int j = columns_only ? i : 0; j < (columns_only ? i + 1 : n); ++j) {
                exact[static_cast<std::size_t>(columns_only ? j : i * n + j)] +=
                    factor * wide(y[j]);
            }
        }
        for (int j = 0; j < n; ++j) {
            y_norm[static_cast<std::size_t>(j)] += times * norm_squared(y[j]);
        }
    }
    const long double factor = rounding<T>(static_cast<double>(case_.rows));
    for (std::size_t e = 0; e < exact.size(); ++e) {
        const std::size_t i = columns_only ? e : e / static_cast<std::size_t>(n);
        const std::size_t j = columns_only ? e : e % static_cast<std::size_t>(n);
        worst.compare(computed[e], exact[e], factor * std::sqrt(x_norm[i] * y_norm[j]));
    }
}

/// One row of tsmm, axpby and spmmv. `first` is the row of X at which the set starts.
template <class T>
void Workload<T>::check_row(std::int64_t first, std::int64_t row, const T* computed,
                            std::int64_t calls, Worst& worst) const {
    const auto [m, n] = case_.shape;
    const auto x_row = [&](std::int64_t r) { return x_period_.data() + (first + r) % period * m; };
    const T* x = x_row(row);
    if (case_.kernel == Kernel::tsmm) {
        const long double factor = rounding<T>(m);
        for (int j = 0; j < n; ++j) {
            Wide<T> exact = 0;
            long double x_norm = 0;
            long double c_norm = 0;
            for (int i = 0; i < m; ++i) {
                const T c = small_host_[static_cast<std::size_t>(i * n + j)];
                exact += wide(x[i]) * wide(c);
                x_norm += norm_squared(x[i]);
                c_norm += norm_squared(c);
            }
            worst.compare(computed[j], exact, factor * std::sqrt(x_norm * c_norm));
        }
        return;
    }
    if (case_.kernel == Kernel::axpby) {
        // After k calls Y = beta^k Y0 + alpha (1 - beta^k) / (1 - beta) X; each call halves the
        // errors of those before it.
        const T* y0 = y_period_.data() + (first + row) % period * n;
        const long double decay = std::pow(static_cast<long double>(axpby_beta), calls);
        const long double share = axpby_alpha * (1 - decay) / (1 - axpby_beta);
        for (int j = 0; j < n; ++j) {
            const long double size =
                3 * std::sqrt(norm_squared(x[j])) + std::sqrt(norm_squared(y0[j]));
            worst.compare(computed[j], decay * wide(y0[j]) + share * wide(x[j]),
                          rounding<T>(2) * size);
        }
        return;
    }
    for (int j = 0; j < n; ++j) {
        Wide<T> exact = 0;
        long double a_norm = 0;
        long double x_norm = 0;
        Stencil(case_.rows).row_entries(row, [&](std::int64_t column, double value) {
            exact += wide(x_row(column)[j]) * static_cast<long double>(value);
            a_norm += value * value;
            x_norm += norm_squared(x_row(column)[j]);
        });
        worst.compare(computed[j], exact, rounding<T>(7) * std::sqrt(a_norm * x_norm));
    }
}

template <class T>
void Workload<T>::check_tall(std::int64_t first, std::int64_t calls, Worst& worst) {
    const auto [m, n] = case_.shape;
    const BlockView<T> y = operands(first / stride_).y;
    std::vector<T> squares(static_cast<std::size_t>(n));
    dots<T>(ctx_, y, y, squares);
    for (const T square : squares) {
        if (!is_finite(square)) {
            worst.ratio = std::numeric_limits<double>::infinity();
            return;
        }
    }
    const auto check_range = [&](std::int64_t begin, std::int64_t count) {
        std::vector<T> rows(static_cast<std::size_t>(count * n));
        copy(ctx_, y.row_range(begin, count), BlockView<T>(rows.data(), count, n, n));
        for (std::int64_t i = 0; i < count; ++i) {
            check_row(first, begin + i, rows.data() + i * n, calls, worst);
        }
    };
    // Some ten million multiply-adds at the most.
    constexpr std::int64_t work = std::int64_t{1} << 22;
    const std::int64_t edge =
        std::min(std::clamp(work / (std::int64_t{m} * n), std::int64_t{32}, period), case_.rows);
    check_range(0, edge);
    check_range(case_.rows - edge, edge);
    std::mt19937_64 generator(x_seed);
    std::uniform_int_distribution<std::int64_t> any(0, case_.rows - 1);
    for (int i = 0; i < 64; ++i) {
        check_range(any(generator), 1);
    }
}

template <class T>
double Workload<T>::error(std::int64_t set, std::int64_t calls) {
    Worst worst;
    ctx_.synchronize();
    if (case_.kernel == Kernel::tsmttsm || case_.kernel == Kernel::dots) {
        check_small(set * stride_, worst);
    } else {
        check_tall(set * stride_, calls, worst);
    }
    return worst.ratio;
}

template class Workload<float>;
template class Workload<double>;
template class Workload<std::complex<float>>;
template class Workload<std::complex<double>>;

}  // namespace quiver::apps::bench

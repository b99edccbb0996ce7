// SPDX-License-Identifier: BSD-3-Clause
// The comparison of one sparse product with dense sums in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"

namespace quiver::test {

inline constexpr double poison = -101;
inline const double nan = std::numeric_limits<double>::quiet_NaN();

inline std::complex<double> random_value(std::mt19937_64& generator, bool integers) {
    const auto draw = [&] {
        if (integers) {
            return static_cast<double>(static_cast<int>(generator() % 9) - 4);
        }
        // A number of 20 bits, exact in single precision.
        return static_cast<double>(generator() % (1U << 20)) / (1U << 19) - 1;
    };
    const double real = draw();
    return {real, draw()};
}

/// A global rows x cols block in row-major order, the same on all ranks.
template <class T>
std::vector<T> random_block(std::mt19937_64& generator, std::int64_t rows, int cols,
                            bool integers) {
    std::vector<T> block(static_cast<std::size_t>(rows * cols));
    for (T& element : block) {
        element = narrow<T>(random_value(generator, integers));
    }
    return block;
}

/// This rank's rows of a global block inside a wider one, with `filler` around it.
template <class T>
class PaddedBlock {
  public:
    static constexpr int left = 1;
    static constexpr int right = 2;

    PaddedBlock(Context& ctx, const RowMap& map, int width, const std::vector<T>& global, T filler)
        : ctx_(ctx),
          width_(width),
          block_(ctx, map, width + left + right),
          host_(static_cast<std::size_t>(map.local_rows()) *
                    static_cast<std::size_t>(width + left + right),
                filler) {
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            for (int j = 0; j < width; ++j) {
                at(i, left + j) =
                    global[static_cast<std::size_t>((map.first_row() + i) * width + j)];
            }
        }
        copy(ctx_, BlockView<const T>(host_view()), block_.view());
    }
    BlockView<T> view() { return block_.columns(left, width_); }
    /// An element of the block at the time of the last download().
    T operator()(std::int64_t i, int j) { return at(i, left + j); }
    /// Copies the block to the host. Returns true if the filler is unchanged.
    bool download(T filler) {
        copy(ctx_, BlockView<const T>(block_.view()), host_view());
        for (std::int64_t i = 0; i < block_.rows(); ++i) {
            for (const int j : {0, left + width_, left + width_ + 1}) {
                if (std::memcmp(&at(i, j), &filler, sizeof(T)) != 0) {
                    return false;
                }
            }
        }
        return true;
    }
    const std::vector<T>& bytes() const { return host_; }

  private:
    BlockView<T> host_view() {
        const int cols = width_ + left + right;
        return {host_.data(), block_.rows(), cols, cols, Place::host};
    }
    T& at(std::int64_t i, int j) {
        return host_[static_cast<std::size_t>(i * (width_ + left + right) + j)];
    }
    Context& ctx_;
    int width_;
    BlockVector<T> block_;
    std::vector<T> host_;
};

template <class T>
struct Case {
    int width = 1;
    T alpha = T(1);
    T beta = T(0);
    int shifts = 0;  // 0: none, 1: one for all columns, 2: one per column
    bool yy = false;
    bool xy = false;
    bool xx = false;
};

/// The dots of a rank's rows, and the sums of the sizes of their terms.
struct LocalDots {
    std::vector<Wide> sum;
    std::vector<double> size;

    explicit LocalDots(int width)
        : sum(static_cast<std::size_t>(width)), size(static_cast<std::size_t>(width)) {}
    void add(int j, Wide left, Wide right) {
        sum[static_cast<std::size_t>(j)] += std::conj(left) * right;
        size[static_cast<std::size_t>(j)] += static_cast<double>(std::abs(left) * std::abs(right));
    }
};

/// Compares dots over all `rows` with the sums over the ranks. Collective.
template <class T>
void check_dots(const Comm& comm, const std::vector<T>& found, const LocalDots& local,
                std::int64_t rows, bool integers) {
    std::vector<std::complex<double>> sums;
    for (std::size_t j = 0; j < found.size(); ++j) {
        sums.emplace_back(static_cast<double>(local.sum[j].real()),
                          static_cast<double>(local.sum[j].imag()));
        sums.emplace_back(local.size[j]);
    }
    comm.sum(std::span<std::complex<double>>(sums));
    const long double eps = epsilon_v<T> + epsilon_v<double>;
    for (std::size_t j = 0; j < found.size(); ++j) {
        const Wide expected(sums[2 * j].real(), sums[2 * j].imag());
        const long double bound =
            4 * eps * (std::sqrt(static_cast<long double>(rows)) + 2) * sums[2 * j + 1].real();
        EXPECT_LE(std::abs(widen(found[j]) - expected), integers ? 0 : bound)
            << "dot of column " << j;
    }
}

/// Row `row` of a matrix times a column, the sum of the sizes of its terms, and their number
/// plus 1.
struct RowProduct {
    Wide sum = 0;
    long double size = 0;
    long double terms = 1;

    template <class At>
    RowProduct(const Dense& dense, std::int64_t row, const At& x_at) {
        for (std::int64_t c = 0; c < dense.cols; ++c) {
            if (dense(row, c) != 0.0) {
                add(Wide(dense(row, c).real(), dense(row, c).imag()), x_at(c));
                ++terms;
            }
        }
    }
    void add(Wide entry, Wide x) {
        sum += entry * x;
        size += std::abs(entry) * std::abs(x);
    }
};

/// Compares all results of one product of a matrix of S and blocks of T with the oracle. With
/// integers they must be exact.
template <class T, class S>
void check_block_product(Context& ctx, SparseMatrix<S>& a, const Dense& dense,
                         std::mt19937_64& generator, const Case<T>& test, bool integers) {
    const int width = test.width;
    const RowMap& map = a.range_map();
    const RowMap& domain = a.domain_map();
    const std::vector<T> x_global = random_block<T>(generator, dense.cols, width, integers);
    std::vector<T> y_global = random_block<T>(generator, dense.rows, width, integers);
    std::vector<T> shifts = random_block<T>(
        generator, 1, test.shifts == 0 ? 0 : (test.shifts == 1 ? 1 : width), integers);
    if constexpr (is_complex_v<T> && !is_complex_v<S>) {
        std::transform(shifts.begin(), shifts.end(), shifts.begin(),
                       [](T shift) { return T(shift.real()); });
    }
    if (test.beta == T(0)) {
        std::fill(y_global.begin(), y_global.end(), T(static_cast<real_t<T>>(nan)));
    }
    PaddedBlock<T> x(ctx, domain, width, x_global, T(static_cast<real_t<T>>(nan)));
    PaddedBlock<T> y(ctx, map, width, y_global, T(poison));
    const T untouched(12345);
    std::vector<T> yy(test.yy ? static_cast<std::size_t>(width) : 0, untouched);
    std::vector<T> xy(test.xy ? static_cast<std::size_t>(width) : 0, untouched);
    std::vector<T> xx(test.xx ? static_cast<std::size_t>(width) : 0, untouched);
    spmmv(ctx, a, x.view(), y.view(), {test.alpha, test.beta, shifts, yy, xy, xx});
    EXPECT_TRUE(y.download(T(poison))) << "padding of Y was written";
    std::string first_wrong;  // no early return: the sums below are collective

    LocalDots local_yy(width), local_xy(width), local_xx(width);
    for (std::int64_t i = 0; i < map.local_rows(); ++i) {
        const std::int64_t row = map.first_row() + i;
        for (int j = 0; j < width; ++j) {
            const auto x_at = [&](std::int64_t r) {
                return widen(x_global[static_cast<std::size_t>(r * width + j)]);
            };
            RowProduct product(dense, row, x_at);
            if (!shifts.empty()) {
                const auto which = shifts.size() == 1 ? 0 : static_cast<std::size_t>(j);
                product.add(-widen(shifts[which]), x_at(row));
            }
            const Wide alpha = widen(test.alpha);
            Wide expected = alpha * product.sum;
            long double bound = (std::sqrt(product.terms) + 2) * std::abs(alpha) * product.size;
            if (test.beta != T(0)) {
                const Wide old =
                    widen(test.beta) * widen(y_global[static_cast<std::size_t>(row * width + j)]);
                expected += old;
                bound += 2 * std::abs(old);
            }
            const Wide found = widen(y(i, j));
            const long double allowed = integers ? 0 : 4 * epsilon_v<T> * bound;
            if (first_wrong.empty() && !(std::abs(found - expected) <= allowed)) {
                std::ostringstream text;
                text << "row " << row << ", column " << j << ", width " << width << ": " << found
                     << " instead of " << expected;
                first_wrong = text.str();
            }
            local_yy.add(j, found, found);
            if (test.xy || test.xx) {
                local_xy.add(j, x_at(row), found);
                local_xx.add(j, x_at(row), x_at(row));
            }
        }
    }
    EXPECT_EQ(first_wrong, "");
    check_dots(ctx.comm(), yy, local_yy, dense.rows, integers);
    check_dots(ctx.comm(), xy, local_xy, dense.rows, integers);
    check_dots(ctx.comm(), xx, local_xx, dense.rows, integers);
}

template <class T>
void check_product(Context& ctx, SparseMatrix<T>& a, const Dense& dense, std::mt19937_64& generator,
                   const std::type_identity_t<Case<T>>& test, bool integers) {
    check_block_product<T, T>(ctx, a, dense, generator, test, integers);
}

}  // namespace quiver::test

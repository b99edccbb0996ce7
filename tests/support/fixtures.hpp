// SPDX-License-Identifier: BSD-3-Clause
// Blocks for tests. Every rank has the global values, and a block with its own rows in poisoned
// memory of the place under test, with any stride and offset.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {

using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;

struct ScalarName {
    template <class T>
    static std::string GetName(int) {
        return std::string(1, letter(dtype_v<T>));
    }
};

inline const std::vector<int>& all_widths() {
    static const std::vector<int> widths{1,  2,  3,  4,  5,  7,  8,  11, 16,
                                         17, 31, 32, 33, 48, 63, 64, 65, 100};
    return widths;
}

/// A NaN with a payload that identifies it.
template <class T>
T poison() {
    if constexpr (std::is_same_v<T, float>) {
        return std::bit_cast<float>(0x7fc5a5a5u);
    } else if constexpr (std::is_same_v<T, double>) {
        return std::bit_cast<double>(std::uint64_t{0x7ff85a5a5a5a5a5a});
    } else if constexpr (std::is_same_v<T, half_t> || std::is_same_v<T, bfloat16_t>) {
        return T{0x7fd5};
    } else {
        return T(poison<real_t<T>>(), poison<real_t<T>>());
    }
}

template <class T>
bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// A fixed coefficient other than 0 and 1.
template <class T>
T other_coefficient() {
    if constexpr (is_complex_v<T>) {
        return T(real_t<T>(0.75), real_t<T>(-0.5));
    } else {
        return T(-1.25);
    }
}

/// A random number with real and imaginary part in [-1, 1).
template <class T>
T random_value(std::mt19937_64& generator) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    if constexpr (is_complex_v<T>) {
        const double real = uniform(generator);
        return T(static_cast<real_t<T>>(real), static_cast<real_t<T>>(uniform(generator)));
    } else {
        return static_cast<T>(uniform(generator));
    }
}

/// A random number whose real and imaginary parts are integers in [-3, 3], so that sums of products
/// are exact in any order.
template <class T>
T integer_value(std::mt19937_64& generator) {
    std::uniform_int_distribution<int> uniform(-3, 3);
    if constexpr (is_complex_v<T>) {
        const int real = uniform(generator);
        return T(static_cast<real_t<T>>(real), static_cast<real_t<T>>(uniform(generator)));
    } else {
        return static_cast<T>(uniform(generator));
    }
}

/// A matrix that every rank has in full.
template <class T>
struct Global {
    std::int64_t rows = 0;
    int cols = 0;
    std::vector<T> values;

    Global(std::int64_t rows_, int cols_)
        : rows(rows_),
          cols(cols_),
          values(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(cols_)) {}
    template <class Make>
    Global(std::int64_t rows_, int cols_, Make&& make) : Global(rows_, cols_) {
        std::generate(values.begin(), values.end(), make);
    }
    T& operator()(std::int64_t i, int j) { return values[index(i, j)]; }
    const T& operator()(std::int64_t i, int j) const { return values[index(i, j)]; }
    long double column_norm(int j) const {
        long double sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            sum += static_cast<long double>(abs_squared((*this)(i, j)));
        }
        return std::sqrt(sum);
    }
    long double row_norm(std::int64_t i) const {
        long double sum = 0;
        for (int j = 0; j < cols; ++j) {
            sum += static_cast<long double>(abs_squared((*this)(i, j)));
        }
        return std::sqrt(sum);
    }

  private:
    std::size_t index(std::int64_t i, int j) const {
        return static_cast<std::size_t>(i) * static_cast<std::size_t>(cols) +
               static_cast<std::size_t>(j);
    }
};

template <class T>
Global<T> random_global(std::mt19937_64& generator, std::int64_t rows, int cols) {
    return Global<T>(rows, cols, [&] { return random_value<T>(generator); });
}
template <class T>
Global<T> integer_global(std::mt19937_64& generator, std::int64_t rows, int cols) {
    return Global<T>(rows, cols, [&] { return integer_value<T>(generator); });
}
template <class T>
Global<T> poisoned_global(std::int64_t rows, int cols) {
    return Global<T>(rows, cols, [] { return poison<T>(); });
}

/// Distributes the rows unequally. If there are several ranks, rank 1 has no rows.
inline RowMap uneven_map(const Context& ctx, std::int64_t global_rows) {
    std::vector<double> weights;
    weights.reserve(static_cast<std::size_t>(ctx.comm().size()));
    for (int rank = 0; rank < ctx.comm().size(); ++rank) {
        weights.push_back(rank == 1 ? 0 : rank + 1);
    }
    return RowMap::by_rows(ctx.comm(), global_rows, weights);
}

/// The number of elements after each row (padding) and before the first row (offset).
struct Layout {
    int padding = 0;
    int offset = 0;
};
inline constexpr Layout layouts[] = {{0, 0}, {3, 0}, {5, 1}};
inline Layout any_layout(std::mt19937_64& generator) {
    return layouts[generator() % std::size(layouts)];
}

/// A block in poisoned memory of a place. `mirror_` is the initial content of the memory, padding
/// included.
template <class T>
class TestBlock {
  public:
    /// Rows first_row .. of `values`.
    TestBlock(Context& ctx, const Global<T>& values, std::int64_t first_row, std::int64_t rows,
              Layout layout, Place place)
        : ctx_(&ctx),
          rows_(rows),
          cols_(values.cols),
          ld_(values.cols + layout.padding),
          offset_(layout.offset),
          place_(place),
          mirror_(static_cast<std::size_t>(offset_ + rows * ld_ + 7), poison<T>()),
          memory_(ctx.allocate(memory_kind(place), mirror_.size() * sizeof(T), "test block")) {
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int j = 0; j < cols_; ++j) {
                mirror_[index(i, j)] = values(first_row + i, j);
            }
        }
        copy(ctx, BlockView<const T>(mirror_.data(), 1, length(), length()),
             BlockView<T>(memory_.template as<T>(), 1, length(), length(), place));
    }
    /// All of a small matrix.
    TestBlock(Context& ctx, const Global<T>& values, Layout layout, Place place)
        : TestBlock(ctx, values, 0, values.rows, layout, place) {}
    /// This rank's rows in the place of the Context.
    TestBlock(Context& ctx, const Global<T>& values, const RowMap& map, Layout layout)
        : TestBlock(ctx, values, map.first_row(), map.local_rows(), layout, ctx.place()) {}

    BlockView<T> view() { return {memory_.template as<T>() + offset_, rows_, cols_, ld_, place_}; }
    /// A view with the same start and stride but another width, at most the stride.
    BlockView<T> view(int cols) {
        return {memory_.template as<T>() + offset_, rows_, cols, ld_, place_};
    }
    BlockView<const T> const_view() { return view(); }

    /// The current values of columns 0 .. cols - 1; checks that no other memory has changed.
    Global<T> result() { return result(cols_); }
    Global<T> result(int cols) {
        const std::vector<T> now = download();
        Global<T> values(rows_, cols);
        std::vector<T> outside = now;
        for (std::int64_t i = 0; i < rows_; ++i) {
            for (int j = 0; j < cols; ++j) {
                values(i, j) = now[index(i, j)];
                outside[index(i, j)] = mirror_[index(i, j)];
            }
        }
        EXPECT_EQ(std::memcmp(outside.data(), mirror_.data(), outside.size() * sizeof(T)), 0)
            << "an element outside the result has changed";
        return values;
    }
    void expect_unchanged() {
        const std::vector<T> now = download();
        EXPECT_EQ(std::memcmp(now.data(), mirror_.data(), now.size() * sizeof(T)), 0)
            << "an input has changed";
    }

  private:
    int length() const { return static_cast<int>(mirror_.size()); }
    std::size_t index(std::int64_t i, int j) const {
        return static_cast<std::size_t>(offset_ + i * ld_ + j);
    }
    std::vector<T> download() {
        std::vector<T> now(mirror_.size());
        copy(*ctx_, BlockView<const T>(memory_.template as<T>(), 1, length(), length(), place_),
             BlockView<T>(now.data(), 1, length(), length()));
        return now;
    }

    Context* ctx_;
    std::int64_t rows_;
    int cols_;
    std::int64_t ld_;
    std::int64_t offset_;
    Place place_;
    std::vector<T> mirror_;
    Buffer memory_;
};

/// Values in the place of a Context.
template <class V>
class PlacedArray {
  public:
    PlacedArray(Context& ctx, std::vector<V> values)
        : ctx_(&ctx),
          size_(values.size()),
          memory_(ctx.allocate(memory_kind(ctx.place()), std::span(values).size_bytes(),
                               "test array")) {
        move(memory_.template as<V>(), values.data());
    }
    std::span<V> span() { return {memory_.template as<V>(), size_}; }
    std::vector<V> values() {
        std::vector<V> now(size_);
        move(now.data(), memory_.template as<V>());
        return now;
    }

  private:
    void move(V* to, const V* from) {
        if (size_ == 0) {
            return;
        }
        if (ctx_->place() == Place::host) {
            std::copy_n(from, size_, to);
        } else {
            device::copy(to, from, std::span(from, size_).size_bytes(), ctx_->stream());
            ctx_->synchronize();
        }
    }
    Context* ctx_;
    std::size_t size_;
    Buffer memory_;
};

template <class T>
void expect_same_bits(const Global<T>& actual, const Global<T>& expected) {
    ASSERT_EQ(actual.values.size(), expected.values.size());
    EXPECT_TRUE(actual.values.empty() || std::memcmp(actual.values.data(), expected.values.data(),
                                                     actual.values.size() * sizeof(T)) == 0);
}

/// Compares numbers, so that -0 equals 0.
template <class T>
void expect_equal(const Global<T>& actual, const Global<T>& expected) {
    ASSERT_EQ(actual.values.size(), expected.values.size());
    EXPECT_TRUE(actual.values == expected.values);
}

}  // namespace quiver::test

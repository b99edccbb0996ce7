// SPDX-License-Identifier: BSD-3-Clause
// Tests the Gram matrix in sums of two doubles.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/mixed.hpp"
#include "kernels/reference/reference_sums.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

__extension__ using Int128 = __int128;

class GramTwofold : public ::testing::Test {
  protected:
    struct Sums {
        SmallMatrix<double> high, low;
    };

    Sums run(const Global<double>& x, Layout layout) {
        SCOPED_TRACE(x.rows);
        TestBlock<double> block(ctx, x, uneven_map(ctx, x.rows), layout);
        Sums sums{SmallMatrix<double>(x.cols, x.cols), SmallMatrix<double>(x.cols, x.cols)};
        std::fill_n(sums.high.data(), x.cols * x.cols, poison<double>());
        std::fill_n(sums.low.data(), x.cols * x.cols, poison<double>());
        gram_twofold(ctx, block.const_view(), sums.high.view(), sums.low.view());
        block.expect_unchanged();
        return sums;
    }
    Global<double> random(std::int64_t rows, int n) {
        return Global<double>(rows, n, [&] { return random_value<double>(generator); });
    }
    /// Compares with sums in twice the precision of long double, within the bounds of
    /// kernels/mixed.hpp.
    void check(const Global<double>& x, Layout layout) {
        SCOPED_TRACE(::testing::Message() << x.rows << " x " << x.cols << ", padding "
                                          << layout.padding << ", offset " << layout.offset);
        const int n = x.cols;
        const Sums sums = run(x, layout);
        SmallMatrix<double> exact(2 * n, n);
        reference::gram_twofold(GramTwofoldArgs{x.rows, n, x.values.data(), n, exact.data()});
        const bool rounds = ctx.place() == Place::device && n <= 64;
        const auto rows = static_cast<long double>(x.rows);
        std::vector<long double> norm;
        std::vector<long double> error;
        for (int j = 0; j < n; ++j) {
            long double most = 0;
            for (std::int64_t i = 0; i < x.rows; ++i) {
                most = std::max(most, std::abs(static_cast<long double>(x(i, j))));
            }
            norm.push_back(x.column_norm(j));
            error.push_back(rounds ? std::sqrt(rows) * 0x1p-62L * most : 0);
        }
        const long double of_sums = rounds ? 64 * 64 * 0x1p-104L : (rows + 8) * 0x1p-104L;
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                const auto at_i = static_cast<std::size_t>(i);
                const auto at_j = static_cast<std::size_t>(j);
                const long double difference =
                    (static_cast<long double>(sums.high(i, j)) - exact(i, j)) +
                    (static_cast<long double>(sums.low(i, j)) - exact(n + i, j));
                const long double bound = of_sums * norm[at_i] * norm[at_j] +
                                          norm[at_i] * error[at_j] + error[at_i] * norm[at_j] +
                                          error[at_i] * error[at_j] + 0x1p-1060L;
                ASSERT_LE(std::abs(difference), bound) << i << ", " << j;
                ASSERT_LE(std::abs(sums.low(i, j)), 0x1p-53 * std::abs(sums.high(i, j)));
                ASSERT_EQ(sums.high(i, j), sums.high(j, i));
                ASSERT_EQ(sums.low(i, j), sums.low(j, i));
            }
        }
    }
    /// Integers below 2^40, times a power of two for each column: the sums fit two doubles, and
    /// must be exact.
    void expect_exact(std::int64_t rows, int n, Layout layout) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << n);
        std::uniform_int_distribution<std::int64_t> integer(-(std::int64_t{1} << 40),
                                                            std::int64_t{1} << 40);
        std::uniform_int_distribution<int> exponent(-400, 400);
        std::vector<std::int64_t> given(static_cast<std::size_t>(rows * n));
        std::vector<int> scale(static_cast<std::size_t>(n));
        std::generate(given.begin(), given.end(), [&] { return integer(generator); });
        std::generate(scale.begin(), scale.end(), [&] { return exponent(generator); });
        Global<double> x(rows, n);
        std::vector<Int128> exact(static_cast<std::size_t>(n * n));
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t* const row = given.data() + r * n;
            for (int i = 0; i < n; ++i) {
                x(r, i) =
                    std::ldexp(static_cast<double>(row[i]), scale[static_cast<std::size_t>(i)]);
                for (int j = i; j < n; ++j) {
                    exact[static_cast<std::size_t>(i * n + j)] += Int128{row[i]} * row[j];
                }
            }
        }
        const Sums sums = run(x, layout);
        for (int i = 0; i < n; ++i) {
            for (int j = i; j < n; ++j) {
                const int both =
                    scale[static_cast<std::size_t>(i)] + scale[static_cast<std::size_t>(j)];
                const auto actual = static_cast<Int128>(std::ldexp(sums.high(i, j), -both)) +
                                    static_cast<Int128>(std::ldexp(sums.low(i, j), -both));
                ASSERT_TRUE(actual == exact[static_cast<std::size_t>(i * n + j)])
                    << i << ", " << j << ": " << sums.high(i, j) << " + " << sums.low(i, j);
            }
        }
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};

TEST_F(GramTwofold, MatchesTheReferenceAtEveryWidth) {
    int number = 0;
    for (const int n : all_widths()) {
        for (const std::int64_t rows : {1, 31, 333}) {
            check(random(rows, n), layouts[number % 3]);
            number += case_step();
        }
    }
}

TEST_F(GramTwofold, MatchesTheReferenceForGradedRowsAndColumns) {
    std::uniform_int_distribution<int> columns(1, 64);
    std::uniform_int_distribution<int> rows(1, 700);
    std::uniform_int_distribution<int> exponent(-120, 120);
    for (int k = 0; k < 12; k += case_step()) {
        Global<double> x = random(rows(generator), columns(generator));
        for (std::int64_t i = 0; i < x.rows; ++i) {
            const int row_exponent = k % 2 == 0 ? 0 : exponent(generator) / 3;
            for (int j = 0; j < x.cols; ++j) {
                x(i, j) = std::ldexp(x(i, j), row_exponent + (k % 3 == 0 ? 0 : 7 * j - 200));
            }
        }
        check(x, any_layout(generator));
    }
}

TEST_F(GramTwofold, IsExactForIntegers) {
    expect_exact(0, 3, layouts[0]);
    expect_exact(1, 1, layouts[0]);
    std::uniform_int_distribution<int> columns(1, 64);
    std::uniform_int_distribution<int> rows(2, 900);
    for (int k = 0; k < 12; k += case_step()) {
        expect_exact(rows(generator), columns(generator), any_layout(generator));
    }
    if (ctx.place() == Place::device) {
        // Several groups of rows for each thread block.
        expect_exact(30000, 64, layouts[0]);
        expect_exact(30000, 49, layouts[1]);
        expect_exact(60000, 32, layouts[2]);
        expect_exact(120000, 13, layouts[0]);
        expect_exact(200000, 5, layouts[2]);
    }
}

/// Columns so large or small that their squares leave the range of double.
TEST_F(GramTwofold, ScalesColumnsExactly) {
    for (const int n : {4, 20}) {
        Global<double> x = random(200, n);
        for (std::int64_t i = 0; i < x.rows; ++i) {
            x(i, 0) *= 1e300;
            x(i, 1) *= 1e-310;
            x(i, 2) = 0;
            x(i, 3) *= 1e-290;
        }
        const Sums sums = run(x, layouts[1]);
        EXPECT_TRUE(std::isinf(sums.high(0, 0)) || std::isnan(sums.high(0, 0)));
        EXPECT_EQ(sums.high(1, 1), 0);
        for (int j = 0; j < n; ++j) {
            EXPECT_EQ(sums.high(2, j), 0) << j;
            EXPECT_EQ(sums.low(j, 2), 0) << j;
        }
        for (const int j : {1, 3}) {
            long double exact = 0;
            long double squares = 0;
            for (std::int64_t i = 0; i < x.rows; ++i) {
                exact += static_cast<long double>(x(i, 0)) * x(i, j);
                squares += static_cast<long double>(x(i, j)) * x(i, j);
            }
            EXPECT_LE(std::abs(sums.high(0, j) - exact),
                      0x1p-50L * x.column_norm(0) * std::sqrt(squares))
                << j;
            EXPECT_NE(sums.high(0, j), 0);
        }
    }
}

TEST_F(GramTwofold, KeepsNanAndInfinityInTheirColumns) {
    for (const int n : {3, 8, 33, 64}) {
        Global<double> x = random(400, n);
        x(399, 1) = poison<double>();
        x(7, n - 1) = -std::numeric_limits<double>::infinity();
        const Sums sums = run(x, layouts[0]);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                const bool finite = i != 1 && j != 1 && i != n - 1 && j != n - 1;
                EXPECT_EQ(std::isfinite(sums.high(i, j)), finite) << i << ", " << j;
            }
        }
    }
}

TEST_F(GramTwofold, RefusesWrongShapes) {
    BlockVector<double> x(ctx, RowMap::by_rows(ctx.comm(), 10), 3);
    const auto call = [&](int rows, int cols) {
        SmallMatrix<double> high(rows, cols);
        SmallMatrix<double> low(3, 3);
        gram_twofold(ctx, x.view(), high.view(), low.view());
    };
    EXPECT_THROW(call(3, 4), ShapeError);
    EXPECT_THROW(call(2, 3), ShapeError);
    EXPECT_NO_THROW(call(3, 3));
}

}  // namespace
}  // namespace quiver::test

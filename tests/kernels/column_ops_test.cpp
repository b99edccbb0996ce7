// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/column_ops.hpp"

#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
class ColumnOps : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const T coefficients[3] = {T(0), T(1), other_coefficient<T>()};
    const std::int64_t row_counts[6] = {0, 1, 31, 32, 33, 257};

    TestBlock<T> block(const Global<T>& values, Layout layout = layouts[1]) {
        return TestBlock<T>(ctx, values, layout, ctx.place());
    }

    /// Compares `actual` with alpha_j x_j + beta_j old_j for every column j.
    void expect_axpby(const std::vector<T>& alpha, const Global<T>& x, const std::vector<T>& beta,
                      const Global<T>& old, const Global<T>& actual) {
        auto expected = old;
        reference::axpby<wide_t<T>>(AxpbyArgs<T>{x.rows, x.cols, T(0), alpha.data(),
                                                 x.values.data(), x.cols, T(0), beta.data(),
                                                 expected.values.data(), x.cols});
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int j = 0; j < x.cols; ++j) {
                const T a = alpha[static_cast<std::size_t>(j)];
                const T b = beta[static_cast<std::size_t>(j)];
                const long double bound = sum_bound(1, a, a == T(0) ? 0 : std::abs(x(i, j)), b,
                                                    b == T(0) ? 0 : std::abs(old(i, j)));
                const long double error =
                    std::abs(wide_t<T>(actual(i, j)) - wide_t<T>(expected(i, j)));
                ASSERT_TRUE(error <= bound) << "(" << i << ", " << j << "): " << actual(i, j)
                                            << " instead of " << expected(i, j);
            }
        }
    }

    /// Random values, but NaN in columns with a zero coefficient, which must not be read.
    Global<T> values_for(const std::vector<T>& coefficient, std::int64_t rows) {
        auto values = random_global<T>(generator, rows, static_cast<int>(coefficient.size()));
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int j = 0; j < values.cols; ++j) {
                if (coefficient[static_cast<std::size_t>(j)] == T(0)) {
                    values(i, j) = poison<T>();
                }
            }
        }
        return values;
    }

    std::vector<T> mixed_coefficients(int width, int shift) {
        std::vector<T> result;
        result.reserve(static_cast<std::size_t>(width));
        for (int j = 0; j < width; ++j) {
            result.push_back(j % 4 == 3 ? random_value<T>(generator)
                                        : coefficients[(j + shift) % 3]);
        }
        return result;
    }
};
TYPED_TEST_SUITE(ColumnOps, Scalars, ScalarName);

TYPED_TEST(ColumnOps, AxpbyWithScalarsMatchesTheReference) {
    using T = TypeParam;
    int row_count = 0;
    for (const int width : all_widths()) {
        for (int choice = 0; choice < 27; choice += case_step(), ++row_count) {
            const std::vector<T> alpha(static_cast<std::size_t>(width),
                                       this->coefficients[choice % 3]);
            const std::vector<T> beta(static_cast<std::size_t>(width),
                                      this->coefficients[choice / 3 % 3]);
            const auto rows = this->row_counts[row_count % 6];
            const auto x = this->values_for(alpha, rows);
            const auto old = this->values_for(beta, rows);
            auto x_block = this->block(x, layouts[choice / 9]);
            auto y_block = this->block(old, layouts[choice / 9]);

            axpby(this->ctx, alpha[0], x_block.view(), beta[0], y_block.view());

            x_block.expect_unchanged();
            this->expect_axpby(alpha, x, beta, old, y_block.result());
        }
    }
}

TYPED_TEST(ColumnOps, AxpbyByColumnsMatchesTheReference) {
    using T = TypeParam;
    int row_count = 0;
    for (const int width : all_widths()) {
        for (int choice = 0; choice < 9; ++choice, ++row_count) {
            const auto alpha = this->mixed_coefficients(width, choice);
            const auto beta = this->mixed_coefficients(width, choice / 3);
            const auto rows = this->row_counts[row_count % 6];
            const auto x = this->values_for(alpha, rows);
            const auto old = this->values_for(beta, rows);
            auto x_block = this->block(x, layouts[choice % 3]);
            auto y_block = this->block(old, layouts[(choice + row_count) % 3]);

            axpby(this->ctx, std::span<const T>(alpha), x_block.view(), std::span<const T>(beta),
                  y_block.view());

            x_block.expect_unchanged();
            this->expect_axpby(alpha, x, beta, old, y_block.result());
        }
    }
}

TYPED_TEST(ColumnOps, AxpbyTakesOneBlockTwice) {
    using T = TypeParam;
    const auto values = integer_global<T>(this->generator, 33, 5);
    auto block = this->block(values);
    axpby(this->ctx, T(2), block.view(), T(3), block.view());
    auto expected = values;
    for (T& value : expected.values) {
        value *= real_t<T>(5);
    }
    expect_equal(block.result(), expected);
}

TYPED_TEST(ColumnOps, ScaleScalesAndClearsAnyValues) {
    using T = TypeParam;
    for (const int width : all_widths()) {
        const auto alpha = this->mixed_coefficients(width, width);
        const std::vector<T> none(static_cast<std::size_t>(width), T(0));
        const auto x = this->values_for(alpha, 35);
        auto block = this->block(x, layouts[width % 3]);
        scale(this->ctx, std::span<const T>(alpha), block.view());
        this->expect_axpby(alpha, x, none, x, block.result());

        const auto y = random_global<T>(this->generator, 35, width);
        auto uniform = this->block(y, layouts[width % 3]);
        scale(this->ctx, other_coefficient<T>(), uniform.view());
        this->expect_axpby(std::vector<T>(static_cast<std::size_t>(width), other_coefficient<T>()),
                           y, none, y, uniform.result());

        auto cleared = this->block(poisoned_global<T>(35, width), layouts[width % 3]);
        scale(this->ctx, T(0), cleared.view());
        expect_equal(cleared.result(), Global<T>(35, width));
    }
}

TYPED_TEST(ColumnOps, DotsAndNormsMatchTheReference) {
    using T = TypeParam;
    int k = 0;
    for (const int width : all_widths()) {
        for (const std::int64_t rows : this->row_counts) {
            const Layout layout = layouts[++k % 3];
            const auto x = random_global<T>(this->generator, rows, width);
            const auto y = random_global<T>(this->generator, rows, width);
            const RowMap map = uneven_map(this->ctx, rows);
            TestBlock<T> x_block(this->ctx, x, map, layout);
            TestBlock<T> y_block(this->ctx, y, map, layouts[k / 3 % 3]);
            const auto size = static_cast<std::size_t>(width);
            std::vector<T> actual(size, poison<T>());
            std::vector<real_t<T>> lengths(size, poison<real_t<T>>());

            dots<T>(this->ctx, x_block.view(), y_block.view(), actual);
            norms(this->ctx, x_block.view(), std::span(lengths));

            x_block.expect_unchanged();
            y_block.expect_unchanged();
            std::vector<T> expected(size);
            reference::dots<wide_t<T>>(DotsArgs<T>{rows, width, x.values.data(), width,
                                                   y.values.data(), width, expected.data()});
            for (int j = 0; j < width; ++j) {
                const auto at = static_cast<std::size_t>(j);
                const long double norm = x.column_norm(j);
                const long double bound =
                    sum_bound(rows, T(1), norm * y.column_norm(j), T(0), 0.0L);
                const long double error = std::abs(wide_t<T>(actual[at]) - wide_t<T>(expected[at]));
                ASSERT_TRUE(error <= bound) << rows << " x " << width << ", column " << j;
                const long double norm_bound = sum_bound(rows, T(1), norm, T(0), 0.0L);
                ASSERT_TRUE(std::abs(static_cast<long double>(lengths[at]) - norm) <= norm_bound)
                    << rows << " x " << width << ", column " << j;
            }
        }
    }
}

TYPED_TEST(ColumnOps, DotsAreExactOnSmallIntegersAndRepeatable) {
    using T = TypeParam;
    for (const int width : {1, 3, 8, 33, 300}) {
        const auto x = integer_global<T>(this->generator, 2053, width);
        const auto y = integer_global<T>(this->generator, 2053, width);
        const RowMap map = uneven_map(this->ctx, 2053);
        TestBlock<T> x_block(this->ctx, x, map, layouts[width % 3]);
        TestBlock<T> y_block(this->ctx, y, map, layouts[0]);
        const auto size = static_cast<std::size_t>(width);
        std::vector<T> expected(size);
        reference::dots<wide_t<T>>(DotsArgs<T>{2053, width, x.values.data(), width, y.values.data(),
                                               width, expected.data()});
        std::vector<T> actual(size);
        dots<T>(this->ctx, x_block.view(), y_block.view(), actual);
        EXPECT_EQ(actual, expected);

        const auto random = random_global<T>(this->generator, 2053, width);
        TestBlock<T> random_block(this->ctx, random, map, layouts[width % 3]);
        std::vector<T> first(size);
        std::vector<T> again(size);
        dots<T>(this->ctx, random_block.view(), x_block.view(), first);
        for (int repeat = 0; repeat < 3; ++repeat) {
            dots<T>(this->ctx, random_block.view(), x_block.view(), again);
            ASSERT_EQ(std::memcmp(first.data(), again.data(), size * sizeof(T)), 0);
        }
    }
}

TYPED_TEST(ColumnOps, DotsMaySumThisRankOnly) {
    using T = TypeParam;
    const RowMap map = uneven_map(this->ctx, 77);
    TestBlock<T> ones(this->ctx, Global<T>(77, 2, [] { return T(1); }), map, layouts[1]);
    std::vector<T> result(2);
    dots<T>(this->ctx, ones.view(), ones.view(), result, Reduce::this_rank);
    EXPECT_EQ(result[1], T(static_cast<real_t<T>>(map.local_rows())));
    dots<T>(this->ctx, ones.view(), ones.view(), result);
    EXPECT_EQ(result[1], T(77));
}

TYPED_TEST(ColumnOps, ManyThreadsGiveTheSameValues) {
    using T = TypeParam;
    Context threads(Comm(MPI_COMM_WORLD), Device::host(5));
    const auto x = integer_global<T>(this->generator, 3001, 4);
    TestBlock<T> block(threads, x, layouts[0], Place::host);
    TestBlock<T> other(threads, x, layouts[1], Place::host);
    std::vector<T> expected(4);
    reference::dots<wide_t<T>>(
        DotsArgs<T>{3001, 4, x.values.data(), 4, x.values.data(), 4, expected.data()});
    std::vector<T> actual(4);
    dots<T>(threads, block.view(), other.view(), actual, Reduce::this_rank);
    EXPECT_EQ(actual, expected);

    axpby(threads, T(1), block.view(), T(-1), other.view());
    expect_equal(other.result(), Global<T>(3001, 4));
}

TYPED_TEST(ColumnOps, GatherColumnsSelectsRepeatsAndPermutes) {
    using T = TypeParam;
    for (const int width : all_widths()) {
        const auto x = random_global<T>(this->generator, 33, width);
        std::uniform_int_distribution<int> any(0, width - 1);
        for (const int count : {width, std::max(1, width / 2), width + 3}) {
            std::vector<int> source(static_cast<std::size_t>(count));
            std::generate(source.begin(), source.end(), [&] { return any(this->generator); });
            Global<T> expected(33, count);
            reference::gather_columns(GatherColumnsArgs<T>{33, width, count, x.values.data(), width,
                                                           source.data(), expected.values.data(),
                                                           count});
            auto x_block = this->block(x, layouts[count % 3]);
            auto y_block = this->block(poisoned_global<T>(33, count), layouts[width % 3]);
            gather_columns<T>(this->ctx, x_block.view(), source, y_block.view());
            x_block.expect_unchanged();
            expect_same_bits(y_block.result(), expected);

            // The padding of 5 has room for the three additional columns.
            auto in_place = this->block(x, layouts[2]);
            gather_columns<T>(this->ctx, in_place.view(), source, in_place.view(count));
            expect_same_bits(in_place.result(count), expected);
        }
    }
}

TYPED_TEST(ColumnOps, GatherColumnsReversesInPlace) {
    using T = TypeParam;
    const auto x = random_global<T>(this->generator, 257, 7);
    auto block = this->block(x, layouts[0]);
    std::vector<int> reversed(7);
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    gather_columns<T>(this->ctx, block.view(), reversed, block.view());
    gather_columns<T>(this->ctx, block.view(), reversed, block.view());
    expect_same_bits(block.result(), x);
}

TYPED_TEST(ColumnOps, GatherRowsSelectsAndRepeats) {
    using T = TypeParam;
    for (const int width : all_widths()) {
        const auto x = random_global<T>(this->generator, 33, width);
        std::uniform_int_distribution<std::int64_t> any(0, 32);
        for (const std::int64_t count : {0, 1, 20, 50}) {
            std::vector<std::int64_t> source(static_cast<std::size_t>(count));
            std::generate(source.begin(), source.end(), [&] { return any(this->generator); });
            Global<T> expected(count, width);
            for (std::int64_t i = 0; i < count; ++i) {
                for (int j = 0; j < width; ++j) {
                    expected(i, j) = x(source[static_cast<std::size_t>(i)], j);
                }
            }
            auto x_block = this->block(x, layouts[count % 3]);
            auto y_block = this->block(poisoned_global<T>(count, width), layouts[0]);
            gather_rows<T>(this->ctx, x_block.view(), source, y_block.view());
            x_block.expect_unchanged();
            expect_same_bits(y_block.result(), expected);
        }
    }
}

TYPED_TEST(ColumnOps, GatherRowsRejectsWhatDoesNotFit) {
    using T = TypeParam;
    auto x = this->block(Global<T>(5, 3));
    auto y = this->block(Global<T>(2, 3), layouts[0]);
    auto gaps = this->block(Global<T>(2, 3), layouts[1]);
    const auto gather = [&](std::vector<std::int64_t> source, BlockView<T> to) {
        gather_rows<T>(this->ctx, x.view(), source, to);
    };
    EXPECT_NO_THROW(gather({4, 0}, y.view()));
    EXPECT_THROW(gather({4}, y.view()), ShapeError);
    EXPECT_THROW(gather({4, 5}, y.view()), ShapeError);
    EXPECT_THROW(gather({-1, 0}, y.view()), ShapeError);
    EXPECT_THROW(gather({1, 0}, y.view(2)), ShapeError);
    EXPECT_THROW(gather({1, 0}, gaps.view()), ShapeError);
    EXPECT_THROW(gather({1, 0}, x.view().row_range(0, 2)), ShapeError);
}

TYPED_TEST(ColumnOps, FillFills) {
    using T = TypeParam;
    for (const int width : all_widths()) {
        auto block = this->block(poisoned_global<T>(31, width), layouts[width % 3]);
        fill(this->ctx, other_coefficient<T>(), block.view());
        expect_equal(block.result(), Global<T>(31, width, [] { return other_coefficient<T>(); }));
    }
}

TYPED_TEST(ColumnOps, BlocksWithoutColumnsOrRowsAreLegal) {
    using T = TypeParam;
    auto block = this->block(Global<T>(12, 0));
    auto rows = this->block(Global<T>(0, 3));
    const std::vector<T> three(3, T(1));
    axpby(this->ctx, T(1), block.view(), T(1), block.view());
    axpby(this->ctx, std::span<const T>(three), rows.view(), std::span<const T>(three),
          rows.view());
    scale(this->ctx, T(1), block.view());
    gather_columns<T>(this->ctx, rows.view(), std::vector<int>{2, 1, 0}, rows.view());
    fill(this->ctx, T(1), block.view());
    dots<T>(this->ctx, block.view(), block.view(), std::span<T>());
    std::vector<real_t<T>> lengths(3, real_t<T>(9));
    norms(this->ctx, rows.view(), std::span(lengths));
    EXPECT_EQ(lengths, std::vector<real_t<T>>(3));
    block.expect_unchanged();
    rows.expect_unchanged();
}

TYPED_TEST(ColumnOps, RejectShapesThatDisagree) {
    using T = TypeParam;
    auto x = this->block(Global<T>(10, 6));
    auto y = this->block(Global<T>(10, 5));
    const std::vector<T> six(6, T(1));
    const std::vector<T> five(5, T(1));
    std::vector<T> result(6);
    EXPECT_THROW(axpby(this->ctx, T(1), x.view(), T(1), y.view()), ShapeError);
    EXPECT_THROW(axpby(this->ctx, T(1), x.view().columns(0, 4), T(1), x.view().columns(2, 4)),
                 ShapeError);
    EXPECT_THROW(
        axpby(this->ctx, std::span<const T>(five), x.view(), std::span<const T>(six), x.view()),
        ShapeError);
    EXPECT_THROW(scale(this->ctx, std::span<const T>(six), y.view()), ShapeError);
    EXPECT_THROW(dots<T>(this->ctx, x.view(), y.view(), result), ShapeError);
    EXPECT_THROW(dots<T>(this->ctx, y.view(), y.view(), result), ShapeError);
    EXPECT_THROW(gather_columns<T>(this->ctx, x.view(), std::vector<int>{0, 1, 2, 3, 6}, y.view()),
                 ShapeError);
    EXPECT_THROW(gather_columns<T>(this->ctx, x.view(), std::vector<int>{0, 1, 2, -1, 4}, y.view()),
                 ShapeError);
    EXPECT_THROW(gather_columns<T>(this->ctx, x.view(), std::vector<int>{0}, y.view()), ShapeError);
    EXPECT_THROW(copy(this->ctx, x.view(), y.view()), ShapeError);
    EXPECT_THROW(copy(this->ctx, x.view(), x.view()), ShapeError);
    auto elsewhere = y.view();
    elsewhere.place = test_place() == Place::host ? Place::device : Place::host;
    EXPECT_THROW(fill(this->ctx, T(1), elsewhere), ShapeError);
    EXPECT_NO_THROW(axpby(this->ctx, T(1), x.view().columns(0, 3), T(1), x.view().columns(3, 3)));
}

}  // namespace
}  // namespace quiver::test

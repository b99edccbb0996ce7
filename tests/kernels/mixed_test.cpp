// SPDX-License-Identifier: BSD-3-Clause
// Tests products whose blocks have less precision than their sums.
#include "kernels/mixed.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/reference/reference_kernels.hpp"
#include "kernels/reference/reference_sums.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class A, class S>
struct Pair {
    using in = A;
    using sum = S;
};
using Pairs = ::testing::Types<Pair<half_t, float>, Pair<bfloat16_t, float>, Pair<float, double>>;

struct PairName {
    template <class P>
    static std::string GetName(int) {
        return {letter(dtype_v<typename P::in>), letter(dtype_v<typename P::sum>)};
    }
};

template <class T, class Make>
Global<T> global_of(std::int64_t rows, int cols, Make&& make) {
    return Global<T>(rows, cols, [&] { return reference::converted<T>(make()); });
}

template <class T>
long double value_of(T value) {
    return reference::converted<double>(value);
}

/// All widths to 66. If case_step() is not 1, every `stride`-th of them, because each is a kernel
/// to compile on a device, and in any case 1 and 64. `offset` selects different widths for
/// different scalars.
std::vector<int> some_widths(int stride, int offset) {
    std::vector<int> widths;
    for (int width = 1; width <= 66; ++width) {
        if (case_step() == 1 || width % stride == offset % stride || width == 1 || width == 64) {
            widths.push_back(width);
        }
    }
    return widths;
}
int random_shapes() {
    return 40 / case_step();
}

/// The error bound of kernels/mixed.hpp, or a stricter one on the host, divided by sum_k |a_k|
/// |b_k|.
template <class Sum>
long double sum_factor(std::int64_t rows) {
    const auto unit = static_cast<long double>(epsilon_v<Sum>);
    const auto count = static_cast<long double>(rows);
    return test_place() == Place::host && rows < (1 << 20) ? unit * (8 + 2 * std::sqrt(count))
                                                           : unit * (256 + count / (1 << 20));
}

template <class P>
class Mixed : public ::testing::Test {
  protected:
    using In = typename P::in;
    using Sum = typename P::sum;

    /// Compares C = alpha A^T B + beta C with the reference.
    void check(const Global<In>& a, const Global<In>& b, bool same, Sum alpha, Sum beta,
               Layout layout, Place c_place) {
        const int m = a.cols;
        const int n = b.cols;
        SCOPED_TRACE(std::to_string(a.rows) + " rows, " + std::to_string(m) + " x " +
                     std::to_string(n) + (same ? ", one block" : "") + ", padding " +
                     std::to_string(layout.padding) + ", offset " + std::to_string(layout.offset) +
                     ", beta " + std::to_string(beta) + ", C in " + to_string(c_place));
        const auto old =
            beta == Sum(0) ? poisoned_global<Sum>(m, n) : random_global<Sum>(generator, m, n);
        const RowMap map = uneven_map(ctx, a.rows);
        TestBlock<In> a_block(ctx, a, map, layout);
        TestBlock<In> b_block(ctx, b, map, layout);
        TestBlock<Sum> c_block(ctx, old, layout, c_place);
        const BlockView<const In> av = a_block.const_view();

        tsmttsm(ctx, alpha, av, same ? av : b_block.const_view(), beta, c_block.view());

        a_block.expect_unchanged();
        b_block.expect_unchanged();
        const auto actual = c_block.result();
        auto expected = old;
        reference::tsmttsm_mixed<long double>(
            MixedTsmttsmArgs<In, Sum>{a.rows, m, n, alpha, a.values.data(), m, b.values.data(), n,
                                      beta, expected.values.data(), n});
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) {
                long double products = 0;
                for (std::int64_t r = 0; r < a.rows; ++r) {
                    products += std::abs(value_of(a(r, i)) * value_of(b(r, j)));
                }
                const long double bound =
                    std::abs(alpha) * products * sum_factor<Sum>(a.rows) +
                    (beta == Sum(0) ? 0 : 2 * epsilon_v<Sum> * std::abs(beta * old(i, j)));
                const long double error = std::abs(static_cast<long double>(actual(i, j)) -
                                                   static_cast<long double>(expected(i, j)));
                ASSERT_TRUE(error <= bound) << "(" << i << ", " << j << "): " << actual(i, j)
                                            << " instead of " << expected(i, j);
                worst_ = std::max(
                    worst_, products > 0 ? error / (products * std::abs(alpha) *
                                                    static_cast<long double>(epsilon_v<Sum>) / 2)
                                         : 0);
            }
        }
    }
    /// Prints the largest error since the last call, in units of u sum_k |a_k| |b_k|.
    void tell_worst(const char* what) {
        std::printf("  %c%c %s: at most %.2Lf u\n", letter(dtype_v<In>), letter(dtype_v<Sum>), what,
                    worst_);
        worst_ = 0;
    }
    double uniform() { return random_value<double>(generator); }
    Global<In> random(std::int64_t rows, int cols) {
        return global_of<In>(rows, cols, [&] { return uniform(); });
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    long double worst_ = 0;
};
TYPED_TEST_SUITE(Mixed, Pairs, PairName);

TYPED_TEST(Mixed, MatchesTheReferenceAtEveryWidth) {
    using Sum = typename TypeParam::sum;
    std::uniform_int_distribution<std::int64_t> rows(1, 500);
    for (const int width : some_widths(6, static_cast<int>(dtype_v<typename TypeParam::in>))) {
        const auto a = this->random(rows(this->generator), width);
        const auto b = this->random(a.rows, width);
        const Layout layout = layouts[width % 3];
        const Place place = width % 2 == 0 ? Place::host : test_place();
        this->check(a, b, false, Sum(1), Sum(0), {}, place);
        this->check(a, a, true, Sum(-1.25), Sum(0.5), {}, place);
        const bool same = width % 4 == 0;
        this->check(a, same ? a : b, same, Sum(-1.25), Sum(width % 2), layout, Place::host);
    }
}

TYPED_TEST(Mixed, MatchesTheReferenceForRandomShapes) {
    using Sum = typename TypeParam::sum;
    std::uniform_int_distribution<int> width(1, 80);
    std::uniform_int_distribution<std::int64_t> rows(0, 1000);
    for (int i = 0; i < random_shapes(); ++i) {
        const auto a = this->random(rows(this->generator), width(this->generator));
        const auto b = this->random(a.rows, width(this->generator));
        this->check(a, b, false, Sum(1), Sum(i % 3), layouts[this->generator() % 3],
                    i % 2 == 0 ? Place::host : test_place());
    }
    for (const auto& [m, n] : {std::pair{200, 3}, {3, 200}, {64, 1}, {1, 64}}) {
        this->check(this->random(300, m), this->random(300, n), false, Sum(1), Sum(0), {},
                    Place::host);
    }
}

TYPED_TEST(Mixed, IsExactOnSmallIntegersAndTheGramMatrixIsSymmetric) {
    using In = typename TypeParam::in;
    using Sum = typename TypeParam::sum;
    for (const int width : {1, 2, 3, 4, 7, 8, 9, 13, 16, 24, 31, 33, 40, 64}) {
        const std::int64_t rows = 5003;
        const auto a = global_of<In>(rows, width, [&] {
            return static_cast<double>(integer_value<float>(this->generator));
        });
        TestBlock<In> block(this->ctx, a, uneven_map(this->ctx, rows), {});
        SmallMatrix<Sum> c(width, width);
        const BlockView<const In> view = block.const_view();
        tsmttsm(this->ctx, Sum(1), view, view, Sum(0), c.view());
        for (int i = 0; i < width; ++i) {
            for (int j = 0; j < width; ++j) {
                long double exact = 0;
                for (std::int64_t r = 0; r < rows; ++r) {
                    exact += value_of(a(r, i)) * value_of(a(r, j));
                }
                ASSERT_EQ(static_cast<long double>(c(i, j)), exact) << width << ": " << i << j;
            }
        }
    }
}

TYPED_TEST(Mixed, KeepsItsBoundOnPositiveAndBadlyScaledInput) {
    using In = typename TypeParam::in;
    using Sum = typename TypeParam::sum;
    const auto check = [&](const char* what, std::int64_t work, auto value) {
        for (const int width : {1, 5, 8, 21, 64}) {
            const auto a = global_of<In>(work / (width * width) + 999, width, value);
            this->check(a, a, true, Sum(1), Sum(0), {}, Place::host);
        }
        this->tell_worst(what);
    };
    const std::int64_t work = this->ctx.comm().size() == 1 ? 1'000'000 : 100'000;
    check("random", work, [&] { return this->uniform(); });
    check("all positive", work, [&] { return 0.5 + 0.5 * std::abs(this->uniform()); });
    check("badly scaled", work, [&] {
        return std::ldexp(this->uniform(), static_cast<int>(this->generator() % 28) - 14);
    });
}

TYPED_TEST(Mixed, WhatIsNotFiniteStaysInItsRowsAndColumns) {
    using In = typename TypeParam::in;
    using Sum = typename TypeParam::sum;
    const double infinity = std::numeric_limits<double>::infinity();
    for (const int width : {1, 3, 8, 17, 64}) {
        for (const double bad : {infinity, -infinity, std::nan("")}) {
            auto a = this->random(777, width);
            const auto b = this->random(777, width);
            a(400, width / 2) = reference::converted<In>(bad);
            TestBlock<In> a_block(this->ctx, a, uneven_map(this->ctx, 777), {});
            TestBlock<In> b_block(this->ctx, b, uneven_map(this->ctx, 777), {});
            SmallMatrix<Sum> c(width, width);
            tsmttsm(this->ctx, Sum(1), a_block.const_view(), b_block.const_view(), Sum(0),
                    c.view());
            for (int i = 0; i < width; ++i) {
                for (int j = 0; j < width; ++j) {
                    const double exact = bad * static_cast<double>(value_of(b(400, j)));
                    if (i != width / 2) {
                        ASSERT_TRUE(std::isfinite(c(i, j))) << width << ": " << i << ", " << j;
                    } else if (std::isnan(exact)) {
                        ASSERT_TRUE(std::isnan(c(i, j))) << width << ": " << i << ", " << j;
                    } else {
                        ASSERT_EQ(static_cast<double>(c(i, j)), exact) << width << ": " << j;
                    }
                }
            }
        }
    }
}

TYPED_TEST(Mixed, SumsBeyondTheRangeAreInfinite) {
    using In = typename TypeParam::in;
    using Sum = typename TypeParam::sum;
    const auto big = global_of<In>(64, 5, [] { return 6e4; });
    TestBlock<In> block(this->ctx, big, uneven_map(this->ctx, 64), {});
    SmallMatrix<Sum> c(5, 5);
    const Sum alpha = std::numeric_limits<Sum>::max() / Sum(1e10);
    tsmttsm(this->ctx, alpha, block.const_view(), block.const_view(), Sum(0), c.view());
    for (int i = 0; i < 25; ++i) {
        EXPECT_EQ(c(i / 5, i % 5), std::numeric_limits<Sum>::infinity());
    }
}

TYPED_TEST(Mixed, RefusesShapesThatDisagree) {
    using In = typename TypeParam::in;
    using Sum = typename TypeParam::sum;
    TestBlock<In> a(this->ctx, this->random(5, 3), layouts[0], this->ctx.place());
    TestBlock<In> b(this->ctx, this->random(6, 3), layouts[0], this->ctx.place());
    SmallMatrix<Sum> c(3, 3);
    SmallMatrix<Sum> wide(3, 4);
    EXPECT_THROW(tsmttsm(this->ctx, Sum(1), a.const_view(), b.const_view(), Sum(0), c.view()),
                 ShapeError);
    EXPECT_THROW(tsmttsm(this->ctx, Sum(1), a.const_view(), a.const_view(), Sum(0), wide.view()),
                 ShapeError);
}

template <class A, class S, class O>
struct Triple {
    using in = A;
    using small = S;
    using out = O;
};
using Triples =
    ::testing::Types<Triple<half_t, float, float>, Triple<half_t, float, half_t>,
                     Triple<half_t, half_t, float>, Triple<half_t, half_t, half_t>,
                     Triple<bfloat16_t, float, float>, Triple<bfloat16_t, float, bfloat16_t>,
                     Triple<bfloat16_t, bfloat16_t, float>,
                     Triple<bfloat16_t, bfloat16_t, bfloat16_t>>;
struct TripleName {
    template <class P>
    static std::string GetName(int) {
        return {letter(dtype_v<typename P::in>), letter(dtype_v<typename P::small>),
                letter(dtype_v<typename P::out>)};
    }
};

/// The largest relative error of rounding to Out.
template <class Out>
long double unit_of() {
    return std::is_same_v<Out, float> ? 0x1p-24L : std::is_same_v<Out, half_t> ? 0x1p-11L : 0x1p-8L;
}

template <class P>
class MixedTsmm : public ::testing::Test {
  protected:
    using In = typename P::in;
    using Small = typename P::small;
    using Out = typename P::out;

    void check(const Global<In>& x, const Global<Small>& c, float alpha, float beta, Layout layout,
               Place c_place) {
        const int m = x.cols;
        const int n = c.cols;
        SCOPED_TRACE(std::to_string(x.rows) + " rows, " + std::to_string(m) + " x " +
                     std::to_string(n) + ", padding " + std::to_string(layout.padding) +
                     ", offset " + std::to_string(layout.offset) + ", beta " +
                     std::to_string(beta) + ", C in " + to_string(c_place));
        const auto old =
            beta == 0 ? poisoned_global<Out>(x.rows, n)
                      : global_of<Out>(x.rows, n, [&] { return random_value<double>(generator); });
        const RowMap map = uneven_map(ctx, x.rows);
        TestBlock<In> x_block(ctx, x, map, layout);
        TestBlock<Small> c_block(ctx, c, layout, c_place);
        TestBlock<Out> y_block(ctx, old, map, layout);

        tsmm(ctx, alpha, x_block.view(), c_block.view(), beta, y_block.view());

        x_block.expect_unchanged();
        c_block.expect_unchanged();
        const auto actual = y_block.result();
        std::vector<long double> exact(old.values.size());
        auto y = old;
        reference::tsmm_mixed(
            MixedTsmmArgs<In, Small, Out>{x.rows, m, n, alpha, x.values.data(), m, c.values.data(),
                                          n, beta, y.values.data(), n},
            exact.data());
        std::vector<long double> largest(static_cast<std::size_t>(n));
        for (int j = 0; j < n; ++j) {
            for (int k = 0; k < m; ++k) {
                largest[static_cast<std::size_t>(j)] =
                    std::max(largest[static_cast<std::size_t>(j)], std::abs(value_of(c(k, j))));
            }
        }
        // On a device, a float C is rounded to two elements of the type of X.
        const long double split = std::is_same_v<Small, float> && test_place() == Place::device
                                      ? (std::is_same_v<In, half_t> ? 0x1p-21L : 0x1p-16L)
                                      : 0;
        for (std::int64_t i = map.first_row(); i < map.first_row() + map.local_rows(); ++i) {
            long double x_sum = 0;
            for (int k = 0; k < m; ++k) {
                x_sum += std::abs(value_of(x(i, k)));
            }
            for (int j = 0; j < n; ++j) {
                const long double expected = exact[static_cast<std::size_t>(i * n + j)];
                const long double products = x_sum * largest[static_cast<std::size_t>(j)];
                const long double bound =
                    std::abs(alpha) * products * (split + 0x1p-22L * (m + 4)) +
                    0x1p-22L * std::abs(expected) +
                    (beta == 0 ? 0 : 0x1p-22L * std::abs(beta * value_of(old(i, j)))) +
                    unit_of<Out>() * std::abs(expected) + 0x1p-25L;
                const long double error =
                    std::abs(value_of(actual(i - map.first_row(), j)) - expected);
                ASSERT_TRUE(error <= bound)
                    << "(" << i << ", " << j << "): " << value_of(actual(i - map.first_row(), j))
                    << " instead of " << expected;
            }
        }
    }
    template <class T>
    Global<T> random(std::int64_t rows, int cols) {
        return global_of<T>(rows, cols, [&] { return random_value<double>(generator); });
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
TYPED_TEST_SUITE(MixedTsmm, Triples, TripleName);

TYPED_TEST(MixedTsmm, MatchesTheReferenceAtEveryWidth) {
    using In = typename TypeParam::in;
    using Small = typename TypeParam::small;
    std::uniform_int_distribution<std::int64_t> rows(1, 300);
    const int offset = 5 * static_cast<int>(dtype_v<typename TypeParam::out>) +
                       static_cast<int>(dtype_v<Small>) + 7 * static_cast<int>(dtype_v<In>);
    for (const int width : some_widths(16, offset)) {
        const auto x = this->template random<In>(rows(this->generator), width);
        const auto c = this->template random<Small>(width, width);
        this->check(x, c, 1.0F, 0.0F, {}, width % 2 == 0 ? Place::host : test_place());
        this->check(x, c, -1.25F, 0.5F, {}, Place::host);
        this->check(x, c, -1.25F, static_cast<float>(width % 2), layouts[width % 3], Place::host);
    }
}

TYPED_TEST(MixedTsmm, MatchesTheReferenceForRandomShapes) {
    using In = typename TypeParam::in;
    using Small = typename TypeParam::small;
    std::uniform_int_distribution<int> width(1, 80);
    std::uniform_int_distribution<std::int64_t> rows(0, 700);
    for (int i = 0; i < random_shapes(); ++i) {
        const int m = width(this->generator);
        this->check(this->template random<In>(rows(this->generator), m),
                    this->template random<Small>(m, width(this->generator)), 1.0F,
                    static_cast<float>(i % 3), layouts[this->generator() % 3],
                    i % 2 == 0 ? Place::host : test_place());
    }
    for (const auto& [m, n] : {std::pair{200, 3}, {3, 200}, {64, 1}, {1, 64}}) {
        this->check(this->template random<In>(100, m), this->template random<Small>(m, n), 1.0F,
                    0.0F, {}, Place::host);
    }
}

TYPED_TEST(MixedTsmm, TakesColumnsOfAllSizes) {
    using In = typename TypeParam::in;
    using Small = typename TypeParam::small;
    const auto x = this->template random<In>(501, 12);
    const int exponents = std::is_same_v<Small, half_t> ? 10 : 60;
    Global<Small> c(12, 9);
    for (int k = 0; k < 12; ++k) {
        for (int j = 0; j < 9; ++j) {
            c(k, j) = reference::converted<Small>(
                std::ldexp(random_value<double>(this->generator), exponents * (j - 4) / 4));
        }
    }
    if (std::is_same_v<typename TypeParam::out, float>) {
        this->check(x, c, 1.0F, 0.0F, {}, Place::host);
    }
}

TYPED_TEST(MixedTsmm, WhatIsNotFiniteStaysInItsRow) {
    using In = typename TypeParam::in;
    using Small = typename TypeParam::small;
    using Out = typename TypeParam::out;
    const double infinity = std::numeric_limits<double>::infinity();
    for (const int width : {1, 3, 8, 17, 64}) {
        for (const double bad : {infinity, std::nan("")}) {
            auto x = this->template random<In>(333, width);
            auto c = this->template random<Small>(width, width);
            for (auto& value : c.values) {
                value = reference::converted<Small>(std::abs(value_of(value)) + 0.125L);
            }
            x(111, width / 2) = reference::converted<In>(bad);
            TestBlock<In> x_block(this->ctx, x, layouts[0], this->ctx.place());
            TestBlock<Small> c_block(this->ctx, c, layouts[0], Place::host);
            TestBlock<Out> y_block(this->ctx, poisoned_global<Out>(333, width), layouts[0],
                                   this->ctx.place());
            tsmm(this->ctx, 1.0F, x_block.view(), c_block.view(), 0.0F, y_block.view());
            const auto y = y_block.result();
            for (std::int64_t i = 0; i < 333; ++i) {
                for (int j = 0; j < width; ++j) {
                    const auto value = static_cast<double>(value_of(y(i, j)));
                    if (i != 111) {
                        ASSERT_TRUE(std::isfinite(value)) << width << ": " << i << ", " << j;
                    } else if (std::isnan(bad)) {
                        ASSERT_TRUE(std::isnan(value)) << width << ": " << j;
                    } else {
                        ASSERT_EQ(value, bad) << width << ": " << j;
                    }
                }
            }
        }
    }
}

TYPED_TEST(MixedTsmm, RefusesOverlapAndShapesThatDisagree) {
    using In = typename TypeParam::in;
    using Small = typename TypeParam::small;
    using Out = typename TypeParam::out;
    TestBlock<In> x(this->ctx, this->template random<In>(5, 3), layouts[0], this->ctx.place());
    TestBlock<Small> c(this->ctx, this->template random<Small>(4, 3), layouts[0], Place::host);
    TestBlock<Out> y(this->ctx, this->template random<Out>(5, 3), layouts[0], this->ctx.place());
    EXPECT_THROW(tsmm(this->ctx, 1.0F, x.view(), c.view(), 0.0F, y.view()), ShapeError);
    if constexpr (std::is_same_v<In, Out>) {
        TestBlock<Small> square(this->ctx, this->template random<Small>(3, 3), layouts[0],
                                Place::host);
        EXPECT_THROW(tsmm(this->ctx, 1.0F, x.view(), square.view(), 0.0F, x.view()), ShapeError);
    }
}

TEST(TwofoldSums, AreExactToTwiceThePrecision) {
    Context ctx = make_context();
    auto generator = make_generator();
    for (const auto& [rows, m, n] : {std::tuple{std::int64_t{0}, 2, 3},
                                     {1, 1, 1},
                                     {517, 3, 5},
                                     {4099, 17, 9},
                                     {999, 70, 66}}) {
        // Rows cancel in pairs, except for 2^-40 of each product.
        auto a = random_global<double>(generator, rows, m);
        auto b = random_global<double>(generator, rows, n);
        for (std::int64_t i = 1; i < rows; i += 2) {
            for (int k = 0; k < m; ++k) {
                a(i, k) = -a(i - 1, k);
            }
            for (int j = 0; j < n; ++j) {
                b(i, j) = b(i - 1, j) * (1 + 0x1p-40);
            }
        }
        const RowMap map = uneven_map(ctx, rows);
        TestBlock<double> a_block(ctx, a, map, layouts[2]);
        TestBlock<double> b_block(ctx, b, map, layouts[1]);
        SmallMatrix<double> high(m, n);
        SmallMatrix<double> low(m, n);
        tsmttsm_twofold(ctx, a_block.const_view(), b_block.const_view(), high.view(), low.view());
        SmallMatrix<double> exact(2 * m, n);
        reference::tsmttsm_twofold(
            TwofoldTsmttsmArgs{rows, m, n, a.values.data(), m, b.values.data(), n, exact.data()});
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) {
                const long double difference =
                    (static_cast<long double>(high(i, j)) - exact(i, j)) +
                    (static_cast<long double>(low(i, j)) - exact(m + i, j));
                const long double bound = static_cast<long double>(rows + 8) * 0x1p-104L *
                                              a.column_norm(i) * b.column_norm(j) +
                                          0x1p-1000L;
                ASSERT_LE(std::abs(difference), bound) << rows << ": " << i << ", " << j;
                ASSERT_LE(std::abs(low(i, j)), 0x1p-53 * std::abs(high(i, j)));
            }
        }
    }
}

TEST(ScaledColumns, BringAnyColumnIntoTheRangeAndBack) {
    Context ctx = make_context();
    auto generator = make_generator();
    const std::int64_t rows = 3001;
    Global<float> x(rows, 11);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (int j = 0; j < 10; ++j) {
            x(i, j) = std::ldexp(random_value<float>(generator), 20 * (j - 5));
        }
    }
    const RowMap map = uneven_map(ctx, rows);
    TestBlock<float> block(ctx, x, map, layouts[1]);
    TestBlock<half_t> scaled(ctx, poisoned_global<half_t>(rows, 11), map, layouts[0]);

    const std::vector<int> exponents = column_exponents(ctx, block.const_view());
    copy_scaled(ctx, block.const_view(), exponents, scaled.view());
    SmallMatrix<float> c(11, 11);
    tsmttsm(ctx, 1.0F, scaled.const_view(), scaled.const_view(), 0.0F, c.view());
    SmallMatrix<double> gram(11, 11);
    copy(ctx, c.view(), gram.view());
    scale_back(gram.view(), exponents, exponents);

    EXPECT_EQ(exponents[10], 0);
    for (int j = 0; j < 10; ++j) {
        double square = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            square += std::pow(static_cast<double>(x(i, j)), 2);
        }
        const double norm = std::ldexp(std::sqrt(square), -exponents[static_cast<std::size_t>(j)]);
        EXPECT_LE(norm, 0x1p15) << j;
        EXPECT_GT(norm, 0x1p14) << j;
        // Two roundings to half precision, then the sum.
        EXPECT_NEAR(gram(j, j) / square, 1, 2 * 0x1p-11) << j;
        EXPECT_EQ(gram(10, j), 0);
    }
}

TEST(ScaledColumns, RefuseWhatIsNotFinite) {
    Context ctx = make_context();
    Global<float> x(4, 2);
    x(1, 1) = std::numeric_limits<float>::infinity();
    TestBlock<float> block(ctx, x, layouts[0], ctx.place());
    EXPECT_THROW(column_exponents(ctx, block.const_view()), InputError);
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmm.hpp"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "kernels/tuning.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
struct Case {
    std::int64_t rows;
    int m, n;
    T alpha, beta;
    Layout layout;
    Place c_place;
};

template <class T>
std::string describe_case(const Case<T>& c) {
    std::ostringstream out;
    out << c.rows << " rows, m " << c.m << ", n " << c.n << ", alpha " << c.alpha << ", beta "
        << c.beta << ", padding " << c.layout.padding << ", offset " << c.layout.offset << ", C in "
        << to_string(c.c_place) << " memory";
    return out.str();
}

/// alpha X C + beta Y; `result` holds the old Y.
template <class T>
Global<T> expected_product(const Case<T>& c, const Global<T>& x, const Global<T>& small,
                           Global<T> result) {
    reference::tsmm<wide_t<T>>(TsmmArgs<T>{c.rows, c.m, c.n, c.alpha, x.values.data(), c.m,
                                           small.values.data(), c.n, c.beta, result.values.data(),
                                           c.n});
    return result;
}

/// Compares this rank's rows with the global result.
template <class T>
void check_result(const Case<T>& c, const RowMap& map, const Global<T>& x, const Global<T>& small,
                  const Global<T>& old, const Global<T>& actual) {
    const auto expected = expected_product(c, x, small, old);
    for (std::int64_t r = 0; r < map.local_rows(); ++r) {
        const std::int64_t global = map.first_row() + r;
        const long double x_norm = x.row_norm(global);
        for (int j = 0; j < c.n; ++j) {
            const long double bound = sum_bound(c.m, c.alpha, x_norm * small.column_norm(j), c.beta,
                                                c.beta == T(0) ? 0 : std::abs(old(global, j)));
            const long double error =
                std::abs(wide_t<T>(actual(r, j)) - wide_t<T>(expected(global, j)));
            ASSERT_TRUE(error <= bound) << "(" << r << ", " << j << "): " << actual(r, j)
                                        << " instead of " << expected(global, j);
        }
    }
}

template <class T>
void check_case(Context& ctx, std::mt19937_64& generator, const Case<T>& c) {
    SCOPED_TRACE(describe_case(c));
    choose_plans(ctx, {.exact = generator() % 16 == 0});
    const auto x = random_global<T>(generator, c.rows, c.m);
    const auto small = random_global<T>(generator, c.m, c.n);
    const auto old =
        c.beta == T(0) ? poisoned_global<T>(c.rows, c.n) : random_global<T>(generator, c.rows, c.n);
    const RowMap map = uneven_map(ctx, c.rows);
    TestBlock<T> x_block(ctx, x, map, c.layout);
    TestBlock<T> c_block(ctx, small, c.layout, c.c_place);
    TestBlock<T> y_block(ctx, old, map, any_layout(generator));

    tsmm(ctx, c.alpha, x_block.view(), c_block.view(), c.beta, y_block.view());

    x_block.expect_unchanged();
    c_block.expect_unchanged();
    check_result(c, map, x, small, old, y_block.result());
}

/// X(:, 0:n) = alpha X C + beta X(:, 0:n) in a block of max(m, n) columns.
template <class T>
void check_in_place(Context& ctx, std::mt19937_64& generator, const Case<T>& c) {
    SCOPED_TRACE("in place, " + describe_case(c));
    const int width = std::max(c.m, c.n);
    auto all = random_global<T>(generator, c.rows, width);
    const auto small = random_global<T>(generator, c.m, c.n);
    Global<T> x(c.rows, c.m);
    Global<T> old(c.rows, c.n);
    for (std::int64_t i = 0; i < c.rows; ++i) {
        for (int j = 0; j < width; ++j) {
            if (j < c.m) {
                x(i, j) = all(i, j);
            } else if (c.beta == T(0)) {
                all(i, j) = poison<T>();
            }
            if (j < c.n) {
                old(i, j) = all(i, j);
            }
        }
    }
    const RowMap map = uneven_map(ctx, c.rows);
    TestBlock<T> block(ctx, all, map, c.layout);
    TestBlock<T> c_block(ctx, small, c.layout, c.c_place);

    tsmm(ctx, c.alpha, block.view(c.m), c_block.view(), c.beta, block.view(c.n));

    c_block.expect_unchanged();
    check_result(c, map, x, small, old, block.result(c.n));
}

template <class T>
class Tsmm : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const T coefficients[3] = {T(0), T(1), other_coefficient<T>()};
    const std::int64_t row_counts[6] = {0, 1, 31, 32, 33, 257};

    /// The k-th of the 162 combinations of rows, coefficients and layouts; the place of C
    /// alternates.
    Case<T> combination(int k, int m, int n) const {
        return {row_counts[k % 6],
                m,
                n,
                coefficients[(k / 6 + 2) % 3],
                coefficients[(k / 18) % 3],
                layouts[(k / 54) % 3],
                (k / 6 + k) % 2 == 0 ? Place::host : test_place()};
    }
};
TYPED_TEST_SUITE(Tsmm, Scalars, ScalarName);

TYPED_TEST(Tsmm, MatchesTheReferenceForEveryCombinationAtSomeWidths) {
    for (const auto& [m, n] : {std::pair{1, 1}, {3, 2}, {8, 8}, {5, 11}}) {
        for (int k = 0; k < 162; k += case_step()) {
            check_case(this->ctx, this->generator, this->combination(k, m, n));
            check_in_place(this->ctx, this->generator, this->combination(k, m, n));
        }
    }
}

TYPED_TEST(Tsmm, MatchesTheReferenceAtEveryWidth) {
    int row_count = 5;
    for (const int width : all_widths()) {
        for (int choice = 0; choice < 27; choice += case_step(), ++row_count) {
            check_case(this->ctx, this->generator,
                       this->combination(6 * choice + row_count % 6, width, width));
        }
    }
}

TYPED_TEST(Tsmm, WorksInPlaceAtEveryWidth) {
    int k = 7;
    for (const int width : all_widths()) {
        for (const int n : {width, std::max(1, width / 2), width + 3}) {
            for (int repeat = 0; repeat < 3; ++repeat, k += 25) {
                check_in_place(this->ctx, this->generator, this->combination(k, width, n));
            }
        }
    }
}

TYPED_TEST(Tsmm, MatchesTheReferenceForUnequalWidths) {
    std::uniform_int_distribution<int> any(1, 70);
    std::vector<std::pair<int, int>> pairs{{200, 20}, {20, 200}, {1, 64}, {64, 1},
                                           {40, 4},   {512, 3},  {3, 512}};
    for (int i = 0; i < 8; ++i) {
        const int m = any(this->generator);
        pairs.emplace_back(m, any(this->generator));
    }
    for (const auto& [m, n] : pairs) {
        const Case<TypeParam> c{
            67, m, n, this->coefficients[2], this->coefficients[2], layouts[2], Place::host};
        check_case(this->ctx, this->generator, c);
        check_in_place(this->ctx, this->generator, c);
    }
}

/// A basis of many columns times few columns, and near squares beyond the widest panel. On a GPU
/// streamed kernels compute them (the near squares only in complex double).
TYPED_TEST(Tsmm, MatchesTheReferenceForAWideBasis) {
    std::uniform_int_distribution<int> basis(129, 420);
    std::vector<std::pair<int, int>> pairs{{130, 16}, {400, 1},  {257, 11}, {1200, 16},
                                           {80, 80},  {67, 120}, {128, 65}};
    for (int n = 1; n <= 16; n += 3) {
        pairs.emplace_back(basis(this->generator), n);
    }
    int k = static_cast<int>(this->generator() % 162);
    for (const auto& [m, n] : pairs) {
        for (int repeat = 0; repeat < 3; ++repeat, k += 25) {
            check_case(this->ctx, this->generator, this->combination(k, m, n));
            check_in_place(this->ctx, this->generator, this->combination(k + 7, m, n));
        }
    }
}

/// A GPU copies 16 bytes at a time also where a row starts within them: the end of the row before
/// must not affect it.
TYPED_TEST(Tsmm, ANumberThatIsNotFiniteStaysInItsRow) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair{211, 11}, {130, 3}, {67, 4}, {257, 16}}) {
        const std::int64_t rows = 37;
        const RowMap map = uneven_map(this->ctx, rows);
        auto x = integer_global<T>(this->generator, rows, m);
        const auto c = integer_global<T>(this->generator, m, n);
        const auto finite = x;
        for (std::int64_t row = 0; row < rows; row += 2) {
            x(row, 0) = x(row, m - 1) = T(std::numeric_limits<real_t<T>>::quiet_NaN());
        }
        TestBlock<T> x_block(this->ctx, x, map, layouts[0]);
        TestBlock<T> c_block(this->ctx, c, layouts[0], Place::host);
        TestBlock<T> y_block(this->ctx, poisoned_global<T>(rows, n), map, layouts[0]);

        tsmm(this->ctx, T(1), x_block.view(), c_block.view(), T(0), y_block.view());

        const auto y = y_block.result();
        for (std::int64_t own = 0; own < map.local_rows(); ++own) {
            const std::int64_t row = map.first_row() + own;
            for (int j = 0; j < n; ++j) {
                T sum{};
                for (int k = 0; k < m; ++k) {
                    sum += finite(row, k) * c(k, j);
                }
                if (row % 2 == 0) {
                    EXPECT_NE(y(own, j), y(own, j)) << m << "x" << n << " row " << row;
                } else {
                    EXPECT_EQ(y(own, j), sum) << m << "x" << n << " row " << row;
                }
            }
        }
    }
}

/// A GPU copies at most a gigabyte of an in-place product at once.
TEST(TsmmInPlace, OperandsOfGigabytes) {
    Context ctx = make_context();
    if (ctx.place() == Place::host) {
        GTEST_SKIP() << "only a GPU copies operands";
    }
    constexpr int m = 2000;
    constexpr int n = 100;
    constexpr std::int64_t rows = 70'000;
    BlockVector<double> x(ctx, RowMap::by_local_rows(ctx.comm(), rows), m);
    fill_random(ctx, 1, x);
    SmallMatrix<double> c(m, n);
    std::mt19937_64 generator = make_generator();
    std::uniform_real_distribution<double> entry(-1, 1);
    for (int i = 0; i < m * n; ++i) {
        c.data()[i] = entry(generator);
    }
    std::vector<std::int64_t> samples = {0, 67'107, 67'108, rows - 1};  // 2^30 / (8 m) = 67,108
    samples.push_back(static_cast<std::int64_t>(generator() % rows));
    SmallMatrix<double> before(static_cast<int>(samples.size()), m);
    SmallMatrix<double> after(static_cast<int>(samples.size()), n);
    const auto read = [&](SmallMatrix<double>& to) {
        for (std::size_t s = 0; s < samples.size(); ++s) {
            copy(ctx, std::as_const(x).columns(0, to.cols()).row_range(samples[s], 1),
                 to.view().row_range(static_cast<std::int64_t>(s), 1));
        }
        ctx.synchronize();
    };
    read(before);
    tsmm(ctx, 1.0, std::as_const(x).view(), c.view(), 0.0, x.columns(0, n));
    read(after);
    for (int s = 0; s < before.rows(); ++s) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            double sizes = 0;
            for (int i = 0; i < m; ++i) {
                sum += before(s, i) * c(i, j);
                sizes += std::abs(before(s, i) * c(i, j));
            }
            EXPECT_NEAR(after(s, j), sum, 1e-13 * sizes) << "row " << samples[std::size_t(s)];
        }
    }
}

TYPED_TEST(Tsmm, MatchesTheReferenceForRandomShapes) {
    std::uniform_int_distribution<int> width(1, 64);
    std::uniform_int_distribution<int> wide(20, 200);
    std::uniform_int_distribution<int> rows(1, 600);
    std::uniform_int_distribution<int> choice(0, 2);
    Context threads(Comm(MPI_COMM_WORLD), Device::host(3));
    for (int i = 0; i < 40; i += case_step()) {
        const auto& coefficients = this->coefficients;
        const Case<TypeParam> c{rows(this->generator),
                                i % 4 == 0 ? wide(this->generator) : width(this->generator),
                                width(this->generator),
                                coefficients[1 + choice(this->generator) % 2],
                                coefficients[choice(this->generator)],
                                layouts[choice(this->generator)],
                                Place::host};
        Context& ctx = i % 2 == 0 ? this->ctx : threads;
        check_case(ctx, this->generator, c);
        check_in_place(ctx, this->generator, c);
    }
}

// Results that do not fit into the caches are written in whole cache lines, by non-temporal stores.
TYPED_TEST(Tsmm, IsExactBeyondTheCachesForUnalignedRows) {
    using T = TypeParam;
    if (this->ctx.comm().size() > 1) {
        GTEST_SKIP() << "one process multiplies; the test on one rank does the same";
    }
    for (const int n : {3, 5, 19}) {
        const int m = 8 - n % 4;
        const auto rows = static_cast<std::int64_t>((35 << 20) / sizeof(T)) / (m + n);
        const Case<T> c{rows, m, n, T(1), T(0), Layout{0, 1}, Place::host};
        SCOPED_TRACE(describe_case(c));
        const auto x = integer_global<T>(this->generator, rows, m);
        const auto small = integer_global<T>(this->generator, m, n);
        const auto expected = expected_product(c, x, small, Global<T>(rows, n));
        for (const int count : {1, 3}) {
            Context threads(Comm(MPI_COMM_SELF), Device::host(count));
            TestBlock<T> x_block(threads, x, layouts[0], Place::host);
            TestBlock<T> y_block(threads, poisoned_global<T>(rows, n), c.layout, Place::host);
            TestBlock<T> c_block(threads, small, layouts[0], Place::host);
            tsmm(threads, c.alpha, x_block.view(), c_block.view(), c.beta, y_block.view());
            expect_equal(y_block.result(), expected);
        }
    }
}

TYPED_TEST(Tsmm, MatchesTheReferenceAtWidthsBeyondFiveHundred) {
    const Case<TypeParam> c{
        9, 33, 517, this->coefficients[1], this->coefficients[0], layouts[1], Place::host};
    check_case(this->ctx, this->generator, c);
    check_in_place(this->ctx, this->generator, c);
}

TYPED_TEST(Tsmm, IsExactOnSmallIntegers) {
    using T = TypeParam;
    for (const int width : all_widths()) {
        const Case<T> c{37,         width, std::max(1, width - 2), T(2), T(-1), layouts[width % 3],
                        Place::host};
        SCOPED_TRACE(describe_case(c));
        const auto x = integer_global<T>(this->generator, c.rows, c.m);
        const auto small = integer_global<T>(this->generator, c.m, c.n);
        const auto old = integer_global<T>(this->generator, c.rows, c.n);
        TestBlock<T> x_block(this->ctx, x, c.layout, this->ctx.place());
        TestBlock<T> y_block(this->ctx, old, c.layout, this->ctx.place());
        TestBlock<T> c_block(this->ctx, small, c.layout, Place::host);

        tsmm(this->ctx, c.alpha, x_block.view(), c_block.view(), c.beta, y_block.view());

        expect_equal(y_block.result(), expected_product(c, x, small, old));
    }
}

TYPED_TEST(Tsmm, HandlesManyThreads) {
    using T = TypeParam;
    Context threads(Comm(MPI_COMM_WORLD), Device::host(5));
    const Case<T> c{3001, 9, 9, T(1), T(0), layouts[1], Place::host};
    const auto x = integer_global<T>(this->generator, c.rows, c.m);
    const auto small = integer_global<T>(this->generator, c.m, c.n);
    TestBlock<T> block(threads, x, c.layout, Place::host);
    TestBlock<T> c_block(threads, small, layouts[0], Place::host);

    tsmm(threads, c.alpha, block.view(), c_block.view(), c.beta, block.view());

    expect_equal(block.result(), expected_product(c, x, small, Global<T>(c.rows, c.n)));
}

TYPED_TEST(Tsmm, WithoutColumnsInTheMiddleScalesTheResult) {
    using T = TypeParam;
    const auto old = integer_global<T>(this->generator, 20, 4);
    TestBlock<T> x(this->ctx, Global<T>(20, 0), layouts[1], this->ctx.place());
    TestBlock<T> y(this->ctx, old, layouts[1], this->ctx.place());
    TestBlock<T> c(this->ctx, Global<T>(0, 4), layouts[0], Place::host);
    tsmm(this->ctx, T(1), x.view(), c.view(), T(2), y.view());
    auto expected = old;
    for (T& value : expected.values) {
        value *= real_t<T>(2);
    }
    expect_equal(y.result(), expected);
}

TYPED_TEST(Tsmm, ReadsTheSmallMatrixBeforeItReturns) {
    using T = TypeParam;
    const auto x = integer_global<T>(this->generator, 300, 6);
    TestBlock<T> x_block(this->ctx, x, layouts[0], this->ctx.place());
    TestBlock<T> y_block(this->ctx, poisoned_global<T>(300, 6), layouts[0], this->ctx.place());
    SmallMatrix<T> c = SmallMatrix<T>::identity(6);
    for (int repeat = 0; repeat < 4; ++repeat) {
        tsmm(this->ctx, T(1), x_block.view(), c, T(0), y_block.view());
    }
    c = SmallMatrix<T>(6, 6);
    expect_equal(y_block.result(), x);
}

TYPED_TEST(Tsmm, RejectsShapesThatDisagree) {
    using T = TypeParam;
    TestBlock<T> x(this->ctx, Global<T>(40, 6), layouts[0], this->ctx.place());
    TestBlock<T> y(this->ctx, Global<T>(40, 4), layouts[0], this->ctx.place());
    const SmallMatrix<T> c(6, 4);
    const SmallMatrix<T> wrong(4, 6);
    const SmallMatrix<T> square(3, 3);
    EXPECT_THROW(tsmm(this->ctx, T(1), x.view(), c, T(0), y.view().row_range(0, 39)), ShapeError);
    EXPECT_THROW(tsmm(this->ctx, T(1), x.view(), wrong, T(0), y.view()), ShapeError);
    EXPECT_THROW(
        tsmm(this->ctx, T(1), x.view().columns(0, 3), square, T(0), x.view().columns(1, 3)),
        ShapeError);
    const BlockView<const T> inside(x.view().data, 6, 4, 4, x.view().place);
    EXPECT_THROW(tsmm(this->ctx, T(1), x.view(), inside, T(0), y.view()), ShapeError);
    auto elsewhere = y.view();
    elsewhere.place = test_place() == Place::host ? Place::device : Place::host;
    EXPECT_THROW(tsmm(this->ctx, T(1), x.view(), c, T(0), elsewhere), ShapeError);
    EXPECT_NO_THROW(
        tsmm(this->ctx, T(1), x.view().columns(0, 3), square, T(0), x.view().columns(3, 3)));
}

/// Real scalars only: by definition, a complex product with an infinite factor may be NaN.
TYPED_TEST(Tsmm, AnInfiniteEntrySpoilsItsRowOnlyAndIsNoNaN) {
    using T = TypeParam;
    if constexpr (!is_complex_v<T>) {
        Context ctx = make_context();
        for (int m = 1; m <= 9; ++m) {
            for (int infinite = 0; infinite < m; ++infinite) {
                const std::int64_t rows = 40;
                Global<T> x = random_global<T>(this->generator, rows, m);
                Global<T> c = random_global<T>(this->generator, m, m);
                for (T& value : c.values) {
                    value = std::abs(value) + T(1);
                }
                x.values[static_cast<std::size_t>(7 * m + infinite)] =
                    std::numeric_limits<T>::infinity();
                const RowMap map = RowMap::by_rows(Comm(), rows);
                Context own(Comm(), ctx.device());
                TestBlock<T> x_block(own, x, map, layouts[0]);
                TestBlock<T> y_block(own, poisoned_global<T>(rows, m), map, layouts[0]);
                TestBlock<T> c_block(own, c, layouts[0], Place::host);
                tsmm(own, T(1), x_block.view(), c_block.view(), T(0), y_block.view());
                const auto y = y_block.result();
                for (std::int64_t i = 0; i < rows; ++i) {
                    for (int j = 0; j < m; ++j) {
                        ASSERT_EQ(std::isinf(y(i, j)), i == 7) << m << " columns, " << infinite;
                        ASSERT_FALSE(std::isnan(y(i, j))) << m << " columns, " << infinite;
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace quiver::test

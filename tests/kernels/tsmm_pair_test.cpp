// SPDX-License-Identifier: BSD-3-Clause
// Tests tsmm with two sources: Y = alpha X C + beta Y D.
#include <gtest/gtest.h>

#include "kernels/reference/reference_kernels.hpp"
#include "kernels/tsmm.hpp"
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
    Place c_place, d_place;
};

template <class T>
std::string describe_case(const Case<T>& c) {
    std::ostringstream out;
    out << c.rows << " rows, m " << c.m << ", n " << c.n << ", alpha " << c.alpha << ", beta "
        << c.beta << ", padding " << c.layout.padding << ", offset " << c.layout.offset << ", C in "
        << to_string(c.c_place) << ", D in " << to_string(c.d_place) << " memory";
    return out.str();
}

/// alpha X C + beta Y D by two separate products, independent of the reference kernel.
template <class T>
Global<T> expected_update(const Case<T>& c, const Global<T>& x, const Global<T>& small,
                          const Global<T>& old, const Global<T>& other) {
    Global<T> result(c.rows, c.n);
    for (std::int64_t r = 0; r < c.rows; ++r) {
        for (int j = 0; j < c.n; ++j) {
            wide_t<T> sum(0);
            wide_t<T> added(0);
            for (int i = 0; i < c.m; ++i) {
                sum += wide_t<T>(x(r, i)) * wide_t<T>(small(i, j));
            }
            for (int i = 0; c.beta != T(0) && i < c.n; ++i) {
                added += wide_t<T>(old(r, i)) * wide_t<T>(other(i, j));
            }
            result(r, j) = static_cast<T>(wide_t<T>(c.alpha) * sum + wide_t<T>(c.beta) * added);
        }
    }
    return result;
}

template <class T>
void check_case(Context& ctx, std::mt19937_64& generator, const Case<T>& c) {
    SCOPED_TRACE(describe_case(c));
    const bool reads = c.beta != T(0);
    const auto x = random_global<T>(generator, c.rows, c.m);
    const auto small = random_global<T>(generator, c.m, c.n);
    const auto old =
        reads ? random_global<T>(generator, c.rows, c.n) : poisoned_global<T>(c.rows, c.n);
    const auto other = reads ? random_global<T>(generator, c.n, c.n) : poisoned_global<T>(c.n, c.n);
    const RowMap map = uneven_map(ctx, c.rows);
    TestBlock<T> x_block(ctx, x, map, c.layout);
    TestBlock<T> c_block(ctx, small, c.layout, c.c_place);
    TestBlock<T> d_block(ctx, other, c.layout, c.d_place);
    TestBlock<T> y_block(ctx, old, map, c.layout);

    tsmm(ctx, c.alpha, x_block.view(), c_block.view(), c.beta, y_block.view(), d_block.view());

    x_block.expect_unchanged();
    c_block.expect_unchanged();
    d_block.expect_unchanged();
    const auto actual = y_block.result();
    const auto expected = expected_update(c, x, small, old, other);
    auto reference = old;
    reference::tsmm<wide_t<T>>(TsmmArgs<T>{c.rows, c.m, c.n, c.alpha, x.values.data(), c.m,
                                           small.values.data(), c.n, c.beta,
                                           reference.values.data(), c.n, other.values.data(), c.n});
    for (std::int64_t r = 0; r < map.local_rows(); ++r) {
        const std::int64_t global = map.first_row() + r;
        const long double x_norm = x.row_norm(global);
        const long double y_norm = reads ? old.row_norm(global) : 0;
        for (int j = 0; j < c.n; ++j) {
            const long double d_norm = reads ? other.column_norm(j) : 0;
            const long double bound =
                sum_bound(c.m + c.n, c.alpha, x_norm * small.column_norm(j), T(0), 0) +
                sum_bound(c.m + c.n, c.beta, y_norm * d_norm, T(0), 0);
            const auto exact = wide_t<T>(expected(global, j));
            ASSERT_TRUE(std::abs(wide_t<T>(actual(r, j)) - exact) <= bound)
                << "(" << r << ", " << j << "): " << actual(r, j) << " instead of " << exact;
            ASSERT_TRUE(std::abs(wide_t<T>(reference(global, j)) - exact) <= bound)
                << "reference (" << r << ", " << j << ")";
        }
    }
}

template <class T>
class TsmmPair : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const T coefficients[3] = {T(0), T(1), other_coefficient<T>()};
    const std::int64_t row_counts[6] = {0, 1, 31, 32, 33, 257};

    /// The k-th of the 162 combinations of rows, coefficients and layouts; the places of C and D
    /// alternate.
    Case<T> combination(int k, int m, int n) const {
        return {row_counts[k % 6],
                m,
                n,
                coefficients[(k / 6 + 2) % 3],
                coefficients[(k / 18 + 2) % 3],
                layouts[(k / 54) % 3],
                (k / 6 + k) % 2 == 0 ? Place::host : test_place(),
                (k / 2) % 2 == 0 ? Place::host : test_place()};
    }
};
TYPED_TEST_SUITE(TsmmPair, Scalars, ScalarName);

TYPED_TEST(TsmmPair, IsRightForEveryCombinationAtSomeWidths) {
    for (const auto& [m, n] : {std::pair{1, 1}, {3, 2}, {8, 8}, {5, 11}}) {
        for (int k = 0; k < 162; k += case_step()) {
            check_case(this->ctx, this->generator, this->combination(k, m, n));
        }
    }
}

TYPED_TEST(TsmmPair, IsRightAtEveryWidth) {
    const int repeats = is_host_repetition() ? 2 : 7;
    int k = 5;
    for (const int width : all_widths()) {
        for (int repeat = 0; repeat < repeats; ++repeat, k += 25) {
            check_case(this->ctx, this->generator, this->combination(k % 162, width, width));
        }
    }
}

TYPED_TEST(TsmmPair, IsRightForUnequalWidths) {
    std::uniform_int_distribution<int> any(1, 70);
    std::vector<std::pair<int, int>> pairs{{200, 20}, {20, 100}, {1, 64}, {64, 1},
                                           {40, 4},   {512, 3},  {3, 70}, {400, 16}};
    for (int i = 0; i < 8; ++i) {
        const int m = any(this->generator);
        pairs.emplace_back(m, any(this->generator));
    }
    for (const auto& [m, n] : pairs) {
        check_case(this->ctx, this->generator,
                   Case<TypeParam>{67, m, n, this->coefficients[2], this->coefficients[2],
                                   layouts[2], Place::host, Place::host});
    }
}

TYPED_TEST(TsmmPair, IsRightForRandomShapes) {
    std::uniform_int_distribution<int> width(1, 64);
    std::uniform_int_distribution<int> wide(20, 200);
    std::uniform_int_distribution<int> rows(1, 3000);
    std::uniform_int_distribution<int> choice(0, 2);
    Context threads(Comm(MPI_COMM_WORLD), Device::host(3));
    for (int i = 0; i < 20; i += case_step()) {
        const Case<TypeParam> c{rows(this->generator),
                                i % 4 == 0 ? wide(this->generator) : width(this->generator),
                                width(this->generator),
                                this->coefficients[1 + choice(this->generator) % 2],
                                this->coefficients[1 + choice(this->generator) % 2],
                                layouts[choice(this->generator)],
                                Place::host,
                                Place::host};
        check_case(i % 2 == 0 ? this->ctx : threads, this->generator, c);
    }
}

// More rows than the host keeps in its caches at a time, and more than one chunk for each thread.
TYPED_TEST(TsmmPair, IsExactOverManyBlocksOfRows) {
    using T = TypeParam;
    if (this->ctx.comm().size() > 1) {
        GTEST_SKIP() << "one process multiplies; the test on one rank does the same";
    }
    for (const auto& [m, n] : {std::pair{3, 2}, {33, 7}, {5, 19}}) {
        const auto rows = static_cast<std::int64_t>((4 << 20) / sizeof(T)) / (m + n) + 77;
        const Case<T> c{rows, m, n, T(2), T(-1), layouts[1], Place::host, Place::host};
        SCOPED_TRACE(describe_case(c));
        const auto x = integer_global<T>(this->generator, rows, m);
        const auto small = integer_global<T>(this->generator, m, n);
        const auto old = integer_global<T>(this->generator, rows, n);
        const auto other = integer_global<T>(this->generator, n, n);
        const auto expected = expected_update(c, x, small, old, other);
        for (const Device& device : {this->ctx.device(), Device::host(3)}) {
            Context own(Comm(MPI_COMM_SELF), device);
            TestBlock<T> x_block(own, x, c.layout, own.place());
            TestBlock<T> y_block(own, old, c.layout, own.place());
            TestBlock<T> c_block(own, small, c.layout, Place::host);
            TestBlock<T> d_block(own, other, c.layout, Place::host);
            tsmm(own, c.alpha, x_block.view(), c_block.view(), c.beta, y_block.view(),
                 d_block.view());
            expect_equal(y_block.result(), expected);
        }
    }
}

TYPED_TEST(TsmmPair, WithoutColumnsOfXMultipliesYAlone) {
    using T = TypeParam;
    const auto old = integer_global<T>(this->generator, 20, 4);
    const auto other = integer_global<T>(this->generator, 4, 4);
    TestBlock<T> x(this->ctx, Global<T>(20, 0), layouts[1], this->ctx.place());
    TestBlock<T> y(this->ctx, old, layouts[1], this->ctx.place());
    TestBlock<T> c(this->ctx, Global<T>(0, 4), layouts[0], Place::host);
    TestBlock<T> d(this->ctx, other, layouts[0], Place::host);
    tsmm(this->ctx, T(1), x.view(), c.view(), T(2), y.view(), d.view());
    const Case<T> which{20, 0, 4, T(1), T(2), {}, Place::host, Place::host};
    expect_equal(y.result(), expected_update(which, Global<T>(20, 0), Global<T>(0, 4), old, other));
}

TYPED_TEST(TsmmPair, RejectsShapesThatDisagree) {
    using T = TypeParam;
    TestBlock<T> x(this->ctx, Global<T>(40, 6), layouts[0], this->ctx.place());
    TestBlock<T> y(this->ctx, Global<T>(40, 4), layouts[0], this->ctx.place());
    const SmallMatrix<T> c(6, 4);
    const SmallMatrix<T> d(4, 4);
    const SmallMatrix<T> wrong(4, 6);
    const SmallMatrix<T> square(6, 6);
    const auto call = [&](BlockView<const T> x_view, BlockView<const T> c_view, BlockView<T> y_view,
                          BlockView<const T> d_view) {
        tsmm(this->ctx, T(1), x_view, c_view, T(1), y_view, d_view);
    };
    EXPECT_THROW(call(x.view(), c, y.view().row_range(0, 39), d), ShapeError);
    EXPECT_THROW(call(x.view(), wrong, y.view(), d), ShapeError);
    EXPECT_THROW(call(x.view(), c, y.view(), wrong), ShapeError);
    EXPECT_THROW(call(x.view(), square, x.view(), square), ShapeError);  // Y must not be X
    const BlockView<const T> inside(x.view().data, 4, 4, 4, x.view().place);
    EXPECT_THROW(call(x.view(), c, y.view(), inside), ShapeError);
    auto elsewhere = y.view();
    elsewhere.place = test_place() == Place::host ? Place::device : Place::host;
    EXPECT_THROW(call(x.view(), c, elsewhere, d), ShapeError);
    EXPECT_NO_THROW(call(x.view(), c, y.view(), d));
    try {
        call(x.view(), c, y.view(), wrong);
    } catch (const ShapeError& error) {
        EXPECT_NE(std::string(error.what()).find("D: 4 x 6"), std::string::npos) << error.what();
    }
}

TYPED_TEST(TsmmPair, EntersTheLedger) {
    using T = TypeParam;
    TestBlock<T> x(this->ctx, Global<T>(40, 3), layouts[0], this->ctx.place());
    TestBlock<T> y(this->ctx, Global<T>(40, 2), layouts[0], this->ctx.place());
    const SmallMatrix<T> c(3, 2);
    const SmallMatrix<T> d(2, 2);
    this->ctx.ledger().clear();
    tsmm(this->ctx, T(1), x.view(), c, T(1), y.view(), d);
    const auto records = this->ctx.ledger().records();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].bytes, 40.0 * (3 + 2 + 2) * sizeof(T));
    EXPECT_EQ(records[0].flops, 40.0 * (3 + 2) * 2 * multiply_add_flops_v<T>);
}

}  // namespace
}  // namespace quiver::test

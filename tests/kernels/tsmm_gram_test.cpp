// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmm_gram.hpp"

#include <gtest/gtest.h>

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
    Place h_place, g_place;
};

template <class T>
std::string describe_case(const Case<T>& c) {
    std::ostringstream out;
    out << c.rows << " rows, m " << c.m << ", n " << c.n << ", alpha " << c.alpha << ", beta "
        << c.beta << ", padding " << c.layout.padding << ", offset " << c.layout.offset << ", H in "
        << to_string(c.h_place) << ", G in " << to_string(c.g_place) << " memory";
    return out.str();
}

/// The rows of all ranks, on every rank.
template <class T>
Global<T> all_rows(Context& ctx, const RowMap& map, std::int64_t rows, const Global<T>& own) {
    Global<T> all(rows, own.cols);
    std::copy(own.values.begin(), own.values.end(),
              all.values.begin() + map.first_row() * own.cols);
    ctx.comm().sum(std::span<T>(all.values));
    return all;
}

/// Compares W with the reference for V, H and the old W, and G with W^H W of the new, rounded W.
template <class T>
void check_results(Context& ctx, const Case<T>& c, const RowMap& map, const Global<T>& v,
                   const Global<T>& h, const Global<T>& old, const Global<T>& w,
                   const Global<T>& g) {
    auto expected = old;
    Global<T> sums(c.n, c.n);
    const TsmmArgs<T> update{c.rows,
                             c.m,
                             c.n,
                             c.alpha,
                             v.values.data(),
                             c.m,
                             h.values.data(),
                             c.n,
                             c.beta,
                             expected.values.data(),
                             c.n};
    reference::tsmm_gram<wide_t<T>>(TsmmGramArgs<T>{update, sums.values.data(), c.n});
    for (std::int64_t r = 0; r < map.local_rows(); ++r) {
        const std::int64_t global = map.first_row() + r;
        for (int j = 0; j < c.n; ++j) {
            const long double bound =
                sum_bound(c.m, c.alpha, v.row_norm(global) * h.column_norm(j), c.beta,
                          c.beta == T(0) ? 0 : std::abs(old(global, j)));
            ASSERT_TRUE(std::abs(wide_t<T>(w(r, j)) - wide_t<T>(expected(global, j))) <= bound)
                << "W (" << r << ", " << j << "): " << w(r, j) << " instead of "
                << expected(global, j);
        }
    }
    const auto new_w = all_rows(ctx, map, c.rows, w);
    reference::tsmttsm<wide_t<T>>(TsmttsmArgs<T>{c.rows, c.n, c.n, T(1), new_w.values.data(), c.n,
                                                 new_w.values.data(), c.n, T(0), sums.values.data(),
                                                 c.n});
    for (int i = 0; i < c.n; ++i) {
        for (int j = 0; j < c.n; ++j) {
            const long double bound =
                sum_bound(c.rows, T(1), new_w.column_norm(i) * new_w.column_norm(j), T(0), 0);
            ASSERT_TRUE(std::abs(wide_t<T>(g(i, j)) - wide_t<T>(sums(i, j))) <= bound)
                << "G (" << i << ", " << j << "): " << g(i, j) << " instead of " << sums(i, j);
        }
    }
}

template <class T>
void check_case(Context& ctx, std::mt19937_64& generator, const Case<T>& c) {
    SCOPED_TRACE(describe_case(c));
    choose_plans(ctx, {.exact = generator() % 16 == 0});
    const auto v = random_global<T>(generator, c.rows, c.m);
    const auto h = random_global<T>(generator, c.m, c.n);
    const auto old =
        c.beta == T(0) ? poisoned_global<T>(c.rows, c.n) : random_global<T>(generator, c.rows, c.n);
    const RowMap map = uneven_map(ctx, c.rows);
    TestBlock<T> v_block(ctx, v, map, c.layout);
    TestBlock<T> h_block(ctx, h, c.layout, c.h_place);
    TestBlock<T> w_block(ctx, old, map, any_layout(generator));
    TestBlock<T> g_block(ctx, poisoned_global<T>(c.n, c.n), c.layout, c.g_place);

    tsmm_gram(ctx, c.alpha, v_block.view(), h_block.view(), c.beta, w_block.view(), g_block.view());

    v_block.expect_unchanged();
    h_block.expect_unchanged();
    check_results(ctx, c, map, v, h, old, w_block.result(), g_block.result());
}

/// W(:, 0:n) = alpha W(:, 0:m) H + beta W(:, 0:n) in a block of max(m, n) columns.
template <class T>
void check_in_place(Context& ctx, std::mt19937_64& generator, const Case<T>& c) {
    SCOPED_TRACE("in place, " + describe_case(c));
    const int width = std::max(c.m, c.n);
    const auto all = random_global<T>(generator, c.rows, width);
    const auto h = random_global<T>(generator, c.m, c.n);
    Global<T> v(c.rows, c.m);
    Global<T> old(c.rows, c.n);
    for (std::int64_t i = 0; i < c.rows; ++i) {
        for (int j = 0; j < width; ++j) {
            if (j < c.m) {
                v(i, j) = all(i, j);
            }
            if (j < c.n) {
                old(i, j) = all(i, j);
            }
        }
    }
    const RowMap map = uneven_map(ctx, c.rows);
    TestBlock<T> block(ctx, all, map, c.layout);
    TestBlock<T> h_block(ctx, h, c.layout, c.h_place);
    TestBlock<T> g_block(ctx, poisoned_global<T>(c.n, c.n), c.layout, c.g_place);

    tsmm_gram(ctx, c.alpha, block.view(c.m), h_block.view(), c.beta, block.view(c.n),
              g_block.view());

    check_results(ctx, c, map, v, h, old, block.result(c.n), g_block.result());
}

template <class T>
class TsmmGram : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const T coefficients[3] = {T(0), T(1), other_coefficient<T>()};
    const std::int64_t row_counts[6] = {0, 1, 31, 32, 33, 257};

    /// The k-th of the 162 combinations of rows, coefficients and layouts; the places of H and G
    /// alternate.
    Case<T> combination(int k, int m, int n) const {
        return {row_counts[k % 6],
                m,
                n,
                coefficients[(k / 6 + 2) % 3],
                coefficients[(k / 18) % 3],
                layouts[(k / 54) % 3],
                (k / 6 + k) % 2 == 0 ? Place::host : test_place(),
                (k / 2) % 2 == 0 ? Place::host : test_place()};
    }
};
TYPED_TEST_SUITE(TsmmGram, Scalars, ScalarName);

TYPED_TEST(TsmmGram, IsRightForEveryCombinationAtSomeWidths) {
    for (const auto& [m, n] : {std::pair{1, 1}, {3, 2}, {8, 8}, {5, 11}}) {
        for (int k = 0; k < 162; k += case_step()) {
            check_case(this->ctx, this->generator, this->combination(k, m, n));
            check_in_place(this->ctx, this->generator, this->combination(k, m, n));
        }
    }
}

TYPED_TEST(TsmmGram, IsRightAtEveryWidth) {
    const int repeats = is_host_repetition() ? 2 : 7;
    int k = 5;
    for (const int width : all_widths()) {
        for (int repeat = 0; repeat < repeats; ++repeat, k += 25) {
            check_case(this->ctx, this->generator, this->combination(k % 162, width, width));
            check_in_place(this->ctx, this->generator, this->combination(k % 162, width, width));
        }
    }
}

TYPED_TEST(TsmmGram, IsRightForUnequalWidths) {
    std::uniform_int_distribution<int> any(1, 70);
    std::vector<std::pair<int, int>> pairs{{200, 20}, {20, 100}, {1, 64}, {64, 1},
                                           {40, 4},   {512, 3},  {3, 70}, {400, 16}};
    for (int i = 0; i < 8; ++i) {
        const int m = any(this->generator);
        pairs.emplace_back(m, any(this->generator));
    }
    for (const auto& [m, n] : pairs) {
        const Case<TypeParam> c{67,           m,          n,           this->coefficients[2],
                                TypeParam(1), layouts[2], Place::host, Place::host};
        check_case(this->ctx, this->generator, c);
        check_in_place(this->ctx, this->generator, c);
    }
}

TYPED_TEST(TsmmGram, IsRightForRandomShapes) {
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
                                this->coefficients[choice(this->generator)],
                                layouts[choice(this->generator)],
                                Place::host,
                                Place::host};
        Context& ctx = i % 2 == 0 ? this->ctx : threads;
        check_case(ctx, this->generator, c);
        check_in_place(ctx, this->generator, c);
    }
}

// More rows than the host keeps in its caches at a time, and more than one chunk for each thread.
// The widths include those with several rows in a vector, whole vectors, and neither.
TYPED_TEST(TsmmGram, IsExactOverManyBlocksOfRows) {
    using T = TypeParam;
    if (this->ctx.comm().size() > 1) {
        GTEST_SKIP() << "one process multiplies; the test on one rank does the same";
    }
    for (const auto& [m, n] : {std::pair{2, 2}, {3, 3}, {16, 16}, {33, 7}, {5, 19}}) {
        const auto rows = static_cast<std::int64_t>((4 << 20) / sizeof(T)) / (m + n) + 77;
        const auto v = integer_global<T>(this->generator, rows, m);
        auto h = Global<T>(m, n);
        for (int i = 0; i < std::min(m, n); ++i) {
            h(i, n - 1 - i) = T(1);  // keeps entries small and sums exact
        }
        const auto old = integer_global<T>(this->generator, rows, n);
        auto expected = old;
        Global<T> sums(n, n);
        reference::tsmm_gram<wide_t<T>>(
            TsmmGramArgs<T>{{rows, m, n, T(1), v.values.data(), m, h.values.data(), n, T(-1),
                             expected.values.data(), n},
                            sums.values.data(),
                            n});
        for (const auto& [device, layout] : {std::pair{this->ctx.device(), layouts[1]},
                                             {Device::host(3), layouts[0]},
                                             {this->ctx.device(), layouts[0]}}) {
            Context own(Comm(MPI_COMM_SELF), device);
            TestBlock<T> v_block(own, v, layout, own.place());
            TestBlock<T> w_block(own, old, layout, own.place());
            TestBlock<T> h_block(own, h, layout, Place::host);
            SmallMatrix<T> g(n, n);
            tsmm_gram(own, T(1), v_block.view(), h_block.view(), T(-1), w_block.view(), g);
            expect_equal(w_block.result(), expected);
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < n; ++j) {
                    ASSERT_EQ(g(i, j), sums(i, j)) << i << ", " << j << " of " << n;
                }
            }
        }
    }
}

TYPED_TEST(TsmmGram, WithoutColumnsOfVScalesW) {
    using T = TypeParam;
    const RowMap map = uneven_map(this->ctx, 20);
    const auto old = integer_global<T>(this->generator, 20, 4);
    TestBlock<T> v(this->ctx, Global<T>(20, 0), map, layouts[1]);
    TestBlock<T> w(this->ctx, old, map, layouts[1]);
    TestBlock<T> h(this->ctx, Global<T>(0, 4), layouts[0], Place::host);
    SmallMatrix<T> g(4, 4);
    tsmm_gram(this->ctx, T(1), v.view(), h.view(), T(2), w.view(), g);
    const Case<T> c{20, 0, 4, T(1), T(2), {}, Place::host, Place::host};
    Global<T> sums(4, 4);
    std::copy_n(g.data(), 16, sums.values.begin());
    check_results(this->ctx, c, map, Global<T>(20, 0), Global<T>(0, 4), old, w.result(), sums);
}

TYPED_TEST(TsmmGram, SumsOverThisRankOnlyWhenAsked) {
    using T = TypeParam;
    const RowMap map = uneven_map(this->ctx, 101);
    TestBlock<T> ones(this->ctx, Global<T>(101, 3, [] { return T(1); }), map, layouts[0]);
    const SmallMatrix<T> h = SmallMatrix<T>::identity(3);
    SmallMatrix<T> local(3, 3);
    SmallMatrix<T> global(3, 3);
    tsmm_gram(this->ctx, T(1), ones.view(), h, T(0), ones.view(), local, Reduce::this_rank);
    tsmm_gram(this->ctx, T(1), ones.view(), h, T(0), ones.view(), global);
    EXPECT_EQ(local(1, 2), T(static_cast<real_t<T>>(map.local_rows())));
    EXPECT_EQ(global(1, 2), T(101));
}

TYPED_TEST(TsmmGram, GivesTheSameBitsEveryTime) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair{9, 9}, {20, 3}}) {
        const auto v = random_global<T>(this->generator, 20'011, m);
        const auto h = random_global<T>(this->generator, m, n);
        const RowMap map = uneven_map(this->ctx, v.rows);
        TestBlock<T> v_block(this->ctx, v, map, layouts[0]);
        TestBlock<T> h_block(this->ctx, h, layouts[0], Place::host);
        TestBlock<T> w_block(this->ctx, Global<T>(v.rows, n), map, layouts[0]);
        std::vector<T> first;
        for (int repeat = 0; repeat < 20; ++repeat) {
            SmallMatrix<T> g(n, n);
            tsmm_gram(this->ctx, T(1), v_block.view(), h_block.view(), T(0), w_block.view(), g);
            const std::vector<T> values(g.data(), g.data() + n * n);
            first = repeat == 0 ? values : first;
            ASSERT_NE(first.front(), T(0));
            ASSERT_EQ(std::memcmp(first.data(), values.data(), values.size() * sizeof(T)), 0);
        }
    }
}

/// Real scalars only: by definition, a complex product with an infinite factor may be NaN.
TYPED_TEST(TsmmGram, AnInfiniteEntrySpoilsItsColumnOnly) {
    using T = TypeParam;
    if constexpr (!is_complex_v<T>) {
        for (const int n : {1, 4, 7, 16, 20}) {
            Context own(Comm(), this->ctx.device());
            auto w = random_global<T>(this->generator, 40, n);
            w(7, n / 2) = std::numeric_limits<T>::infinity();
            TestBlock<T> w_block(own, w, layouts[0], own.place());
            TestBlock<T> v_block(own, random_global<T>(this->generator, 40, 3), layouts[0],
                                 own.place());
            const SmallMatrix<T> h(3, n);
            SmallMatrix<T> g(n, n);
            tsmm_gram(own, T(1), v_block.view(), h, T(1), w_block.view(), g);
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < n; ++j) {
                    ASSERT_EQ(std::isfinite(g(i, j)), i != n / 2 && j != n / 2)
                        << i << ", " << j << " of " << n;
                }
            }
        }
    }
}

TYPED_TEST(TsmmGram, RejectsShapesThatDisagree) {
    using T = TypeParam;
    TestBlock<T> v(this->ctx, Global<T>(40, 6), layouts[0], this->ctx.place());
    TestBlock<T> w(this->ctx, Global<T>(40, 4), layouts[0], this->ctx.place());
    const SmallMatrix<T> h(6, 4);
    const SmallMatrix<T> wrong(4, 6);
    SmallMatrix<T> g(4, 4);
    SmallMatrix<T> wrong_g(6, 4);
    SmallMatrix<T> square(3, 3);
    SmallMatrix<T> g3(3, 3);
    const auto call = [&](BlockView<const T> v_view, BlockView<const T> h_view, BlockView<T> w_view,
                          BlockView<T> g_view) {
        tsmm_gram(this->ctx, T(1), v_view, h_view, T(1), w_view, g_view);
    };
    EXPECT_THROW(call(v.view(), h, w.view().row_range(0, 39), g), ShapeError);
    EXPECT_THROW(call(v.view(), wrong, w.view(), g), ShapeError);
    EXPECT_THROW(call(v.view(), h, w.view(), wrong_g), ShapeError);
    EXPECT_THROW(call(v.view().columns(0, 3), square, v.view().columns(1, 3), g3), ShapeError);
    EXPECT_THROW(call(v.view().columns(0, 3), square, v.view().columns(3, 3), square), ShapeError);
    const BlockView<T> inside(w.view().data, 4, 4, 4, w.view().place);
    EXPECT_THROW(call(v.view(), h, w.view(), inside), ShapeError);
    auto elsewhere = w.view();
    elsewhere.place = test_place() == Place::host ? Place::device : Place::host;
    EXPECT_THROW(call(v.view(), h, elsewhere, g), ShapeError);
    EXPECT_NO_THROW(call(v.view().columns(0, 3), square, v.view().columns(3, 3), g3));
}

TYPED_TEST(TsmmGram, EntersTheLedger) {
    using T = TypeParam;
    TestBlock<T> w(this->ctx, Global<T>(40, 3), layouts[0], this->ctx.place());
    const SmallMatrix<T> h = SmallMatrix<T>::identity(3);
    SmallMatrix<T> g(3, 3);
    this->ctx.ledger().clear();
    tsmm_gram(this->ctx, T(1), w.view(), h, T(0), w.view(), g);
    auto records = this->ctx.ledger().records();
    std::erase_if(records, [](const KernelRecord& record) {
        return std::string(record.call.name) == "sum over ranks";
    });
    ASSERT_EQ(records.size(), 1u);
    EXPECT_STREQ(records[0].call.name, "tsmm_gram");
    EXPECT_EQ(records[0].bytes, 40.0 * (3 + 3) * sizeof(T));
    EXPECT_EQ(records[0].flops, 40.0 * 3 * (3 + 3) * multiply_add_flops_v<T>);
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmttsm.hpp"

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
    Place c_place;
};

template <class T>
Global<T> expected_product(const Case<T>& c, const Global<T>& a, const Global<T>& b,
                           Global<T> result) {
    reference::tsmttsm<wide_t<T>>(TsmttsmArgs<T>{c.rows, c.m, c.n, c.alpha, a.values.data(), c.m,
                                                 b.values.data(), c.n, c.beta, result.values.data(),
                                                 c.n});
    return result;
}

/// Random numbers, or NaN if beta is 0, because C must not be read then.
template <class T>
Global<T> old_result(std::mt19937_64& generator, const Case<T>& c) {
    return c.beta == T(0) ? poisoned_global<T>(c.m, c.n) : random_global<T>(generator, c.m, c.n);
}

template <class T>
std::string describe_case(const Case<T>& c) {
    std::ostringstream out;
    out << c.rows << " rows, m " << c.m << ", n " << c.n << ", alpha " << c.alpha << ", beta "
        << c.beta << ", padding " << c.layout.padding << ", offset " << c.layout.offset << ", C in "
        << to_string(c.c_place) << " memory";
    return out.str();
}

template <class T>
void check_case(Context& ctx, std::mt19937_64& generator, const Case<T>& c) {
    SCOPED_TRACE(describe_case(c));
    choose_plans(ctx, {.exact = generator() % 16 == 0});
    const auto a = random_global<T>(generator, c.rows, c.m);
    const auto b = random_global<T>(generator, c.rows, c.n);
    const auto old = old_result(generator, c);
    const RowMap map = uneven_map(ctx, c.rows);
    TestBlock<T> a_block(ctx, a, map, c.layout);
    TestBlock<T> b_block(ctx, b, map, any_layout(generator));
    TestBlock<T> c_block(ctx, old, c.layout, c.c_place);

    tsmttsm(ctx, c.alpha, a_block.view(), b_block.view(), c.beta, c_block.view());

    a_block.expect_unchanged();
    b_block.expect_unchanged();
    const auto actual = c_block.result();
    const auto expected = expected_product(c, a, b, old);
    for (int i = 0; i < c.m; ++i) {
        for (int j = 0; j < c.n; ++j) {
            const long double bound =
                sum_bound(c.rows, c.alpha, a.column_norm(i) * b.column_norm(j), c.beta,
                          c.beta == T(0) ? 0 : std::abs(old(i, j)));
            const long double error = std::abs(wide_t<T>(actual(i, j)) - wide_t<T>(expected(i, j)));
            ASSERT_TRUE(error <= bound) << "(" << i << ", " << j << "): " << actual(i, j)
                                        << " instead of " << expected(i, j);
        }
    }
}

/// Compares a weighted product with the reference. The weights are positive, negative or zero, and
/// are the middle one of three columns.
template <class T>
void check_weighted_case(Context& ctx, std::mt19937_64& generator, const Case<T>& c, bool same) {
    using R = real_t<T>;
    SCOPED_TRACE(describe_case(c) + (same ? ", A is B" : ""));
    const auto a = random_global<T>(generator, c.rows, c.m);
    const auto b = same ? a : random_global<T>(generator, c.rows, c.n);
    auto w = random_global<R>(generator, c.rows, 3);
    for (std::int64_t r = 0; r < c.rows; r += 5) {
        w(r, 1) = R(0);
    }
    const auto old = old_result(generator, c);
    const RowMap map = uneven_map(ctx, c.rows);
    TestBlock<T> a_block(ctx, a, map, c.layout);
    TestBlock<T> b_block(ctx, b, map, any_layout(generator));
    TestBlock<R> w_block(ctx, w, map, any_layout(generator));
    TestBlock<T> c_block(ctx, old, c.layout, c.c_place);

    weighted_tsmttsm(ctx, c.alpha, a_block.view(), w_block.view().columns(1, 1),
                     same ? a_block.view() : b_block.view(), c.beta, c_block.view());

    a_block.expect_unchanged();
    b_block.expect_unchanged();
    w_block.expect_unchanged();
    const auto actual = c_block.result();
    Global<T> expected = old;
    reference::weighted_tsmttsm<wide_t<T>>(
        WeightedTsmttsmArgs<T, R>{{c.rows, c.m, c.n, c.alpha, a.values.data(), c.m, b.values.data(),
                                   c.n, c.beta, expected.values.data(), c.n},
                                  w.values.data() + 1,
                                  3});
    Global<T> weighted = b;
    for (std::int64_t r = 0; r < c.rows; ++r) {
        for (int j = 0; j < c.n; ++j) {
            weighted(r, j) *= w(r, 1);
        }
    }
    for (int i = 0; i < c.m; ++i) {
        for (int j = 0; j < c.n; ++j) {
            // The product w b adds one rounding.
            const long double bound =
                sum_bound(c.rows + 1, c.alpha, a.column_norm(i) * weighted.column_norm(j), c.beta,
                          c.beta == T(0) ? 0 : std::abs(old(i, j)));
            const long double error = std::abs(wide_t<T>(actual(i, j)) - wide_t<T>(expected(i, j)));
            ASSERT_TRUE(error <= bound) << "(" << i << ", " << j << "): " << actual(i, j)
                                        << " instead of " << expected(i, j);
        }
    }
}

template <class T>
class Tsmttsm : public ::testing::Test {
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
TYPED_TEST_SUITE(Tsmttsm, Scalars, ScalarName);

TYPED_TEST(Tsmttsm, MatchesTheReferenceForEveryCombinationAtSomeWidths) {
    for (const auto& [m, n] : {std::pair{1, 1}, {3, 2}, {8, 8}, {5, 11}}) {
        for (int k = 0; k < 162; k += case_step()) {
            check_case(this->ctx, this->generator, this->combination(k, m, n));
        }
    }
}

TYPED_TEST(Tsmttsm, MatchesTheReferenceAtEveryWidth) {
    int row_count = 5;
    for (const int width : all_widths()) {
        for (int choice = 0; choice < 27; choice += case_step(), ++row_count) {
            check_case(this->ctx, this->generator,
                       this->combination(6 * choice + row_count % 6, width, width));
        }
    }
}

TYPED_TEST(Tsmttsm, MatchesTheReferenceForUnequalWidths) {
    std::uniform_int_distribution<int> any(1, 70);
    std::vector<std::pair<int, int>> pairs{{200, 20}, {20, 200}, {1, 64}, {64, 1},
                                           {40, 4},   {512, 3},  {3, 512}};
    for (int i = 0; i < 8; ++i) {
        const int m = any(this->generator);
        pairs.emplace_back(m, any(this->generator));
    }
    for (const auto& [m, n] : pairs) {
        check_case(this->ctx, this->generator,
                   Case<TypeParam>{67, m, n, this->coefficients[2], this->coefficients[2],
                                   layouts[2], Place::host});
    }
}

/// A basis of many columns times few columns. On a GPU streamed kernels compute some of these.
TYPED_TEST(Tsmttsm, MatchesTheReferenceForAWideBasis) {
    std::uniform_int_distribution<int> basis(129, 420);
    std::vector<std::pair<int, int>> pairs{{400, 16}, {400, 11}, {130, 9}, {1100, 12}, {385, 13}};
    for (int n = 8; n <= 16; n += 4) {
        pairs.emplace_back(basis(this->generator), n);
    }
    const int repeats = is_host_repetition() ? 1 : 2;
    int k = static_cast<int>(this->generator() % 162);
    for (const auto& [m, n] : pairs) {
        for (int repeat = 0; repeat < repeats; ++repeat, k += 25) {
            check_case(this->ctx, this->generator, this->combination(k % 162, m, n));
            auto weighted = this->combination((k + 7) % 162, m, n);
            weighted.rows = 30 * (k % 20);
            check_weighted_case(this->ctx, this->generator, weighted, false);
        }
    }
}

TYPED_TEST(Tsmttsm, MatchesTheReferenceForRandomShapes) {
    std::uniform_int_distribution<int> width(1, 64);
    std::uniform_int_distribution<int> wide(20, 200);
    std::uniform_int_distribution<int> rows(1, 3000);
    std::uniform_int_distribution<int> choice(0, 2);
    Context threads(Comm(MPI_COMM_WORLD), Device::host(3));
    for (int i = 0; i < 40; i += case_step()) {
        const auto& coefficients = this->coefficients;
        const int m = i % 4 == 0 ? wide(this->generator) : width(this->generator);
        const Case<TypeParam> c{rows(this->generator),
                                m,
                                i % 4 == 1 ? m : width(this->generator),
                                coefficients[1 + choice(this->generator) % 2],
                                coefficients[choice(this->generator)],
                                layouts[choice(this->generator)],
                                Place::host};
        check_case(i % 2 == 0 ? this->ctx : threads, this->generator, c);
    }
}

TYPED_TEST(Tsmttsm, MatchesTheReferenceAtWidthsBeyondFiveHundred) {
    check_case(this->ctx, this->generator,
               Case<TypeParam>{9, 517, 33, this->coefficients[1], this->coefficients[0], layouts[1],
                               Place::host});
}

TYPED_TEST(Tsmttsm, IsExactOnSmallIntegers) {
    using T = TypeParam;
    for (const int width : all_widths()) {
        const Case<T> c{97,         width, std::max(1, width - 2), T(2), T(-1), layouts[width % 3],
                        Place::host};
        SCOPED_TRACE(describe_case(c));
        const auto a = integer_global<T>(this->generator, c.rows, c.m);
        const auto b = integer_global<T>(this->generator, c.rows, c.n);
        const auto old = integer_global<T>(this->generator, c.m, c.n);
        const RowMap map = uneven_map(this->ctx, c.rows);
        TestBlock<T> a_block(this->ctx, a, map, c.layout);
        TestBlock<T> b_block(this->ctx, b, map, c.layout);
        TestBlock<T> c_block(this->ctx, old, c.layout, Place::host);

        tsmttsm(this->ctx, c.alpha, a_block.view(), b_block.view(), c.beta, c_block.view());

        expect_equal(c_block.result(), expected_product(c, a, b, old));
    }
}

/// A C of more than 1 MiB is computed in panels; the panels of a Gram matrix below the diagonal are
/// copies.
TYPED_TEST(Tsmttsm, IsExactForLargeResults) {
    using T = TypeParam;
    const Case<T> c{29, 709, 420, T(2), T(-1), layouts[1], Place::host};
    const auto a = integer_global<T>(this->generator, c.rows, c.m);
    const auto b = integer_global<T>(this->generator, c.rows, c.n);
    const RowMap map = uneven_map(this->ctx, c.rows);
    TestBlock<T> a_block(this->ctx, a, map, c.layout);
    TestBlock<T> b_block(this->ctx, b, map, layouts[2]);
    const auto old = integer_global<T>(this->generator, c.m, c.n);
    TestBlock<T> c_block(this->ctx, old, c.layout, Place::host);
    tsmttsm(this->ctx, c.alpha, a_block.view(), b_block.view(), c.beta, c_block.view());
    expect_equal(c_block.result(), expected_product(c, a, b, old));

    for (const T& alpha : {T(2), other_coefficient<T>()}) {
        const Case<T> gram{c.rows, c.m, c.m, alpha, T(0), layouts[2], Place::host};
        TestBlock<T> g_block(this->ctx, old_result(this->generator, gram), gram.layout,
                             Place::host);
        tsmttsm(this->ctx, alpha, a_block.view(), a_block.view(), T(0), g_block.view());
        const auto expected = expected_product(gram, a, a, Global<T>(c.m, c.m));
        const auto actual = g_block.result();
        for (int i = 0; i < c.m; ++i) {
            for (int j = 0; j < c.m; ++j) {
                const long double bound =
                    sum_bound(c.rows, alpha, a.column_norm(i) * a.column_norm(j), T(0), 0);
                ASSERT_LE(std::abs(wide_t<T>(actual(i, j)) - wide_t<T>(expected(i, j))), bound)
                    << i << ", " << j;
            }
        }
    }
}

TYPED_TEST(Tsmttsm, TakesOneBlockTwiceAndOverlappingColumns) {
    using T = TypeParam;
    const auto values = integer_global<T>(this->generator, 65, 12);
    const RowMap map = uneven_map(this->ctx, 65);
    TestBlock<T> block(this->ctx, values, map, layouts[1]);
    SmallMatrix<T> gram(12, 12);
    SmallMatrix<T> part(8, 7);

    tsmttsm(this->ctx, T(1), block.view(), block.view(), T(0), gram);
    tsmttsm(this->ctx, T(1), block.view().columns(0, 8), block.view().columns(5, 7), T(0), part);

    const Case<T> c{65, 12, 12, T(1), T(0), {}, Place::host};
    const auto expected = expected_product(c, values, values, Global<T>(12, 12));
    for (int i = 0; i < 12; ++i) {
        for (int j = 0; j < 12; ++j) {
            ASSERT_EQ(gram(i, j), expected(i, j));
            if (i < 8 && j >= 5) {
                ASSERT_EQ(part(i, j - 5), expected(i, j));
            }
        }
    }
}

TYPED_TEST(Tsmttsm, SumsOverThisRankOnlyWhenAsked) {
    using T = TypeParam;
    const RowMap map = uneven_map(this->ctx, 101);
    TestBlock<T> ones(this->ctx, Global<T>(101, 3, [] { return T(1); }), map, layouts[0]);
    SmallMatrix<T> local(3, 3);
    SmallMatrix<T> global(3, 3);

    tsmttsm(this->ctx, T(1), ones.view(), ones.view(), T(0), local, Reduce::this_rank);
    tsmttsm(this->ctx, T(1), ones.view(), ones.view(), T(0), global);

    EXPECT_EQ(local(1, 2), T(static_cast<real_t<T>>(map.local_rows())));
    EXPECT_EQ(global(1, 2), T(101));
}

TYPED_TEST(Tsmttsm, GivesTheSameBitsEveryTime) {
    using T = TypeParam;
    const auto values = random_global<T>(this->generator, 4099, 9);
    const RowMap map = uneven_map(this->ctx, 4099);
    TestBlock<T> block(this->ctx, values, map, layouts[0]);
    SmallMatrix<T> first(9, 9);
    tsmttsm(this->ctx, T(1), block.view(), block.view(), T(0), first);
    for (int repeat = 0; repeat < 5; ++repeat) {
        SmallMatrix<T> again(9, 9);
        tsmttsm(this->ctx, T(1), block.view(), block.view(), T(0), again);
        ASSERT_EQ(std::memcmp(first.data(), again.data(), 81 * sizeof(T)), 0);
    }
}

TYPED_TEST(Tsmttsm, GivesTheSameResultOnAllRanks) {
    using T = TypeParam;
    const auto values = random_global<T>(this->generator, 1001, 5);
    const RowMap map = uneven_map(this->ctx, 1001);
    TestBlock<T> block(this->ctx, values, map, layouts[0]);
    SmallMatrix<T> mine(5, 5);
    tsmttsm(this->ctx, other_coefficient<T>(), block.view(), block.view(), T(0), mine);
    tsmttsm(this->ctx, T(1), block.view(), block.view(), other_coefficient<T>(), mine);
    SmallMatrix<T> root = mine;
    this->ctx.comm().broadcast(root.data(), 25 * sizeof(T), 0);
    EXPECT_EQ(std::memcmp(root.data(), mine.data(), 25 * sizeof(T)), 0);
}

TYPED_TEST(Tsmttsm, HandlesManyThreads) {
    using T = TypeParam;
    Context threads(Comm(MPI_COMM_WORLD), Device::host(5));
    const auto values = integer_global<T>(this->generator, 4000, 7);
    const RowMap map = uneven_map(threads, 4000);
    TestBlock<T> block(threads, values, map, layouts[1]);
    SmallMatrix<T> gram(7, 7);
    tsmttsm(threads, T(1), block.view(), block.view(), T(0), gram);
    const Case<T> c{4000, 7, 7, T(1), T(0), {}, Place::host};
    const auto expected = expected_product(c, values, values, Global<T>(7, 7));
    for (int i = 0; i < 7; ++i) {
        for (int j = 0; j < 7; ++j) {
            ASSERT_EQ(gram(i, j), expected(i, j));
        }
    }
}

TYPED_TEST(Tsmttsm, LeavesAnEmptyResultAlone) {
    using T = TypeParam;
    const RowMap map = uneven_map(this->ctx, 10);
    TestBlock<T> a(this->ctx, Global<T>(10, 0), map, layouts[1]);
    TestBlock<T> b(this->ctx, Global<T>(10, 4), map, layouts[1]);
    TestBlock<T> c(this->ctx, Global<T>(0, 4), layouts[1], Place::host);
    tsmttsm(this->ctx, T(1), a.view(), b.view(), T(0), c.view());
    c.expect_unchanged();
}

TYPED_TEST(Tsmttsm, RejectsShapesThatDisagree) {
    using T = TypeParam;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 40);
    TestBlock<T> a(this->ctx, Global<T>(40, 3), map, layouts[0]);
    TestBlock<T> b(this->ctx, Global<T>(40, 4), map, layouts[0]);
    SmallMatrix<T> c(3, 4);
    SmallMatrix<T> wrong(4, 3);
    const auto short_b = b.view().row_range(0, b.view().rows - 1);
    EXPECT_THROW(tsmttsm(this->ctx, T(1), a.view(), short_b, T(0), c), ShapeError);
    EXPECT_THROW(tsmttsm(this->ctx, T(1), a.view(), b.view(), T(0), wrong), ShapeError);
    auto narrow = b.view();
    narrow.ld = 3;
    EXPECT_THROW(tsmttsm(this->ctx, T(1), a.view(), narrow, T(0), c), ShapeError);
    auto elsewhere = b.view();
    elsewhere.place = test_place() == Place::host ? Place::device : Place::host;
    EXPECT_THROW(tsmttsm(this->ctx, T(1), a.view(), elsewhere, T(0), c), ShapeError);
    const BlockView<T> inside(b.view().data, 3, 4, 4, b.view().place);
    EXPECT_THROW(tsmttsm(this->ctx, T(1), a.view(), b.view(), T(0), inside), ShapeError);
    try {
        tsmttsm(this->ctx, T(1), a.view(), b.view(), T(0), wrong);
    } catch (const ShapeError& error) {
        EXPECT_NE(std::string(error.what()).find("tsmttsm"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("4 x 3"), std::string::npos);
    }
}

TYPED_TEST(Tsmttsm, WeightedMatchesTheReference) {
    for (const auto& [m, n] : {std::pair{1, 1}, {3, 2}, {8, 8}, {5, 11}, {20, 4}, {40, 33}}) {
        for (int k = 0; k < 162; k += (m < 20 ? 5 : 17) * case_step()) {
            auto c = this->combination(k, m, n);
            check_weighted_case(this->ctx, this->generator, c, m == n && k % 2 == 0);
            // Enough rows for several blocks of rows in several chunks.
            if (k % 3 == 0) {
                c.rows = 3000 + k;
                check_weighted_case(this->ctx, this->generator, c, m == n);
            }
        }
    }
}

TYPED_TEST(Tsmttsm, WeightedRefusesWeightsOfAnotherShape) {
    using T = TypeParam;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 40);
    const RowMap longer = RowMap::by_rows(this->ctx.comm(), 80);
    TestBlock<T> a(this->ctx, Global<T>(40, 3), map, layouts[0]);
    TestBlock<real_t<T>> w(this->ctx, Global<real_t<T>>(80, 2), longer, layouts[0]);
    SmallMatrix<T> c(3, 3);
    EXPECT_THROW(
        weighted_tsmttsm(this->ctx, T(1), a.view(), w.view().columns(0, 1), a.view(), T(0), c),
        ShapeError);
    TestBlock<real_t<T>> wide(this->ctx, Global<real_t<T>>(40, 2), map, layouts[0]);
    EXPECT_THROW(weighted_tsmttsm(this->ctx, T(1), a.view(), wide.view(), a.view(), T(0), c),
                 ShapeError);
}

TEST(WeightedTsmttsmCost, IsThatOfTheProductAndOfTheWeights) {
    // A: 5 x 2, B: 5 x 3, w: 5. The rows of the narrower block are multiplied by their weights.
    const double a[10]{}, b[15]{}, w[5]{};
    const Cost real =
        cost(WeightedTsmttsmArgs<double, double>{{5, 2, 3, 1, a, 2, b, 3, 0, nullptr, 3}, w, 1});
    EXPECT_EQ(real.bytes, 30 * 8);
    EXPECT_EQ(real.flops, 60 + 10);
    const std::complex<float> x[10]{};
    const float v[5]{};
    const Cost gram = cost(WeightedTsmttsmArgs<std::complex<float>, float>{
        {5, 2, 2, 1, x, 2, x, 2, 0, nullptr, 2}, v, 1});
    EXPECT_EQ(gram.bytes, 10 * 8 + 5 * 4);
    EXPECT_EQ(gram.flops, 160 + 20);
}

TYPED_TEST(Tsmttsm, EntersTheLedger) {
    using T = TypeParam;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 40);
    TestBlock<T> a(this->ctx, Global<T>(40, 3), map, layouts[0]);
    SmallMatrix<T> c(3, 3);
    this->ctx.ledger().clear();
    tsmttsm(this->ctx, T(1), a.view(), a.view(), T(0), c);
    auto records = this->ctx.ledger().records();
    const auto sums = std::erase_if(records, [](const KernelRecord& record) {
        return std::string(record.call.name) == "sum over ranks";
    });
    EXPECT_EQ(sums, this->ctx.comm().size() > 1 ? 1u : 0u);
    ASSERT_EQ(records.size(), 1u);
    const auto rows = static_cast<double>(map.local_rows());
    EXPECT_STREQ(records[0].call.name, "tsmttsm");
    EXPECT_EQ(records[0].bytes, rows * 3 * sizeof(T));
    EXPECT_EQ(records[0].flops, rows * 9 * multiply_add_flops_v<T>);
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// Tests a large dense matrix, or its adjoint, times a tall & skinny one.
#include "kernels/mtsm.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/rank_links.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

constexpr MatrixOrder orders[] = {MatrixOrder::row_major, MatrixOrder::column_major};

template <class T>
Global<T> transposed(const Global<T>& values) {
    Global<T> result(values.cols, static_cast<int>(values.rows));
    for (std::int64_t i = 0; i < values.rows; ++i) {
        for (int j = 0; j < values.cols; ++j) {
            result(j, static_cast<int>(i)) = values(i, j);
        }
    }
    return result;
}

/// A matrix in poisoned memory, stored in either order.
template <class T>
class TestMatrix {
  public:
    TestMatrix(Context& ctx, const Global<T>& values, MatrixOrder order, Layout layout, Place place)
        : by_rows_(order == MatrixOrder::row_major),
          block_(ctx, by_rows_ ? values : transposed(values), layout, place) {}
    TestMatrix(Context& ctx, const Global<T>& values, MatrixOrder order, Layout layout)
        : TestMatrix(ctx, values, order, layout, ctx.place()) {}

    MatrixView<T> view() {
        const MatrixView<T> lines = block_.view();
        return by_rows_ ? lines : lines.transposed();
    }
    Global<T> result() { return by_rows_ ? block_.result() : transposed(block_.result()); }
    void expect_unchanged() { block_.expect_unchanged(); }

  private:
    bool by_rows_;
    TestBlock<T> block_;
};

/// alpha op(A) X + beta Y in long double.
template <class A, class T>
Global<T> expected_result(bool adjoint, T alpha, const Global<A>& a, const Global<T>& x, T beta,
                          Global<T> y) {
    reference::mtsm<wide_t<T>>(MtsmArgs<A, T>{y.rows, x.rows, x.cols, alpha, a.values.data(),
                                              a.cols, !adjoint, adjoint, x.values.data(), x.cols, 1,
                                              beta, y.values.data(), x.cols, 1});
    return y;
}

template <class A, class T>
void expect_close(const Global<T>& actual, bool adjoint, T alpha, const Global<A>& a,
                  const Global<T>& x, T beta, const Global<T>& old) {
    const Global<T> expected = expected_result(adjoint, alpha, a, x, beta, old);
    const auto lines = adjoint ? a.cols : a.rows;
    std::vector<long double> norms(static_cast<std::size_t>(lines));
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (int j = 0; j < a.cols; ++j) {
            const auto value = reference::converted<T>(a(i, j));
            norms[static_cast<std::size_t>(adjoint ? j : i)] +=
                static_cast<long double>(abs_squared(value));
        }
    }
    for (std::int64_t i = 0; i < actual.rows; ++i) {
        for (int j = 0; j < actual.cols; ++j) {
            const long double products =
                std::sqrt(norms[static_cast<std::size_t>(i)]) * x.column_norm(j);
            const long double bound =
                sum_bound<T>(x.rows, alpha, products, beta,
                             beta == T(0) ? 0 : static_cast<long double>(std::abs(old(i, j))));
            ASSERT_TRUE(std::abs(wide_t<T>(actual(i, j)) - wide_t<T>(expected(i, j))) <= bound)
                << "(" << i << ", " << j << "): " << actual(i, j) << " instead of "
                << expected(i, j);
        }
    }
}

int random_shapes() {
    return test_place() == Place::host ? 60 : 8;
}

/// The parameters of one product, without its values.
struct Setting {
    bool adjoint = false;
    MatrixOrder a = MatrixOrder::row_major, x = MatrixOrder::row_major, y = MatrixOrder::row_major;
    Layout layout = {};
};

template <class T>
class Mtsm : public ::testing::Test {
  protected:
    /// Compares Y = alpha op(A) X + beta Y with the reference, for random X and Y of n columns.
    template <class A>
    void check(const Setting& setting, const Global<A>& a, int n, T alpha, T beta) {
        const std::int64_t m = setting.adjoint ? a.cols : a.rows;
        const std::int64_t k = setting.adjoint ? a.rows : a.cols;
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n) +
                     (setting.adjoint ? ", adjoint" : "") + ", orders " +
                     std::to_string(static_cast<int>(setting.a)) +
                     std::to_string(static_cast<int>(setting.x)) +
                     std::to_string(static_cast<int>(setting.y)) + ", padding " +
                     std::to_string(setting.layout.padding) + (beta == T(0) ? ", beta 0" : ""));
        const auto x = random_global<T>(generator, k, n);
        const auto old =
            beta == T(0) ? poisoned_global<T>(m, n) : random_global<T>(generator, m, n);
        TestMatrix<A> a_matrix(ctx, a, setting.a, setting.layout);
        TestMatrix<T> x_matrix(ctx, x, setting.x, setting.layout);
        TestMatrix<T> y_matrix(ctx, old, setting.y, setting.layout);
        (setting.adjoint ? run_adjoint<A> : run_plain<A>)(ctx, alpha, a_matrix.view(),
                                                          x_matrix.view(), beta, y_matrix.view());
        a_matrix.expect_unchanged();
        x_matrix.expect_unchanged();
        expect_close(y_matrix.result(), setting.adjoint, alpha, a, x, beta, old);
    }
    template <class A>
    static void run_plain(Context& ctx, T alpha, MatrixView<const A> a, MatrixView<const T> x,
                          T beta, MatrixView<T> y) {
        mtsm(ctx, alpha, a, x, beta, y);
    }
    template <class A>
    static void run_adjoint(Context& ctx, T alpha, MatrixView<const A> a, MatrixView<const T> x,
                            T beta, MatrixView<T> y) {
        mtsm_adjoint(ctx, alpha, a, x, beta, y);
    }
    Setting random_setting() {
        return {pick(2) != 0, orders[pick(2)], orders[pick(2)], orders[pick(2)], layouts[pick(3)]};
    }
    /// A random index from 0 to count - 1.
    std::size_t pick(std::size_t count) { return generator() % count; }
    int size(int most) { return static_cast<int>(pick(static_cast<std::size_t>(most) + 1)); }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
TYPED_TEST_SUITE(Mtsm, Scalars, ScalarName);

TYPED_TEST(Mtsm, MatchesTheReferenceForRandomShapesAndOrders) {
    using T = TypeParam;
    for (int i = 0; i < random_shapes(); ++i) {
        const auto a = random_global<T>(this->generator, this->size(300), this->size(300));
        this->check(this->random_setting(), a, 1 + this->size(i % 10 == 0 ? 80 : 33),
                    i % 3 == 0 ? T(1) : other_coefficient<T>(),
                    i % 2 == 0 ? T(0) : other_coefficient<T>());
    }
}

TYPED_TEST(Mtsm, EveryOrderOfEveryOperand) {
    using T = TypeParam;
    const auto a = random_global<T>(this->generator, 131, 70);
    for (int bits = 0; bits < 16; ++bits) {
        if (test_place() == Place::device && bits % 4 != static_cast<int>(dtype_v<T>) % 4) {
            continue;
        }
        const Setting setting{bits % 2 != 0, orders[bits / 2 % 2], orders[bits / 4 % 2],
                              orders[bits / 8], layouts[bits % 3]};
        this->check(setting, a, 5, other_coefficient<T>(), T(0));
        this->check(setting, a, 5, T(1), other_coefficient<T>());
    }
}

TYPED_TEST(Mtsm, LongAndWideMatricesOnSeveralThreads) {
    using T = TypeParam;
    if (test_place() == Place::device) {
        GTEST_SKIP() << "tests threads of the host";
    }
    for (const int threads : {2, 5}) {
        this->ctx = Context(Comm(), Device::host(threads));
        for (const auto& [rows, cols] : {std::pair{3000, 40}, {40, 3000}, {700, 701}}) {
            const auto a = random_global<T>(this->generator, rows, cols);
            this->check(this->random_setting(), a, 7, T(1), T(0));
        }
    }
}

TYPED_TEST(Mtsm, IsExactOnSmallIntegersAndTheSameEveryTime) {
    using T = TypeParam;
    for (const bool adjoint : {false, true}) {
        for (const MatrixOrder order : orders) {
            const auto a = integer_global<T>(this->generator, 517, 1030);
            const std::int64_t k = adjoint ? a.rows : a.cols;
            const std::int64_t m = adjoint ? a.cols : a.rows;
            const auto x = integer_global<T>(this->generator, k, 16);
            TestMatrix<T> a_matrix(this->ctx, a, order, {});
            TestMatrix<T> x_matrix(this->ctx, x, MatrixOrder::row_major, {});
            for (int time = 0; time < 2; ++time) {
                TestMatrix<T> y(this->ctx, poisoned_global<T>(m, 16), MatrixOrder::row_major, {});
                if (adjoint) {
                    mtsm_adjoint<T>(this->ctx, T(1), a_matrix.view(), x_matrix.view(), T(0),
                                    y.view());
                } else {
                    mtsm<T>(this->ctx, T(1), a_matrix.view(), x_matrix.view(), T(0), y.view());
                }
                expect_equal(y.result(),
                             expected_result(adjoint, T(1), a, x, T(0), Global<T>(m, 16)));
            }
        }
    }
}

TYPED_TEST(Mtsm, WhatIsNotFiniteStaysInItsRowAndColumn) {
    using T = TypeParam;
    using R = real_t<T>;
    const R bad[] = {std::numeric_limits<R>::infinity(), std::numeric_limits<R>::quiet_NaN()};
    for (const bool adjoint : {false, true}) {
        for (const MatrixOrder order : orders) {
            for (const R value : bad) {
                auto a = random_global<T>(this->generator, 97, 75);
                auto x = random_global<T>(this->generator, adjoint ? 97 : 75, 9);
                const std::int64_t m = adjoint ? 75 : 97;
                a(50, 40) = T(value);
                x(33, 4) = T(value);
                TestMatrix<T> a_matrix(this->ctx, a, order, layouts[1]);
                TestMatrix<T> x_matrix(this->ctx, x, MatrixOrder::row_major, {});
                TestMatrix<T> y_matrix(this->ctx, poisoned_global<T>(m, 9), order, {});
                if (adjoint) {
                    mtsm_adjoint<T>(this->ctx, T(1), a_matrix.view(), x_matrix.view(), T(0),
                                    y_matrix.view());
                } else {
                    mtsm<T>(this->ctx, T(1), a_matrix.view(), x_matrix.view(), T(0),
                            y_matrix.view());
                }
                const auto y = y_matrix.result();
                for (std::int64_t i = 0; i < m; ++i) {
                    for (int j = 0; j < 9; ++j) {
                        const bool touched = i == (adjoint ? 40 : 50) || j == 4;
                        ASSERT_EQ(is_finite(y(i, j)), !touched) << i << ", " << j;
                    }
                }
            }
        }
    }
}

/// Y = alpha op(A) X + beta Y over the ranks of the Context, against the reference.
template <class T>
void check_over_ranks(Context& ctx, bool adjoint, const Global<T>& a, MatrixOrder order,
                      const RowMap& of_rows, const RowMap& of_columns, int width,
                      std::mt19937_64& generator) {
    // This rank's rows of A.
    Global<T> own(of_rows.local_rows(), a.cols);
    for (std::int64_t i = 0; i < own.rows; ++i) {
        for (int j = 0; j < a.cols; ++j) {
            own(i, j) = a(of_rows.first_row() + i, j);
        }
    }
    TestMatrix<T> a_matrix(ctx, own, order, layouts[1]);
    const RowMap& from = adjoint ? of_rows : of_columns;
    const RowMap& to = adjoint ? of_columns : of_rows;
    const auto x = random_global<T>(generator, from.global_rows(), width);
    const auto old = random_global<T>(generator, to.global_rows(), width);
    BlockVector<T> x_block(ctx, from, width, width + 2);
    BlockVector<T> y_block(ctx, to, width, width + 1);
    const auto part = [&](const Global<T>& values, const RowMap& map) {
        return BlockView<const T>(values.values.data() + map.first_row() * width, map.local_rows(),
                                  width, width);
    };
    copy(ctx, part(x, from), x_block.view());
    copy(ctx, part(old, to), y_block.view());
    const T alpha = other_coefficient<T>();
    const T beta = adjoint ? T(0.5) : other_coefficient<T>();
    if (adjoint) {
        mtsm_adjoint<T>(ctx, alpha, a_matrix.view(), x_block, beta, y_block);
    } else {
        mtsm<T>(ctx, alpha, a_matrix.view(), x_block, beta, y_block);
    }
    // The rows of X must have been read.
    fill(ctx, T(7), x_block.view());
    Global<T> y(to.global_rows(), width);
    copy(ctx, BlockView<const T>(y_block.view()),
         BlockView<T>(y.values.data() + to.first_row() * width, to.local_rows(), width, width));
    ctx.synchronize();
    ctx.comm().sum(std::span<T>(y.values));
    expect_close(y, adjoint, alpha, a, x, beta, old);
}

TYPED_TEST(Mtsm, WorksOverTheRanksOnBlockVectors) {
    using T = TypeParam;
    // Where the ranks have GPUs of their own: peer memory with NCCL, each alone, and the host.
    for (const char* const links : {"", "nccl", "peers", "mpi"}) {
        SCOPED_TRACE(std::string("QUIVER_LINKS=") + links);
        const Environment environment("QUIVER_LINKS", links);
        Context ctx = make_context();
        const bool has_choice = ctx.comm().size() > 1 && ctx.place() == Place::device &&
                                ctx.service<RankLinks>().halos_on_device();
        // The uneven maps have a rank without rows; the second shape reduces more than 64 KiB.
        for (const auto& [rows, cols, width] :
             {std::tuple{211, 90, 3}, {64, 1301, 17}, {5, 2, 1}}) {
            const auto a = random_global<T>(this->generator, rows, cols);
            const RowMap of_rows = uneven_map(ctx, rows);
            for (const RowMap& of_columns :
                 {RowMap::by_rows(ctx.comm(), cols), uneven_map(ctx, cols)}) {
                for (const MatrixOrder order : orders) {
                    for (const bool adjoint : {false, true}) {
                        check_over_ranks(ctx, adjoint, a, order, of_rows, of_columns, width,
                                         this->generator);
                    }
                }
            }
        }
        if (!has_choice) {
            break;
        }
    }
}

/// No rank waits for the others, and a later call works.
TYPED_TEST(Mtsm, OneRankWithAWrongMatrixIsAnErrorOfAllRanks) {
    using T = TypeParam;
    const bool is_wrong = this->ctx.comm().rank() == this->ctx.comm().size() - 1;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 40);
    BlockVector<T> x(this->ctx, map, 3);
    BlockVector<T> y(this->ctx, map, 3);
    const Global<T> own(map.local_rows() + (is_wrong ? 1 : 0), 40);
    TestMatrix<T> a(this->ctx, own, MatrixOrder::row_major, {});
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), a.view(), x, T(0), y), ShapeError);
    EXPECT_THROW(mtsm_adjoint<T>(this->ctx, T(1), a.view(), x, T(0), y), ShapeError);
    check_over_ranks(this->ctx, false, random_global<T>(this->generator, 40, 40), orders[0], map,
                     map, 3, this->generator);
}

TYPED_TEST(Mtsm, BlocksStoredByColumnsTimesSmallMatrices) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair{4, 4}, {16, 16}, {31, 7}}) {
        for (const Place place : {Place::host, test_place()}) {
            const auto x = random_global<T>(this->generator, 1300, m);
            const auto c = random_global<T>(this->generator, m, n);
            const auto old = random_global<T>(this->generator, 1300, n);
            const MatrixOrder order = orders[this->pick(2)];
            TestMatrix<T> x_matrix(this->ctx, x, MatrixOrder::column_major, layouts[1]);
            TestMatrix<T> c_matrix(this->ctx, c, order, layouts[2], place);
            TestMatrix<T> y_matrix(this->ctx, old, MatrixOrder::column_major, {});
            const T alpha = other_coefficient<T>();
            tsmm<T>(this->ctx, alpha, x_matrix.view(), c_matrix.view(), T(0.5), y_matrix.view());
            expect_close(y_matrix.result(), false, alpha, x, c, T(0.5), old);
        }
    }
}

TYPED_TEST(Mtsm, SumsWithoutTermsAndEmptyResults) {
    using T = TypeParam;
    for (const bool adjoint : {false, true}) {
        const Global<T> a(adjoint ? 0 : 40, adjoint ? 40 : 0);
        this->check({.adjoint = adjoint}, a, 3, T(1), other_coefficient<T>());
        this->check({.adjoint = adjoint}, a, 3, T(1), T(0));
        this->check({.adjoint = adjoint}, Global<T>(adjoint ? 9 : 0, adjoint ? 0 : 9), 3, T(1),
                    T(0));
    }
}

TYPED_TEST(Mtsm, TheLedgerCountsLeastBytesAndFlops) {
    using T = TypeParam;
    const auto a = random_global<T>(this->generator, 60, 50);
    this->ctx.ledger().clear();
    this->check({}, a, 3, T(1), T(0.5));
    this->check({.adjoint = true}, a, 3, T(1), T(0));
    const double bytes[] = {3000. + 150 + 360, 3000. + 180 + 150};
    std::size_t found = 0;
    for (const KernelRecord& record : this->ctx.ledger().records()) {
        const std::string name = record.call.name;
        if (name == "mtsm" || name == "mtsm_adjoint") {
            EXPECT_EQ(record.call.bytes, sizeof(T) * bytes[name == "mtsm" ? 0 : 1]);
            EXPECT_EQ(record.call.flops, multiply_add_flops_v<T> * 60 * 50 * 3);
            ++found;
        }
    }
    EXPECT_EQ(found, 2u);
}

TYPED_TEST(Mtsm, RefusesShapesAndMemoryThatDoNotFit) {
    using T = TypeParam;
    std::vector<T> memory(400);
    const auto matrix = [&](std::int64_t first, std::int64_t rows, std::int64_t cols,
                            std::int64_t ld, MatrixOrder order = MatrixOrder::row_major) {
        return MatrixView<T>(memory.data() + first, rows, cols, ld, order, this->ctx.place());
    };
    const auto a = matrix(0, 6, 5, 5);
    const auto x = matrix(100, 5, 3, 3);
    const auto y = matrix(200, 6, 3, 3);
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), a, y, T(0), y), ShapeError);
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), a, x, T(0), matrix(200, 6, 2, 2)), ShapeError);
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), a, x, T(0), matrix(200, 5, 3, 3)), ShapeError);
    EXPECT_THROW(mtsm_adjoint<T>(this->ctx, T(1), a, x, T(0), y), ShapeError);
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), a, x, T(0), matrix(20, 6, 3, 3)), ShapeError)
        << "Y overlaps A";
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), a, x, T(0), matrix(110, 6, 3, 3)), ShapeError)
        << "Y overlaps X";
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), matrix(0, 6, 5, 4), x, T(0), y), ShapeError);
    EXPECT_THROW(
        mtsm<T>(this->ctx, T(1), matrix(0, 6, 5, 5, MatrixOrder::column_major), x, T(0), y),
        ShapeError)
        << "ld is shorter than a column";
    auto elsewhere = x;
    elsewhere.place = this->ctx.place() == Place::host ? Place::device : Place::host;
    EXPECT_THROW(mtsm<T>(this->ctx, T(1), a, elsewhere, T(0), y), ShapeError);
}

template <class A>
class MtsmShort : public Mtsm<float> {};
using Shorts = ::testing::Types<half_t, bfloat16_t>;
TYPED_TEST_SUITE(MtsmShort, Shorts, ScalarName);

TYPED_TEST(MtsmShort, MatchesTheReferenceForRandomShapesAndOrders) {
    for (int i = 0; i < random_shapes() / 2; ++i) {
        const Global<TypeParam> a(this->size(300), this->size(300), [&] {
            return reference::converted<TypeParam>(random_value<float>(this->generator));
        });
        this->check(this->random_setting(), a, 1 + this->size(33), i % 3 == 0 ? 1.F : -1.25F,
                    i % 2 == 0 ? 0.F : 0.5F);
    }
}

/// A has integers that half and bfloat16 represent exactly. X has integers with more bits than
/// tf32. The sums are exact in float only if all bits of X are used.
TYPED_TEST(MtsmShort, IsExactOnIntegersOfThirteenBits) {
    using A = TypeParam;
    const auto integer = [&](int most) { return static_cast<float>(this->size(2 * most) - most); };
    for (const bool adjoint : {false, true}) {
        for (const MatrixOrder order : orders) {
            for (const int n : {3, 8, 19, 40}) {
                const int m = 75 + 64 * static_cast<int>(this->pick(4));
                const int k = 100 + this->size(200);
                const Global<A> a(adjoint ? k : m, adjoint ? m : k,
                                  [&] { return reference::converted<A>(integer(3)); });
                const Global<float> x(k, n, [&] { return integer(8000); });
                TestMatrix<A> a_matrix(this->ctx, a, order, layouts[this->pick(3)]);
                TestMatrix<float> x_matrix(this->ctx, x, orders[this->pick(2)],
                                           layouts[this->pick(3)]);
                TestMatrix<float> y(this->ctx, poisoned_global<float>(m, n), MatrixOrder::row_major,
                                    layouts[1]);
                SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(k) + " x " +
                             std::to_string(n) + (adjoint ? ", adjoint" : ""));
                if (adjoint) {
                    mtsm_adjoint(this->ctx, 1.F, a_matrix.view(), x_matrix.view(), 0.F, y.view());
                } else {
                    mtsm(this->ctx, 1.F, a_matrix.view(), x_matrix.view(), 0.F, y.view());
                }
                expect_equal(y.result(),
                             expected_result(adjoint, 1.F, a, x, 0.F, Global<float>(m, n)));
            }
        }
    }
}

TYPED_TEST(MtsmShort, WhatIsNotFiniteStaysInItsRowAndColumn) {
    using A = TypeParam;
    for (const MatrixOrder order : orders) {
        for (const float bad :
             {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
            Global<A> a(97, 75, [&] {
                return reference::converted<A>(random_value<float>(this->generator));
            });
            auto x = random_global<float>(this->generator, 75, 17);
            a(50, 40) = reference::converted<A>(bad);
            x(33, 4) = bad;
            TestMatrix<A> a_matrix(this->ctx, a, order, layouts[1]);
            TestMatrix<float> x_matrix(this->ctx, x, MatrixOrder::row_major, {});
            TestMatrix<float> y_matrix(this->ctx, poisoned_global<float>(97, 17), order, {});
            mtsm(this->ctx, 1.F, a_matrix.view(), x_matrix.view(), 0.F, y_matrix.view());
            const auto y = y_matrix.result();
            for (std::int64_t i = 0; i < 97; ++i) {
                for (int j = 0; j < 17; ++j) {
                    ASSERT_EQ(is_finite(y(i, j)), i != 50 && j != 4) << i << ", " << j;
                }
            }
        }
    }
}

/// Truncation errors accumulate in long sums of terms of one sign. X is far beyond the range of
/// half.
TYPED_TEST(MtsmShort, LongSumsOfOneSignAndAnyMagnitudeKeepTheirDigits) {
    using A = TypeParam;
    for (const MatrixOrder order : orders) {
        for (const float scale : {1.F, 1e-15F, 1e15F}) {
            const Global<A> a(40, 3000, [&] {
                return reference::converted<A>(1.5F + random_value<float>(this->generator) / 2);
            });
            Global<float> x(3000, 16, [&] {
                return scale * (1.5F + random_value<float>(this->generator) / 2);
            });
            TestMatrix<A> a_matrix(this->ctx, a, order, {});
            TestMatrix<float> x_matrix(this->ctx, x, MatrixOrder::row_major, {});
            TestMatrix<float> y(this->ctx, poisoned_global<float>(40, 16), MatrixOrder::row_major,
                                {});
            mtsm(this->ctx, 1.F, a_matrix.view(), x_matrix.view(), 0.F, y.view());
            expect_close(y.result(), false, 1.F, a, x, 0.F, Global<float>(40, 16));
        }
    }
}

}  // namespace
}  // namespace quiver::test

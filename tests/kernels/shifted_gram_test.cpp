// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/shifted_gram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class In>
class ShiftedGram : public ::testing::Test {
  protected:
    struct Problem {
        Global<In> x;
        std::vector<double> shift;
        double factor;
    };

    static In made(double value) { return reference::converted<In>(value); }
    /// Column j is around offset (j + 1), and the shift is near it. Odd columns have no shift.
    Problem random(std::int64_t rows, int n, double offset, double factor) {
        Problem given{Global<In>(rows, n), {}, factor};
        for (int j = 0; j < n; ++j) {
            const double centre = j % 2 == 1 ? 0 : offset * (j + 1);
            given.shift.push_back(centre == 0 ? 0 : centre + random_value<double>(generator));
            for (std::int64_t i = 0; i < rows; ++i) {
                given.x(i, j) = made(centre + random_value<double>(generator));
            }
        }
        return given;
    }
    Problem integers(std::int64_t rows, int n, double factor) {
        Problem given{Global<In>(rows, n, [&] { return made(integer_value<double>(generator)); }),
                      {},
                      factor};
        for (int j = 0; j < n; ++j) {
            given.shift.push_back(integer_value<double>(generator));
        }
        return given;
    }

    SmallMatrix<double> run(const Problem& given, Layout layout) {
        const RowMap map = uneven_map(ctx, given.x.rows);
        TestBlock<In> block(ctx, given.x, map, layout);
        SmallMatrix<double> sums(given.x.cols + 1, given.x.cols);
        std::fill_n(sums.data(), (given.x.cols + 1) * given.x.cols, poison<double>());
        shifted_gram<In>(ctx, block.view(), given.shift, given.factor, sums);
        block.expect_unchanged();
        return sums;
    }
    static ShiftedGramArgs<In> args_of(const Problem& given, double* sums) {
        return {given.x.rows, given.x.cols, given.x.values.data(), given.x.cols, given.shift.data(),
                given.factor, sums};
    }
    static SmallMatrix<double> expected(const Problem& given) {
        SmallMatrix<double> sums(given.x.cols + 1, given.x.cols);
        reference::shifted_gram<long double>(args_of(given, sums.data()));
        return sums;
    }
    /// The norms of the columns of Z, and at the end that of a column of ones.
    static std::vector<long double> norms(const Problem& given) {
        std::vector<long double> norms;
        for (int j = 0; j < given.x.cols; ++j) {
            long double squares = 0;
            for (std::int64_t i = 0; i < given.x.rows; ++i) {
                const auto z = static_cast<long double>(given.factor) *
                               (reference::converted<double>(given.x(i, j)) -
                                static_cast<long double>(given.shift[static_cast<std::size_t>(j)]));
                squares += z * z;
            }
            norms.push_back(std::sqrt(squares));
        }
        norms.push_back(std::sqrt(static_cast<long double>(given.x.rows)));
        return norms;
    }

    void check(const Problem& given, Layout layout) {
        SCOPED_TRACE(::testing::Message()
                     << given.x.rows << " x " << given.x.cols << ", factor " << given.factor
                     << ", padding " << layout.padding << ", offset " << layout.offset);
        const SmallMatrix<double> actual = run(given, layout);
        const SmallMatrix<double> exact = expected(given);
        const std::vector<long double> norm = norms(given);
        // Rounding of both factors, and the bound of kernels/shifted_gram.hpp.
        const long double factor = (258 + static_cast<long double>(given.x.rows) / (1 << 20)) * 2 *
                                   std::numeric_limits<double>::epsilon() / 2;
        for (int i = 0; i <= given.x.cols; ++i) {
            for (int j = 0; j < given.x.cols; ++j) {
                const long double bound =
                    factor * norm[static_cast<std::size_t>(i)] * norm[static_cast<std::size_t>(j)];
                ASSERT_LE(std::abs(static_cast<long double>(actual(i, j)) - exact(i, j)), bound)
                    << "(" << i << ", " << j << "): " << actual(i, j) << " instead of "
                    << exact(i, j);
                if (i < j) {
                    ASSERT_EQ(actual(i, j), actual(j, i));
                }
            }
        }
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
using Elements = ::testing::Types<float, double, half_t, bfloat16_t>;
TYPED_TEST_SUITE(ShiftedGram, Elements, ScalarName);

/// Offsets far from zero, as far as the element type has digits for the spread.
template <class In>
double offset_of() {
    return sizeof(In) == 2 ? 4 : sizeof(In) == 4 ? 1e3 : 1e8;
}

TYPED_TEST(ShiftedGram, MatchesTheReferenceAtEveryWidth) {
    const std::int64_t rows[] = {1, 31, 257, 2053};
    const int cases = static_cast<int>(all_widths().size() * std::size(rows));
    for (int k = 0; k < cases; k += case_step()) {
        const double offset = k % 2 == 0 ? offset_of<TypeParam>() : 0;
        const double factor = this->generator() % 4 == 0 ? -0.375 : 1;
        const int n = all_widths()[static_cast<std::size_t>(k) / std::size(rows)];
        this->check(
            this->random(rows[static_cast<std::size_t>(k) % std::size(rows)], n, offset, factor),
            layouts[k % 3]);
    }
}

TYPED_TEST(ShiftedGram, MatchesTheReferenceForRandomShapes) {
    std::uniform_int_distribution<int> columns(1, 150);
    std::uniform_int_distribution<int> rows(1, 1200);
    for (int i = 0; i < 24; i += case_step()) {
        this->check(this->random(rows(this->generator), columns(this->generator),
                                 i % 3 == 0 ? 0 : offset_of<TypeParam>(), i % 4 == 0 ? 0.5 : 1),
                    any_layout(this->generator));
    }
    this->check(this->random(150, 300, offset_of<TypeParam>(), 1), layouts[0]);
}

/// Sums of products of small integers are exact in any order. On a GPU each thread has more rows
/// than are in flight at a time.
TYPED_TEST(ShiftedGram, IsExactOnSmallIntegers) {
    const int share = is_host_repetition() ? 5 : 1;
    for (const int n : {1, 8, 30, 33, 64}) {
        const auto given = this->integers((n > 30 ? 50000 : 90000) / share, n, n == 30 ? 2 : 1);
        const SmallMatrix<double> actual = this->run(given, layouts[n % 3]);
        SmallMatrix<double> exact(n + 1, n);
        std::vector<double> z(static_cast<std::size_t>(n + 1), 1);
        for (std::int64_t r = 0; r < given.x.rows; ++r) {
            for (int j = 0; j < n; ++j) {
                const auto at = static_cast<std::size_t>(j);
                z[at] =
                    given.factor * (reference::converted<double>(given.x(r, j)) - given.shift[at]);
            }
            for (int i = 0; i <= n; ++i) {
                for (int j = i < n ? i : 0; j < n; ++j) {
                    exact(i, j) += z[static_cast<std::size_t>(i)] * z[static_cast<std::size_t>(j)];
                }
            }
        }
        for (int i = 0; i <= n; ++i) {
            for (int j = 0; j < n; ++j) {
                ASSERT_EQ(actual(i, j), i < n && j < i ? exact(j, i) : exact(i, j))
                    << n << " columns, " << i << ", " << j;
            }
        }
    }
}

TYPED_TEST(ShiftedGram, HasZerosWithoutRowsAndWithEqualRows) {
    auto none = this->random(0, 5, 1, 1);
    Global<TypeParam> equal(500, 5, [] { return reference::converted<TypeParam>(0.1); });
    const double value = reference::converted<double>(equal(0, 0));
    for (const auto& given : {none, decltype(none){equal, std::vector<double>(5, value), 1}}) {
        const SmallMatrix<double> sums = this->run(given, layouts[1]);
        for (int e = 0; e < 30; ++e) {
            EXPECT_EQ(sums.data()[e], 0) << e;
        }
    }
}

TYPED_TEST(ShiftedGram, KeepsNanInItsColumn) {
    for (const int n : {3, 33}) {
        auto given = this->random(400, n, 0, 1);
        given.x(399, 1) = poison<TypeParam>();
        const SmallMatrix<double> sums = this->run(given, layouts[0]);
        for (int i = 0; i <= n; ++i) {
            for (int j = 0; j < n; ++j) {
                EXPECT_EQ(std::isnan(sums(i, j)), i == 1 || j == 1) << i << ", " << j;
            }
        }
    }
}

TYPED_TEST(ShiftedGram, RefusesWrongShapes) {
    BlockVector<TypeParam> x(this->ctx, RowMap::by_rows(this->ctx.comm(), 10), 3);
    const auto call = [&](std::size_t shift, int rows, int cols) {
        SmallMatrix<double> sums(rows, cols);
        shifted_gram<TypeParam>(this->ctx, x.view(), std::vector<double>(shift), 1, sums);
    };
    EXPECT_THROW(call(2, 4, 3), ShapeError);
    EXPECT_THROW(call(3, 3, 3), ShapeError);
    EXPECT_THROW(call(3, 4, 4), ShapeError);
    EXPECT_NO_THROW(call(3, 4, 3));
}

}  // namespace
}  // namespace quiver::test

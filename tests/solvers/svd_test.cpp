// SPDX-License-Identifier: BSD-3-Clause
// tall_svd, compared with one-sided Jacobi rotations in long double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/svd/tall_svd.hpp"
#include "tests/solvers/svd_oracle.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
class Svd : public ::testing::Test {
  protected:
    using R = real_t<T>;
    using Wide = wide_number<T>;

    /// A B with a condition of about `condition`: random A, B and graded columns between them.
    Global<T> graded(std::int64_t rows, int cols, double condition) {
        const Global<T> a = random_global<T>(generator, rows, cols);
        const Global<T> b = random_global<T>(generator, cols, cols);
        Global<T> x(rows, cols);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int j = 0; j < cols; ++j) {
                Wide sum(0);
                for (int p = 0; p < cols; ++p) {
                    const long double grade =
                        std::pow(static_cast<long double>(condition),
                                 -static_cast<long double>(p) / std::max(cols - 1, 1));
                    sum += grade * Wide(a(i, p)) * Wide(b(p, j));
                }
                x(i, j) = T(sum);
            }
        }
        return x;
    }

    TallSvd<T> run(const Global<T>& x, const TallSvdOptions& options = {}) {
        const RowMap map = uneven_map(ctx, x.rows);
        TestBlock<T> block(ctx, x, map, layouts[1]);
        TallSvd<T> svd = tall_svd<T>(ctx, map, block.view(), options);
        block.expect_unchanged();
        return svd;
    }

    /// Values within most_error and within their error bounds, which may be 16 times larger;
    /// orthonormal vectors; X V = U diag(s).
    void check(const Global<T>& x, const TallSvd<T>& svd, std::size_t wanted, double most_error) {
        const std::vector<long double> exact = singular_values(x);
        ASSERT_EQ(svd.values.size(), wanted);
        ASSERT_EQ(svd.errors.size(), wanted);
        for (std::size_t j = 0; j < wanted; ++j) {
            const double most = most_error * static_cast<double>(exact[0]);
            EXPECT_LE(std::abs(svd.values[j] - exact[j]), std::min(svd.errors[j], most))
                << "value " << j;
            EXPECT_LE(svd.errors[j], 16 * most) << "value " << j;
        }
        check_right(svd.right);
        if (svd.left.width() > 0) {
            check_left(x, svd);
        }
    }
    void check_right(const SmallMatrix<T>& v) {
        for (int j = 0; j < v.cols(); ++j) {
            for (int l = 0; l <= j; ++l) {
                Wide sum(0);
                for (int i = 0; i < v.rows(); ++i) {
                    sum += conjugated(Wide(v(i, l))) * Wide(v(i, j));
                }
                EXPECT_LE(std::abs(sum - Wide(l == j ? 1 : 0)), tolerance()) << l << ", " << j;
            }
            T largest(0);
            for (int i = 0; i < v.rows(); ++i) {
                // The first of equals.
                largest = std::abs(v(i, j)) > R(1.00001) * std::abs(largest) ? v(i, j) : largest;
            }
            EXPECT_GT(std::real(largest), (1 - 1e-5) * std::abs(largest)) << "sign of " << j;
        }
    }
    void check_left(const Global<T>& x, const TallSvd<T>& svd) {
        const Global<T> u = on_all_ranks(ctx, svd.left);
        ASSERT_EQ(u.rows, x.rows);
        for (int j = 0; j < u.cols; ++j) {
            for (int l = 0; l <= j; ++l) {
                Wide sum(0);
                for (std::int64_t i = 0; i < u.rows; ++i) {
                    sum += conjugated(Wide(u(i, l))) * Wide(u(i, j));
                }
                EXPECT_LE(std::abs(sum - Wide(l == j ? 1 : 0)), tolerance()) << l << ", " << j;
            }
            long double squares = 0;
            for (std::int64_t i = 0; i < u.rows; ++i) {
                Wide rest = -static_cast<long double>(svd.values[static_cast<std::size_t>(j)]) *
                            Wide(u(i, j));
                for (int p = 0; p < x.cols; ++p) {
                    rest += Wide(x(i, p)) * Wide(svd.right(p, j));
                }
                squares += std::norm(rest);
            }
            EXPECT_LE(std::sqrt(squares), tolerance() * svd.values.front()) << "triplet " << j;
        }
    }
    static double tolerance() { return 100 * static_cast<double>(epsilon_v<T>); }

    std::mt19937_64 generator = make_generator();
    Context ctx = make_context();
};
TYPED_TEST_SUITE(Svd, Scalars, ScalarName);

TYPED_TEST(Svd, HasSmallErrorsForAnyCondition) {
    const double most = 40 * static_cast<double>(epsilon_v<TypeParam>);
    struct Case {
        std::int64_t rows;
        int cols;
        double condition;
    };
    for (const Case& each : std::vector<Case>{{1, 1, 1},
                                              {2, 2, 1e3},
                                              {7, 7, 1e14},
                                              {40, 3, 1e8},
                                              {90, 12, 1},
                                              {211, 17, 1e5},
                                              {130, 24, 1e10},
                                              {75, 31, 1e14}}) {
        SCOPED_TRACE(::testing::Message()
                     << each.rows << " x " << each.cols << ", condition " << each.condition);
        const Global<TypeParam> x = this->graded(each.rows, each.cols, each.condition);
        const TallSvd<TypeParam> all = this->run(x);
        this->check(x, all, static_cast<std::size_t>(each.cols), most);
        // Without left vectors, and fewer of them.
        TallSvdOptions options;
        options.left = false;
        options.k = (each.cols + 1) / 2;
        const TallSvd<TypeParam> few = this->run(x, options);
        EXPECT_EQ(few.left.width(), 0);
        this->check(x, few, static_cast<std::size_t>(options.k), most);
        options.left = true;
        const TallSvd<TypeParam> left = this->run(x, options);
        EXPECT_EQ(left.left.width(), options.k);
        this->check(x, left, static_cast<std::size_t>(options.k), most);
    }
}

TYPED_TEST(Svd, TakesOnePassIfToldSoAndReportsItsErrors) {
    TallSvdOptions options;
    options.left = false;
    options.one_pass = true;
    const Global<TypeParam> x = this->graded(150, 10, 1e12);
    const TallSvd<TypeParam> svd = this->run(x, options);
    EXPECT_TRUE(svd.from_gram);
    this->check(x, svd, 10, 1e-6);
    EXPECT_GT(svd.errors.back(), 1e-9 * svd.values.front());
    EXPECT_LT(svd.rank, 10);
    // Left vectors need the second step.
    options.left = true;
    EXPECT_FALSE(this->run(x, options).from_gram);
}

TYPED_TEST(Svd, FindsTheRank) {
    Global<TypeParam> x = this->graded(60, 8, 100);
    for (std::int64_t i = 0; i < x.rows; ++i) {
        x(i, 2) = x(i, 5);
        x(i, 7) = TypeParam(0);
    }
    const TallSvd<TypeParam> svd = this->run(x);
    EXPECT_EQ(svd.rank, 6);
    this->check(x, svd, 8, 40 * static_cast<double>(epsilon_v<TypeParam>));
    const TallSvd<TypeParam> zero = this->run(Global<TypeParam>(9, 4));
    EXPECT_EQ(zero.rank, 0);
    EXPECT_EQ(zero.values, std::vector<double>(4, 0.0));
    this->check_right(zero.right);
    this->check_left(Global<TypeParam>(9, 4), zero);
}

TYPED_TEST(Svd, ScalesBlocksWhoseSquaresLeaveTheRange) {
    const bool wide = sizeof(real_t<TypeParam>) == sizeof(double);
    const Global<TypeParam> x = this->graded(50, 6, 1e6);
    const TallSvd<TypeParam> usual = this->run(x);
    for (const int exponent : {wide ? 1000 : 100, wide ? -900 : -90}) {
        Global<TypeParam> scaled = x;
        for (TypeParam& value : scaled.values) {
            value *= static_cast<real_t<TypeParam>>(std::ldexp(1.0, exponent));
        }
        const TallSvd<TypeParam> svd = this->run(scaled);
        EXPECT_EQ(svd.rank, usual.rank);
        for (std::size_t j = 0; j < svd.values.size(); ++j) {
            EXPECT_NEAR(std::ldexp(svd.values[j], -exponent), usual.values[j], usual.errors[j]);
        }
    }
}

TYPED_TEST(Svd, RefusesBadInputOnAllRanks) {
    const auto message = [&](Global<TypeParam> x, const TallSvdOptions& options) {
        try {
            this->run(x, options);
        } catch (const Error& error) {
            EXPECT_TRUE(error.collective() || this->ctx.comm().size() == 1);
            return std::string(error.what());
        }
        return std::string("no error");
    };
    TallSvdOptions options;
    Global<TypeParam> x = random_global<TypeParam>(this->generator, 20, 5);
    options.k = 6;
    EXPECT_EQ(message(x, options),
              "svd: k = 6, but X has 5 singular values: k must be 0 (all) to 5");
    options.k = -1;
    EXPECT_EQ(message(x, options),
              "svd: k = -1, but X has 5 singular values: k must be 0 (all) to 5");
    EXPECT_EQ(message(random_global<TypeParam>(this->generator, 3, 5), {}),
              "svd: X has 3 rows and 5 columns; it needs at least as many rows as columns: "
              "transpose it");
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        x(17, 3) = TypeParam(static_cast<real_t<TypeParam>>(bad));
        EXPECT_EQ(message(x, {}), "svd: column 3 of X (counted from 0) has NaN or infinity");
    }
}

}  // namespace
}  // namespace quiver::test

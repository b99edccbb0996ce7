// SPDX-License-Identifier: BSD-3-Clause
// svds of dense matrices, compared with singular values from which the matrices are made in long
// double, and with one-sided Jacobi rotations.
#include "solvers/svd/dense_svd.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "tests/solvers/svd_oracle.hpp"
#include "tests/solvers/triplet_checks.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

/// This rank's rows of a matrix, stored by rows or by columns in poisoned memory.
template <class T>
class DistributedMatrix {
  public:
    DistributedMatrix(Context& ctx, const Global<T>& a, MatrixOrder order)
        : by_rows_(order == MatrixOrder::row_major),
          map_(uneven_map(ctx, a.rows)),
          block_(ctx, by_rows_ ? rows_of(a) : columns_of(a), layouts[2], ctx.place()) {}

    const RowMap& map() const { return map_; }
    MatrixView<const T> view() {
        const MatrixView<const T> lines = block_.const_view();
        return by_rows_ ? lines : lines.transposed();
    }
    void expect_unchanged() { block_.expect_unchanged(); }

  private:
    Global<T> rows_of(const Global<T>& a) const {
        Global<T> part(map_.local_rows(), a.cols);
        for (std::int64_t i = 0; i < part.rows; ++i) {
            for (int j = 0; j < a.cols; ++j) {
                part(i, j) = a(map_.first_row() + i, j);
            }
        }
        return part;
    }
    Global<T> columns_of(const Global<T>& a) const {
        Global<T> part(a.cols, static_cast<int>(map_.local_rows()));
        for (int i = 0; i < part.cols; ++i) {
            for (int j = 0; j < a.cols; ++j) {
                part(j, i) = a(map_.first_row() + i, j);
            }
        }
        return part;
    }

    bool by_rows_;
    RowMap map_;
    TestBlock<T> block_;
};

template <class T>
class DenseSvds : public ::testing::Test {
  protected:
    using Wide = wide_number<T>;

    std::vector<Wide> unit_vector(std::int64_t size) {
        std::vector<Wide> result(static_cast<std::size_t>(size));
        long double squares = 0;
        for (Wide& value : result) {
            value = Wide(random_value<T>(generator));
            squares += std::norm(value);
        }
        for (Wide& value : result) {
            value /= std::sqrt(squares);
        }
        return result;
    }
    /// H_1 H_2 diag(values) H_3 H_4 with random reflections H = I - 2 w w^H.
    Global<T> with_values(std::int64_t rows, int cols, const std::vector<long double>& values) {
        Global<Wide> a(rows, cols);
        for (std::size_t j = 0; j < values.size(); ++j) {
            a(static_cast<std::int64_t>(j), static_cast<int>(j)) = values[j];
        }
        for (int pass = 0; pass < 2; ++pass) {
            const std::vector<Wide> left = unit_vector(rows);
            const std::vector<Wide> right = unit_vector(cols);
            std::vector<Wide> sums(right.size());
            for (std::int64_t i = 0; i < rows; ++i) {
                const Wide factor = conjugated(left[static_cast<std::size_t>(i)]);
                for (int j = 0; j < cols; ++j) {
                    sums[static_cast<std::size_t>(j)] += factor * a(i, j);
                }
            }
            for (std::int64_t i = 0; i < rows; ++i) {
                Wide sum(0);
                for (int j = 0; j < cols; ++j) {
                    const auto at = static_cast<std::size_t>(j);
                    a(i, j) -= Wide(2) * left[static_cast<std::size_t>(i)] * sums[at];
                    sum += a(i, j) * right[at];
                }
                for (int j = 0; j < cols; ++j) {
                    a(i, j) -= Wide(2) * sum * conjugated(right[static_cast<std::size_t>(j)]);
                }
            }
        }
        Global<T> result(rows, cols);
        std::transform(a.values.begin(), a.values.end(), result.values.begin(),
                       [](const Wide& value) { return T(value); });
        return result;
    }

    SparseSvd<T> run(const Global<T>& a, MatrixOrder order, const SvdsOptions& options) {
        DistributedMatrix<T> matrix(ctx, a, order);
        SparseSvd<T> svd = svds<T>(ctx, matrix.map(), matrix.view(), options);
        matrix.expect_unchanged();
        return svd;
    }
    std::string error_of(const Global<T>& a, const SvdsOptions& options) {
        try {
            run(a, MatrixOrder::column_major, options);
        } catch (const InputError& error) {
            return error.what();
        }
        return "no error";
    }

    std::mt19937_64 generator = make_generator();
    Context ctx = make_context();
};
TYPED_TEST_SUITE(DenseSvds, Scalars, ScalarName);

TYPED_TEST(DenseSvds, FindsLargestAndSmallestValuesAndTheirCopies) {
    const double eps = static_cast<double>(epsilon_v<TypeParam>);
    struct Case {
        std::int64_t rows;
        int cols;
        MatrixOrder order;
        bool smallest;
        /// The smallest singular value.
        long double least;
    };
    for (const Case& each :
         std::vector<Case>{{640, 600, MatrixOrder::row_major, false, 0.25L},
                           {560, 700, MatrixOrder::column_major, false, 0.25L},
                           {540, 520, MatrixOrder::column_major, true, 0.25L},
                           {530, 515, MatrixOrder::row_major, true, std::sqrt(eps)}}) {
        SCOPED_TRACE(::testing::Message() << each.rows << " x " << each.cols);
        const bool small = each.least < 0.1L;
        if (small && is_complex_v<TypeParam>) {
            continue;  // all complex singular values take 3 s
        }
        std::vector<long double> exact(
            static_cast<std::size_t>(std::min<std::int64_t>(each.rows, each.cols)));
        for (std::size_t j = 0; j < exact.size(); ++j) {
            exact[j] = 1 + 2.0L / static_cast<long double>(j + 1);
        }
        std::copy_n(std::vector{9.0L, 7.0L, 7.0L, 7.0L, 5.5L, 5.5L, 4.0L}.data(), 7, exact.data());
        std::copy_n(std::vector{0.75L, 0.5L, 0.5L, each.least}.data(), 4, &*exact.end() - 4);
        const Global<TypeParam> a = this->with_values(each.rows, each.cols, exact);
        SvdsOptions options;
        options.k = each.smallest ? 3 : 5;
        options.smallest = each.smallest;
        const SparseSvd<TypeParam> svd = this->run(a, each.order, options);
        // Products with A^H A do not find a small value, and residuals of others are larger.
        EXPECT_EQ(svd.dense, small);
        check_values(exact, svd, options.k, each.smallest,
                     small ? 100 * eps : std::max(1e-9, (each.smallest ? 4000 : 400) * eps));
        check_triplets(this->ctx, a, svd);
    }
}

TYPED_TEST(DenseSvds, MatchesJacobiForSmallMatrices) {
    const double most = 100 * static_cast<double>(epsilon_v<TypeParam>);
    struct Case {
        std::int64_t rows;
        int cols;
        int k;
    };
    for (const Case& each :
         std::vector<Case>{{1, 1, 1}, {5, 1, 1}, {2, 6, 2}, {60, 23, 4}, {17, 90, 17}}) {
        SCOPED_TRACE(::testing::Message() << each.rows << " x " << each.cols);
        const auto a = random_global<TypeParam>(this->generator, each.rows, each.cols);
        std::vector<long double> exact = singular_values(a);
        exact.resize(static_cast<std::size_t>(std::min<std::int64_t>(a.rows, a.cols)));
        for (const bool smallest : {false, true}) {
            SvdsOptions options;
            options.k = each.k;
            options.smallest = smallest;
            const SparseSvd<TypeParam> svd = this->run(
                a, smallest ? MatrixOrder::row_major : MatrixOrder::column_major, options);
            EXPECT_TRUE(svd.dense);
            check_values(exact, svd, each.k, smallest, most);
            check_triplets(this->ctx, a, svd);
        }
    }
}

/// Squares of singular values that underflow or overflow.
TYPED_TEST(DenseSvds, NormsOfEverySize) {
    using Real = real_t<TypeParam>;
    const auto a = random_global<TypeParam>(this->generator, 60, 40);
    const std::vector<long double> exact = singular_values(a);
    for (const int exponent :
         std::is_same_v<Real, float> ? std::vector{-90, 50} : std::vector{-700, 400}) {
        Global<TypeParam> scaled = a;
        for (TypeParam& value : scaled.values) {
            value *= std::ldexp(Real(1), exponent);
        }
        SvdsOptions options;
        options.k = 3;
        options.method = Method::lanczos;
        const SparseSvd<TypeParam> svd = this->run(scaled, MatrixOrder::column_major, options);
        EXPECT_TRUE(svd.converged) << svd.message;
        EXPECT_FALSE(svd.dense);
        ASSERT_EQ(svd.values.size(), 3U);
        for (std::size_t j = 0; j < 3; ++j) {
            EXPECT_NEAR(std::ldexp(svd.values[j], -exponent), static_cast<double>(exact[j]),
                        1000 * epsilon_v<TypeParam> * static_cast<double>(exact[0]));
        }
    }
}

TYPED_TEST(DenseSvds, RefusesBadInputOnAllRanks) {
    using Real = real_t<TypeParam>;
    auto a = random_global<TypeParam>(this->generator, 20, 6);
    SvdsOptions options;
    for (const int k : {0, 7}) {
        options.k = k;
        EXPECT_EQ(this->error_of(a, options),
                  "svds: k = " + std::to_string(k) + ", but a 20 x 6 matrix has 6 singular values");
    }
    options.k = 1;
    EXPECT_EQ(this->error_of(Global<TypeParam>(0, 4), options),
              "svds: k = 1, but a 0 x 4 matrix has 0 singular values");
    // The largest finite numbers are no error.
    for (TypeParam& value : a.values) {
        value = TypeParam(std::numeric_limits<Real>::max());
    }
    EXPECT_EQ(this->error_of(a, options).find("NaN"), std::string::npos);
    for (const Real bad :
         {std::numeric_limits<Real>::quiet_NaN(), -std::numeric_limits<Real>::infinity()}) {
        a(17, 5) = TypeParam(bad);
        a(3, 4) = TypeParam(bad);
        EXPECT_EQ(this->error_of(a, options),
                  "svds: column 4 of A (counted from 0) has NaN or infinity");
    }
    DistributedMatrix<TypeParam> matrix(this->ctx, a, MatrixOrder::row_major);
    EXPECT_THROW(svds<TypeParam>(this->ctx, uneven_map(this->ctx, 26), matrix.view(), options),
                 ShapeError);
}

}  // namespace
}  // namespace quiver::test

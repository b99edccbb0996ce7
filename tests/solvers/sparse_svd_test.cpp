// SPDX-License-Identifier: BSD-3-Clause
// svds, compared with one-sided Jacobi rotations in long double and with matrices whose singular
// values are known.
#include "solvers/svd/sparse_svd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/sparse/assemble.hpp"
#include "tests/solvers/svd_oracle.hpp"
#include "tests/solvers/triplet_checks.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
class Svds : public ::testing::Test {
  protected:
    /// A with a few random entries in each row.
    Global<T> random_sparse(std::int64_t rows, int cols, int row_entries) {
        Global<T> a(rows, cols);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int e = 0; e < row_entries; ++e) {
                a(i, static_cast<int>(generator() % static_cast<unsigned>(cols))) =
                    random_value<T>(generator);
            }
        }
        return a;
    }
    /// The nonzeros of a dense matrix, with rows and columns distributed unequally.
    SparseMatrix<T> sparse(const Global<T>& a) {
        CsrRows<T> rows;
        rows.map = uneven_map(ctx, a.rows);
        rows.global_cols = a.cols;
        if (a.cols != a.rows) {
            rows.column_map = rows.map.evenly(a.cols);
        }
        for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
            for (int j = 0; j < a.cols; ++j) {
                const T value = a(rows.map.first_row() + i, j);
                if (value != T(0)) {
                    rows.column.push_back(j);
                    rows.value.push_back(value);
                }
            }
            rows.row_start.push_back(std::ssize(rows.column));
        }
        return SparseMatrix<T>(ctx, std::move(rows));
    }

    std::mt19937_64 generator = make_generator();
    Context ctx = make_context();
};
TYPED_TEST_SUITE(Svds, Scalars, ScalarName);

TYPED_TEST(Svds, MatchesJacobiForAnyShape) {
    const double most = 100 * static_cast<double>(epsilon_v<TypeParam>);
    struct Case {
        std::int64_t rows;
        int cols;
        int k;
    };
    for (const Case& each : std::vector<Case>{
             {1, 1, 1}, {5, 1, 1}, {1, 6, 1}, {60, 23, 4}, {17, 90, 17}, {40, 40, 6}}) {
        SCOPED_TRACE(::testing::Message() << each.rows << " x " << each.cols);
        const Global<TypeParam> a = this->random_sparse(each.rows, each.cols, 3);
        SparseMatrix<TypeParam> matrix = this->sparse(a);
        std::vector<long double> exact = singular_values(a);
        exact.resize(static_cast<std::size_t>(std::min<std::int64_t>(a.rows, a.cols)));
        for (const bool smallest : {false, true}) {
            SvdsOptions options;
            options.k = each.k;
            options.smallest = smallest;
            const SparseSvd<TypeParam> svd = svds(this->ctx, matrix, options);
            EXPECT_TRUE(svd.dense);
            check_values(exact, svd, each.k, smallest, most);
            check_triplets(this->ctx, a, svd);
        }
    }
}

TYPED_TEST(Svds, IteratesForLargestAndSmallestValues) {
    // A method keeps the matrix sparse. Copies: two equal diagonal blocks.
    const double eps = static_cast<double>(epsilon_v<TypeParam>);
    const Global<TypeParam> block = this->random_sparse(50, 35, 4);
    for (const bool wide : {false, true}) {
        Global<TypeParam> a(wide ? 70 : 100, wide ? 100 : 70);
        for (std::int64_t i = 0; i < 50; ++i) {
            for (int j = 0; j < 35; ++j) {
                for (const int copy : {0, 1}) {
                    (wide ? a(35 * copy + j, static_cast<int>(50 * copy + i))
                          : a(50 * copy + i, 35 * copy + j)) = block(i, j);
                }
            }
        }
        SparseMatrix<TypeParam> matrix = this->sparse(a);
        std::vector<long double> exact = singular_values(a);
        exact.resize(70);
        SvdsOptions options;
        options.method = Method::lanczos;
        options.k = 7;
        const SparseSvd<TypeParam> large = svds(this->ctx, matrix, options);
        EXPECT_FALSE(large.dense);
        check_values(exact, large, 7, false, std::max(1e-9, 400 * eps));
        check_triplets(this->ctx, a, large);
        options.k = 4;
        options.smallest = true;
        const SparseSvd<TypeParam> small = svds(this->ctx, matrix, options);
        ASSERT_EQ(small.values.size(), 4U);
        for (std::size_t j = 0; j < 4; ++j) {
            EXPECT_LE(std::abs(small.values[j] - exact[66 + j]), small.errors[j]) << j;
            EXPECT_LE(
                small.errors[j],
                (100 * eps *
                     static_cast<double>(exact[0] / std::max<long double>(exact[66 + j], 1e-3L)) +
                 1e-9) *
                    static_cast<double>(exact[0]))
                << j;
        }
        check_triplets(this->ctx, a, small);
    }
}

/// Squares of singular values that underflow or overflow, and a tolerance above small values.
TYPED_TEST(Svds, NormsOfEverySizeAndLooseTolerances) {
    using Real = real_t<TypeParam>;
    const Global<TypeParam> a = this->random_sparse(60, 40, 4);
    const std::vector<long double> exact = singular_values(a);
    for (const int exponent :
         std::is_same_v<Real, float> ? std::vector{-90, 50} : std::vector{-700, 400}) {
        Global<TypeParam> scaled = a;
        for (TypeParam& value : scaled.values) {
            value *= std::ldexp(Real(1), exponent);
        }
        SparseMatrix<TypeParam> matrix = this->sparse(scaled);
        for (const Method method : {Method::automatic, Method::lanczos}) {
            SvdsOptions options;
            options.k = 3;
            options.method = method;
            const SparseSvd<TypeParam> svd = svds(this->ctx, matrix, options);
            EXPECT_TRUE(svd.converged) << svd.message;
            ASSERT_EQ(svd.values.size(), 3U);
            for (std::size_t j = 0; j < 3; ++j) {
                EXPECT_NEAR(std::ldexp(svd.values[j], -exponent), static_cast<double>(exact[j]),
                            1000 * epsilon_v<TypeParam> * static_cast<double>(exact[0]));
            }
        }
    }
    // Two equal columns: the least singular value is 0.
    Global<TypeParam> singular = a;
    for (std::int64_t i = 0; i < a.rows; ++i) {
        singular(i, 1) = singular(i, 0);
    }
    SparseMatrix<TypeParam> matrix = this->sparse(singular);
    SvdsOptions options;
    options.k = 1;
    options.smallest = true;
    options.method = Method::lanczos;
    options.tol = 1e-2;
    const SparseSvd<TypeParam> svd = svds(this->ctx, matrix, options);
    EXPECT_TRUE(svd.converged) << svd.message;
    EXPECT_LE(svd.values.at(0), options.tol * static_cast<double>(exact[0]));
}

TYPED_TEST(Svds, LargeMatricesStaySparse) {
    // Differences of neighbours, (n + 1) x n: s_j = 2 sin(j pi / (2 (n + 1))).
    const std::int64_t n = 1500;
    CsrRows<TypeParam> rows;
    rows.map = uneven_map(this->ctx, n + 1);
    rows.global_cols = n;
    rows.column_map = rows.map.evenly(n);
    for (std::int64_t i = rows.map.first_row(); i < rows.map.first_row() + rows.map.local_rows();
         ++i) {
        if (i > 0) {
            rows.column.push_back(i - 1);
            rows.value.push_back(TypeParam(-1));
        }
        if (i < n) {
            rows.column.push_back(i);
            rows.value.push_back(TypeParam(1));
        }
        rows.row_start.push_back(std::ssize(rows.column));
    }
    SparseMatrix<TypeParam> matrix(this->ctx, std::move(rows));
    SvdsOptions options;
    options.k = 3;
    options.tol = 1e-4;  // the largest values are close to each other
    const SparseSvd<TypeParam> svd = svds(this->ctx, matrix, options);
    EXPECT_FALSE(svd.dense);
    EXPECT_TRUE(svd.converged) << svd.message;
    EXPECT_EQ(svd.method, Method::chebyshev);
    for (int j = 0; j < 3; ++j) {
        const double exact = 2 * std::sin(std::numbers::pi * static_cast<double>(n - j) /
                                          (2 * static_cast<double>(n + 1)));
        EXPECT_NEAR(svd.values[static_cast<std::size_t>(j)], exact,
                    svd.errors[static_cast<std::size_t>(j)]);
        EXPECT_LE(svd.errors[static_cast<std::size_t>(j)], 3e-4);
    }
    check_signs(on_all_ranks(this->ctx, svd.right));
}

/// On hosts block Lanczos finds well separated values, without a second search; crowded ones go to
/// another method (LargeMatricesStaySparse has such values).
TYPED_TEST(Svds, BeginsWithLanczosOnHosts) {
    using Real = real_t<TypeParam>;
    const std::int64_t n = 700;
    const auto value = [](std::int64_t j) {
        const auto x = static_cast<double>(j);
        return static_cast<Real>(j < 6 ? 20 - x : 4 + x / n);
    };
    // One entry a row and a column: row i has the value of column (i * 11) mod n.
    CsrRows<TypeParam> rows;
    rows.map = uneven_map(this->ctx, n + 100);
    rows.global_cols = n;
    rows.column_map = rows.map.evenly(n);
    for (std::int64_t i = rows.map.first_row(); i < rows.map.first_row() + rows.map.local_rows();
         ++i) {
        if (i < n) {
            rows.column.push_back(i * 11 % n);
            rows.value.push_back(TypeParam(value(i * 11 % n)));
        }
        rows.row_start.push_back(std::ssize(rows.column));
    }
    SparseMatrix<TypeParam> matrix(this->ctx, std::move(rows));
    SvdsOptions options;
    options.k = 5;
    bool searched = false;
    options.keep_going = [&](const IterationEvent& event) {
        searched = searched || std::string(event.stage) == "verify";
        return true;
    };
    const SparseSvd<TypeParam> svd = svds(this->ctx, matrix, options);
    EXPECT_TRUE(svd.converged) << svd.message;
    EXPECT_EQ(svd.multiplicity, Multiplicity::verified);
    ASSERT_EQ(svd.values.size(), 5U);
    for (std::size_t j = 0; j < 5; ++j) {
        EXPECT_NEAR(svd.values[j], static_cast<double>(value(static_cast<std::int64_t>(j))),
                    svd.errors[j]);
    }
    if (this->ctx.place() == Place::host) {
        EXPECT_EQ(svd.method, Method::lanczos);
        EXPECT_FALSE(searched);
    }
}

TYPED_TEST(Svds, RefusesBadInputOnAllRanks) {
    const Global<TypeParam> a = this->random_sparse(20, 6, 2);
    SparseMatrix<TypeParam> matrix = this->sparse(a);
    for (const int k : {0, 7}) {
        SvdsOptions options;
        options.k = k;
        try {
            svds(this->ctx, matrix, options);
            FAIL() << "no error";
        } catch (const InputError& error) {
            EXPECT_EQ(std::string(error.what()), "svds: k = " + std::to_string(k) +
                                                     ", but a 20 x 6 matrix has 6 singular values");
        }
    }
    SparseMatrix<TypeParam> other = this->sparse(this->random_sparse(20, 7, 2));
    SvdsOptions options;
    options.k = 1;
    EXPECT_THROW(svds(this->ctx, matrix, other, options), ShapeError);
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// Checks of the results of svds, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/svd/sparse_svd.hpp"
#include "tests/solvers/svd_oracle.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {

/// The element of largest modulus of each column is positive.
template <class T>
void check_signs(const Global<T>& v) {
    const double eps = static_cast<double>(epsilon_v<T>);
    for (int j = 0; j < v.cols; ++j) {
        double most = 0;
        for (std::int64_t i = 0; i < v.rows; ++i) {
            most = std::max(most, static_cast<double>(std::abs(v(i, j))));
        }
        std::int64_t row = 0;
        while (static_cast<double>(std::abs(v(row, j))) * (1 + 1e-6) < most) {
            ++row;
        }
        EXPECT_LE(std::abs(v(row, j) - T(std::abs(v(row, j)))), 4 * eps) << row << ", " << j;
    }
}
/// A v - s u and A^H u - s v in long double agree with the reported residual; u and v are
/// orthonormal.
template <class T>
void check_triplets(Context& ctx, const Global<T>& a, const SparseSvd<T>& svd) {
    using Wide = wide_number<T>;
    const Global<T> u = on_all_ranks(ctx, svd.left);
    const Global<T> v = on_all_ranks(ctx, svd.right);
    ASSERT_EQ(u.rows, a.rows);
    ASSERT_EQ(v.rows, a.cols);
    const double eps = static_cast<double>(epsilon_v<T>);
    for (const Global<T>* x : {&u, &v}) {
        ASSERT_EQ(x->cols, static_cast<int>(svd.values.size()));
        for (int j = 0; j < x->cols; ++j) {
            for (int l = 0; l <= j; ++l) {
                Wide sum(0);
                for (std::int64_t i = 0; i < x->rows; ++i) {
                    sum += conjugated(Wide((*x)(i, l))) * Wide((*x)(i, j));
                }
                EXPECT_LE(std::abs(sum - Wide(l == j ? 1 : 0)), 100 * eps) << l << ", " << j;
            }
        }
    }
    check_signs(v);
    for (int j = 0; j < u.cols; ++j) {
        const auto s = static_cast<long double>(svd.values[static_cast<std::size_t>(j)]);
        long double squares = 0;
        // One of the vectors of a value that is 0 to rounding is arbitrary.
        const bool zero = s <= 100 * eps * svd.norm_estimate;
        for (std::int64_t i = 0; i < a.rows && (!zero || a.rows >= a.cols); ++i) {
            Wide rest = -s * Wide(u(i, j));
            for (int p = 0; p < a.cols; ++p) {
                rest += Wide(a(i, p)) * Wide(v(p, j));
            }
            squares += std::norm(rest);
        }
        for (int p = 0; p < a.cols && (!zero || a.rows < a.cols); ++p) {
            Wide rest = -s * Wide(v(p, j));
            for (std::int64_t i = 0; i < a.rows; ++i) {
                rest += conjugated(Wide(a(i, p))) * Wide(u(i, j));
            }
            squares += std::norm(rest);
        }
        EXPECT_NEAR(svd.residuals[static_cast<std::size_t>(j)],
                    static_cast<double>(std::sqrt(squares)), 50 * eps * svd.norm_estimate)
            << j;
    }
}

/// The values are those of `exact` (descending, all of them) within their error bounds.
template <class T>
void check_values(const std::vector<long double>& exact, const SparseSvd<T>& svd, int k,
                  bool smallest, double most_error) {
    ASSERT_EQ(svd.values.size(), static_cast<std::size_t>(k));
    EXPECT_TRUE(svd.converged) << svd.message;
    EXPECT_EQ(svd.multiplicity, Multiplicity::verified);
    EXPECT_NEAR(svd.norm_estimate, static_cast<double>(exact[0]),
                smallest ? 0.1 * static_cast<double>(exact[0]) : svd.errors[0]);
    const std::size_t first = smallest ? exact.size() - static_cast<std::size_t>(k) : 0;
    for (std::size_t j = 0; j < svd.values.size(); ++j) {
        EXPECT_LE(std::abs(svd.values[j] - exact[first + j]), svd.errors[j]) << j;
        EXPECT_LE(svd.errors[j], most_error * static_cast<double>(exact[0])) << j;
    }
}

}  // namespace quiver::test

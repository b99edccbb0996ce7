// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/small_dense.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "solvers/small_dense_qr.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class SmallDense : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SmallDense, Scalars);

template <class T>
SmallMatrix<T> random_matrix(std::mt19937_64& generator, int rows, int cols) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    SmallMatrix<T> a(rows, cols);
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) {
            if constexpr (is_complex_v<T>) {
                a(i, j) = T(static_cast<real_t<T>>(uniform(generator)),
                            static_cast<real_t<T>>(uniform(generator)));
            } else {
                a(i, j) = static_cast<T>(uniform(generator));
            }
        }
    }
    return a;
}

template <class T>
SmallMatrix<T> adjoint(const SmallMatrix<T>& a) {
    SmallMatrix<T> result(a.cols(), a.rows());
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            result(j, i) = conjugate(a(i, j));
        }
    }
    return result;
}

template <class T>
double distance(const SmallMatrix<T>& a, const SmallMatrix<T>& b) {
    double most = 0;
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            most = std::max(most, static_cast<double>(std::abs(a(i, j) - b(i, j))));
        }
    }
    return most;
}

TYPED_TEST(SmallDense, EigenvectorsDiagonaliseAndAreOrthonormal) {
    using T = TypeParam;
    auto generator = test::make_generator();
    for (const int n : {1, 2, 7, 40}) {
        const SmallMatrix<T> b = random_matrix<T>(generator, n, n);
        const SmallMatrix<T> a = product(b, adjoint(b));
        const HermitianEigen<T> eigen = hermitian_eigen(a);
        ASSERT_TRUE(eigen.converged);
        const double bound = 50.0 * n * n * static_cast<double>(epsilon_v<T>);
        SmallMatrix<T> scaled = eigen.vectors;
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                scaled(i, j) *= eigen.values[static_cast<std::size_t>(j)];
            }
        }
        EXPECT_LT(distance(product(a, eigen.vectors), scaled), bound);
        EXPECT_LT(
            distance(product(adjoint(eigen.vectors), eigen.vectors), SmallMatrix<T>::identity(n)),
            bound);
    }
}

TYPED_TEST(SmallDense, CholeskyFactorsAndRefusesIndefinite) {
    using T = TypeParam;
    auto generator = test::make_generator();
    for (const int n : {1, 3, 17}) {
        SmallMatrix<T> b = random_matrix<T>(generator, n, n);
        for (int i = 0; i < n; ++i) {
            b(i, i) += T(4);
        }
        SmallMatrix<T> a = product(adjoint(b), b);
        const Cholesky<T> factor = cholesky(a);
        ASSERT_TRUE(factor.positive);
        const double bound = 100.0 * n * n * static_cast<double>(epsilon_v<T>);
        EXPECT_LT(distance(product(adjoint(factor.r), factor.r), a), bound * n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < i; ++j) {
                EXPECT_EQ(factor.r(i, j), T(0));
            }
        }
        EXPECT_LT(
            distance(product(factor.r, inverse_of_upper(factor.r)), SmallMatrix<T>::identity(n)),
            bound);
        a(n - 1, n - 1) = T(-1);
        EXPECT_FALSE(cholesky(a).positive);
    }
}

/// Depending on the scale, squares of the numbers underflow, stay in range, or overflow.
TYPED_TEST(SmallDense, HouseholderQrOfSmallAndLargeNumbers) {
    using T = TypeParam;
    using R = real_t<T>;
    auto generator = test::make_generator();
    for (const R scale : {std::numeric_limits<R>::min() / epsilon_v<R>, R(1),
                          std::numeric_limits<R>::max() / R(64)}) {
        for (const auto& [rows, n] : {std::pair(1, 1), {3, 5}, {7, 7}, {40, 11}}) {
            const SmallMatrix<T> unscaled = random_matrix<T>(generator, rows, n);
            SmallMatrix<T> q = unscaled;
            for (int i = 0; i < rows * n; ++i) {
                q.data()[i] *= scale;
            }
            SmallMatrix<T> r;
            householder_qr<T>(q, 1, [&](SmallMatrix<T> factor) {
                r = std::move(factor);
                SmallMatrix<T> identity(r.rows(), n);
                for (int i = 0; i < r.rows(); ++i) {
                    identity(i, i) = T(1);
                }
                return identity;
            });
            SmallMatrix<T> basis(rows, r.rows());
            for (int i = 0; i < rows; ++i) {
                std::copy_n(q.data() + i * n, r.rows(), basis.data() + i * r.rows());
            }
            for (int i = 0; i < r.rows(); ++i) {
                for (int j = 0; j < n; ++j) {
                    r(i, j) /= scale;
                    EXPECT_TRUE(j >= i || r(i, j) == T(0));
                }
            }
            const double bound = 10.0 * n * std::sqrt(rows) * static_cast<double>(epsilon_v<T>);
            EXPECT_LT(distance(product(adjoint(basis), basis), SmallMatrix<T>::identity(r.rows())),
                      bound);
            EXPECT_LT(distance(product(basis, r), unscaled), bound);
        }
    }
}

}  // namespace
}  // namespace quiver

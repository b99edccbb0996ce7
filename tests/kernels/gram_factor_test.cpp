// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/gram_factor.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class GramFactor : public ::testing::Test {
  protected:
    using Real = real_t<T>;

    T number() {
        std::uniform_real_distribution<Real> unit(-1, 1);
        if constexpr (is_complex_v<T>) {
            const Real re = unit(generator);
            return T(re, unit(generator));
        } else {
            return unit(generator);
        }
    }
    /// D (A^H A + I) D for a random A and a diagonal D of powers of two from 1 on. No eigenvalue is
    /// below 1.
    SmallMatrix<T> positive(int n) {
        SmallMatrix<T> a(n, n);
        for (int i = 0; i < n * n; ++i) {
            a.data()[i] = number();
        }
        SmallMatrix<T> g = SmallMatrix<T>::identity(n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                for (int k = 0; k < n; ++k) {
                    g(i, j) += conjugate(a(k, i)) * a(k, j);
                }
            }
        }
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                g(i, j) *= std::ldexp(Real(1), i % 5 + j % 5);
            }
        }
        return g;
    }
    struct Factors {
        SmallMatrix<T> r, s;
    };
    /// Factors G in the place under test, with gaps between the rows. Elements below the diagonal
    /// are NaN, because they must not be read.
    Factors factor(const SmallMatrix<T>& g) {
        const int n = g.rows();
        const int ld = n + 3;
        const Real nan = std::numeric_limits<Real>::quiet_NaN();
        SmallMatrix<T> upper(n, n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                upper(i, j) = i <= j ? g(i, j) : T(nan);
            }
        }
        const std::size_t size = static_cast<std::size_t>(n) * static_cast<std::size_t>(ld);
        const Buffer memory =
            ctx.allocate(memory_kind(ctx.place()), 3 * size * sizeof(T), "small matrices");
        const auto matrix = [&](std::size_t which) {
            return BlockView<T>(memory.as<T>() + which * size, n, n, ld, ctx.place());
        };
        fill(ctx, T(nan), BlockView<T>(memory.as<T>(), n, 3 * ld, 3 * ld, ctx.place()));
        copy(ctx, BlockView<const T>(upper.view()), matrix(0));
        gram_factor<T>(ctx, matrix(0), matrix(1), matrix(2));
        Factors result{SmallMatrix<T>(n, n), SmallMatrix<T>(n, n)};
        copy(ctx, BlockView<const T>(matrix(1)), result.r.view());
        copy(ctx, BlockView<const T>(matrix(2)), result.s.view());
        return result;
    }

    Context ctx = test::make_context();
    std::mt19937_64 generator = test::make_generator();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(GramFactor, Scalars);

TYPED_TEST(GramFactor, MultipliesBackAtEveryOrder) {
    using T = TypeParam;
    const double eps = static_cast<double>(epsilon_v<T>);
    for (int n = 1; n <= largest_gram_factor; n += n < 20 ? 1 : 11) {
        const auto g = this->positive(n);
        const auto [r, s] = this->factor(g);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                T back(0);
                T one(0);
                double size = 0;
                double size_one = 0;
                for (int k = 0; k < n; ++k) {
                    back += conjugate(r(k, i)) * r(k, j);
                    one += r(i, k) * s(k, j);
                    size += static_cast<double>(std::abs(r(k, i)) * std::abs(r(k, j)));
                    size_one += static_cast<double>(std::abs(r(i, k)) * std::abs(s(k, j)));
                }
                // Higham, Accuracy and Stability, theorems 10.3 and 8.5; the factor 4 is for
                // complex products.
                const double bound = 4.0 * (n + 2) * eps;
                EXPECT_LE(static_cast<double>(std::abs(back - g(i, j))), bound * size) << n;
                EXPECT_LE(static_cast<double>(std::abs(one - T(i == j ? 1 : 0))),
                          bound * (size_one + 1))
                    << n;
                if (i > j) {
                    EXPECT_EQ(r(i, j), T(0));
                    EXPECT_EQ(s(i, j), T(0));
                }
            }
            EXPECT_GT(real_part(r(i, i)), 0);
        }
        ASSERT_FALSE(this->HasFailure()) << "n = " << n;
    }
}

TYPED_TEST(GramFactor, WhatIsNotPositiveDefiniteIsNotFinite) {
    using T = TypeParam;
    for (const int n : {1, 2, 7, 64}) {
        for (const int bad : {0, n / 2, n - 1}) {
            auto g = this->positive(n);
            g(bad, bad) = T(-1);
            const auto [r, s] = this->factor(g);
            EXPECT_FALSE(is_finite(r(bad, bad))) << n << ", " << bad;
            EXPECT_FALSE(is_finite(s(bad, bad))) << n << ", " << bad;
            for (int i = 0; i < bad; ++i) {
                EXPECT_TRUE(is_finite(r(i, i))) << n << ", " << bad;
            }
        }
    }
}

TYPED_TEST(GramFactor, RefusesShapesThatDoNotFit) {
    using T = TypeParam;
    const Buffer memory = this->ctx.allocate(memory_kind(this->ctx.place()),
                                             4 * 65 * 65 * sizeof(T), "small matrices");
    const auto matrix = [&](int which, int rows, int cols) {
        return BlockView<T>(memory.as<T>() + which * 65 * 65, rows, cols, 65, this->ctx.place());
    };
    EXPECT_THROW(gram_factor<T>(this->ctx, matrix(0, 3, 2), matrix(1, 3, 2), matrix(2, 3, 2)),
                 ShapeError);
    EXPECT_THROW(gram_factor<T>(this->ctx, matrix(0, 3, 3), matrix(1, 4, 4), matrix(2, 3, 3)),
                 ShapeError);
    EXPECT_THROW(gram_factor<T>(this->ctx, matrix(0, 65, 65), matrix(1, 65, 65), matrix(2, 65, 65)),
                 ShapeError);
    EXPECT_THROW(gram_factor<T>(this->ctx, matrix(0, 3, 3), matrix(0, 3, 3), matrix(2, 3, 3)),
                 ShapeError);
    EXPECT_NO_THROW(gram_factor<T>(this->ctx, matrix(0, 0, 0), matrix(1, 0, 0), matrix(2, 0, 0)));
}

}  // namespace
}  // namespace quiver

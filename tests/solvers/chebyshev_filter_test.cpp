// SPDX-License-Identifier: BSD-3-Clause
// Filters of a diagonal matrix multiply each row by the polynomial of its entry.
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"

#include <cmath>
#include <complex>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/chebyshev/window_series.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// T_d(t) by its closed forms.
double chebyshev(int degree, double t) {
    if (std::abs(t) <= 1) {
        return std::cos(degree * std::acos(t));
    }
    const double size = std::cosh(degree * std::acosh(std::abs(t)));
    return t < 0 && degree % 2 == 1 ? -size : size;
}

template <class T>
class ChebyshevFilterTest : public ::testing::Test {
  protected:
    static constexpr int columns = 7;
    static constexpr double eps = static_cast<double>(epsilon_v<T>);

    /// This rank's rows of X before and after `apply`, in host memory.
    template <class Apply>
    std::pair<SmallMatrix<T>, SmallMatrix<T>> run(Apply&& apply) {
        const auto rows = static_cast<int>(a.row_map().local_rows());
        BlockVector<T> x(ctx, a.row_map(), columns);
        fill_random(ctx, 5, x);
        std::pair<SmallMatrix<T>, SmallMatrix<T>> result{{rows, columns}, {rows, columns}};
        copy(ctx, x.view(), result.first.view());
        apply(x.view());
        copy(ctx, x.view(), result.second.view());
        ctx.synchronize();
        return result;
    }
    /// Checks that every element was multiplied by p(entry), up to `bound`.
    template <class Apply, class Polynomial>
    void check(Apply&& apply, Polynomial&& p, double bound) {
        const auto [before, after] = run(apply);
        for (int i = 0; i < before.rows(); ++i) {
            const double factor = p(values[static_cast<std::size_t>(a.row_map().first_row() + i)]);
            for (int j = 0; j < columns; ++j) {
                EXPECT_LE(static_cast<double>(std::abs(
                              after(i, j) - before(i, j) * static_cast<real_t<T>>(factor))),
                          bound * (1 + std::abs(factor)))
                    << "row " << i << ", column " << j << ", factor " << factor;
            }
        }
    }

    static std::vector<double> entries() {
        std::vector<double> result;
        result.reserve(60);
        for (int i = 0; i < 60; ++i) {
            result.push_back(-2 + 0.11 * i);
        }
        return result;
    }

    Context ctx = test::make_context();
    std::vector<double> values = entries();
    SparseMatrix<T> a = test::diagonal<T>(ctx, values);
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(ChebyshevFilterTest, Scalars);

TYPED_TEST(ChebyshevFilterTest, IsTheScaledPolynomial) {
    using T = TypeParam;
    for (const int width : {3, 7, 32}) {
        for (const int degree : {1, 2, 3, 10, 25}) {
            for (const ChebyshevInterval& range :
                 {ChebyshevInterval{-1, 5, -1.5}, ChebyshevInterval{-2, 3.5, 4.2}}) {
                GuardedOperator<T> guarded(this->a);
                ChebyshevFilter<T> filter(this->ctx, guarded, BlockView<const T>(), width);
                const auto unit = [&](double t) {
                    return (t - range.centre()) / range.half_width();
                };
                // Later steps amplify the rounding error of a step by at most the degree.
                this->check([&](BlockView<T> x) { filter.apply(x, range, degree); },
                            [&](double t) {
                                return chebyshev(degree, unit(t)) /
                                       chebyshev(degree, unit(range.one));
                            },
                            20 * this->eps * degree * degree);
                EXPECT_EQ(guarded.applications(), std::int64_t{degree} * this->columns);
            }
        }
    }
}

TYPED_TEST(ChebyshevFilterTest, SeriesAreSums) {
    using T = TypeParam;
    const ChebyshevInterval spectrum{-3, 6, 0};
    for (const int degree : {1, 2, 40}) {
        const auto series = window_series(spectrum, 0.5, 2.5, degree);
        GuardedOperator<T> guarded(this->a);
        ChebyshevFilter<T> filter(this->ctx, guarded, BlockView<const T>(), 4);
        this->check([&](BlockView<T> x) { filter.apply_series(x, spectrum, series); },
                    [&](double t) {
                        double sum = 0;
                        for (int m = 0; m <= degree; ++m) {
                            sum += series[static_cast<std::size_t>(m)] *
                                   chebyshev(m, (t - spectrum.centre()) / spectrum.half_width());
                        }
                        EXPECT_NEAR(sum, series_at(series, spectrum, t), 1e-12);
                        return sum;
                    },
                    20 * this->eps * degree * degree);
    }
}

TYPED_TEST(ChebyshevFilterTest, ConstraintsStayOut) {
    using T = TypeParam;
    // The constraint e_0 + e_1 is not an eigenvector: the filter multiplies with P A P.
    BlockVector<T> c(this->ctx, this->a.row_map(), 1);
    SmallMatrix<T> host(static_cast<int>(this->a.row_map().local_rows()), 1);
    for (int i = 0; i < host.rows(); ++i) {
        host(i, 0) =
            T(static_cast<real_t<T>>(this->a.row_map().first_row() + i < 2 ? std::sqrt(0.5) : 0.0));
    }
    copy(this->ctx, host.view(), c.view());
    GuardedOperator<T> guarded(this->a);
    ChebyshevFilter<T> filter(this->ctx, guarded, std::as_const(c).view(), 8);
    BlockVector<T> x(this->ctx, this->a.row_map(), 3);
    fill_random(this->ctx, 5, x);
    filter.apply(x.view(), {-1, 5, -1.5}, 9);
    SmallMatrix<T> share(1, 3);
    tsmttsm(this->ctx, T(1), BlockView<const T>(c.view()), BlockView<const T>(x.view()), T(0),
            share);
    for (int j = 0; j < 3; ++j) {
        EXPECT_LE(std::abs(share(0, j)), 100 * epsilon_v<T>);
    }
}

TEST(ChebyshevInterval, DegreesAreTheLeast) {
    const ChebyshevInterval range{1, 9, 0.2};
    for (const double growth : {3.0, 1e3, 1e8}) {
        const int degree = range.degree_for(0.5, growth, 1000);
        EXPECT_GE(std::abs(chebyshev(degree, (0.5 - 5) / 4)), growth * (1 - 1e-9));
        EXPECT_LT(std::abs(chebyshev(degree - 1, (0.5 - 5) / 4)), growth);
    }
    EXPECT_EQ(range.degree_for(4, 10, 77), 77);
    EXPECT_EQ(range.degree_for(0.5, 0.5, 77), 1);
}

TYPED_TEST(ChebyshevFilterTest, MomentsCountEigenvalues) {
    using T = TypeParam;
    GuardedOperator<T> guarded(this->a);
    const ChebyshevInterval spectrum{-3, 6, 0};
    const SpectralMoments moments = spectral_moments(this->ctx, guarded, spectrum, 16, 150, 3);
    // The columns v are random: the mean over them has a statistical error, which is estimated. The
    // count over the whole spectrum is exact.
    EXPECT_NEAR(moments.count(-3, 6).value, 60, 1e-4);
    const auto half = moments.count(-2.5, 1.24);
    EXPECT_NEAR(half.value, 30, 5 * half.error + 0.5);
    EXPECT_GT(half.error, 0);
    EXPECT_LT(half.error, 5);
}

/// Moment m of column v is <v, T_m(A) v>; a count is a mean over the columns, and its error is the
/// standard error of this mean.
TYPED_TEST(ChebyshevFilterTest, MomentsAndErrorsAreThoseOfTheirDefinition) {
    using T = TypeParam;
    constexpr int count = 4;
    GuardedOperator<T> guarded(this->a);
    const ChebyshevInterval spectrum{-3, 6, 0};
    const SpectralMoments moments = spectral_moments(this->ctx, guarded, spectrum, count, 12, 3);
    const RowMap& map = this->a.row_map();
    BlockVector<T> v(this->ctx, map, count);
    fill_random(this->ctx, 3, v);
    SmallMatrix<T> rows(static_cast<int>(map.local_rows()), count);
    copy(this->ctx, BlockView<const T>(v.view()), rows.view());
    const auto terms = moments.of_column.front().size();
    ASSERT_EQ(terms, 25u);
    const std::vector<double> series = window_series(spectrum, -1, 2, static_cast<int>(terms) - 1);
    std::vector<double> shares;
    for (int j = 0; j < count; ++j) {
        double share = 0;
        for (std::size_t m = 0; m < terms; ++m) {
            double expected[2] = {0, 0};  // the moment, and ||v||^2
            for (int i = 0; i < rows.rows(); ++i) {
                const auto row = static_cast<std::size_t>(map.first_row() + i);
                const double at = (this->values[row] - spectrum.centre()) / spectrum.half_width();
                const double square = std::norm(std::complex<double>(rows(i, j)));
                expected[0] += square * chebyshev(static_cast<int>(m), at);
                expected[1] += square;
            }
            this->ctx.comm().sum(std::span<double>(expected));
            EXPECT_NEAR(moments.of_column[static_cast<std::size_t>(j)][m], expected[0],
                        1000 * this->eps * expected[1])
                << "moment " << m;
            share += series[m] * expected[0] / expected[1];
        }
        shares.push_back(share * static_cast<double>(map.global_rows()));
    }
    const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / count;
    double squares = 0;
    for (const double share : shares) {
        squares += (share - mean) * (share - mean);
    }
    const SpectralMoments::Count found = moments.count(-1, 2);
    const double rounding = 1e4 * this->eps * static_cast<double>(map.global_rows());
    EXPECT_NEAR(found.value, mean, rounding);
    EXPECT_NEAR(found.error, std::sqrt(squares / (count * (count - 1))), rounding);
}

}  // namespace
}  // namespace quiver

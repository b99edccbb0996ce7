// SPDX-License-Identifier: BSD-3-Clause
#include "apps/hermitian_check.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/sparse/assemble.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

constexpr std::int64_t size = 200;

/// A full band of five diagonals, a_ij = value(i, j).
template <class T>
CsrRows<T> band(const std::function<T(std::int64_t, std::int64_t)>& value) {
    const Comm comm(MPI_COMM_WORLD);
    const std::function<void(std::int64_t, RowEntries<T>&)> make_row = [&](std::int64_t i,
                                                                           RowEntries<T>& entries) {
        for (std::int64_t j = std::max<std::int64_t>(0, i - 2); j < std::min(size, i + 3); ++j) {
            entries.add(j, value(i, j));
        }
    };
    return rows_from_callback<T>(comm, size, Symmetry::general, make_row);
}

template <class T>
HermitianCheck check(const std::function<T(std::int64_t, std::int64_t)>& value) {
    return check_hermitian(Comm(MPI_COMM_WORLD), band<T>(value));
}

double smooth(std::int64_t i, std::int64_t j) {
    return std::cos(static_cast<double>(i + j)) + std::sin(static_cast<double>(i * j));
}

TEST(HermitianCheck, AcceptsSymmetricAndHermitianMatrices) {
    const auto real = check<double>(smooth);
    EXPECT_TRUE(real.hermitian()) << real.asymmetry;
    EXPECT_GT(real.norm, 1.0);
    const auto single = check<float>(
        [](std::int64_t i, std::int64_t j) { return static_cast<float>(smooth(i, j)); });
    EXPECT_TRUE(single.hermitian()) << single.asymmetry;
    const auto complex = check<std::complex<double>>([](std::int64_t i, std::int64_t j) {
        return std::complex<double>(smooth(i, j), std::sin(static_cast<double>(i - j)));
    });
    EXPECT_TRUE(complex.hermitian()) << complex.asymmetry;
}

TEST(HermitianCheck, FindsOneWrongEntry) {
    for (const double wrong : {1.0, 1e-6, 1e-10}) {
        const auto one = check<double>([&](std::int64_t i, std::int64_t j) {
            return smooth(i, j) + (i == 117 && j == 118 ? wrong : 0.0);
        });
        EXPECT_FALSE(one.hermitian()) << wrong;
        // ||A - A^H||_F = sqrt(2) wrong; the four random coefficients are not all small.
        EXPECT_GT(one.asymmetry, 0.01 * wrong);
        EXPECT_LT(one.asymmetry, 4 * wrong);
    }
}

TEST(HermitianCheck, EstimatesTheFrobeniusNormOfTheSkewPart) {
    const auto skew = check<double>([](std::int64_t i, std::int64_t j) {
        return i == j ? 0.0 : i < j ? 1.0 : -1.0;
    });
    // Every pair differs by 2; the norm of the matrix is half of that of A - A^H.
    EXPECT_GT(skew.asymmetry, 0.2 * 2 * skew.norm);
    EXPECT_LT(skew.asymmetry, 4 * 2 * skew.norm);
}

TEST(HermitianCheck, SeesAComplexSymmetricMatrixAndAComplexDiagonal) {
    EXPECT_FALSE(check<std::complex<double>>([](std::int64_t i, std::int64_t j) {
                     return std::complex<double>(smooth(i, j), i == j ? 0.0 : 1e-3);
                 }).hermitian());
    EXPECT_FALSE(check<std::complex<double>>([](std::int64_t i, std::int64_t j) {
                     return std::complex<double>(smooth(i, j), i == 7 && j == 7 ? 1e-3 : 0.0);
                 }).hermitian());
}

TEST(HermitianCheck, TellsOfEntriesThatAreNoNumbers) {
    CsrRows<double> rows = band<double>(smooth);
    if (rows.map.rank() == rows.map.ranks() - 1 && !rows.value.empty()) {
        rows.value.back() = std::numeric_limits<double>::quiet_NaN();
    }
    const HermitianCheck nan = check_hermitian(Comm(MPI_COMM_WORLD), rows);
    EXPECT_FALSE(std::isfinite(nan.norm));
    EXPECT_FALSE(nan.hermitian());
}

TEST(HermitianCheck, KeepsToTheRangeOfItsNumbers) {
    for (const double factor : {1e200, 1e-200}) {
        const HermitianCheck huge =
            check<double>([&](std::int64_t i, std::int64_t j) { return factor * smooth(i, j); });
        EXPECT_TRUE(huge.hermitian()) << factor;
        EXPECT_GT(huge.norm, factor);
        EXPECT_LT(huge.norm, 1e3 * factor);
        EXPECT_FALSE(check<double>([&](std::int64_t i, std::int64_t j) {
                         return factor * (smooth(i, j) + (i < j ? 1e-6 : 0.0));
                     }).hermitian())
            << factor;
    }
    EXPECT_TRUE(check<double>([](std::int64_t, std::int64_t) { return 0.0; }).hermitian());
}

}  // namespace
}  // namespace quiver::apps

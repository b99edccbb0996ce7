// SPDX-License-Identifier: BSD-3-Clause
#include "apps/hermitian_check.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/sparse/assemble.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

constexpr std::int64_t size = 200;

/// The matrix with five full diagonals, a_ij = value(i, j).
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
    return check_hermitian(Comm(MPI_COMM_WORLD), band<T>(value), 2);
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
        // ||A - A^H||_F = sqrt(2) wrong, and one of four random coefficients is not small.
        EXPECT_GT(one.asymmetry, 0.01 * wrong);
        EXPECT_LT(one.asymmetry, 4 * wrong);
    }
}

/// Rows of several blocks that threads share.
TEST(HermitianCheck, DoesNotDependOnTheThreads) {
    auto generator = test::make_generator();
    const Comm comm(MPI_COMM_WORLD);
    for (int trial = 0; trial < 5; ++trial) {
        const auto n = std::uniform_int_distribution<std::int64_t>(3000, 9000)(generator);
        const auto wrong = std::uniform_int_distribution<std::int64_t>(0, n - 2)(generator);
        double squares = 0;
        const auto value = [&](std::int64_t i, std::int64_t j) {
            return smooth(i, j) + (i == wrong && j == wrong + 1 ? 1e-3 : 0.0);
        };
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = std::max<std::int64_t>(0, i - 1); j < std::min(n, i + 2); ++j) {
                squares += value(i, j) * value(i, j);
            }
        }
        const std::function<void(std::int64_t, RowEntries<double>&)> make_row =
            [&](std::int64_t i, RowEntries<double>& entries) {
                for (std::int64_t j = std::max<std::int64_t>(0, i - 1); j < std::min(n, i + 2);
                     ++j) {
                    entries.add(j, value(i, j));
                }
            };
        const auto rows = rows_from_callback<double>(comm, n, Symmetry::general, make_row);
        const HermitianCheck one = check_hermitian(comm, rows, 1);
        const HermitianCheck three = check_hermitian(comm, rows, 3);
        EXPECT_EQ(one.norm, three.norm);
        EXPECT_EQ(one.asymmetry, three.asymmetry);
        EXPECT_NEAR(one.norm, std::sqrt(squares), 1e-12 * std::sqrt(squares));
        EXPECT_GT(one.asymmetry, 1e-5) << wrong << " of " << n;
        EXPECT_LT(one.asymmetry, 4e-3) << wrong << " of " << n;
    }
}

/// Finds the most unequal pair by two loops over the band.
template <class T>
UnequalPair<T> naive_pair(const std::function<T(std::int64_t, std::int64_t)>& value) {
    UnequalPair<T> worst;
    double largest = -1;
    for (std::int64_t i = 0; i < size; ++i) {
        for (std::int64_t j = std::max<std::int64_t>(0, i - 2); j < std::min(size, i + 3); ++j) {
            const T transposed = conjugate(value(j, i));
            const double gap = std::abs(value(i, j) - transposed);
            if (gap > largest) {
                largest = gap;
                worst = {i, j, value(i, j), transposed, true};
            }
        }
    }
    return worst;
}

template <class T>
void expect_pair(const std::function<T(std::int64_t, std::int64_t)>& value) {
    const UnequalPair<T> expected = naive_pair(value);
    const UnequalPair<T> found = most_unequal_pair(Comm(MPI_COMM_WORLD), band(value));
    EXPECT_EQ(found.row, expected.row);
    EXPECT_EQ(found.column, expected.column);
    EXPECT_EQ(found.entry, expected.entry);
    EXPECT_EQ(found.transposed, expected.transposed);
    EXPECT_TRUE(found.transposed_is_stored);
}

TEST(UnequalPair, IsTheWorstOneOnAnyNumberOfRanks) {
    auto generator = test::make_generator();
    for (int trial = 0; trial < 20; ++trial) {
        const auto at = std::uniform_int_distribution<std::int64_t>(0, size - 2)(generator);
        const bool above = std::bernoulli_distribution()(generator);
        const std::int64_t row = above ? at : at + 1;
        const std::int64_t column = above ? at + 1 : at;
        expect_pair<double>([&](std::int64_t i, std::int64_t j) {
            return smooth(i, j) + (i == row && j == column ? 0.25 : 0) + (i > j ? 1e-3 : 0);
        });
        expect_pair<std::complex<float>>([&](std::int64_t i, std::int64_t j) {
            const auto real = static_cast<float>(smooth(i, j));
            return std::complex<float>(real, i == row && j == row ? 0.5F : 0.0F);
        });
    }
    // All pairs differ equally, so the first row and column are reported.
    expect_pair<double>([](std::int64_t i, std::int64_t j) { return i < j ? 1.0 : 2.0; });
}

TEST(UnequalPair, MayLackItsTransposedEntry) {
    const Comm comm(MPI_COMM_WORLD);
    const std::function<void(std::int64_t, RowEntries<double>&)> make_row =
        [](std::int64_t i, RowEntries<double>& entries) {
            if (i == size - 1) {
                entries.add(0, 3.0);
            } else if (i % 3 == 0) {  // rows in between are empty
                entries.add(i, 1.0);
            }
        };
    const auto pair = most_unequal_pair(
        comm, rows_from_callback<double>(comm, size, Symmetry::general, make_row));
    EXPECT_EQ(pair.row, size - 1);
    EXPECT_EQ(pair.column, 0);
    EXPECT_EQ(pair.entry, 3.0);
    EXPECT_EQ(pair.transposed, 0.0);
    EXPECT_FALSE(pair.transposed_is_stored);
}

TEST(HermitianCheck, EstimatesTheFrobeniusNormOfTheSkewPart) {
    const auto skew = check<double>([](std::int64_t i, std::int64_t j) {
        return i == j ? 0.0 : i < j ? 1.0 : -1.0;
    });
    // A is skew-symmetric, so ||A - A^H|| = 2 ||A||.
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

TEST(HermitianCheck, ReportsEntriesThatAreNotFinite) {
    CsrRows<double> rows = band<double>(smooth);
    if (rows.map.rank() == rows.map.ranks() - 1 && !rows.value.empty()) {
        rows.value.back() = std::numeric_limits<double>::quiet_NaN();
    }
    const HermitianCheck nan = check_hermitian(Comm(MPI_COMM_WORLD), rows, 2);
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
    // Entries whose difference overflows count as different.
    EXPECT_FALSE(check<double>([](std::int64_t i, std::int64_t j) {
                     return i < j ? 1e308 : -1e308;
                 }).hermitian());
}

}  // namespace
}  // namespace quiver::apps

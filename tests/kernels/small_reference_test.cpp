// SPDX-License-Identifier: BSD-3-Clause
// Tests the references for small matrices on data that can be checked by hand, and two host kernels
// against these references.
#include <array>
#include <cmath>
#include <complex>

#include <gtest/gtest.h>

#include "kernels/leaf_args.hpp"
#include "kernels/reference/reference_small.hpp"
#include "kernels/reference/reference_sums.hpp"

namespace quiver {
namespace {

using Four = std::array<double, 4>;

template <class T>
BatchOf<T> one_matrix(T* data, int n, int cols) {
    return {data, nullptr, nullptr, 1, n, cols, 0, cols, 1};
}

void expect_close(const Four& actual, const Four& expected) {
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(actual[i], expected[i], 4 * epsilon_v<double>) << i;
    }
}

TEST(SmallReference, GramFactorOfOrderTwo) {
    const Four g{4, 2, 2, 10};
    Four r{}, s{};
    reference::gram_factor<long double>(
        GramFactorArgs<double>{2, g.data(), 2, r.data(), 2, s.data(), 2});
    EXPECT_EQ(r, (Four{2, 1, 0, 3}));
    expect_close(s, {0.5, -1.0 / 6, 0, 1.0 / 3});
    Four host_r{}, host_s{};
    host::gram_factor(1,
                      GramFactorArgs<double>{2, g.data(), 2, host_r.data(), 2, host_s.data(), 2});
    expect_close(host_r, r);
    expect_close(host_s, s);
}

TEST(SmallReference, LuFactorsSolutionsAndDeterminant) {
    // Rows are exchanged; then L = (1 0; 0.5 1), U = (4 8; 0 -2).
    Four a{2, 2, 4, 8};
    std::array<int, 2> pivots{};
    int status = -1;
    reference::lu_factor<long double>(
        LuArgs<double>{one_matrix(a.data(), 2, 2), pivots.data(), &status});
    EXPECT_EQ(a, (Four{4, 8, 0.5, -2}));
    EXPECT_EQ(pivots, (std::array<int, 2>{1, 1}));
    EXPECT_EQ(status, 0);
    const BatchOf<const double> factor = one_matrix<const double>(a.data(), 2, 2);
    // A (1, 2)^T = (6, 20)^T.
    std::array<double, 2> b{6, 20};
    reference::batched_solve<long double>(
        BatchedSolveArgs<double>{factor, pivots.data(), one_matrix(b.data(), 2, 1), false});
    EXPECT_EQ(b, (std::array<double, 2>{1, 2}));
    Four inverse{};
    reference::batched_solve<long double>(
        BatchedSolveArgs<double>{factor, pivots.data(), one_matrix(inverse.data(), 2, 2), true});
    EXPECT_EQ(inverse, (Four{1, -0.25, -0.5, 0.25}));
    // The determinant is 8.
    double sign = 0, log_abs = 0;
    reference::batched_determinant<long double>(
        DeterminantArgs<double, double>{factor, pivots.data(), &sign, &log_abs});
    EXPECT_EQ(sign, 1);
    EXPECT_DOUBLE_EQ(log_abs, std::log(8.0));
    Four singular{1, 2, 2, 4};
    reference::lu_factor<long double>(
        LuArgs<double>{one_matrix(singular.data(), 2, 2), pivots.data(), &status});
    EXPECT_EQ(status, 2);
}

TEST(SmallReference, CholeskyFactorsSolutionsAndDeterminant) {
    // L = (2 0; 1 3). Elements above the diagonal keep their values.
    Four a{4, -7, 2, 10};
    int status = -1;
    reference::cholesky_factor<long double>(
        CholeskyArgs<double>{one_matrix(a.data(), 2, 2), &status});
    EXPECT_EQ(a, (Four{2, -7, 1, 3}));
    EXPECT_EQ(status, 0);
    const BatchOf<const double> factor = one_matrix<const double>(a.data(), 2, 2);
    // A (1, -1)^T = (2, -8)^T.
    std::array<double, 2> b{2, -8};
    reference::batched_solve<long double>(
        BatchedSolveArgs<double>{factor, nullptr, one_matrix(b.data(), 2, 1), false});
    EXPECT_EQ(b, (std::array<double, 2>{1, -1}));
    double log_det = 0;
    reference::batched_determinant<long double>(
        DeterminantArgs<double, double>{factor, nullptr, nullptr, &log_det});
    EXPECT_DOUBLE_EQ(log_det, std::log(36.0));
    Four indefinite{1, 0, 2, 1};
    reference::cholesky_factor<long double>(
        CholeskyArgs<double>{one_matrix(indefinite.data(), 2, 2), &status});
    EXPECT_EQ(status, 2);
}

TEST(SmallReference, SumsInTwoPartsKeepWhatOneLoses) {
    // The sum is 1 + 2^-60; a single double would lose the second product.
    const std::array<double, 2> a{1, 0x1p-30};
    std::array<double, 2> sums{};
    reference::tsmttsm_twofold(TwofoldTsmttsmArgs{2, 1, 1, a.data(), 1, a.data(), 1, sums.data()});
    EXPECT_EQ(sums, (std::array<double, 2>{1, 0x1p-60}));
    const Four parts{1, 0x1p-60, 2, 0x1p-61};
    reference::sum_twofold(TwofoldSumArgs{2, 1, parts.data(), sums.data()});
    EXPECT_EQ(sums, (std::array<double, 2>{3, 0x1p-60 + 0x1p-61}));
    std::array<double, 2> host_sums{};
    host::sum_twofold(TwofoldSumArgs{2, 1, parts.data(), host_sums.data()});
    EXPECT_EQ(host_sums, sums);
}

}  // namespace
}  // namespace quiver

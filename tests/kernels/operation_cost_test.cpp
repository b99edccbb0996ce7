// SPDX-License-Identifier: BSD-3-Clause
// Compares cost(args) with elements read and written, and operations, counted by hand for small
// blocks.
#include <complex>

#include <gtest/gtest.h>

#include "blockvec/scalar.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver {
namespace {

using C = std::complex<float>;

void expect_cost(const Cost& cost, std::int64_t rows, int m, int n, double bytes, double flops) {
    EXPECT_EQ(cost.rows, rows);
    EXPECT_EQ(cost.m, m);
    EXPECT_EQ(cost.n, n);
    EXPECT_EQ(cost.bytes, bytes);
    EXPECT_DOUBLE_EQ(cost.flops, flops);
}

TEST(OperationCost, FlopsPerMultiplyAddAreThoseOfTheScalars) {
    EXPECT_EQ(flops_per_multiply_add<double>, multiply_add_flops_v<double>);
    EXPECT_EQ(flops_per_multiply_add<C>, multiply_add_flops_v<C>);
    EXPECT_EQ(flops_per_multiply_add<half_t>, 2);
}

TEST(OperationCost, TsmttsmReadsBothBlocksUnlessTheyAreOne) {
    // A: 5 x 2, B: 5 x 3: 25 elements, 5 x 2 x 3 = 30 multiply-adds.
    const double a[10]{}, b[15]{};
    expect_cost(cost(TsmttsmArgs<double>{5, 2, 3, 1, a, 2, b, 3, 0, nullptr, 3}), 5, 2, 3, 25 * 8,
                60);
    const C z[10]{};
    // One block of 5 x 2: 10 elements, 20 multiply-adds of 8 operations.
    expect_cost(cost(TsmttsmArgs<C>{5, 2, 2, 1, z, 2, z, 2, 0, nullptr, 2}), 5, 2, 2, 10 * 8, 160);
    // The first column of the same memory is another block: 10 and 5 elements.
    expect_cost(cost(TsmttsmArgs<C>{5, 2, 1, 1, z, 2, z, 2, 0, nullptr, 1}), 5, 2, 1, 15 * 8, 80);
    const half_t h[10]{}, g[15]{};
    expect_cost(cost(MixedTsmttsmArgs<half_t, float>{5, 2, 3, 1, h, 2, g, 3, 0, nullptr, 3}), 5, 2,
                3, 25 * 2, 60);
    expect_cost(cost(TwofoldTsmttsmArgs{5, 2, 3, a, 2, b, 3, nullptr}), 5, 2, 3, 25 * 8, 60);
}

TEST(OperationCost, GramTwofoldReadsItsBlockOnce) {
    // X: 5 x 3; 5 x 3 x 3 = 45 multiply-adds.
    const double x = 0;
    expect_cost(cost(GramTwofoldArgs{5, 3, &x, 3, nullptr}), 5, 3, 3, 15 * 8, 2 * 45);
}

TEST(OperationCost, ShiftedGramReadsItsBlockOnce) {
    // X: 5 x 3 of half precision; 5 x 3 x 3 = 45 multiply-adds, 15 shifts and 15 sums of columns.
    expect_cost(cost(ShiftedGramArgs<half_t>{5, 3, nullptr, 3, nullptr, 1, nullptr}), 5, 3, 3,
                15 * 2, 2 * 45 + 30);
}

TEST(OperationCost, TsmmReadsTheOldResultWithBetaOnly) {
    // X: 4 x 3, Y: 4 x 2: 12 read, 8 written, 4 x 3 x 2 = 24 multiply-adds.
    TsmmArgs<double> args{4, 3, 2, 1, nullptr, 3, nullptr, 2, 0, nullptr, 2};
    expect_cost(cost(args), 4, 3, 2, 20 * 8, 48);
    args.beta = 1;
    expect_cost(cost(args), 4, 3, 2, 28 * 8, 48);
    // The Gram matrix of Y has 4 x 2 x 2 = 16 additional multiply-adds.
    expect_cost(cost(TsmmGramArgs<double>{args, nullptr, 2}), 4, 3, 2, 28 * 8, 80);
    // The product Y D with D: 2 x 2 also has 16 additional multiply-adds.
    const double d[4]{};
    args.d = d;
    expect_cost(cost(args), 4, 3, 2, 28 * 8, 80);
    MixedTsmmArgs<half_t, half_t, float> mixed{4, 3, 2, 1, nullptr, 3, nullptr, 2, 0, nullptr, 2};
    expect_cost(cost(mixed), 4, 3, 2, 12 * 2 + 8 * 4, 48);
    mixed.beta = 1;
    expect_cost(cost(mixed), 4, 3, 2, 12 * 2 + 16 * 4, 48);
}

TEST(OperationCost, MtsmReadsTheLargeMatrixOnce) {
    // A: 4 x 5 of half precision, X: 5 x 2 and Y: 4 x 2 of float; 4 x 5 x 2 = 40 multiply-adds.
    MtsmArgs<half_t, float> args{};
    args.m = 4;
    args.k = 5;
    args.n = 2;
    expect_cost(cost(args), 4, 5, 2, 20 * 2 + 10 * 4 + 8 * 4, 80);
    args.beta = 1;
    expect_cost(cost(args), 4, 5, 2, 20 * 2 + 10 * 4 + 16 * 4, 80);
}

TEST(OperationCost, AxpbyCountsWhatItReads) {
    // 3 x 2 blocks of 6 elements.
    AxpbyArgs<double> args{3, 2, 2, nullptr, nullptr, 2, 3, nullptr, nullptr, 2};
    expect_cost(cost(args), 3, 2, 0, 18 * 8, 6 * 3);  // two products and a sum
    args.beta = 0;
    expect_cost(cost(args), 3, 2, 0, 12 * 8, 6);  // a product
    args.alpha = 0;
    expect_cost(cost(args), 3, 2, 0, 6 * 8, 0);  // zeros
    const double scalars[2]{};
    args.alphas = args.betas = scalars;
    expect_cost(cost(args), 3, 2, 0, 18 * 8, 6 * 3);
}

TEST(OperationCost, DotsAndMoves) {
    const C x[6]{}, y[6]{};
    expect_cost(cost(DotsArgs<C>{3, 2, x, 2, y, 2, nullptr}), 3, 2, 0, 12 * 8, 6 * 8);
    expect_cost(cost(DotsArgs<C>{3, 2, x, 2, x, 2, nullptr}), 3, 2, 0, 6 * 8, 6 * 8);
    expect_cost(cost(ConvertArgs<double, half_t>{3, 2, nullptr, 2, nullptr, 2}), 3, 2, 0,
                6 * (8 + 2), 0);
    expect_cost(cost(GatherColumnsArgs<double>{3, 4, 2, nullptr, 4, nullptr, nullptr, 2}), 3, 4, 2,
                12 * 8, 0);
    expect_cost(cost(FillArgs<double>{3, 2, 1, nullptr, 2}), 3, 2, 0, 6 * 8, 0);
    expect_cost(cost(RandomArgs<double>{3, 2, 1, 0, 0, nullptr, 2}), 3, 2, 0, 6 * 8, 0);
    expect_cost(cost(ParityArgs{nullptr, 24, nullptr}), 3, 0, 0, 24, 0);
}

TEST(OperationCost, HamiltonianReadsBlocksOnly) {
    // 5 x 3 blocks, at most 4 entries beside the diagonal.
    HamiltonianArgs<double> args{};
    args.rows = 5;
    args.width = 3;
    args.entries = 4;
    expect_cost(cost(args), 5, 4, 3, 2 * 15 * 8, 15 * 2 * 5);
    args.beta = 1;
    expect_cost(cost(args), 5, 4, 3, 3 * 15 * 8, 15 * 2 * 5);
}

TEST(OperationCost, KmeansStepReadsThePointsAndWritesWhatIsAskedFor) {
    // 7 points of 3 columns, 5 centres: 21 elements, 105 multiply-adds, and for each element the
    // shift, the difference, its square, its addition to the distance and the sum.
    KmeansStepArgs<float, float> args{};
    args.rows = 7;
    args.d = 3;
    args.k = 5;
    expect_cost(cost(args), 7, 5, 3, 21 * 4, 2 * 105 + 5 * 21);
    int labels[7]{};
    args.labels = labels;
    expect_cost(cost(args), 7, 5, 3, 21 * 4 + 7 * 4, 2 * 105 + 5 * 21);
    float distances[7]{};
    args.distances = distances;
    expect_cost(cost(args), 7, 5, 3, 21 * 4 + 7 * 8, 2 * 105 + 5 * 21);
    KmeansStepArgs<half_t, float> half{};
    half.rows = 7;
    half.d = 3;
    half.k = 5;
    expect_cost(cost(half), 7, 5, 3, 21 * 2, 2 * 105 + 5 * 21);
    expect_cost(cost(GatherRowsArgs<double>{3, 4, 9, nullptr, 4, nullptr, nullptr}), 3, 4, 4,
                2 * 12 * 8, 0);
}

TEST(OperationCost, ChecksumsHaveThreeSumsOrFive) {
    const double weights[6]{};
    ChecksumArgs<float, double> args{};
    args.rows = 3;
    args.cols = 2;
    expect_cost(cost(args), 3, 0, 2, 6 * 4, 3 * 6 * 2);
    args.weights = weights;
    expect_cost(cost(args), 3, 2, 2, 6 * 4 + 6 * 8, 5 * 6 * 2);
}

TEST(OperationCost, SpmmvCountsEntriesWithTheirIndices) {
    // 7 entries, 4 rows, 2 columns: 14 multiply-adds; X and Y have 8 elements each.
    SpmmvArgs<double> args{};
    args.x_rows = args.y_rows = 4;
    args.width = 2;
    args.entries = 9;  // two of them are padding, which is not counted
    expect_cost(cost(args, 7), 4, 0, 2, 7 * (8 + 4) + 16 * 8, 28);
    const std::int64_t columns[9]{};
    args.column64 = columns;
    args.beta = 1;
    expect_cost(cost(args, 7), 4, 0, 2, 7 * (8 + 8) + 24 * 8, 28);
}

TEST(OperationCost, FactorsAndSolutionsOfBatches) {
    // 2 matrices of order 3, one right-hand side.
    BatchOf<double> a{};
    a.count = 2;
    a.rows = a.cols = 3;
    BatchOf<const double> factor{};
    factor.count = 2;
    factor.rows = factor.cols = 3;
    BatchOf<double> b = a;
    b.cols = 1;
    const int pivots[6]{};
    double sign[2]{}, log_abs[2]{};
    // 9 elements read and written, 3 pivots and a status; 9 multiply-adds.
    expect_cost(cost(LuArgs<double>{a, nullptr, nullptr}), 2, 3, 3, 2 * (18 * 8 + 16), 2 * 18);
    // 6 elements read and written and a status; 4.5 multiply-adds.
    expect_cost(cost(CholeskyArgs<double>{a, nullptr}), 2, 3, 3, 2 * (12 * 8 + 4), 2 * 9);
    // 9 elements and 3 pivots read, 3 read and written; 9 multiply-adds.
    expect_cost(cost(BatchedSolveArgs<double>{factor, pivots, b, false}), 2, 3, 1,
                2 * (15 * 8 + 12), 2 * 18);
    // 6 elements read, 9 written; 27 multiply-adds.
    expect_cost(cost(BatchedSolveArgs<double>{factor, nullptr, a, true}), 2, 3, 3, 2 * 15 * 8,
                2 * 54);
    // 3 elements and 3 pivots read, a sign and a logarithm written.
    expect_cost(cost(DeterminantArgs<double, double>{factor, pivots, sign, log_abs}), 2, 3, 1,
                2 * (3 * 12 + 16), 2 * 6);
    expect_cost(cost(DeterminantArgs<double, double>{factor, nullptr, nullptr, log_abs}), 2, 3, 1,
                2 * (3 * 8 + 8), 2 * 6);
    // Three matrices of 9 elements, 9 multiply-adds.
    expect_cost(cost(GramFactorArgs<double>{3, nullptr, 3, nullptr, 3, nullptr, 3}), 3, 3, 3,
                27 * 8, 18);
}

}  // namespace
}  // namespace quiver

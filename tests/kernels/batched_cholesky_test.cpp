// SPDX-License-Identifier: BSD-3-Clause
#include "tests/kernels/batched_fixture.hpp"

namespace quiver::test {
namespace {

template <class T>
using BatchedCholesky = Batched<T>;
TYPED_TEST_SUITE(BatchedCholesky, Scalars, ScalarName);

TYPED_TEST(BatchedCholesky, OfEveryOrderAndLayoutMultipliesBack) {
    for (const int n : this->orders(orders_up_to(largest_batched_cholesky))) {
        const auto layouts = batch_layouts(n);
        for (std::size_t which = 0; which < (n > 64 ? 4 : layouts.size()); ++which) {
            const auto matrices = this->positive_matrices(n > 20 ? 2 : which == 0 ? 131 : 9, n);

            const auto cholesky = this->factor_cholesky(matrices, n, layouts[which]);

            this->expect_cholesky(matrices, cholesky);
            ASSERT_FALSE(this->HasFailure()) << "n = " << n << ", layout " << which;
        }
    }
}

TYPED_TEST(BatchedCholesky, OfTheLargestOrder) {
    const int n = largest_batched_cholesky;
    const auto matrices = this->positive_matrices(1, n);

    const auto cholesky = this->factor_cholesky(matrices, n, {MatrixOrder::row_major, 1});

    this->expect_cholesky(matrices, cholesky);
}

TYPED_TEST(BatchedCholesky, ReportsTheColumnAndLeavesTheOthersUnchanged) {
    using T = TypeParam;
    const auto nan = std::numeric_limits<real_t<T>>::quiet_NaN();
    for (const int n : this->orders({1, 2, 4, 8, 9, 16, 17, 30, 32, 33, 48, 64, 65, 130})) {
        const auto good = this->positive_matrices(8, n);
        auto bad = good;
        const int column = n / 2;
        bad[1](column, column) = T(-1);
        bad[3](column, column) = T(0);
        bad[4](n - 1, column) = T(nan);
        bad[6](n - 1, n - 1) = T(std::numeric_limits<real_t<T>>::infinity());
        for (const auto& layout : batch_layouts(n)) {
            const auto reference = this->factor_cholesky(good, n, layout);
            const auto cholesky = this->factor_cholesky(bad, n, layout);

            for (std::size_t b = 0; b < good.size(); ++b) {
                if (b == 1 || b == 3) {
                    EXPECT_EQ(cholesky.status[b], column + 1) << "matrix " << b;
                } else if (b == 4 || b == 6) {
                    EXPECT_EQ(cholesky.status[b], n) << "matrix " << b;
                } else {
                    EXPECT_EQ(cholesky.status[b], 0) << "matrix " << b;
                    expect_same_bits(cholesky.factors[b], reference.factors[b]);
                }
            }
            ASSERT_FALSE(this->HasFailure()) << "n = " << n;
        }
    }
}

TYPED_TEST(BatchedCholesky, OfMixedOrdersSolvesInvertsAndGivesTheDeterminant) {
    using T = TypeParam;
    for (const int n : this->orders({1, 3, 8, 16, 21, 32, 50, 90})) {
        const auto layouts = batch_layouts(n);
        for (std::size_t which = 0; which < layouts.size(); ++which) {
            const auto matrices = this->mixed_matrices(4, n, true);
            BatchLayout other = layouts[(which + 1) % layouts.size()];
            other.interleaved = false;
            Matrices<T> right;
            Matrices<T> squares;
            for (const auto& matrix : matrices) {
                right.push_back(random_global<T>(this->generator, matrix.rows, 5));
                squares.push_back(poisoned_global<T>(matrix.rows, matrix.cols));
            }
            TestBatch<T> batch(this->ctx, matrices, n, n, layouts[which], true);
            TestBatch<T> b(this->ctx, right, n, 5, other);
            TestBatch<T> inverse(this->ctx, squares, n, n, other);
            PlacedArray<int> status(this->ctx, std::vector<int>(4, -7));
            PlacedArray<real_t<T>> log_det(this->ctx, std::vector<real_t<T>>(4));

            cholesky_factor(this->ctx, batch.view(), status.span());
            cholesky_solve(this->ctx, batch.view(), b.view());
            cholesky_inverse(this->ctx, batch.view(), inverse.view());
            cholesky_log_determinant<T>(this->ctx, batch.view(), log_det.span());

            const auto factors = batch.result(lower);
            this->expect_cholesky(matrices, {factors, status.values()});
            const auto solved = b.result();
            const auto inverted = inverse.result();
            for (std::size_t i = 0; i < matrices.size(); ++i) {
                const int order = static_cast<int>(matrices[i].rows);
                const auto l = part(factors[i], false, lower);
                const auto scale = product(magnitudes(l), magnitudes(adjoint(l)));
                const auto a = part(matrices[i], false, all_elements);
                const auto x = part(solved[i], false, all_elements);
                const auto y = part(inverted[i], false, all_elements);
                const long double error = 2 * unit_error<T>(3 * order + 1);
                expect_near(product(a, x), part(right[i], false, all_elements),
                            product(scale, magnitudes(x)), error);
                expect_near(product(a, y), part(Global<T>(order, order), true, below),
                            product(scale, magnitudes(y)), error);
                long double logarithm = 0;
                long double largest = 1;
                for (int k = 0; k < order; ++k) {
                    logarithm += 2 * std::log(std::abs(l(k, k)));
                    largest = std::max(largest, std::abs(logarithm));
                }
                EXPECT_LE(std::abs(log_det.values()[i] - logarithm),
                          largest * unit_error<T>(order + 2));
            }
            ASSERT_FALSE(this->HasFailure()) << "n = " << n << ", layout " << which;
        }
    }
}

TYPED_TEST(BatchedCholesky, TheLedgerCountsOneTriangleOfCholesky) {
    using T = TypeParam;
    this->ctx.ledger().clear();

    this->factor_cholesky(this->positive_matrices(6, 10), 10, {});

    for (const auto& record : this->ctx.ledger().records()) {
        if (std::string(record.call.name) == "cholesky_factor") {
            EXPECT_EQ(record.call.rows, 6);
            EXPECT_EQ(record.bytes, 6 * (110.0 * sizeof(T) + 4));
            EXPECT_NEAR(record.flops, 6 * multiply_add_flops_v<T> * 1000 / 6.0, 1e-6);
            return;
        }
    }
    FAIL() << "cholesky_factor is not in the ledger";
}

}  // namespace
}  // namespace quiver::test

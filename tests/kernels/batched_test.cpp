// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/error.hpp"
#include "kernels/reference/reference_small.hpp"
#include "tests/kernels/batched_fixture.hpp"

namespace quiver::test {
namespace {

TYPED_TEST_SUITE(Batched, Scalars, ScalarName);

TYPED_TEST(Batched, LuOfEveryOrderAndLayoutMultipliesBack) {
    for (const int n : this->orders(orders_up_to(largest_batched_lu))) {
        const auto layouts = batch_layouts(n);
        for (std::size_t which = 0; which < layouts.size(); ++which) {
            const auto matrices = this->random_matrices(n > 20 ? 3 : which == 0 ? 131 : 9, n);
            SCOPED_TRACE("n = " + std::to_string(n) + ", layout " + std::to_string(which));

            const auto lu = this->factor_lu(matrices, n, layouts[which]);

            this->expect_lu(matrices, lu, n);
            ASSERT_FALSE(this->HasFatalFailure());
        }
    }
}

/// Multipliers of 0 and 1/2 and integers in U: every operation is exact, so the factorisation must
/// find the factors and exchanges from which A was formed.
TYPED_TEST(Batched, LuFindsExactFactorsAndExchanges) {
    using T = TypeParam;
    for (const int n : this->orders(orders_up_to(largest_batched_lu))) {
        Matrices<T> matrices;
        Matrices<T> expected;
        std::vector<int> exchanges;
        for (int b = 0; b < 5; ++b) {
            Global<T> factors = integer_global<T>(this->generator, n, n);
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < i; ++j) {
                    // Few entries, so that sums stay short, and near the diagonal, so that all rows
                    // are used.
                    factors(i, j) =
                        T(real_t<T>(i - j <= 2 && this->generator() % 2 == 0 ? 0.5 : 0));
                }
                factors(i, i) = T(real_t<T>(this->generator() % 2 == 0 ? 2 : -4));
                const auto left = static_cast<unsigned>(n - i);
                exchanges.push_back(i + static_cast<int>(this->generator() % left));
            }
            const auto wide = product(part(factors, true, below), part(factors, false, upper));
            Global<T> a(n, n);
            std::transform(wide.values.begin(), wide.values.end(), a.values.begin(),
                           [](const auto& value) { return static_cast<T>(value); });
            exchange_rows(a, exchanges, static_cast<std::size_t>(b * n), true);
            matrices.push_back(a);
            expected.push_back(factors);
        }
        for (std::size_t b = 0; b < matrices.size(); ++b) {
            Global<T> a = matrices[b];
            std::vector<int> pivots(static_cast<std::size_t>(n));
            int status = -1;
            reference::lu_factor<wide_t<T>>(LuArgs<T>{
                {a.values.data(), nullptr, nullptr, 1, n, n, 0, n, 1}, pivots.data(), &status});
            EXPECT_EQ(status, 0);
            EXPECT_TRUE(std::equal(pivots.begin(), pivots.end(),
                                   exchanges.begin() + static_cast<std::ptrdiff_t>(b) * n));
            expect_equal(a, expected[b]);
        }
        for (const auto& layout : batch_layouts(n)) {
            const auto lu = this->factor_lu(matrices, n, layout);

            EXPECT_EQ(lu.pivots, exchanges) << "n = " << n;
            for (std::size_t b = 0; b < matrices.size(); ++b) {
                expect_equal(lu.factors[b], expected[b]);
            }
            ASSERT_FALSE(this->HasFailure()) << "n = " << n;
        }
    }
}

TYPED_TEST(Batched, LuTakesTheFirstOfEqualPivotsAndTheLargestSumOfParts) {
    using T = TypeParam;
    for (const int n : this->orders({4, 12, 24, 48}, 4)) {
        Global<T> a(n, n);
        for (int i = 0; i < n; ++i) {
            a(i, (i + 1) % n) = T(1);
            a(i, i) = T(-1);
        }
        Global<T> tall(n, n);
        for (int i = 0; i < n; ++i) {
            tall(i, i) = T(1);
        }
        // 3 + 3i is the pivot, because 3 + 3 is more than 5, although |3 + 3i| is less.
        tall(1, 0) = T(5);
        if constexpr (is_complex_v<T>) {
            tall(3, 0) = T(3, 3);
        }

        const auto lu = this->factor_lu({a, tall}, n, {});

        EXPECT_EQ(lu.pivots[0], 0);
        EXPECT_EQ(lu.pivots[static_cast<std::size_t>(n)], is_complex_v<T> ? 3 : 1);
    }
}

TYPED_TEST(Batched, LuReportsTheColumnAndLeavesTheOthersUnchanged) {
    using T = TypeParam;
    const auto nan = std::numeric_limits<real_t<T>>::quiet_NaN();
    const auto infinity = std::numeric_limits<real_t<T>>::infinity();
    for (const int n : this->orders(orders_up_to(largest_batched_lu))) {
        const auto good = this->random_matrices(12, n);
        auto bad = good;
        const int column = n / 2;
        for (int i = 0; i < n; ++i) {
            bad[2](i, column) = T(0);
            // Only the last step finds a row of zeros.
            bad[5](n - 1, i) = T(0);
            bad[6](0, i) = T(0);
        }
        bad[8](n - 1, column) = T(nan);
        bad[9](0, 0) = T(infinity);
        bad[11] = Global<T>(n, n);
        for (const auto& layout : batch_layouts(n)) {
            const auto reference = this->factor_lu(good, n, layout);
            const auto lu = this->factor_lu(bad, n, layout);

            for (std::size_t b = 0; b < good.size(); ++b) {
                if (b == 2 || b == 8) {
                    EXPECT_EQ(lu.status[b], column + 1) << "matrix " << b << ", n = " << n;
                } else if (b == 5 || b == 6) {
                    EXPECT_EQ(lu.status[b], n) << "matrix " << b;
                } else if (b == 9 || b == 11) {
                    EXPECT_EQ(lu.status[b], 1) << "matrix " << b << ", n = " << n;
                } else {
                    EXPECT_EQ(lu.status[b], 0) << "matrix " << b;
                    expect_same_bits(lu.factors[b], reference.factors[b]);
                }
            }
            ASSERT_FALSE(this->HasFailure()) << "n = " << n;
        }
    }
}

TYPED_TEST(Batched, LuOfMixedOrdersMultipliesBackAndSolves) {
    using T = TypeParam;
    for (const int n : this->orders({1, 3, 5, 8, 13, 16, 22, 32, 50, 64})) {
        for (const auto& layout : batch_layouts(n)) {
            const auto matrices = this->mixed_matrices(7, n, false);
            TestBatch<T> batch(this->ctx, matrices, n, n, layout, true);
            PlacedArray<int> pivots(
                this->ctx, std::vector<int>(matrices.size() * static_cast<std::size_t>(n)));
            PlacedArray<int> status(this->ctx, std::vector<int>(matrices.size()));
            Matrices<T> right;
            for (const auto& matrix : matrices) {
                right.push_back(random_global<T>(this->generator, matrix.rows, 2));
            }
            TestBatch<T> b(this->ctx, right, n, 2, {layout.order, 1, 3, layout.pointers, false});

            lu_factor(this->ctx, batch.view(), pivots.span(), status.span());
            lu_solve(this->ctx, batch.view(), pivots.span(), b.view());

            const auto factors = batch.result();
            this->expect_lu(matrices, {factors, pivots.values(), status.values()}, n);
            ASSERT_FALSE(this->HasFatalFailure()) << "n = " << n;
            const auto solved = b.result();
            for (std::size_t i = 0; i < matrices.size(); ++i) {
                const auto x = part(solved[i], false, all_elements);
                auto scale = product(product(magnitudes(part(factors[i], true, below)),
                                             magnitudes(part(factors[i], false, upper))),
                                     magnitudes(x));
                exchange_rows(scale, pivots.values(), i * static_cast<std::size_t>(n), true);
                expect_near(product(part(matrices[i], false, all_elements), x),
                            part(right[i], false, all_elements), scale,
                            3 * unit_error<T>(static_cast<int>(matrices[i].rows)));
            }
            ASSERT_FALSE(this->HasFatalFailure()) << "n = " << n;
        }
    }
}

/// Right-hand sides and inverses have the next layout in the list, and are not interleaved.
TYPED_TEST(Batched, LuSolvesInvertsAndGivesTheDeterminant) {
    using T = TypeParam;
    for (const int n : this->orders({1, 2, 4, 7, 8, 9, 16, 17, 31, 32, 33, 64})) {
        const auto matrices = this->random_matrices(5, n);
        const auto layouts = batch_layouts(n);
        for (std::size_t which = 0; which < layouts.size(); ++which) {
            const BatchLayout& layout = layouts[which];
            const int columns = which % 2 == 0 ? 1 : 7;
            Matrices<T> right;
            for (std::size_t b = 0; b < matrices.size(); ++b) {
                right.push_back(random_global<T>(this->generator, n, columns));
            }
            BatchLayout other = layouts[(which + 1) % layouts.size()];
            other.interleaved = false;
            TestBatch<T> batch(this->ctx, matrices, n, n, layout);
            TestBatch<T> b(this->ctx, right, n, columns, other);
            TestBatch<T> inverse(this->ctx, this->random_matrices(5, n), n, n, other);
            PlacedArray<int> pivots(this->ctx, std::vector<int>(5 * static_cast<std::size_t>(n)));
            PlacedArray<int> status(this->ctx, std::vector<int>(5));
            PlacedArray<T> sign(this->ctx, std::vector<T>(5));
            PlacedArray<real_t<T>> log_abs(this->ctx, std::vector<real_t<T>>(5));

            lu_factor(this->ctx, batch.view(), pivots.span(), status.span());
            lu_solve(this->ctx, batch.view(), pivots.span(), b.view());
            lu_inverse(this->ctx, batch.view(), pivots.span(), inverse.view());
            lu_determinant(this->ctx, batch.view(), pivots.span(), sign.span(), log_abs.span());

            const auto factors = batch.result();
            const auto solved = b.result();
            const auto inverted = inverse.result();
            const auto exchanges = pivots.values();
            for (std::size_t i = 0; i < matrices.size(); ++i) {
                const auto l = part(factors[i], true, below);
                const auto u = part(factors[i], false, upper);
                auto lu = product(magnitudes(l), magnitudes(u));
                exchange_rows(lu, exchanges, i * static_cast<std::size_t>(n), true);
                const auto a = part(matrices[i], false, all_elements);
                const auto x = part(solved[i], false, all_elements);
                const auto y = part(inverted[i], false, all_elements);
                expect_near(product(a, x), part(right[i], false, all_elements),
                            product(lu, magnitudes(x)), 3 * unit_error<T>(n));
                expect_near(product(a, y), part(Global<T>(n, n), true, below),
                            product(lu, magnitudes(y)), 3 * unit_error<T>(n));
                wide_t<T> direction(1);
                long double logarithm = 0;
                long double largest = 1;
                for (int k = 0; k < n; ++k) {
                    const auto value = u(k, k);
                    direction *= value / std::abs(value);
                    const bool same =
                        exchanges[i * static_cast<std::size_t>(n) + static_cast<std::size_t>(k)] ==
                        k;
                    direction = same ? direction : -direction;
                    logarithm += std::log(std::abs(value));
                    largest = std::max(largest, std::abs(logarithm));
                }
                EXPECT_LE(std::abs(wide_t<T>(sign.values()[i]) - direction), unit_error<T>(n + 2));
                EXPECT_LE(std::abs(log_abs.values()[i] - logarithm),
                          largest * unit_error<T>(n + 2));
            }
            ASSERT_FALSE(this->HasFailure()) << "n = " << n << ", layout " << which;
        }
    }
}

TYPED_TEST(Batched, SolutionsOfSingularMatricesLeaveTheOthersUnchanged) {
    using T = TypeParam;
    for (const int n : this->orders({1, 3, 5, 8, 13, 16, 20, 40})) {
        const auto good = this->random_matrices(9, n);
        auto bad = good;
        bad[1] = Global<T>(n, n);
        bad[4](n / 2, n / 2) = T(std::numeric_limits<real_t<T>>::quiet_NaN());
        Matrices<T> right;
        for (std::size_t b = 0; b < good.size(); ++b) {
            right.push_back(random_global<T>(this->generator, n, 6));
        }
        const auto squares = this->random_matrices(9, n);
        for (const auto& layout : batch_layouts(n)) {
            BatchLayout dense = layout;
            dense.interleaved = false;
            const auto solve = [&](const Matrices<T>& matrices) {
                TestBatch<T> batch(this->ctx, matrices, n, n, layout);
                TestBatch<T> b(this->ctx, right, n, 6, dense);
                TestBatch<T> inverse(this->ctx, squares, n, n, dense);
                PlacedArray<int> pivots(this->ctx,
                                        std::vector<int>(9 * static_cast<std::size_t>(n)));
                PlacedArray<int> status(this->ctx, std::vector<int>(9));
                lu_factor(this->ctx, batch.view(), pivots.span(), status.span());
                lu_solve(this->ctx, batch.view(), pivots.span(), b.view());
                lu_inverse(this->ctx, batch.view(), pivots.span(), inverse.view());
                return std::pair(b.result(), inverse.result());
            };
            const auto [expected, expected_inverse] = solve(good);
            const auto [solved, inverse] = solve(bad);
            for (std::size_t b = 0; b < good.size(); ++b) {
                if (b != 1 && b != 4) {
                    expect_same_bits(solved[b], expected[b]);
                    expect_same_bits(inverse[b], expected_inverse[b]);
                    continue;
                }
                const auto is_good = [](T value) { return is_finite(value); };
                const auto& values = solved[b].values;
                EXPECT_FALSE(std::all_of(values.begin(), values.end(), is_good)) << "matrix " << b;
            }
            ASSERT_FALSE(this->HasFailure()) << "n = " << n;
        }
    }
}

TYPED_TEST(Batched, DeterminantsOfSingularAndPermutedMatrices) {
    using T = TypeParam;
    Global<T> exchanged(3, 3);
    exchanged(0, 1) = exchanged(1, 0) = exchanged(2, 2) = T(2);
    TestBatch<T> batch(this->ctx, {exchanged, Global<T>(3, 3)}, 3, 3, {});
    PlacedArray<int> pivots(this->ctx, std::vector<int>(6));
    PlacedArray<int> status(this->ctx, std::vector<int>(2));
    PlacedArray<T> sign(this->ctx, std::vector<T>(2));
    PlacedArray<real_t<T>> log_abs(this->ctx, std::vector<real_t<T>>(2));

    lu_factor(this->ctx, batch.view(), pivots.span(), status.span());
    lu_determinant(this->ctx, batch.view(), pivots.span(), sign.span(), log_abs.span());

    EXPECT_EQ(sign.values()[0], T(-1));
    EXPECT_NEAR(log_abs.values()[0], std::log(8.0), 1e-6);
    EXPECT_EQ(sign.values()[1], T(0));
    EXPECT_EQ(log_abs.values()[1], -std::numeric_limits<real_t<T>>::infinity());
}

TYPED_TEST(Batched, EmptyBatchesAndOrdersOfZero) {
    using T = TypeParam;
    MatrixBatch<T> none;
    none.rows = none.cols = none.ld = 4;
    none.place = this->ctx.place();
    EXPECT_NO_THROW(lu_factor(this->ctx, none, {}, {}));
    EXPECT_NO_THROW(lu_solve(this->ctx, none, {}, none));
    EXPECT_NO_THROW(cholesky_factor(this->ctx, none, {}));
    EXPECT_NO_THROW(cholesky_inverse(this->ctx, none, none));

    for (const int n : this->orders({4, 20})) {
        Matrices<T> matrices{Global<T>(0, 0), this->positive_matrices(1, n)[0]};
        const auto cholesky = this->factor_cholesky(matrices, n, {}, true);
        this->expect_cholesky({matrices[1]}, {{cholesky.factors[1]}, {cholesky.status[1]}});
        EXPECT_EQ(cholesky.status[0], 0);
        const auto lu = this->factor_lu(matrices, n, {}, true);
        EXPECT_EQ(lu.status, (std::vector<int>{0, 0}));
        for (int k = 0; k < n; ++k) {
            EXPECT_EQ(lu.pivots[static_cast<std::size_t>(k)], k);
        }
    }
}

TYPED_TEST(Batched, RefusesWhatDoesNotFit) {
    using T = TypeParam;
    TestBatch<T> batch(this->ctx, this->random_matrices(3, 4), 4, 4, {});
    PlacedArray<int> pivots(this->ctx, std::vector<int>(12));
    PlacedArray<int> status(this->ctx, std::vector<int>(3));
    const auto factor = [&](auto&& change) {
        auto view = batch.view();
        change(view);
        lu_factor(this->ctx, view, pivots.span(), status.span());
    };
    EXPECT_NO_THROW(factor([](auto&) {}));
    EXPECT_THROW(factor([](auto& view) { view.cols = 3; }), ShapeError);
    EXPECT_THROW(factor([](auto& view) { view.ld = 3; }), ShapeError);
    EXPECT_THROW(factor([](auto& view) { view.stride = 15; }), ShapeError);
    EXPECT_THROW(factor([](auto& view) { view.data = nullptr; }), ShapeError);
    EXPECT_THROW(factor([](auto& view) { view.count = 2; }), ShapeError);
    EXPECT_THROW(factor([](auto& view) { view.count = -1; }), ShapeError);
    EXPECT_THROW(factor([](auto& view) { view.stride = std::int64_t{1} << 61; }), ShapeError);
    EXPECT_THROW(factor([](auto& view) {
                     view.interleaved = true;
                     view.stride = 2;
                 }),
                 ShapeError);
    EXPECT_THROW(factor([](auto& view) {
                     view.place = view.place == Place::host ? Place::device : Place::host;
                 }),
                 ShapeError);
    auto large = batch.view();
    large.rows = large.cols = large.ld = largest_batched_lu + 1;
    large.stride = 10000;
    const std::vector<int> many(3 * (largest_batched_lu + 1));
    EXPECT_THROW(lu_solve(this->ctx, large, many, large), ShapeError);
    EXPECT_THROW(lu_solve(this->ctx, batch.view(), pivots.span(), batch.view()), ShapeError);
    EXPECT_THROW(lu_solve(this->ctx, batch.view(), pivots.span().first(11), batch.view()),
                 ShapeError);
}

TYPED_TEST(Batched, FindsTheFirstFailure) {
    PlacedArray<int> status(this->ctx, {0, 0, 3, 0, 1});

    const auto failures = find_failures(this->ctx, status.span());

    EXPECT_EQ(failures.count, 2);
    EXPECT_EQ(failures.matrix, 2);
    EXPECT_EQ(failures.column, 2);
    EXPECT_EQ(find_failures(this->ctx, status.span().first(2)).count, 0);
    EXPECT_EQ(find_failures(this->ctx, {}).matrix, -1);
}

}  // namespace
}  // namespace quiver::test

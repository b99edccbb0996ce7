// SPDX-License-Identifier: BSD-3-Clause
// Recurrences of protected products, which pass the checksums of their blocks from product to
// product.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/block_sums.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "tests/solvers/abft_support.hpp"

namespace quiver::test {
namespace {

constexpr int log_chunk = 12;
constexpr int columns = 5;
constexpr int degree = 12;

/// A block after a filter, and the counts of the checks of its products.
template <class T>
struct Filtered {
    std::vector<T> x;
    AbftCounts counts;
    OperatorFaults faults;
};

template <class T>
Filtered<T> filtered(Context& ctx, SparseMatrix<T>& a, const AbftOptions& options, bool series) {
    ProtectedMatrix<T> protection(ctx, a, options);
    GuardedOperator<T> guarded(protection);
    ChebyshevFilter<T> filter(ctx, guarded, BlockView<const T>(), columns);
    BlockVector<T> x(ctx, a.row_map(), columns);
    fill_random(ctx, 5, x);
    if (series) {
        std::vector<double> factors;
        for (int m = 0; m <= degree; ++m) {
            factors.push_back(1.0 / (1 + m));
        }
        filter.apply_series(x.view(), {0, 12, 0}, factors);
    } else {
        filter.apply(x.view(), {1, 12, 0.5}, degree);
    }
    return {download<T>(ctx, std::as_const(x).view()), protection.counts().summed(ctx.comm()),
            protection.faults()};
}

template <class T>
class AbftFilter : public ::testing::Test {
  protected:
    Context ctx = make_context();
    SparseMatrix<T> a = laplace3d<T>(ctx, 16, 15, 14);
};
/// Only double precision, in which each of these faults is above the bounds.
using FilterScalars = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(AbftFilter, FilterScalars);

/// A filter keeps no copies of overwritten blocks: it repeats a sweep with a fault, and the result
/// has the bits of a sweep without one.
TYPED_TEST(AbftFilter, RepeatsASweepToTheSameBits) {
    using T = TypeParam;
    const int exponent = sizeof(real_t<T>) == 8 ? 54 : 25;
    for (const bool series : {false, true}) {
        const Filtered<T> right = filtered(this->ctx, this->a, {AbftMode::off}, series);
        const Filtered<T> quiet =
            filtered(this->ctx, this->a, {AbftMode::correct, {}, log_chunk}, series);
        EXPECT_TRUE(same_values(quiet.x, right.x));
        EXPECT_EQ(quiet.counts.alarms, 0);
        EXPECT_EQ(quiet.counts.checked, std::int64_t{degree} * this->ctx.comm().size());
        for (const FaultPlace place :
             {FaultPlace::output, FaultPlace::input, FaultPlace::matrix, FaultPlace::guard}) {
            for (const int step : {1, 2, 7, degree}) {
                SCOPED_TRACE(std::string(to_string(place)) + ", step " + std::to_string(step) +
                             (series ? ", series" : ""));
                if (place == FaultPlace::input && step == 1) {
                    continue;  // the first block has no checksums yet
                }
                InjectOptions inject = strikes(place, static_cast<std::uint64_t>(step));
                inject.step = step;
                inject.low_bit = exponent;
                inject.high_bit = exponent + 2;
                const Filtered<T> struck =
                    filtered(this->ctx, this->a, {AbftMode::correct, inject, log_chunk}, series);
                EXPECT_TRUE(same_values(struck.x, right.x));
                EXPECT_EQ(struck.counts.injected, this->ctx.comm().size());
                EXPECT_EQ(struck.counts.failed, 0);
                if (place == FaultPlace::guard) {
                    continue;  // a fault in a checksum that is 0 leaves it tiny
                }
                EXPECT_GT(struck.counts.faults, 0);
                if (step > 1) {
                    // On some ranks the flipped bit may lie in the padding of the matrix.
                    EXPECT_GT(this->ctx.comm().sum(std::int64_t{struck.faults.lost}), 0);
                    EXPECT_EQ(struck.counts.redone, struck.counts.faults);
                }
                SparseMatrix<T> other = laplace3d<T>(this->ctx, 16, 15, 14);  // left corrupted
                const Filtered<T> found =
                    filtered(this->ctx, other, {AbftMode::detect, inject, log_chunk}, series);
                EXPECT_GT(this->ctx.comm().sum(std::int64_t{found.faults.left}), 0);
            }
        }
    }
}

/// The checksums that a product passes on agree with those formed of its blocks.
TYPED_TEST(AbftFilter, ChecksumsTravelWithTheirBlocks) {
    using T = TypeParam;
    Context& ctx = this->ctx;
    ProtectedMatrix<T> a(ctx, this->a, {AbftMode::detect, {}, log_chunk});
    BlockVector<T> x(ctx, a.row_map(), columns);
    BlockVector<T> y(ctx, a.row_map(), columns);
    fill_random(ctx, 3, x);
    fill_random(ctx, 4, y);
    BlockSums<T> x_sums;
    BlockSums<T> y_sums;
    ApplyOptions<T> options;
    options.beta = T(-1);
    const std::vector<T> shifts(columns, T(2));
    options.shift = shifts;
    options.x_sums = &x_sums;
    options.y_sums = &y_sums;
    const auto check = [&](const BlockVector<T>& block, const BlockSums<T>& sums) {
        const Checksum<T> wanted = a.encode_input(ctx, block.view());
        ASSERT_EQ(sums.totals.size(), wanted.totals().size());
        for (int kind = 0; kind < checksum_kinds(true); ++kind) {
            for (int j = 0; j < columns; ++j) {
                // Elements of the checksums of the matrix are at most 12.
                const double length =
                    kind == checksum_squares ? wanted.norm(j) * wanted.norm(j) : wanted.norm(j);
                EXPECT_LE(std::abs(sums.totals[static_cast<std::size_t>(kind * columns + j)] -
                                   wanted.total(kind, j)),
                          16 * 12 * epsilon_v<double> * length)
                    << "kind " << kind << ", column " << j;
            }
        }
    };
    for (int product = 0; product < 3; ++product) {
        a.apply_fused(ctx, x.view(), y.view(), options);
        check(x, x_sums);
        check(y, y_sums);
        std::swap(x, y);
        std::swap(x_sums, y_sums);
    }
    EXPECT_EQ(a.counts().alarms, 0);
    EXPECT_EQ(a.counts().checked, 3);

    // A change of a block after its product is detected by the next one, in X and in the old Y.
    for (const bool operand : {true, false}) {
        ASSERT_TRUE(x_sums.known() && y_sums.known());
        const BlockView<T> changed = operand ? x.view() : y.view();
        const std::int64_t before = a.counts().faults;
        if (!changed.empty()) {
            const T value(1000);
            copy(ctx, BlockView<const T>(&value, 1, 1, 1),
                 changed.row_range(changed.rows / 2, 1).columns(1, 1));
        }
        a.apply_fused(ctx, x.view(), y.view(), options);
        EXPECT_EQ(a.counts().faults, before + 1) << "operand " << operand;
        EXPECT_FALSE(x_sums.known() || y_sums.known());
        a.apply_fused(ctx, x.view(), y.view(), options);
        EXPECT_EQ(a.counts().faults, before + 1);
    }
}

/// After a change by other code, forget() by the owner of the sums is enough. Operators without
/// checks ignore the sums.
TYPED_TEST(AbftFilter, ForgottenChecksumsAreFormedAgain) {
    using T = TypeParam;
    Context& ctx = this->ctx;
    BlockVector<T> x(ctx, this->a.row_map(), columns);
    BlockVector<T> y(ctx, this->a.row_map(), columns);
    fill_random(ctx, 3, x);
    BlockSums<T> sums;
    ApplyOptions<T> options;
    options.y_sums = &sums;
    this->a.apply_fused(ctx, x.view(), y.view(), options);
    EXPECT_FALSE(sums.known());
    ProtectedMatrix<T> a(ctx, this->a, {AbftMode::correct, {}, log_chunk});
    a.apply_fused(ctx, x.view(), y.view(), options);
    ASSERT_TRUE(sums.known());
    scale(ctx, T(3), y.view());
    sums.forget();
    options.beta = T(1);
    a.apply_fused(ctx, x.view(), y.view(), options);
    EXPECT_EQ(a.counts().alarms, 0);
}

}  // namespace
}  // namespace quiver::test

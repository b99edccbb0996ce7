// SPDX-License-Identifier: BSD-3-Clause
// Protected tsmttsm: faults above the bound are found and repaired to the same bits; right results
// raise no alarm.
#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/abft/protected_products.hpp"
#include "tests/solvers/guard_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class ProtectedProducts : public ::testing::Test {};
TYPED_TEST_SUITE(ProtectedProducts, Scalars, ScalarName);

/// One product with its operands in the place under test.
template <class T>
class Case {
  public:
    Case(Context& ctx, std::mt19937_64& generator, Columns kind)
        : rows_(std::array<std::int64_t, 5>{1, 100, 1025, 4097, 6000}[generator() % 5]),
          map_(uneven_map(ctx, rows_)),
          a_values_(columns_of<T>(generator, kind, rows_, 1 + static_cast<int>(generator() % 9))),
          b_values_(columns_of<T>(generator, kind, rows_, 1 + static_cast<int>(generator() % 9))),
          a_(ctx, a_values_, map_, any_layout(generator)),
          b_(ctx, b_values_, map_, any_layout(generator)),
          gram_(generator() % 4 == 0),
          alpha_(generator() % 2 == 0 ? T(1) : random_value<T>(generator)),
          beta_(generator() % 2 == 0 ? T(0) : random_value<T>(generator)),
          old_(random_small<T>(generator, m(), n())) {}

    int m() const { return a_values_.cols; }
    int n() const { return gram_ ? a_values_.cols : b_values_.cols; }
    BlockView<const T> a() { return a_.const_view(); }
    BlockView<const T> b() { return gram_ ? a_.const_view() : b_.const_view(); }
    bool plain() const { return beta_ == T(0); }

    /// Runs the protected product, or the kernel if `guard` is null.
    SmallMatrix<T> run(Context& ctx, OperationGuard* guard, bool known = false) {
        SmallMatrix<T> c = old_;
        if (guard == nullptr) {
            tsmttsm(ctx, alpha_, a(), b(), beta_, c);
        } else if (known) {
            const Checksum<T> of_a(ctx, a(), {}, log_chunk);
            const Checksum<T> of_b(ctx, b(), {}, log_chunk);
            protected_tsmttsm(ctx, *guard, alpha_, a(), b(), beta_, c.view(), Reduce::all_ranks,
                              &of_a, &of_b);
        } else {
            protected_tsmttsm(ctx, *guard, alpha_, a(), b(), beta_, c.view());
        }
        return c;
    }
    long double bound(int i, int j) const {
        const Global<T>& right = gram_ ? a_values_ : b_values_;
        return sum_bound(rows_, alpha_, a_values_.column_norm(i) * right.column_norm(j), beta_,
                         std::abs(static_cast<wide_t<T>>(old_(i, j))));
    }
    /// The size of the rounding errors in the sums of row i: eps (sqrt(rows) + sqrt(n) + 8) |alpha|
    /// ||a_i|| sum_j ||b_j||, as weights are at most 1.
    double rounding_of_sums(int i) const {
        const Global<T>& right = gram_ ? a_values_ : b_values_;
        long double all = 0;
        for (int j = 0; j < n(); ++j) {
            all += right.column_norm(j);
        }
        const double length =
            std::sqrt(static_cast<double>(rows_)) + std::sqrt(static_cast<double>(n())) + 8;
        return static_cast<double>(epsilon_v<T>) * length * static_cast<double>(std::abs(alpha_)) *
               static_cast<double>(a_values_.column_norm(i) * all);
    }
    std::string describe() const {
        return std::to_string(rows_) + " rows, " + std::to_string(m()) + " x " +
               std::to_string(n()) + (gram_ ? ", A is B" : "");
    }

  private:
    std::int64_t rows_;
    RowMap map_;
    Global<T> a_values_;
    Global<T> b_values_;
    TestBlock<T> a_;
    TestBlock<T> b_;
    bool gram_;
    T alpha_;
    T beta_;
    SmallMatrix<T> old_;
};

template <class T>
bool same_values(const SmallMatrix<T>& a, const SmallMatrix<T>& b) {
    const auto count = static_cast<std::size_t>(a.rows()) * static_cast<std::size_t>(a.cols());
    return std::memcmp(a.data(), b.data(), count * sizeof(T)) == 0;
}

/// The larger of the effects of a fault on the two checksums of its row, in units of their bounds.
double effect(const OperationGuard& guard, const InjectedFault& fault, int columns) {
    const double change = std::abs(fault.after - fault.before);
    if (!std::isfinite(change)) {
        return INFINITY;
    }
    const auto row = static_cast<std::size_t>(2 * fault.row);
    const double unit = 1 / static_cast<double>(std::bit_ceil(static_cast<unsigned>(columns)));
    return std::max(change / guard.bounds[row],
                    change * (fault.column + 1) * unit / guard.bounds[row + 1]);
}

TYPED_TEST(ProtectedProducts, FaultsAreFoundAndRepaired) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    Tally tally;
    for (int trial = 0; trial < share(ctx, 250); ++trial) {
        Case<T> call(ctx, generator, trial % 2 == 0 ? Columns::random : Columns::scaled);
        OperationGuard quiet({AbftMode::correct, {}, log_chunk});
        const SmallMatrix<T> right = call.run(ctx, &quiet);
        OperationGuard guard(
            {AbftMode::correct, strikes(FaultPlace::output, generator()), log_chunk});
        const SmallMatrix<T> c = call.run(ctx, &guard, trial % 3 == 0);
        tally.add(guard.counts);
        const InjectedFault& fault = guard.injector.faults().front();
        SCOPED_TRACE(call.describe() + ", " + describe(fault));
        EXPECT_EQ(guard.counts.checked, 1);
        EXPECT_EQ(guard.counts.failed + guard.counts.redone + guard.counts.rounding, 0);
        for (int i = 0; i < call.m(); ++i) {
            for (int k = 0; k < 2; ++k) {
                EXPECT_LE(guard.bounds[static_cast<std::size_t>(2 * i + k)],
                          most_bound * call.rounding_of_sums(i) +
                              1e5 * static_cast<double>(std::numeric_limits<real_t<T>>::min()));
            }
        }
        if (guard.counts.faults == 0) {
            EXPECT_LE(effect(guard, fault, call.n()), 2.0);
        }
        const std::int64_t left = ctx.comm().sum(std::int64_t{guard.counts.mended == 0});
        if (left == 0) {
            EXPECT_TRUE(same_values(c, right));
        }
    }
    SCOPED_TRACE(tally.describe());
    EXPECT_EQ(tally.found, tally.mended);
    if (ctx.comm().rank() != 1) {  // rank 1 has no rows, and flipped bits of zeros may be invisible
        EXPECT_GE(tally.found, tally.struck / 4);
    }
}

TYPED_TEST(ProtectedProducts, NoFalseAlarms) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (int trial = 0; trial < 20 * column_kinds; ++trial) {
        const auto kind = static_cast<Columns>(trial % column_kinds);
        Case<T> call(ctx, generator, kind);
        SCOPED_TRACE(call.describe() + ", columns " + std::to_string(static_cast<int>(kind)));
        OperationGuard guard({AbftMode::correct, {}, log_chunk});
        const SmallMatrix<T> c = call.run(ctx, &guard, trial % 2 == 0);
        const SmallMatrix<T> kernel = call.run(ctx, nullptr);
        EXPECT_EQ(guard.counts.checked, 1);
        EXPECT_EQ(guard.counts.faults, 0);
        EXPECT_EQ(guard.counts.alarms, guard.counts.rounding);
        if (kind != Columns::constant && kind != Columns::smooth) {
            EXPECT_EQ(guard.counts.alarms, 0);
        }
        if (call.plain() && ctx.comm().size() == 1) {
            EXPECT_TRUE(same_values(c, kernel));
        }
        for (int i = 0; i < c.rows(); ++i) {
            for (int j = 0; j < c.cols(); ++j) {
                const auto difference =
                    static_cast<wide_t<T>>(c(i, j)) - static_cast<wide_t<T>>(kernel(i, j));
                EXPECT_LE(std::abs(difference), call.bound(i, j));
            }
        }
    }
}

TYPED_TEST(ProtectedProducts, DetectChangesNothing) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    int found = 0;
    for (int trial = 0; trial < 20; ++trial) {
        Case<T> call(ctx, generator, Columns::random);
        OperationGuard quiet({AbftMode::correct, {}, log_chunk});
        const SmallMatrix<T> right = call.run(ctx, &quiet);
        OperationGuard guard(
            {AbftMode::detect, strikes_high_bit<T>(FaultPlace::output, generator()), log_chunk});
        const SmallMatrix<T> c = call.run(ctx, &guard);
        const InjectedFault& fault = guard.injector.faults().front();
        const double units = effect(guard, fault, call.n());
        EXPECT_EQ(guard.counts.faults, units > 2 ? 1 : guard.counts.alarms);
        EXPECT_EQ(guard.counts.mended + guard.counts.redone + guard.counts.failed, 0);
        // A change of one rank's part may be below the rounding of the sum over all ranks.
        const T sum = right(static_cast<int>(fault.row), fault.column);
        const bool visible = std::abs(fault.after - fault.before) >
                             4 * std::numeric_limits<real_t<T>>::epsilon() * std::abs(sum);
        if (ctx.comm().sum(std::int64_t{visible}) > 0) {
            EXPECT_FALSE(same_values(c, right));
        }
        found += static_cast<int>(guard.counts.faults);
    }
    if (ctx.comm().rank() != 1) {
        EXPECT_GE(found, 10);
    }
}

TYPED_TEST(ProtectedProducts, ValuesThatAreNotFiniteStayUnchanged) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    Global<T> values = random_global<T>(generator, 300, 3);
    values(70, 1) = T(std::numeric_limits<real_t<T>>::quiet_NaN());
    TestBlock<T> a(ctx, values, {}, ctx.place());
    TestBlock<T> b(ctx, random_global<T>(generator, 300, 2), {}, ctx.place());
    SmallMatrix<T> c(3, 2);
    OperationGuard guard({AbftMode::correct, {}, log_chunk});
    protected_tsmttsm(ctx, guard, T(1), a.const_view(), b.const_view(), T(0), c.view());
    EXPECT_EQ(guard.counts.products, 1);
    EXPECT_EQ(guard.counts.checked, 0);
    EXPECT_EQ(guard.counts.alarms, 0);
    EXPECT_FALSE(is_finite(c(1, 0)));
    EXPECT_TRUE(is_finite(c(0, 0)));
}

TEST(ProtectedProduct, RefusesWhatTheKernelRefuses) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    TestBlock<double> a(ctx, random_global<double>(generator, 50, 3), {}, ctx.place());
    SmallMatrix<double> c(2, 3);
    OperationGuard guard({AbftMode::correct, {}, log_chunk});
    EXPECT_THROW(protected_tsmttsm(ctx, guard, 1.0, a.const_view(), a.const_view(), 0.0, c.view()),
                 ShapeError);
}

}  // namespace
}  // namespace quiver::test

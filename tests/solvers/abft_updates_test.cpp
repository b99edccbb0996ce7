// SPDX-License-Identifier: BSD-3-Clause
// Protected updates of blocks: faults above the bound are found and repaired to the same bits;
// right results raise no alarm.
#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/abft/protected_updates.hpp"
#include "tests/solvers/guard_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class ProtectedUpdates : public ::testing::Test {};
TYPED_TEST_SUITE(ProtectedUpdates, Scalars, ScalarName);

enum class Update { tsmm, tsmm_in_place, tsmm_pair, axpby, axpby_columns };
constexpr int updates = 5;

/// One update with its operands in the place under test, and the expected result.
template <class T>
class Case {
  public:
    Case(Context& ctx, std::mt19937_64& generator, Update update, Columns kind)
        : update_(update),
          rows_(std::array<std::int64_t, 6>{1, 100, 4096, 4097, 8200, 9000}[generator() % 6]),
          n_(1 + static_cast<int>(generator() % 8)),
          m_(update == Update::axpby || update == Update::axpby_columns
                 ? n_
                 : 1 + static_cast<int>(generator() % 9)),
          x_width_(update == Update::tsmm_in_place ? std::max(m_, n_) : m_),
          map_(uneven_map(ctx, rows_)),
          x_values_(columns_of<T>(generator, kind, rows_, x_width_)),
          y_values_(columns_of<T>(generator, kind, rows_, n_)),
          x_(ctx, x_values_, map_, any_layout(generator)),
          y_(ctx, y_values_, map_, any_layout(generator)),
          c_(random_small<T>(generator, m_, n_)),
          d_(random_small<T>(generator, n_, n_)),
          alpha_(generator() % 3 == 0 ? T(1) : random_value<T>(generator)),
          beta_(generator() % 2 == 0 ? T(0) : random_value<T>(generator)) {
        for (int j = 0; j < n_; ++j) {
            alphas_.push_back(generator() % 8 == 0 ? T(0) : random_value<T>(generator));
            betas_.push_back(generator() % 3 == 0 ? T(0) : random_value<T>(generator));
        }
        if (update_ == Update::tsmm_pair && beta_ == T(0)) {
            beta_ = T(-1);
        }
        run(ctx, nullptr, {});
        right_ = download<T>(ctx, y());
        x_right_ = download<T>(ctx, x());
        reset(ctx);
    }

    BlockView<T> x() { return x_.view(x_width_).columns(0, m_); }
    BlockView<T> y() {
        return update_ == Update::tsmm_in_place ? x_.view(x_width_).columns(0, n_) : y_.view();
    }
    const std::vector<T>& right() const { return right_; }
    const std::vector<T>& x_right() const { return x_right_; }
    bool has_rows() const { return map_.local_rows() > 0; }
    bool reads_old() const { return beta_ != T(0) || update_ == Update::axpby_columns; }
    bool in_place() const { return update_ == Update::tsmm_in_place; }

    void reset(Context& ctx) {
        for (const bool of_x : {true, false}) {
            TestBlock<T>& block = of_x ? x_ : y_;
            Global<T>& values = of_x ? x_values_ : y_values_;
            copy(ctx,
                 BlockView<const T>(values.values.data(), rows_, values.cols, values.cols)
                     .row_range(map_.first_row(), map_.local_rows()),
                 block.view());
        }
    }

    /// Runs the protected update, or the kernel if `guard` is null.
    void run(Context& ctx, OperationGuard* guard, const KnownSums<T>& known) {
        const BlockView<T> target = y();
        const BlockView<const T> source = x();
        switch (update_) {
            case Update::tsmm:
            case Update::tsmm_in_place:
                guard != nullptr
                    ? protected_tsmm(ctx, *guard, alpha_, source, c_, beta_, target, known)
                    : tsmm(ctx, alpha_, source, c_, beta_, target);
                break;
            case Update::tsmm_pair:
                guard != nullptr
                    ? protected_tsmm(ctx, *guard, alpha_, source, c_, beta_, target, d_, known)
                    : tsmm(ctx, alpha_, source, c_, beta_, target, d_);
                break;
            case Update::axpby:
                guard != nullptr
                    ? protected_axpby(ctx, *guard, alpha_, source, beta_, target, known)
                    : axpby(ctx, alpha_, source, beta_, target);
                break;
            default:
                guard != nullptr ? protected_axpby(ctx, *guard, std::span<const T>(alphas_), source,
                                                   std::span<const T>(betas_), target, known)
                                 : axpby(ctx, std::span<const T>(alphas_), source,
                                         std::span<const T>(betas_), target);
        }
    }
    /// The size of the rounding errors in the sums of column j: eps (sqrt(m + n) + 4) times the sum
    /// of |coefficient| ||column|| over the columns that the update adds.
    double rounding_of_sums(int j) const {
        const auto at = static_cast<std::size_t>(j);
        const bool columns = update_ == Update::axpby_columns;
        const bool dense = !columns && update_ != Update::axpby;
        const auto size = [](T value) { return static_cast<double>(std::abs(value)); };
        const double alpha = size(columns ? alphas_[at] : alpha_);
        const double beta = size(columns ? betas_[at] : beta_);
        const Global<T>& old = in_place() ? x_values_ : y_values_;
        double sum = 0;
        for (int l = 0; l < (dense ? m_ : 0); ++l) {
            sum += alpha * size(c_(l, j)) * static_cast<double>(x_values_.column_norm(l));
        }
        for (int l = 0; l < (update_ == Update::tsmm_pair ? n_ : 0); ++l) {
            sum += beta * size(d_(l, j)) * static_cast<double>(old.column_norm(l));
        }
        if (!dense) {
            sum += alpha * static_cast<double>(x_values_.column_norm(j));
        }
        if (update_ != Update::tsmm_pair) {
            sum += beta * static_cast<double>(old.column_norm(j));
        }
        return static_cast<double>(epsilon_v<T>) * (std::sqrt(static_cast<double>(m_ + n_)) + 4) *
               sum;
    }
    std::string describe() const {
        return "update " + std::to_string(static_cast<int>(update_)) + ", " +
               std::to_string(rows_) + " rows, " + std::to_string(m_) + " -> " +
               std::to_string(n_) + (beta_ == T(0) ? ", beta 0" : "");
    }

  private:
    Update update_;
    std::int64_t rows_;
    int n_;
    int m_;
    int x_width_;
    RowMap map_;
    Global<T> x_values_;
    Global<T> y_values_;
    TestBlock<T> x_;
    TestBlock<T> y_;
    SmallMatrix<T> c_;
    SmallMatrix<T> d_;
    T alpha_;
    T beta_;
    std::vector<T> alphas_;
    std::vector<T> betas_;
    std::vector<T> right_;
    std::vector<T> x_right_;
};

/// The bound of the plain checksum of the chunk and column with a fault.
double plain_bound(const OperationGuard& guard, const InjectedFault& fault, int columns) {
    return guard
        .bounds[static_cast<std::size_t>(2 * (fault.row >> log_chunk) * columns + fault.column)];
}

TYPED_TEST(ProtectedUpdates, FaultsAreFoundAndRepaired) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (const FaultPlace place : {FaultPlace::output, FaultPlace::input}) {
        Tally tally;
        for (int trial = 0; trial < share(ctx, 200); ++trial) {
            const auto update = static_cast<Update>(trial % updates);
            Case<T> call(ctx, generator, update, Columns::random);
            OperationGuard guard({AbftMode::correct, strikes(place, generator()), log_chunk});
            const bool known = generator() % 2 == 0;
            const Checksum<T> sums(ctx, call.x(), {}, log_chunk);
            Checksum<T> result;
            call.run(ctx, &guard, {known ? &sums : nullptr, nullptr, &result});
            const std::vector<T> y = download<T>(ctx, call.y());
            EXPECT_TRUE(result.same(Checksum<T>(ctx, call.y(), {}, log_chunk)));
            EXPECT_EQ(guard.counts.checked, 1);
            EXPECT_EQ(guard.counts.rounding, 0);
            if (guard.counts.injected == 0) {
                EXPECT_EQ(guard.counts.alarms, 0);
                continue;
            }
            const InjectedFault& fault = guard.injector.faults().front();
            SCOPED_TRACE(call.describe() + ", " + describe(fault));
            for (std::size_t at = 0; at < guard.bounds.size(); ++at) {
                const int column = static_cast<int>(at) % call.y().cols;
                EXPECT_LE(guard.bounds[at],
                          most_bound * call.rounding_of_sums(column) +
                              1e5 * static_cast<double>(std::numeric_limits<real_t<T>>::min()));
            }
            tally.add(guard.counts);
            EXPECT_LE(guard.counts.faults, 1);
            if (guard.counts.faults == 0) {
                EXPECT_LE(effect(guard, y, call.right(), call.y().cols), 2.0);
            } else {
                EXPECT_TRUE(same_values(y, call.right()));
                EXPECT_EQ(guard.counts.failed, 0);
            }
        }
        SCOPED_TRACE(to_string(place) + (": " + tally.describe()));
        EXPECT_EQ(tally.found, tally.mended + tally.redone + tally.failed);
        if (place == FaultPlace::output) {
            EXPECT_EQ(tally.redone, 0);
        }
        if (ctx.comm().rank() != 1) {
            EXPECT_GE(tally.found, tally.struck / 5);
        }
    }
}

/// Constant and smooth columns make the same rounding errors in all rows, which may raise an alarm.
/// The repetition gives the same bits, so the alarm counts as rounding.
TYPED_TEST(ProtectedUpdates, NoFalseAlarms) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (int trial = 0; trial < share(ctx, 10) * column_kinds * updates; ++trial) {
        const auto kind = static_cast<Columns>(trial / updates % column_kinds);
        Case<T> call(ctx, generator, static_cast<Update>(trial % updates), kind);
        SCOPED_TRACE(call.describe() + ", columns " + std::to_string(static_cast<int>(kind)));
        OperationGuard guard({AbftMode::correct, {}, log_chunk});
        call.run(ctx, &guard, {});
        EXPECT_EQ(guard.counts.checked, 1);
        EXPECT_EQ(guard.counts.faults, 0);
        EXPECT_EQ(guard.counts.alarms, guard.counts.rounding);
        if (kind == Columns::random || kind == Columns::scaled || kind == Columns::zero) {
            EXPECT_EQ(guard.counts.alarms, 0);
        }
        EXPECT_TRUE(same_values(download<T>(ctx, call.y()), call.right()));
    }
}

TYPED_TEST(ProtectedUpdates, DetectChangesNothing) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    int struck = 0;
    int found = 0;
    for (int trial = 0; trial < 30; ++trial) {
        Case<T> call(ctx, generator, static_cast<Update>(trial % updates), Columns::random);
        OperationGuard guard(
            {AbftMode::detect, strikes_high_bit<T>(FaultPlace::output, generator()), log_chunk});
        call.run(ctx, &guard, {});
        std::vector<T> y = download<T>(ctx, call.y());
        EXPECT_LE(guard.counts.faults, guard.counts.injected);
        EXPECT_EQ(guard.counts.mended + guard.counts.redone + guard.counts.failed, 0);
        if (guard.counts.injected > 0) {
            const InjectedFault& fault = guard.injector.faults().front();
            const auto at = static_cast<std::size_t>(fault.row * call.y().cols + fault.column);
            if (std::abs(fault.after - fault.before) >
                2 * plain_bound(guard, fault, call.y().cols)) {
                EXPECT_EQ(guard.counts.faults, 1);
            }
            EXPECT_NE(y[at], call.right()[at]);
            y[at] = call.right()[at];
            ++struck;
            found += static_cast<int>(guard.counts.faults);
        }
        EXPECT_TRUE(same_values(y, call.right()));
    }
    EXPECT_GE(found, struck / 2);
}

/// A chunk with an operand that is not finite keeps the kernel's result; other chunks are checked.
TYPED_TEST(ProtectedUpdates, ValuesThatAreNotFiniteStayUnchanged) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    Global<T> values = random_global<T>(generator, 9000, 3);
    for (const real_t<T> bad : {std::numeric_limits<real_t<T>>::infinity(),
                                std::numeric_limits<real_t<T>>::quiet_NaN()}) {
        values(5000, 1) = T(bad);
        const SmallMatrix<T> c = random_small<T>(generator, 3, 2);
        TestBlock<T> x(ctx, values, {}, ctx.place());
        TestBlock<T> y(ctx, Global<T>(9000, 2), {}, ctx.place());
        tsmm(ctx, T(1), x.const_view(), c, T(0), y.view());
        const std::vector<T> right = download<T>(ctx, y.view());
        int found = 0;
        for (int trial = 0; trial < 20; ++trial) {
            OperationGuard guard({AbftMode::correct,
                                  strikes_high_bit<T>(FaultPlace::output, generator()), log_chunk});
            protected_tsmm(ctx, guard, T(1), x.const_view(), c, T(0), y.view());
            EXPECT_EQ(guard.counts.checked, 0);
            const InjectedFault& fault = guard.injector.faults().front();
            const bool guarded = fault.row >> log_chunk != 1;
            if (!guarded ||
                std::abs(fault.after - fault.before) > 2 * plain_bound(guard, fault, 2)) {
                EXPECT_EQ(guard.counts.faults, guarded ? 1 : 0);
                EXPECT_EQ(same_values(download<T>(ctx, y.view()), right), guarded);
                found += guarded ? 1 : 0;
            }
        }
        EXPECT_GE(found, 3);
        OperationGuard quiet({AbftMode::correct, {}, log_chunk});
        protected_tsmm(ctx, quiet, T(1), x.const_view(), c, T(0), y.view());
        EXPECT_EQ(quiet.counts.alarms, 0);
        EXPECT_TRUE(same_values(download<T>(ctx, y.view()), right));
    }
}

/// Two changed elements of X in one chunk and column cannot be restored: the fault is counted as
/// failed.
TEST(ProtectedUpdate, TwoFaultsInOneChunk) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const Global<double> values = random_global<double>(generator, 5000, 2);
    TestBlock<double> x(ctx, values, {}, ctx.place());
    TestBlock<double> y(ctx, values, {}, ctx.place());
    const Checksum<double> sums(ctx, x.const_view(), {}, log_chunk);
    // X changes between its checksums and the call.
    const std::array<unsigned char, 8> mask{0, 0, 0, 0, 0, 0, 1, 0};
    for (const std::int64_t row : {7, 900}) {
        flip_bits(ctx, x.view().data + 2 * row, mask);
    }
    OperationGuard guard({AbftMode::correct, {}, log_chunk});
    protected_axpby(ctx, guard, 2.0, x.const_view(), 0.0, y.view(), {&sums, nullptr, nullptr});
    EXPECT_EQ(guard.counts.faults, 1);
    EXPECT_EQ(guard.counts.failed, 1);
}

TEST(ProtectedUpdate, RefusesWhatTheKernelsRefuse) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    TestBlock<double> x(ctx, random_global<double>(generator, 50, 3), {}, ctx.place());
    TestBlock<double> y(ctx, random_global<double>(generator, 50, 2), {}, ctx.place());
    OperationGuard guard({AbftMode::correct, {}, log_chunk});
    const SmallMatrix<double> c(2, 2);
    EXPECT_THROW(protected_tsmm(ctx, guard, 1.0, x.const_view(), c, 0.0, y.view()), ShapeError);
    EXPECT_THROW(protected_axpby(ctx, guard, 1.0, x.const_view(), 0.0, y.view()), ShapeError);
    const Checksum<double> other(ctx, y.const_view(), {}, log_chunk);
    EXPECT_THROW(protected_tsmm(ctx, guard, 1.0, x.const_view(), SmallMatrix<double>(3, 2), 0.0,
                                y.view(), {&other, nullptr, nullptr}),
                 ShapeError);
}

}  // namespace
}  // namespace quiver::test

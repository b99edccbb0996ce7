// SPDX-License-Identifier: BSD-3-Clause
// Products with a protected dense matrix: faults in Y, A, the column sums of A, and X.
#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/mtsm.hpp"
#include "solvers/abft/protected_dense.hpp"
#include "tests/solvers/guard_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class ProtectedDenseTest : public ::testing::Test {};
TYPED_TEST_SUITE(ProtectedDenseTest, Scalars, ScalarName);

/// A dense matrix and a product with it, local to each rank.
template <class T>
class Case {
  public:
    Case(Context& ctx, std::mt19937_64& generator, Columns kind, bool gaps)
        : m_(std::array<std::int64_t, 4>{1, 70, 4097, 5000}[generator() % 4]),
          k_(1 + static_cast<std::int64_t>(generator() % 90)),
          by_rows_(generator() % 2 == 0),
          adjoint_(generator() % 2 == 0),
          a_(ctx,
             columns_of<T>(generator, kind, by_rows_ ? m_ : k_,
                           static_cast<int>(by_rows_ ? k_ : m_)),
             Layout{gaps ? 3 : 0, 0}, ctx.place()),
          n_(1 + static_cast<int>(generator() % 5)),
          x_values_(columns_of<T>(generator, kind, adjoint_ ? m_ : k_, n_)),
          y_values_(columns_of<T>(generator, kind, adjoint_ ? k_ : m_, n_)),
          x_(ctx, x_values_, any_layout(generator), ctx.place()),
          y_(ctx, y_values_, any_layout(generator), ctx.place()),
          alpha_(random_value<T>(generator)),
          beta_(generator() % 2 == 0 ? T(0) : random_value<T>(generator)) {
        const MatrixView<const T> a = matrix();
        const MatrixView<const T> x = x_.const_view();
        const MatrixView<T> y = y_.view();
        adjoint_ ? mtsm_adjoint(ctx, alpha_, a, x, beta_, y) : mtsm(ctx, alpha_, a, x, beta_, y);
        right_ = download<T>(ctx, y_.const_view());
        copy(ctx, BlockView<const T>(y_values_.values.data(), y_values_.rows, n_, n_), y_.view());
    }
    MatrixView<T> matrix() {
        const BlockView<T> lines = a_.view();
        return {lines.data,
                m_,
                k_,
                lines.ld,
                by_rows_ ? MatrixOrder::row_major : MatrixOrder::column_major,
                lines.place};
    }
    bool adjoint() const { return adjoint_; }
    int n() const { return n_; }
    BlockView<T> x() { return x_.view(); }
    BlockView<T> y() { return y_.view(); }
    const std::vector<T>& right() const { return right_; }
    void run(Context& ctx, ProtectedDense<T>& guarded, const KnownSums<T>& known = {}) {
        adjoint_ ? guarded.apply_adjoint(ctx, alpha_, x_.const_view(), beta_, y_.view(), known)
                 : guarded.apply(ctx, alpha_, x_.const_view(), beta_, y_.view(), known);
    }
    void expect_operands_unchanged() {
        a_.expect_unchanged();
        x_.expect_unchanged();
    }
    std::string describe() const {
        return std::to_string(m_) + " x " + std::to_string(k_) + (by_rows_ ? " rows" : " columns") +
               (adjoint_ ? ", adjoint, " : ", ") + std::to_string(n_) +
               (beta_ == T(0) ? ", beta 0" : "");
    }

  private:
    std::int64_t m_;
    std::int64_t k_;
    bool by_rows_;
    bool adjoint_;
    TestBlock<T> a_;
    int n_;
    Global<T> x_values_;
    Global<T> y_values_;
    TestBlock<T> x_;
    TestBlock<T> y_;
    T alpha_;
    T beta_;
    std::vector<T> right_;
};

TYPED_TEST(ProtectedDenseTest, FaultsAreFoundAndRepaired) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (const FaultPlace place :
         {FaultPlace::output, FaultPlace::matrix, FaultPlace::guard, FaultPlace::input}) {
        Tally tally;
        for (int trial = 0; trial < share(ctx, 24); ++trial) {
            Case<T> call(ctx, generator, Columns::random, false);
            const std::uint64_t seed = generator();
            const InjectOptions inject = trial % 3 != 0 ? strikes(place, seed)
                                         : place == FaultPlace::guard
                                             ? strikes_high_bit<double>(place, seed)
                                             : strikes_high_bit<T>(place, seed);
            OperationGuard guard({AbftMode::correct, inject, log_chunk});
            ProtectedDense<T> guarded(ctx, guard, call.matrix(), call.adjoint());
            const Checksum<T> known(ctx, call.x(), {}, log_chunk);
            Checksum<T> sums;
            call.run(ctx, guarded, {trial % 2 == 0 ? &known : nullptr, nullptr, &sums});
            const InjectedFault& fault = guard.injector.faults().front();
            SCOPED_TRACE(call.describe() + ", " + describe(fault));
            EXPECT_EQ(guard.counts.injected, 1);
            EXPECT_EQ(guard.counts.checked, 1);
            tally.add(guard.counts);
            const std::vector<T> y = download<T>(ctx, call.y());
            EXPECT_TRUE(sums.same(Checksum<T>(ctx, call.y(), {}, log_chunk)));
            if (guard.counts.faults == 0) {
                EXPECT_LE(effect(guard, y, call.right(), call.n()), 2.0);
            } else {
                EXPECT_TRUE(same_values(y, call.right()));
                EXPECT_EQ(guard.counts.mended, 1);
            }
            // The memory is restored, whether the product or only the audit detects the fault.
            const AbftCounts first = guard.counts;
            guarded.audit(ctx);
            EXPECT_EQ(guard.counts.failed, first.failed);
            if (place == FaultPlace::matrix || place == FaultPlace::guard) {
                EXPECT_EQ(guard.counts.faults, 1);
                call.expect_operands_unchanged();
            } else {
                EXPECT_EQ(guard.counts.faults, first.faults);
            }
        }
        EXPECT_GE(ctx.comm().sum(std::int64_t{tally.found}), 3)
            << to_string(place) << ": " << tally.describe();
    }
}

TYPED_TEST(ProtectedDenseTest, NoFalseAlarms) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (int trial = 0; trial < share(ctx, 12) * column_kinds; ++trial) {
        const auto kind = static_cast<Columns>(trial % column_kinds);
        Case<T> call(ctx, generator, kind, generator() % 2 == 0);
        SCOPED_TRACE(call.describe() + ", columns " + std::to_string(static_cast<int>(kind)));
        OperationGuard guard({AbftMode::correct, {}, log_chunk});
        ProtectedDense<T> guarded(ctx, guard, call.matrix(), call.adjoint());
        call.run(ctx, guarded);
        EXPECT_EQ(guard.counts.checked, 1);
        EXPECT_EQ(guard.counts.alarms, guard.counts.rounding);
        EXPECT_EQ(guard.counts.faults, 0);
        if (kind != Columns::constant && kind != Columns::smooth) {
            EXPECT_EQ(guard.counts.alarms, 0);
        }
        EXPECT_TRUE(same_values(download<T>(ctx, call.y()), call.right()));
        guarded.audit(ctx);
        EXPECT_EQ(guard.counts.faults, 0);
    }
}

/// A matrix with gaps between its lines has no parity: a fault in it is reported but not repaired,
/// and the matrix with the fault becomes the reference.
TYPED_TEST(ProtectedDenseTest, WithGapsFaultsAreFoundButNotRepaired) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    int found = 0;
    for (int trial = 0; trial < 12; ++trial) {
        Case<T> call(ctx, generator, Columns::random, true);
        OperationGuard guard({AbftMode::correct,
                              strikes_highest_bit<T>(FaultPlace::matrix, generator()), log_chunk});
        ProtectedDense<T> guarded(ctx, guard, call.matrix(), call.adjoint());
        call.run(ctx, guarded);
        EXPECT_EQ(guard.counts.failed, guard.counts.faults);
        found += static_cast<int>(guard.counts.faults);
        if (guard.counts.faults > 0) {
            EXPECT_FALSE(same_values(download<T>(ctx, call.y()), call.right()));
        }
        guarded.audit(ctx);
        EXPECT_EQ(guard.counts.failed, 1) << call.describe();
    }
    EXPECT_GE(found, 6);
}

/// Known checksums reveal that X changed before the call; only `correct` repairs it.
TYPED_TEST(ProtectedDenseTest, KnownOperands) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (const AbftMode mode : {AbftMode::correct, AbftMode::detect}) {
        for (int trial = 0; trial < 6; ++trial) {
            Case<T> call(ctx, generator, Columns::random, false);
            OperationGuard guard({mode, {}, log_chunk});
            ProtectedDense<T> guarded(ctx, guard, call.matrix(), call.adjoint());
            const Checksum<T> known(ctx, call.x(), {}, log_chunk);
            FaultInjector injector(strikes_high_bit<T>(FaultPlace::input, generator()));
            injector.strike(ctx, FaultPlace::input, call.x());
            call.run(ctx, guarded, {&known, nullptr, nullptr});
            EXPECT_EQ(guard.counts.faults, 1);
            EXPECT_EQ(guard.counts.mended, mode == AbftMode::correct ? 1 : 0);
            if (mode == AbftMode::correct) {
                EXPECT_LE(effect(guard, download<T>(ctx, call.y()), call.right(), call.n()), 2.0);
            }
        }
    }
}

TEST(ProtectedDense, Misuse) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    TestBlock<double> a(ctx, random_global<double>(generator, 9, 4), {}, ctx.place());
    TestBlock<double> x(ctx, random_global<double>(generator, 9, 2), {}, ctx.place());
    TestBlock<double> y(ctx, random_global<double>(generator, 4, 2), {}, ctx.place());
    OperationGuard guard;
    ProtectedDense<double> guarded(ctx, guard, a.view());
    EXPECT_THROW(guarded.apply(ctx, 1.0, x.const_view(), 0.0, y.view()), ShapeError);
    EXPECT_THROW(guarded.apply_adjoint(ctx, 1.0, x.const_view(), 0.0, y.view()), ShapeError);
    OperationGuard off({AbftMode::off, {}, log_chunk});
    ProtectedDense<double> plain(ctx, off, a.view());
    plain.apply_adjoint(ctx, 1.0, x.const_view(), 0.0, y.view());
    EXPECT_EQ(off.counts.products, 1);
    EXPECT_EQ(off.counts.checked, 0);
}

}  // namespace
}  // namespace quiver::test

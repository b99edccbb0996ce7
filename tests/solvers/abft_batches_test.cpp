// SPDX-License-Identifier: BSD-3-Clause
// Protected LU and Cholesky batches: any flipped bit is found and repaired, and matrices that
// cannot be factored raise no alarm.
#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/abft/protected_batches.hpp"
#include "tests/solvers/guard_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class ProtectedBatches : public ::testing::Test {};
TYPED_TEST_SUITE(ProtectedBatches, Scalars, ScalarName);

/// Random Hermitian, diagonally dominant matrices. `spoiled`: every third has NaN or -1 on its
/// diagonal.
template <class T>
class Case {
  public:
    Case(Context& ctx, std::mt19937_64& generator, bool lu, bool spoiled)
        : ctx_(ctx),
          lu_(lu),
          n_(1 + static_cast<int>(generator() % 12)),
          count_(1 + static_cast<int>(generator() % 30)),
          side_by_side_(generator() % 3 == 0),
          values_(static_cast<std::size_t>(count_ * n_ * n_)),
          memory_(ctx.allocate(memory_kind(ctx.place()), values_.size() * sizeof(T), "batch")),
          words_(ctx.allocate(memory_kind(ctx.place()),
                              static_cast<std::size_t>(count_ * (n_ + 1)) * sizeof(int),
                              "pivots and statuses")) {
        const auto at = [&](int b, int i, int j) -> T& {
            const int element = i * n_ + j;
            return values_[static_cast<std::size_t>(side_by_side_ ? element * count_ + b
                                                                  : b * n_ * n_ + element)];
        };
        for (int b = 0; b < count_; ++b) {
            for (int i = 0; i < n_; ++i) {
                for (int j = 0; j <= i; ++j) {
                    at(b, i, j) = random_value<T>(generator);
                    at(b, j, i) = conjugate(at(b, i, j));
                }
                at(b, i, i) = T(static_cast<real_t<T>>(2 * n_));
            }
            if (spoiled && b % 3 == 0) {
                at(b, n_ / 2, n_ / 2) =
                    b % 2 == 0 ? T(std::numeric_limits<real_t<T>>::quiet_NaN()) : T(-1);
            }
        }
    }
    void factor(OperationGuard* guard) {
        const auto count = static_cast<std::int64_t>(values_.size());
        copy(ctx_, BlockView<const T>(values_.data(), count, 1, 1),
             BlockView<T>(memory_.template as<T>(), count, 1, 1, ctx_.place()));
        T* const data = memory_.template as<T>();
        const MatrixBatch<T> a =
            side_by_side_ ? MatrixBatch<T>::side_by_side(data, count_, n_, n_, ctx_.place())
                          : MatrixBatch<T>::packed(data, count_, n_, n_, ctx_.place());
        // The statuses follow the pivots directly, so they may not be aligned to 8 bytes.
        const std::span<int> pivots(words_.template as<int>(),
                                    static_cast<std::size_t>(count_ * n_));
        const std::span<int> status = this->status();
        if (guard == nullptr) {
            lu_ ? lu_factor(ctx_, a, pivots, status) : cholesky_factor(ctx_, a, status);
        } else {
            lu_ ? protected_lu_factor(ctx_, *guard, a, pivots, status)
                : protected_cholesky_factor(ctx_, *guard, a, status);
        }
    }
    /// Factors, pivots (LU only) and statuses of the last call, as floats to compare bit for bit.
    std::vector<float> result() {
        std::vector<float> all;
        const auto add = [&](const void* data, std::size_t bytes) {
            const auto words = static_cast<std::int64_t>(bytes / sizeof(float));
            const std::vector<float> part = download<float>(
                ctx_,
                BlockView<const float>(static_cast<const float*>(data), words, 1, 1, ctx_.place()));
            all.insert(all.end(), part.begin(), part.end());
        };
        add(memory_.template as<void>(), memory_.bytes());
        if (lu_) {
            add(words_.template as<void>(), words_.bytes());
        } else {
            add(status().data(), status().size_bytes());
        }
        return all;
    }
    std::int64_t failures() { return find_failures(ctx_, std::span<const int>(status())).count; }

  private:
    std::span<int> status() {
        return {words_.template as<int>() + count_ * n_, static_cast<std::size_t>(count_)};
    }

    Context& ctx_;
    bool lu_;
    int n_;
    int count_;
    bool side_by_side_;
    std::vector<T> values_;
    Buffer memory_;
    Buffer words_;
};

TYPED_TEST(ProtectedBatches, FaultsAreFoundAndRepaired) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (const bool lu : {true, false}) {
        for (const FaultPlace place : {FaultPlace::output, FaultPlace::input}) {
            Tally tally;
            for (int trial = 0; trial < share(ctx, 60); ++trial) {
                Case<T> call(ctx, generator, lu, trial % 2 == 0);
                call.factor(nullptr);
                const std::vector<float> right = call.result();
                OperationGuard guard({AbftMode::correct, strikes(place, generator()), log_chunk});
                call.factor(&guard);
                SCOPED_TRACE(describe(guard.injector.faults().front()));
                tally.add(guard.counts);
                EXPECT_TRUE(same_values(call.result(), right));
                EXPECT_EQ(guard.counts.failed, 0);
                if (place == FaultPlace::output) {
                    EXPECT_EQ(guard.counts.faults, 1);
                }
            }
            SCOPED_TRACE((lu ? "LU: " : "Cholesky: ") + tally.describe());
            EXPECT_EQ(tally.redone, tally.found);
            EXPECT_GE(ctx.comm().sum(std::int64_t{tally.found}), 10);
        }
    }
}

TYPED_TEST(ProtectedBatches, RightResultsRaiseNoAlarm) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    std::int64_t failures = 0;
    for (int trial = 0; trial < 80; ++trial) {
        Case<T> call(ctx, generator, trial % 2 == 0, trial % 4 < 2);
        call.factor(nullptr);
        const std::vector<float> right = call.result();
        failures += call.failures();
        OperationGuard guard({AbftMode::correct, {}, log_chunk});
        call.factor(&guard);
        EXPECT_TRUE(same_values(call.result(), right));
        EXPECT_EQ(guard.counts.checked, 1);
        EXPECT_EQ(guard.counts.alarms, 0);
    }
    EXPECT_GT(failures, 0);
}

TYPED_TEST(ProtectedBatches, DetectChangesNothing) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (int trial = 0; trial < 10; ++trial) {
        Case<T> call(ctx, generator, trial % 2 == 0, false);
        call.factor(nullptr);
        const std::vector<float> right = call.result();
        OperationGuard guard(
            {AbftMode::detect, strikes(FaultPlace::output, generator()), log_chunk});
        call.factor(&guard);
        EXPECT_EQ(guard.counts.faults, 1);
        EXPECT_EQ(guard.counts.redone, 0);
        EXPECT_FALSE(same_values(call.result(), right));
    }
}

TEST(ProtectedBatch, RefusesPointersAndWhatTheKernelRefuses) {
    Context ctx = make_context();
    std::vector<double> values(18, 1);
    std::vector<int> status(2);
    OperationGuard guard;
    MatrixBatch<double> a = MatrixBatch<double>::packed(values.data(), 2, 3, 3, ctx.place());
    double* const first = values.data();
    a.pointers = &first;
    EXPECT_THROW(protected_cholesky_factor(ctx, guard, a, status), ShapeError);
    a.pointers = nullptr;
    a.cols = 2;
    EXPECT_THROW(protected_cholesky_factor(ctx, guard, a, status), ShapeError);
}

}  // namespace
}  // namespace quiver::test

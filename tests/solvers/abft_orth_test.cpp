// SPDX-License-Identifier: BSD-3-Clause
// Protected orthonormalisation. `correct` repairs a fault in X, in Q or in a kernel to the bits of
// a run without faults; `detect` counts it. Without a fault nothing is found.
#include <gtest/gtest.h>

#include "kernels/tsmttsm.hpp"
#include "solvers/protected_orth.hpp"
#include "tests/solvers/abft_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class ProtectedOrth : public ::testing::Test {
  protected:
    /// Q, h and r of one run, the sum of |Q^H Q - I|, and the counts of all ranks.
    struct Run {
        std::vector<T> values;
        double loss = 0;
        AbftCounts counts;
    };

    Run run(const OrthOptions& orth, const AbftOptions& checks) {
        OperationGuard guard(checks);
        const BlockVector<T> x = random_block(x_width, 1);
        BlockVector<T> w(ctx, map, x_width);
        const OrthResult<T> result =
            protected_gram_schmidt<T>(ctx, guard, map, v.view(), x.view(), w.view(), orth);
        Run run{download<T>(ctx, std::as_const(w).view()), 0, guard.counts.summed(ctx.comm())};
        for (const SmallMatrix<T>* small : {&result.h, &result.r}) {
            run.values.insert(run.values.end(), small->data(),
                              small->data() + small->rows() * small->cols());
        }
        const BlockView<const T> q = std::as_const(w).view().columns(0, result.columns);
        SmallMatrix<T> gram(q.cols, q.cols);
        tsmttsm(ctx, T(1), q, q, T(0), gram);
        for (int i = 0; i < q.cols; ++i) {
            for (int j = 0; j < q.cols; ++j) {
                run.loss += std::abs(std::complex<double>(gram(i, j)) - (i == j ? 1.0 : 0.0));
            }
        }
        return run;
    }
    BlockVector<T> random_block(int width, std::uint64_t seed) {
        BlockVector<T> x(ctx, map, width);
        fill_random(ctx, seed, x);
        return x;
    }
    BlockVector<T> orthonormal(int width) {
        BlockVector<T> q = random_block(width, 2);
        block_gram_schmidt<T>(ctx, map, BlockVector<T>(ctx, map, 0).view(), q.view());
        return q;
    }
    static AbftOptions struck(AbftMode mode, FaultPlace place, std::uint64_t seed) {
        AbftOptions options{mode, strikes(place, seed)};
        // A bit of the exponent changes an element by a factor of two or more.
        options.inject.low_bit = sizeof(real_t<T>) == 8 ? 53 : 24;
        options.inject.high_bit = sizeof(real_t<T>) == 8 ? 61 : 29;
        return options;
    }

    static constexpr int x_width = 5;
    Context ctx = make_context();
    RowMap map = RowMap::by_rows(ctx.comm(), 700);
    BlockVector<T> v = orthonormal(3);
};
TYPED_TEST_SUITE(ProtectedOrth, Scalars, ScalarName);

constexpr OrthMethod all_methods[] = {OrthMethod::robust,       OrthMethod::cholesky_qr,
                                      OrthMethod::cholesky_qr2, OrthMethod::shifted_cholesky_qr3,
                                      OrthMethod::svqb,         OrthMethod::tsqr};

TYPED_TEST(ProtectedOrth, FindsNothingWithoutAFault) {
    using T = TypeParam;
    for (const OrthMethod method : all_methods) {
        OrthOptions orth;
        orth.method = method;
        const auto plain = this->run(orth, {AbftMode::off});
        // On a device, protected updates replace the fused tsmm_gram, which rounds differently.
        AbftOptions protected_updates{AbftMode::detect};
        protected_updates.updates = true;
        const auto unfused =
            this->ctx.place() == Place::device ? this->run(orth, protected_updates) : plain;
        EXPECT_LE(unfused.loss, 100 * this->x_width * static_cast<double>(epsilon_v<T>));
        for (const AbftMode mode : {AbftMode::detect, AbftMode::correct}) {
            for (const bool updates : {false, true}) {
                AbftOptions checks{mode};
                checks.updates = updates;
                const auto checked = this->run(orth, checks);
                EXPECT_TRUE(same_values<T>(checked.values, updates ? unfused.values : plain.values))
                    << to_string(method);
                EXPECT_EQ(checked.counts.faults, 0) << to_string(method);
                EXPECT_EQ(checked.counts.failed, 0);
                EXPECT_GT(checked.counts.basis_checks, 0);
            }
        }
    }
}

TYPED_TEST(ProtectedOrth, FaultsAtRest) {
    using T = TypeParam;
    const std::uint64_t base = make_generator()();
    for (const OrthMethod method : all_methods) {
        OrthOptions orth;
        orth.method = method;
        const auto plain = this->run(orth, {AbftMode::off});
        for (const FaultPlace place : {FaultPlace::input, FaultPlace::basis}) {
            for (std::uint64_t seed = base; seed < base + 5; ++seed) {
                const auto mended = this->run(orth, this->struck(AbftMode::correct, place, seed));
                EXPECT_TRUE(same_values<T>(mended.values, plain.values))
                    << to_string(method) << ", " << to_string(place);
                EXPECT_GT(mended.counts.injected, 0);
                EXPECT_GT(mended.counts.faults, 0) << to_string(method) << ", " << to_string(place);
                EXPECT_EQ(mended.counts.faults, mended.counts.mended + mended.counts.redone);
                EXPECT_EQ(mended.counts.failed, 0);
                const auto told = this->run(orth, this->struck(AbftMode::detect, place, seed));
                EXPECT_GT(told.counts.faults, 0) << to_string(method) << ", " << to_string(place);
                EXPECT_EQ(told.counts.mended + told.counts.redone + told.counts.failed, 0);
            }
        }
    }
}

/// A wrong result of one kernel is found, or later passes of the method remove the error.
TYPED_TEST(ProtectedOrth, FaultsInKernels) {
    using T = TypeParam;
    const std::uint64_t seed = make_generator()();
    std::int64_t found = 0;
    for (const OrthMethod method : all_methods) {
        OrthOptions orth;
        orth.method = method;
        const auto plain = this->run(orth, {AbftMode::off});
        for (std::int64_t step = 1; step <= 6; ++step) {
            AbftOptions options = this->struck(AbftMode::correct, FaultPlace::output, seed);
            options.inject.step = step;
            const auto mended = this->run(orth, options);
            EXPECT_EQ(mended.counts.failed, 0) << to_string(method) << ", step " << step;
            EXPECT_LE(mended.loss, 100 * this->x_width * static_cast<double>(epsilon_v<T>))
                << to_string(method) << ", step " << step;
            if (mended.counts.faults > 0) {
                ++found;
                EXPECT_TRUE(same_values<T>(mended.values, plain.values)) << to_string(method);
            }
            options.mode = AbftMode::detect;
            EXPECT_EQ(this->run(orth, options).counts.faults > 0, mended.counts.faults > 0);
        }
    }
    EXPECT_GT(found, 6);
}

/// Linearly dependent columns violate the checks without a fault: the repetition gives the same
/// bits, so the alarm counts as rounding.
TYPED_TEST(ProtectedOrth, DependentColumnsAreNoFault) {
    using T = TypeParam;
    Context& ctx = this->ctx;
    for (const OrthMethod method : {OrthMethod::robust, OrthMethod::cholesky_qr}) {
        OrthOptions orth;
        orth.method = method;
        orth.replace_deficient = false;
        BlockVector<T> x = this->random_block(4, 3);
        copy(ctx, x.view().columns(0, 1), x.view().columns(3, 1));
        BlockVector<T> w(ctx, this->map, 4);
        OperationGuard guard{AbftOptions{AbftMode::correct}};
        const OrthResult<T> result = protected_gram_schmidt<T>(
            ctx, guard, this->map, this->v.view(), x.view(), w.view(), orth);
        EXPECT_EQ(method == OrthMethod::robust ? result.columns : result.breakdown, 3);
        const AbftCounts counts = guard.counts.summed(ctx.comm());
        EXPECT_EQ(counts.faults, 0);
        EXPECT_EQ(counts.alarms, counts.rounding);
        EXPECT_GE(counts.alarms, method == OrthMethod::cholesky_qr ? 1 : 0);
    }
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// Block Lanczos under protection: the waits of its steps, and faults in its basis.
#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/overhead.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "tests/solvers/abft_support.hpp"
#include "tests/support/eigen_checks.hpp"

namespace quiver::test {
namespace {

constexpr int log_chunk = 12;

template <class T>
class AbftLanczos : public ::testing::Test {
  protected:
    EigenResult<T> solve(ProtectedMatrix<T>& a, int k, double tol) {
        EigenProblem<T> problem{a};
        problem.protection = &a;
        EigenOptions options;
        options.method = Method::lanczos;
        options.k = k;
        options.tol = tol;
        return eigensolve(ctx, problem, options);
    }
    std::int64_t count(Overhead kind) { return OverheadCounts::of(ctx)[kind].count; }

    Context ctx = make_context();
};
TYPED_TEST_SUITE(AbftLanczos, Scalars, ScalarName);

TYPED_TEST(AbftLanczos, SumsInFlightAreThoseOfAChecksum) {
    using T = TypeParam;
    BlockVector<T> x(this->ctx, uneven_map(this->ctx, 30000), 5);
    BlockVector<T> y(this->ctx, x.row_map(), 3);
    fill_random(this->ctx, 1, x);
    fill_random(this->ctx, 2, y);
    ChecksumUnderWay<T> sums;
    EXPECT_FALSE(sums.under_way());
    const BlockView<const T> blocks[] = {y.view(), x.view(), x.view().columns(1, 2)};
    for (const BlockView<const T>& block : blocks) {
        sums.begin(this->ctx, block, {}, log_chunk);
        EXPECT_TRUE(sums.under_way());
        sums.forget();
        sums.begin(this->ctx, block, {}, log_chunk);
        const Checksum<T> expected(this->ctx, block, {}, log_chunk);
        const Checksum<T> taken = sums.take(true);
        EXPECT_FALSE(sums.under_way());
        EXPECT_TRUE(taken.same(expected));
        for (int j = 0; j < block.cols; ++j) {
            EXPECT_EQ(taken.total(checksum_mixed, j), expected.total(checksum_mixed, j));
        }
    }
}

/// On one rank, later work is in flight during each wait of a step: the product of the next step
/// while the host waits for the small matrices and the checksums of F, and V^H Y while it waits for
/// the checksums of Y.
TYPED_TEST(AbftLanczos, StepsHaveLaterWorkInFlightWhileTheyWait) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 12, 11, 10);
    const bool alone = this->ctx.comm().size() == 1;
    for (const AbftMode mode : {AbftMode::detect, AbftMode::correct}) {
        ProtectedMatrix<T> guarded(this->ctx, a, {mode, {}, log_chunk});
        EigenProblem<T> problem{guarded};
        problem.protection = &guarded;
        LanczosBasis<T> basis(this->ctx, problem, Which::smallest, 3, 60, 4, 4);
        basis.start(4);
        basis.step();
        OverheadCounts::of(this->ctx).clear();
        constexpr int steps = 6;
        for (int i = 0; i < steps; ++i) {
            basis.step();
        }
        if (alone) {
            // On the host the product itself forms the checksums of Y.
            const int waits = this->ctx.place() == Place::host ? 2 : 3;
            EXPECT_EQ(this->count(Overhead::late_result), waits * steps) << to_string(mode);
            EXPECT_EQ(this->count(Overhead::result), 0) << to_string(mode);
        }
        EXPECT_EQ(this->count(Overhead::all_reduce), alone ? 0 : 4 * steps);
        EXPECT_EQ(guarded.counts().products, steps + 1);
        EXPECT_EQ(guarded.counts().basis_checks, steps);
        basis.ritz();
        EXPECT_EQ(guarded.counts().basis_checks, steps + 1);
        EXPECT_EQ(guarded.counts().alarms, 0);
    }
}

/// Faults in Y are repaired to the same bits, even if V^H Y was computed from the wrong Y.
TYPED_TEST(AbftLanczos, FaultsInProductsLeaveTheSameBits) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 16, 15, 14);
    ProtectedMatrix<T> clean(this->ctx, a, {AbftMode::correct, {}, log_chunk});
    const EigenResult<T> expected = this->solve(clean, 4, 1e-4);
    InjectOptions inject = strikes(FaultPlace::output, 5);
    inject.rate = 0.3;
    // Bits of the exponent and the sign: every flip changes the result.
    inject.low_bit = sizeof(real_t<T>) == 4 ? 24 : 54;
    ProtectedMatrix<T> struck(this->ctx, a, {AbftMode::correct, inject, log_chunk});
    const EigenResult<T> result = this->solve(struck, 4, 1e-4);
    const AbftCounts counts = struck.counts().summed(this->ctx.comm());
    EXPECT_GT(counts.faults, 0);
    EXPECT_EQ(counts.mended, counts.faults);
    EXPECT_EQ(result.iterations, expected.iterations);
    EXPECT_EQ(result.eigenvalues, expected.eigenvalues);
    EXPECT_EQ(result.residuals, expected.residuals);
    EXPECT_TRUE(same_values(download<T>(this->ctx, result.vectors.view()),
                            download<T>(this->ctx, expected.vectors.view())));
}

/// A block that loses directions is computed again and is not reported as a fault.
TYPED_TEST(AbftLanczos, MissingDirectionsAreNoFaults) {
    using T = TypeParam;
    std::vector<double> values(9000);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(i % 3 + 1);
    }
    auto a = diagonal<T>(this->ctx, values);
    std::sort(values.begin(), values.end());
    for (const AbftMode mode : {AbftMode::detect, AbftMode::correct}) {
        ProtectedMatrix<T> guarded(this->ctx, a, {mode, {}, log_chunk});
        const EigenResult<T> result = this->solve(guarded, 3, 1e-4);
        check_pairs(this->ctx, static_cast<Operator<T>&>(a), result, values, 3, Which::smallest);
        EXPECT_EQ(guarded.counts().alarms, 0) << to_string(mode);
        EXPECT_EQ(guarded.counts().faults, 0) << to_string(mode);
    }
}

/// Calls the kernels, and flips a bit in the input of the rotation at a restart (`input`), in its
/// result (`output`), or in the basis between two steps (`basis`).
template <class T>
class StrikesRestarts final : public BlockOperations<T> {
  public:
    StrikesRestarts(FaultPlace place, int bit, std::int64_t only = -1)
        : injector_(options(place, bit, only)) {
        policy_.operations.template get<T>() = this;
    }
    const BlockPolicy& policy() const { return policy_; }
    std::int64_t struck() const { return static_cast<std::int64_t>(injector_.faults().size()); }
    /// Injects a fault between two steps.
    void strike_at_rest(Context& ctx) {
        injector_.set_step(++count_);
        injector_.strike(ctx, FaultPlace::basis, basis_);
    }

    void tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c, T beta,
              BlockView<T> y) override {
        const ScopedPolicy kernels(ctx, nullptr);
        // A rotation works in place and reduces the number of columns.
        const bool rotation = beta == T(0) && y.cols < x.cols && x.data == y.data;
        if (rotation) {
            injector_.set_step(++count_);
            injector_.strike(ctx, FaultPlace::input, writable(x));
        }
        quiver::tsmm(ctx, alpha, x, c, beta, y);
        if (rotation) {
            injector_.strike(ctx, FaultPlace::output, y);
        }
    }
    void tsmm(Context& ctx, T alpha, BlockView<const T> x, BlockView<const T> c, T beta,
              BlockView<T> y, BlockView<const T> d) override {
        const ScopedPolicy kernels(ctx, nullptr);
        quiver::tsmm(ctx, alpha, x, c, beta, y, d);
    }
    void tsmttsm(Context& ctx, T alpha, BlockView<const T> a, BlockView<const T> b, T beta,
                 BlockView<T> c, Reduce reduce) override {
        const ScopedPolicy kernels(ctx, nullptr);
        basis_ = writable(a);
        quiver::tsmttsm(ctx, alpha, a, b, beta, c, reduce);
    }
    void tsmm_gram(Context& ctx, T alpha, BlockView<const T> v, BlockView<const T> h, T beta,
                   BlockView<T> w, BlockView<T> g, Reduce reduce) override {
        const ScopedPolicy kernels(ctx, nullptr);
        quiver::tsmm_gram(ctx, alpha, v, h, beta, w, g, reduce);
    }
    void axpby(Context& ctx, T alpha, BlockView<const T> x, T beta, BlockView<T> y) override {
        const ScopedPolicy kernels(ctx, nullptr);
        quiver::axpby(ctx, alpha, x, beta, y);
    }
    void axpby(Context& ctx, std::span<const T> alpha, BlockView<const T> x,
               std::span<const T> beta, BlockView<T> y) override {
        const ScopedPolicy kernels(ctx, nullptr);
        quiver::axpby(ctx, alpha, x, beta, y);
    }

  private:
    static InjectOptions options(FaultPlace place, int bit, std::int64_t only) {
        InjectOptions inject = strikes(place, static_cast<std::uint64_t>(bit) + 1);
        inject.low_bit = inject.high_bit = bit;
        inject.step = only;
        return inject;
    }
    FaultInjector injector_;
    BlockPolicy policy_{};
    BlockView<T> basis_;  // of the last projection
    std::int64_t count_ = 0;
};

/// Faults in the input and the result of the rotation: those far above rounding are located and
/// repaired, and the solve makes as many iterations as without faults. In single precision the sums
/// of V S locate only elements that became too large.
TYPED_TEST(AbftLanczos, RotationsFindFaultsInTheirInputAndResult) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 16, 15, 14);
    const std::vector<double> spectrum = laplace3d_spectrum(16, 15, 14);
    ProtectedMatrix<T> clean(this->ctx, a, {AbftMode::correct, {}, log_chunk});
    const EigenResult<T> expected = this->solve(clean, 4, 1e-4);
    EXPECT_EQ(clean.counts().faults, 0);
    // The highest bit of the exponent (30, 62) makes elements huge, the second (61) makes them
    // vanish, bits of the mantissa (51, 44) change them by a fraction.
    const std::vector<int> large =
        sizeof(real_t<T>) == 4 ? std::vector<int>{30} : std::vector<int>{62, 61, 51, 44};
    for (const FaultPlace place : {FaultPlace::input, FaultPlace::output}) {
        for (const int bit : large) {
            StrikesRestarts<T> strikes(place, bit);
            ProtectedMatrix<T> guarded(this->ctx, a, {AbftMode::correct, {}, log_chunk});
            const ScopedPolicy policy(this->ctx, &strikes.policy());
            const EigenResult<T> result = this->solve(guarded, 4, 1e-4);
            SCOPED_TRACE(std::string(to_string(place)) + " bit " + std::to_string(bit));
            check_pairs(this->ctx, static_cast<Operator<T>&>(a), result, spectrum, 4,
                        Which::smallest);
            EXPECT_EQ(result.iterations, expected.iterations);
            EXPECT_GT(strikes.struck(), 0);
            EXPECT_EQ(guarded.counts().faults, strikes.struck());
            EXPECT_EQ(guarded.counts().mended, strikes.struck());
        }
        StrikesRestarts<T> strikes(place, 0);  // below rounding
        ProtectedMatrix<T> guarded(this->ctx, a, {AbftMode::correct, {}, log_chunk});
        const ScopedPolicy policy(this->ctx, &strikes.policy());
        EXPECT_EQ(this->solve(guarded, 4, 1e-4).iterations, expected.iterations);
        EXPECT_GT(strikes.struck(), 0);
        EXPECT_EQ(guarded.counts().faults, 0);
    }
}

/// Each solve gets one fault in the basis, after a Ritz procedure and before the restart or the
/// next step.
TYPED_TEST(AbftLanczos, FaultsBetweenStepsAreFoundAndRepaired) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 16, 15, 14);
    const std::vector<double> spectrum = laplace3d_spectrum(16, 15, 14);
    const std::vector<int> procedures =
        is_host_repetition() ? std::vector{1, 3, 8} : std::vector{1, 2, 3, 5, 8, 13};
    std::int64_t mended = 0;
    for (const int bit : sizeof(real_t<T>) == 4 ? std::vector{30, 29, 22} : std::vector{61, 51}) {
        for (const int procedure : procedures) {
            SCOPED_TRACE("bit " + std::to_string(bit) + " at " + std::to_string(procedure));
            StrikesRestarts<T> strikes(FaultPlace::basis, bit, procedure);
            ProtectedMatrix<T> guarded(this->ctx, a, {AbftMode::correct, {}, log_chunk});
            const ScopedPolicy policy(this->ctx, &strikes.policy());
            this->ctx.set_event_sink([&](const Event& event) {
                if (std::holds_alternative<IterationEvent>(event)) {
                    strikes.strike_at_rest(this->ctx);
                }
            });
            const EigenResult<T> result = this->solve(guarded, 4, 1e-4);
            this->ctx.set_event_sink({});
            check_pairs(this->ctx, static_cast<Operator<T>&>(a), result, spectrum, 4,
                        Which::smallest);
            EXPECT_EQ(strikes.struck(), 1);
            EXPECT_EQ(guarded.counts().failed, 0);
            mended += guarded.counts().mended;
        }
    }
    EXPECT_GT(mended, std::ssize(procedures));
}

/// With many chunks only the rotation checks V; it also locates and repairs the wrong rows. Every
/// second restart locks a pair.
TEST(AbftLanczosLarge, RotationsRepairFaultsBetweenSteps) {
    Context ctx = make_context();
    auto a = laplace3d<double>(ctx, 48, 40, 38 * ctx.comm().size());
    for (const int bit : {61, 51, 46}) {
        SCOPED_TRACE("bit " + std::to_string(bit));
        StrikesRestarts<double> strikes(FaultPlace::basis, bit);
        ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, {}, log_chunk});
        const ScopedPolicy policy(ctx, &strikes.policy());
        EigenProblem<double> problem{guarded};
        problem.protection = &guarded;
        LanczosBasis<double> basis(ctx, problem, Which::largest, 3, 40, 4, 4);
        basis.start(4);
        for (int restart = 0; restart < 4; ++restart) {
            while (!basis.full()) {
                basis.step();
            }
            basis.ritz();
            strikes.strike_at_rest(ctx);
            basis.restart(restart % 2, 8);
        }
        basis.step();
        basis.ritz();
        EXPECT_EQ(strikes.struck(), 4);
        EXPECT_EQ(guarded.counts().alarms, 0);
        EXPECT_EQ(guarded.counts().faults, 4);
        EXPECT_EQ(guarded.counts().mended, 4);
    }
}

}  // namespace
}  // namespace quiver::test

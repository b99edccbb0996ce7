// SPDX-License-Identifier: BSD-3-Clause
// Block Lanczos under protection: what its steps wait for, and what strikes its basis.
#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/overhead.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/lanczos_basis.hpp"
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

TYPED_TEST(AbftLanczos, SumsUnderWayAreThoseOfAChecksum) {
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

/// On one rank each wait of a step has later work on its way: the product of the next step while
/// the small matrices and F's sums are looked at, V^H Y while those of Y are.
TYPED_TEST(AbftLanczos, StepsWaitForNothingThatIsNotFollowed) {
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
            EXPECT_EQ(this->count(Overhead::late_result), 3 * steps) << to_string(mode);
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

/// Faults in Y are mended to the same bits, also where V^H Y had been made of them.
TYPED_TEST(AbftLanczos, StruckProductsLeaveTheSameBits) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 16, 15, 14);
    ProtectedMatrix<T> clean(this->ctx, a, {AbftMode::correct, {}, log_chunk});
    const EigenResult<T> expected = this->solve(clean, 4, 1e-4);
    InjectOptions inject = strikes(FaultPlace::output, 5);
    inject.rate = 0.3;
    // Bits that matter: exponents.
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

/// Blocks that lose directions are made again, and nothing is taken for a fault.
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

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// GuardedKernels checks every product and update of blocks. Solvers with faults in their updates
// end with the bits of a run without faults.
#include "solvers/abft/guarded_kernels.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/solvers/guard_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class GuardedKernelsTest : public ::testing::Test {};
TYPED_TEST_SUITE(GuardedKernelsTest, Scalars, ScalarName);

/// The operands of all operations, and their results.
template <class T>
struct Operands {
    Operands(Context& ctx, std::mt19937_64 generator, std::int64_t rows)
        : x(ctx, random_global<T>(generator, rows, 3), {}, ctx.place()),
          y(ctx, random_global<T>(generator, rows, 4), {}, ctx.place()),
          c(random_small<T>(generator, 3, 4)),
          d(random_small<T>(generator, 4, 4)),
          product(random_small<T>(generator, 3, 4)),
          gram(4, 4) {
        for (int j = 0; j < 4; ++j) {
            factors.push_back(random_value<T>(generator));
        }
    }
    std::vector<T> values(Context& ctx) {
        std::vector<T> all = download<T>(ctx, y.const_view());
        all.insert(all.end(), product.data(), product.data() + 12);
        all.insert(all.end(), gram.data(), gram.data() + 16);
        return all;
    }
    /// A bound of the terms of Gram matrices and products, summed over all rows.
    real_t<T> size(std::int64_t rows) const { return 100 * static_cast<real_t<T>>(rows); }
    TestBlock<T> x;
    TestBlock<T> y;
    SmallMatrix<T> c;
    SmallMatrix<T> d;
    SmallMatrix<T> product;
    SmallMatrix<T> gram;
    std::vector<T> factors;
};

TYPED_TEST(GuardedKernelsTest, EveryOperationIsChecked) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const T alpha = random_value<T>(generator);
    const T beta = random_value<T>(generator);
    using Call = std::function<void(Operands<T>&)>;
    const auto x = [](Operands<T>& of) { return of.x.const_view(); };
    const auto y = [](Operands<T>& of) { return of.y.view(); };
    const auto factors = [](Operands<T>& of) { return std::span<const T>(of.factors); };
    const std::vector<std::pair<int, Call>> calls = {
        {1, [&](auto& of) { tsmm(ctx, alpha, x(of), of.c, beta, y(of)); }},
        {1, [&](auto& of) { tsmm(ctx, alpha, x(of), of.c, beta, y(of), of.d); }},
        {1, [&](auto& of) { tsmttsm(ctx, alpha, x(of), of.y.const_view(), beta, of.product); }},
        {2, [&](auto& of) { tsmm_gram(ctx, alpha, x(of), of.c, beta, y(of), of.gram.view()); }},
        {1,
         [&](auto& of) {
             axpby(ctx, alpha, of.y.const_view().columns(0, 2), beta, y(of).columns(2, 2));
         }},
        {1,
         [&](auto& of) {
             axpby(ctx, factors(of).first(2), of.y.const_view().columns(0, 2), factors(of).last(2),
                   y(of).columns(2, 2));
         }},
        {1, [&](auto& of) { scale(ctx, alpha, y(of)); }},
        {1, [&](auto& of) { scale(ctx, factors(of), y(of)); }}};
    for (std::size_t at = 0; at < calls.size(); ++at) {
        SCOPED_TRACE("call " + std::to_string(at));
        const auto& [operations, call] = calls[at];
        const std::int64_t rows = 100 + static_cast<std::int64_t>(generator() % 200);
        Operands<T> plain(ctx, generator, rows);
        Operands<T> quiet(ctx, generator, rows);
        Operands<T> struck(ctx, generator, rows);
        call(plain);
        {
            const GuardedKernels guarded(ctx, {AbftMode::correct, {}, log_chunk});
            call(quiet);
            EXPECT_EQ(guarded.counts().alarms, 0);
        }
        InjectOptions inject = strikes_highest_bit<T>(FaultPlace::output, generator());
        inject.where[static_cast<int>(FaultPlace::input)] = true;  // GuardedKernels ignores it
        {
            const GuardedKernels guarded(ctx, {AbftMode::correct, inject, log_chunk});
            call(struck);
            EXPECT_EQ(guarded.counts().products, operations);
            EXPECT_EQ(guarded.counts().checked, operations);
            EXPECT_EQ(guarded.counts().injected, operations);
            EXPECT_EQ(guarded.counts().mended, operations);
        }
        EXPECT_EQ(ctx.policy(), nullptr);
        EXPECT_TRUE(same_values(struck.values(ctx), quiet.values(ctx)));
        // Guarded kernels sum Gram matrices and parts of C separately, with other roundings.
        const std::vector<T> expected = plain.values(ctx);
        const std::vector<T> actual = quiet.values(ctx);
        const auto units = static_cast<real_t<T>>(100 + rows) * epsilon_v<T>;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const bool small = i + 28 >= expected.size();
            // The terms of these sums may cancel, so the bound is relative to the terms.
            const real_t<T> size = small ? plain.size(rows) : 1 + std::abs(expected[i]);
            EXPECT_LE(std::abs(actual[i] - expected[i]), units * size) << i;
        }
    }
}

TEST(GuardedKernels, SolversWithFaultsInTheirUpdatesMakeTheSameSteps) {
    Context ctx = make_context();
    SparseMatrix<double> a = laplace3d<double>(ctx, 16, 15, 14);
    for (const Method method : {Method::chebyshev, Method::lobpcg, Method::jacobi_davidson}) {
        SCOPED_TRACE(to_string(method));
        const auto solve = [&](const InjectOptions& inject, AbftCounts& counts) {
            ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, inject, log_chunk, true});
            EigenProblem<double> problem{guarded};
            problem.protection = &guarded;
            EigenOptions options;
            options.method = method;
            options.k = 5;
            options.tol = 1e-8;
            EigenResult<double> result = eigensolve(ctx, problem, options);
            counts = guarded.counts().summed(ctx.comm());
            return result;
        };
        InjectOptions inject = strikes_highest_bit<double>(FaultPlace::output, 11);
        inject.rate = 0.1;
        AbftCounts quiet;
        AbftCounts struck;
        const EigenResult<double> right = solve({}, quiet);
        const EigenResult<double> result = solve(inject, struck);
        EXPECT_TRUE(right.converged);
        EXPECT_EQ(quiet.faults, 0);
        EXPECT_GT(quiet.updates, quiet.products / 4);
        EXPECT_EQ(quiet.updates_checked, quiet.updates);
        EXPECT_EQ(struck.updates, quiet.updates);
        // A filter repeats the sweep of a wrong product once; other methods repair the product.
        EXPECT_GE(struck.products, quiet.products);
        EXPECT_LE(struck.products, (method == Method::chebyshev ? 2 : 1) * quiet.products);
        EXPECT_GT(struck.faults, struck.updates / 20);
        EXPECT_EQ(struck.failed, 0);
        EXPECT_EQ(result.iterations, right.iterations);
        EXPECT_EQ(result.eigenvalues, right.eigenvalues);
        EXPECT_EQ(result.residuals, right.residuals);
    }
}

}  // namespace
}  // namespace quiver::test

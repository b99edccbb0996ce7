// SPDX-License-Identifier: BSD-3-Clause
// Products with a protected matrix, and solvers that use them: faults above the bounds of rounding
// are found and repaired to the same bits, without false alarms and additional messages.
#include <functional>

#include <gtest/gtest.h>
#include <mpi.h>

#include "blockvec/error.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/lobpcg.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "tests/solvers/abft_support.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/eigen_checks.hpp"

namespace {
/// The all-reduces of this process, counted through the profiling interface of MPI.
long all_reduces = 0;
/// Called in each all-reduce of this process before its communication, unless empty.
std::function<void()> in_all_reduce;
}  // namespace

extern "C" int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
    ++all_reduces;
    if (in_all_reduce) {
        in_all_reduce();
    }
    return PMPI_Allreduce(send, receive, count, type, op, comm);
}

namespace quiver::test {
namespace {

constexpr int log_chunk = 12;

template <class T>
class AbftTest : public ::testing::Test {};
TYPED_TEST_SUITE(AbftTest, Scalars, ScalarName);

/// The size of the rounding errors in the checksums of each column of a product with the 3D
/// Laplacian (7 entries a row, norm 12):
///    eps (|alpha| ((sqrt(7) + 4) ||A|| + 4 |shift|) ||x|| + 4 |beta| ||y||).
/// Computed without the code under test.
template <class T>
std::vector<double> rounding_of_sums(Context& ctx, BlockView<const T> x, BlockView<const T> old,
                                     const ApplyOptions<T>& options) {
    const double shift =
        options.shift.empty() ? 0 : static_cast<double>(std::abs(options.shift[0]));
    const std::vector<double> of_x = column_lengths(ctx, x);
    const std::vector<double> of_old = column_lengths(ctx, old);
    std::vector<double> result;
    result.reserve(of_x.size());
    for (std::size_t j = 0; j < of_x.size(); ++j) {
        result.push_back(static_cast<double>(epsilon_v<T>) *
                         (static_cast<double>(std::abs(options.alpha)) *
                              ((std::sqrt(7.0) + 4) * 12 + 4 * shift) * of_x[j] +
                          4 * static_cast<double>(std::abs(options.beta)) * of_old[j]));
    }
    return result;
}

template <class T>
void expect_tight_bounds(const ProtectedMatrix<T>& guarded, const std::vector<double>& rounding) {
    for (std::size_t j = 0; j < rounding.size(); ++j) {
        for (int k = 0; k < 2; ++k) {
            EXPECT_LE(guarded.bound(k, static_cast<int>(j)), most_bound * rounding[j])
                << "column " << j << ", sum " << k;
        }
    }
}

/// Runs `trials` products with one fault each.
template <class T>
void campaign(FaultPlace place, int trials) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    SparseMatrix<T> a = laplace3d<T>(ctx, 24, 22, 20);
    SparseMatrix<T> untouched = laplace3d<T>(ctx, 24, 22, 20);
    int above = 0;
    int mended = 0;
    int redone = 0;
    for (int trial = 0; trial < trials; ++trial) {
        const int width = std::array{1, 2, 4, 8}[generator() % 4];
        const bool fused = generator() % 3 == 0;
        const std::uint64_t seed = generator();
        ProtectedMatrix<T> guarded(ctx, a, {AbftMode::correct, strikes(place, seed), log_chunk});
        BlockVector<T> x(ctx, a.row_map(), width);
        BlockVector<T> y(ctx, a.row_map(), width);
        BlockVector<T> exact(ctx, a.row_map(), width);
        fill_random(ctx, seed, x);
        fill_random(ctx, seed + 1, y);
        copy(ctx, BlockView<const T>(y.view()), exact.view());
        const T shift = other_coefficient<T>();
        ApplyOptions<T> options;
        if (fused) {
            options.alpha = T(real_t<T>(0.5));
            options.beta = T(-1);
            options.shift = std::span<const T>(&shift, 1);
        }
        const std::vector<double> rounding = rounding_of_sums<T>(ctx, x.view(), y.view(), options);
        untouched.apply_fused(ctx, x.view(), exact.view(), options);
        guarded.apply_fused(ctx, x.view(), y.view(), options);
        expect_tight_bounds(guarded, rounding);
        const auto result = download<T>(ctx, y.view());
        const auto right = download<T>(ctx, exact.view());
        const AbftCounts first = guarded.counts();
        EXPECT_EQ(first.failed, 0);
        EXPECT_EQ(first.rounding, 0);
        ASSERT_EQ(first.injected, a.row_map().local_rows() > 0 ? 1 : 0);
        if (first.injected == 0) {
            continue;
        }
        const InjectedFault& fault = guarded.injector().faults().front();
        const auto say = [&] {
            return std::string(to_string(place)) + " row " + std::to_string(fault.row) + " bit " +
                   std::to_string(fault.bit) + " " + std::to_string(fault.before) + " -> " +
                   std::to_string(fault.after);
        };
        if (place == FaultPlace::output &&
            !(std::abs(fault.after - fault.before) <=
              2 * most_bound * rounding[static_cast<std::size_t>(fault.column)])) {
            EXPECT_EQ(first.faults, 1) << say();
        }
        if (first.faults > 0) {
            ++above;
            mended += static_cast<int>(first.mended);
            redone += static_cast<int>(first.redone);
            EXPECT_EQ(first.faults, 1) << say();
            EXPECT_TRUE(same_values(result, right)) << say();
        } else {
            EXPECT_LE(effect(guarded, result, right, width), 2.0) << say();
        }
        guarded.audit(ctx);
        if (place != FaultPlace::output) {
            // The memory is restored, whether the product or only the audit detects the fault.
            EXPECT_EQ(guarded.counts().faults, 1) << say();
            EXPECT_EQ(guarded.counts().failed, 0) << say();
        } else {
            EXPECT_EQ(guarded.counts().faults, first.faults) << say();
        }
    }
    const double found = above;
    SCOPED_TRACE(std::to_string(trials) + " injected, " + std::to_string(above) + " found, " +
                 std::to_string(mended) + " repaired, " + std::to_string(redone) + " redone");
    EXPECT_EQ(mended + redone, above);
    EXPECT_GE(mended, 0.99 * found);
    const std::int64_t all = ctx.comm().sum(std::int64_t{above});
    // In single precision one flipped bit in six of the guards changes a product above the bounds;
    // this limit is so much lower that no seed fails it.
    EXPECT_GE(all, trials / 30);
}

TYPED_TEST(AbftTest, FaultsInProducts) {
    campaign<TypeParam>(FaultPlace::output, 150);
}
TYPED_TEST(AbftTest, FaultsInTheMatrix) {
    campaign<TypeParam>(FaultPlace::matrix, 60);
}
TYPED_TEST(AbftTest, FaultsInTheGuards) {
    campaign<TypeParam>(FaultPlace::guard, 60);
}

/// An infinite or NaN column sum is found. `correct` repairs it before the comparison, which
/// therefore also finds a fault in the result.
TEST(Abft, AColumnSumThatIsNotFiniteIsRepairedAtOnce) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    SparseMatrix<double> a = laplace3d<double>(ctx, 24, 22, 20);
    int hits = 0;
    for (int trial = 0; trial < 160; ++trial) {
        const bool output = trial % 2 == 0;
        const AbftMode mode = trial % 4 < 2 ? AbftMode::correct : AbftMode::detect;
        InjectOptions inject = strikes(FaultPlace::guard, generator());
        inject.where[static_cast<int>(FaultPlace::output)] = output;
        inject.low_bit = inject.high_bit = 62;  // the highest bit of an exponent
        inject.step = 1;
        inject.rank = 0;
        ProtectedMatrix<double> guarded(ctx, a, {mode, inject, log_chunk});
        BlockVector<double> x(ctx, a.row_map(), 3);
        BlockVector<double> y(ctx, a.row_map(), 3);
        BlockVector<double> exact(ctx, a.row_map(), 3);
        fill_random(ctx, inject.seed, x);
        a.apply(ctx, x.view(), exact.view());
        guarded.apply(ctx, x.view(), y.view());
        const std::vector<InjectedFault>& faults = guarded.injector().faults();
        if (faults.empty() || std::isfinite(faults.front().after)) {
            continue;
        }
        ++hits;
        const bool repairs = mode == AbftMode::correct;
        const int expected = repairs && output ? 2 : 1;
        const AbftCounts counts = guarded.counts();
        EXPECT_EQ(counts.checked, repairs ? 1 : 0);
        EXPECT_EQ(counts.alarms, expected);
        EXPECT_EQ(counts.faults, expected);
        EXPECT_EQ(counts.mended, repairs ? expected : 0);
        EXPECT_EQ(counts.rounding, 0);
        if (repairs) {
            EXPECT_TRUE(
                same_values(download<double>(ctx, y.view()), download<double>(ctx, exact.view())));
            guarded.audit(ctx);
            EXPECT_EQ(guarded.counts().faults, expected);
        }
    }
    EXPECT_GE(ctx.comm().sum(std::int64_t{hits}), 8);
}

/// An operand with known checksums is restored bit for bit, and so is its product.
TYPED_TEST(AbftTest, FaultsInKnownOperands) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    SparseMatrix<T> a = laplace3d<T>(ctx, 24, 22, 20);
    int found = 0;
    for (int trial = 0; trial < 80; ++trial) {
        const std::uint64_t seed = generator();
        InjectOptions inject = strikes(FaultPlace::input, seed);
        inject.rank = 0;
        ProtectedMatrix<T> guarded(ctx, a, {AbftMode::correct, inject, log_chunk});
        BlockVector<T> x(ctx, a.row_map(), 4);
        BlockVector<T> y(ctx, a.row_map(), 4);
        BlockVector<T> exact(ctx, a.row_map(), 4);
        fill_random(ctx, seed, x);
        a.apply(ctx, x.view(), exact.view());
        const auto x_before = download<T>(ctx, x.view());
        const auto& outcome =
            guarded.apply(ctx, x.view(), y.view(), guarded.encode_input(ctx, x.view()));
        if (guarded.counts().injected == 0) {
            EXPECT_EQ(guarded.counts().faults, 0);
            continue;
        }
        EXPECT_EQ(guarded.counts().failed, 0);
        const auto result = download<T>(ctx, y.view());
        const auto right = download<T>(ctx, exact.view());
        if (guarded.counts().faults == 0) {
            EXPECT_LE(effect(guarded, result, right, 4), 2.0);
            continue;
        }
        ++found;
        EXPECT_FALSE(outcome.agreed);
        EXPECT_TRUE(outcome.input_restored);
        EXPECT_FALSE(outcome.input_lost);
        EXPECT_EQ(guarded.counts().mended, 1);
        EXPECT_TRUE(same_values(download<T>(ctx, x.view()), x_before));
        EXPECT_TRUE(same_values(result, right));
    }
    EXPECT_GE(ctx.comm().sum(std::int64_t{found}), 10);
}

/// An operand with two elements of a column that are not finite cannot be restored. Its alarm
/// counts as a fault, not as rounding.
TEST(Abft, AnOperandThatIsNoLongerFiniteIsAFault) {
    Context ctx = make_context();
    SparseMatrix<double> a = laplace3d<double>(ctx, 24, 22, 20);
    for (const AbftMode mode : {AbftMode::detect, AbftMode::correct}) {
        for (const double value : {HUGE_VAL, std::nan("")}) {
            ProtectedMatrix<double> guarded(ctx, a, {mode, {}, log_chunk});
            BlockVector<double> x(ctx, a.row_map(), 2);
            BlockVector<double> y(ctx, a.row_map(), 2);
            fill_random(ctx, 1, x);
            Checksum<double> sums = guarded.encode_input(ctx, x.view());
            fill(ctx, value, x.view().row_range(x.rows() / 2, 2));  // in no rank's halo
            const auto& outcome = guarded.apply(ctx, x.view(), y.view(), std::move(sums));
            const AbftCounts counts = guarded.counts();
            EXPECT_EQ(counts.alarms, 1);
            EXPECT_EQ(counts.rounding, 0);
            EXPECT_EQ(counts.faults, 1);
            EXPECT_EQ(counts.redone + counts.failed, mode == AbftMode::correct ? 1 : 0);
            EXPECT_EQ(counts.mended, 0);
            EXPECT_FALSE(outcome.agreed);
            EXPECT_FALSE(outcome.input_restored);
            EXPECT_EQ(outcome.input_lost, mode == AbftMode::correct);
        }
    }
}

/// A matrix with a few rows that a device stores apart: all columns, and 600 of them.
template <class T>
SparseMatrix<T> with_long_rows(Context& ctx) {
    const std::int64_t n = 4000;
    return matrix_from_rows<T>(ctx, n, [n](std::int64_t row, RowEntries<T>& entries) {
        const bool longest = row % 2500 == 700;
        const std::int64_t reach = longest ? n : row % 1500 == 300 ? 300 : 2;
        for (std::int64_t j = std::max<std::int64_t>(row - reach, 0); j < std::min(row + reach, n);
             ++j) {
            entries.add(j, T(real_t<T>(1) / real_t<T>(3 + (row + j) % 7)));
        }
    });
}

/// Faults in the result and in the matrix are found and repaired to the same bits, or have no
/// effect above the bounds.
TYPED_TEST(AbftTest, FaultsInProductsWithLongRows) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    SparseMatrix<T> a = with_long_rows<T>(ctx);
    SparseMatrix<T> untouched = with_long_rows<T>(ctx);
    int found = 0;
    for (int trial = 0; trial < 40; ++trial) {
        const FaultPlace place = trial % 2 == 0 ? FaultPlace::output : FaultPlace::matrix;
        const std::uint64_t seed = generator();
        const int width = std::array{1, 3, 8}[trial % 3];
        ProtectedMatrix<T> guarded(ctx, a, {AbftMode::correct, strikes(place, seed), log_chunk});
        BlockVector<T> x(ctx, a.row_map(), width);
        BlockVector<T> y(ctx, a.row_map(), width);
        BlockVector<T> exact(ctx, a.row_map(), width);
        fill_random(ctx, seed, x);
        untouched.apply(ctx, x.view(), exact.view());
        guarded.apply(ctx, x.view(), y.view());
        const auto result = download<T>(ctx, y.view());
        const auto right = download<T>(ctx, exact.view());
        EXPECT_EQ(guarded.counts().failed, 0);
        EXPECT_EQ(guarded.counts().injected, 1);
        if (guarded.counts().faults > 0) {
            EXPECT_EQ(guarded.counts().faults, 1);
            EXPECT_TRUE(same_values(result, right));
            ++found;
        } else {
            EXPECT_LE(effect(guarded, result, right, width), 2.0);
        }
        guarded.audit(ctx);
        EXPECT_EQ(guarded.counts().failed, 0);
    }
    EXPECT_GT(ctx.comm().sum(std::int64_t{found}), 4);
}

/// Random, constant and nearly constant operands of sizes from 2^-30 to 2^29, with shifts and
/// coefficients: correct products keep their bits.
TYPED_TEST(AbftTest, NoFalseAlarms) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    SparseMatrix<T> laplace = laplace3d<T>(ctx, 24, 22, 20);
    SparseMatrix<T> uneven =
        matrix_from_rows<T>(ctx, 9000, [](std::int64_t row, RowEntries<T>& entries) {
            entries.add(row, T(real_t<T>(1) / real_t<T>(3 + row % 7)));
            for (const std::int64_t step : {1, 17, 400}) {
                for (const std::int64_t to : {row - step, row + step}) {
                    if (to >= 0 && to < 9000) {
                        entries.add(to, T(real_t<T>(0.1) * static_cast<real_t<T>>(step % 3 + 1)));
                    }
                }
            }
        });
    SparseMatrix<T> long_rows = with_long_rows<T>(ctx);
    for (SparseMatrix<T>* a : {&laplace, &uneven, &long_rows}) {
        for (int trial = 0; trial < (a == &long_rows ? 24 : 60); ++trial) {
            ProtectedMatrix<T> guarded(ctx, *a, {AbftMode::correct, {}, log_chunk});
            const int width = 1 + static_cast<int>(generator() % 9);
            BlockVector<T> x(ctx, a->row_map(), width);
            BlockVector<T> y(ctx, a->row_map(), width);
            BlockVector<T> exact(ctx, a->row_map(), width);
            fill_random(ctx, generator(), x);
            fill_random(ctx, generator(), y);
            const auto size =
                static_cast<real_t<T>>(std::ldexp(1.0, static_cast<int>(generator() % 60) - 30));
            scale(ctx, T(size), x.view());
            if (trial % 3 > 0) {
                // Constant or nearly constant columns: their sums exceed their norms.
                BlockVector<T> same(ctx, a->row_map(), width);
                fill(ctx, T(size / real_t<T>(3)), same.view());
                const T part = trial % 3 == 1 ? T(0) : T(real_t<T>(0.001));
                axpby(ctx, T(1), same.view(), part, x.view());
            }
            copy(ctx, BlockView<const T>(y.view()), exact.view());
            std::vector<T> shifts;
            shifts.reserve(static_cast<std::size_t>(width));
            for (int j = 0; j < width; ++j) {
                shifts.push_back(random_value<T>(generator));
            }
            ApplyOptions<T> options;
            options.alpha = random_value<T>(generator);
            options.beta = trial % 2 == 0 ? T(0) : random_value<T>(generator);
            options.shift = trial % 4 < 2 ? std::span<const T>(shifts) : std::span<const T>();
            a->apply_fused(ctx, x.view(), exact.view(), options);
            guarded.apply_fused(ctx, x.view(), y.view(), options);
            EXPECT_EQ(guarded.counts().checked, 1);
            EXPECT_EQ(guarded.counts().faults, 0);
            // A constant operand makes the same rounding error in all rows, which may raise an
            // alarm. The repetition gives the same bits, so the alarm counts as rounding.
            EXPECT_EQ(guarded.counts().alarms, guarded.counts().rounding);
            if (trial % 3 != 1) {
                EXPECT_EQ(guarded.counts().alarms, 0);
            }
            EXPECT_TRUE(same_values(download<T>(ctx, y.view()), download<T>(ctx, exact.view())));
        }
    }
}

/// The checksums of a rank need the same rows of X and of Y.
TEST(Abft, RefusesRectangularMatrices) {
    Context ctx = make_context();
    SparseMatrix<double> a(ctx,
                           rows_from_entries<double>(ctx.comm(), 10, 8, Symmetry::general, {}));
    EXPECT_THROW(ProtectedMatrix<double>(ctx, a, {AbftMode::detect, {}, log_chunk}), ShapeError);
}

/// `detect` reports faults and changes nothing.
TEST(Abft, DetectChangesNothing) {
    Context ctx = make_context();
    SparseMatrix<double> a = laplace3d<double>(ctx, 24, 22, 20);
    InjectOptions inject = strikes(FaultPlace::output, 3);
    inject.low_bit = inject.high_bit = 61;
    inject.rank = 0;
    ProtectedMatrix<double> guarded(ctx, a, {AbftMode::detect, inject, log_chunk});
    BlockVector<double> x(ctx, a.row_map(), 2);
    BlockVector<double> y(ctx, a.row_map(), 2);
    BlockVector<double> exact(ctx, a.row_map(), 2);
    fill_random(ctx, 1, x);
    a.apply(ctx, x.view(), exact.view());
    guarded.apply(ctx, x.view(), y.view());
    const bool struck = ctx.comm().rank() == 0;
    EXPECT_EQ(guarded.counts().faults, struck ? 1 : 0);
    EXPECT_EQ(guarded.counts().mended, 0);
    EXPECT_EQ(same_values(download<double>(ctx, y.view()), download<double>(ctx, exact.view())),
              !struck);
}

/// Two changed words in one piece of the matrix cannot be repaired: the product throws.
TEST(Abft, MoreThanOneWordOfTheMatrix) {
    Context ctx = make_context();
    SparseMatrix<double> a = laplace3d<double>(ctx, 10, 10, 10);
    ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, {}, log_chunk});
    if (a.arrays().front().bytes >= 64) {
        const std::array<unsigned char, 8> mask{0, 0, 0, 0, 0, 0, 1, 0};
        for (const std::size_t word : {0U, 5U}) {
            flip_bits(ctx, static_cast<double*>(a.arrays().front().data) + word, mask);
        }
        BlockVector<double> x(ctx, a.row_map(), 1);
        BlockVector<double> y(ctx, a.row_map(), 1);
        fill(ctx, 1.0, x.view());
        guarded.audit(ctx);
        EXPECT_EQ(guarded.counts().failed, 1);
        EXPECT_THROW(guarded.apply(ctx, x.view(), y.view()), NumericalError);
    }
}

/// Products, steps and restarts make the same all-reduces as without protection, except for one at
/// each Ritz procedure with `correct`. The end of a protected solve makes a few more.
TEST(Abft, NoAdditionalMessage) {
    Context ctx = make_context();
    SparseMatrix<double> a = laplace3d<double>(ctx, 12, 11, 10);
    BlockVector<double> x(ctx, a.row_map(), 3);
    BlockVector<double> y(ctx, a.row_map(), 3);
    fill_random(ctx, 1, x);
    std::vector<double> yy(3);
    std::vector<double> xy(3);
    ApplyOptions<double> options;
    std::vector<double> xx(3);
    options.dot_yy = yy;
    options.dot_xy = xy;
    options.dot_xx = xx;
    const auto count = [&](Operator<double>& op) {
        const long before = all_reduces;
        op.apply(ctx, x.view(), y.view());
        op.apply_fused(ctx, x.view(), y.view(), options);
        return all_reduces - before;
    };
    const long plain = count(a);
    const std::vector<double> dots[] = {yy, xy, xx};
    for (const AbftMode mode : {AbftMode::off, AbftMode::detect, AbftMode::correct}) {
        ProtectedMatrix<double> guarded(ctx, a, {mode, {}, log_chunk});
        const long sums = count(guarded);
        if (ctx.place() == Place::host) {
            EXPECT_EQ(sums, plain) << to_string(mode);
        } else {
            // Devices may sum the dots of an unchecked product without MPI, but those of a checked
            // product are summed by MPI.
            EXPECT_LE(sums, ctx.comm().size() > 1 ? 1 : 0) << to_string(mode);
        }
        for (std::size_t j = 0; j < 3; ++j) {
            EXPECT_NEAR(yy[j], dots[0][j], 1e-13 * dots[0][j]) << to_string(mode);
            EXPECT_NEAR(xy[j], dots[1][j], 1e-13 * std::sqrt(dots[0][j] * dots[2][j]));
            EXPECT_NEAR(xx[j], dots[2][j], 1e-13 * dots[2][j]) << to_string(mode);
            yy[j] = xy[j] = xx[j] = -1;
        }
    }
    int ritz = 0;
    const auto solve = [&](ProtectedMatrix<double>* guarded) {
        EigenProblem<double> problem{guarded != nullptr ? static_cast<Operator<double>&>(*guarded)
                                                        : a};
        problem.protection = guarded;
        EigenOptions eigen;
        eigen.method = Method::lanczos;
        eigen.k = 4;
        ritz = 0;
        ctx.set_event_sink(
            [&](const Event& event) { ritz += std::holds_alternative<IterationEvent>(event); });
        const long before = all_reduces;
        const EigenResult<double> result = eigensolve(ctx, problem, eigen);
        EXPECT_TRUE(result.converged);
        return std::pair(all_reduces - before, result.iterations);
    };
    const auto [unprotected, steps] = solve(nullptr);
    ProtectedMatrix<double> detecting(ctx, a, {AbftMode::detect, {}, log_chunk});
    // The audit at the end makes one all-reduce, so that every rank knows the faults of all. The
    // last residuals make two, of ||x|| and ||r||. Only an unprotected solve corrects its
    // eigenvalues by their residuals, with two: of failures and of the dots.
    // Devices may sum norms and dots without MPI.
    const int audit = ctx.comm().size() > 1 ? 1 : 0;
    const auto [detected, steps_checked] = solve(&detecting);
    EXPECT_EQ(steps_checked, steps);
    const long residuals = detected - unprotected - audit;
    if (ctx.place() == Place::host) {
        EXPECT_EQ(residuals, (2 - 2) * audit);
    } else {
        EXPECT_GE(residuals, -2 * audit);
        EXPECT_LE(residuals, audit);
    }
    ProtectedMatrix<double> correcting(ctx, a, {AbftMode::correct, {}, log_chunk});
    const auto [corrected, same_steps] = solve(&correcting);
    EXPECT_EQ(same_steps, steps);
    EXPECT_EQ(corrected, unprotected + residuals + audit * (ritz + 1));
    EXPECT_GT(correcting.counts().basis_checks, steps / 2);
    EXPECT_EQ(correcting.counts().alarms, 0);
}

struct ProtectedRun {
    Method method;
    /// The places at which this method is protected against faults.
    std::vector<FaultPlace> places;
};

/// Every solver ends with the same eigenvalues as without faults.
TEST(Abft, SolversKeepTheirEigenvalues) {
    Context ctx = make_context();
    SparseMatrix<double> a = laplace3d<double>(ctx, 16, 15, 14);
    const std::vector<double> spectrum = laplace3d_spectrum(16, 15, 14);
    const std::vector<ProtectedRun> runs = {
        {Method::lanczos,
         {FaultPlace::output, FaultPlace::matrix, FaultPlace::guard, FaultPlace::input,
          FaultPlace::basis}},
        {Method::chebyshev, {FaultPlace::output, FaultPlace::matrix, FaultPlace::guard}},
        {Method::lobpcg, {FaultPlace::output, FaultPlace::matrix, FaultPlace::guard}},
        {Method::jacobi_davidson, {FaultPlace::output, FaultPlace::matrix, FaultPlace::guard}}};
    std::uint64_t seed = 1;
    for (const ProtectedRun& run : runs) {
        for (const FaultPlace place : run.places) {
            InjectOptions inject = strikes(place, ++seed);
            // A fault on any rank repeats a step on all ranks: divide the rate, so that this is as
            // frequent on three ranks as on one.
            inject.rate = (place == FaultPlace::basis ? 0.03 : 0.1) / ctx.comm().size();
            if (place == FaultPlace::matrix || place == FaultPlace::guard) {
                // Two faults in one piece of the matrix cannot be repaired, so each rank gets only
                // one.
                inject.rate = 1;
                inject.step = 7;
            }
            ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, inject, log_chunk});
            EigenProblem<double> problem{guarded};
            problem.protection = &guarded;
            EigenOptions options;
            options.method = run.method;
            options.k = 5;
            options.tol = 1e-8;
            const EigenResult<double> result = eigensolve(ctx, problem, options);
            guarded.audit(ctx);
            SCOPED_TRACE(std::string(to_string(run.method)) + ", " + to_string(place));
            check_pairs(ctx, static_cast<Operator<double>&>(a), result, spectrum, options.k,
                        options.which);
            const AbftCounts counts = guarded.counts().summed(ctx.comm());
            EXPECT_GT(counts.injected, 0);
            if (place != FaultPlace::basis) {  // a fault in the last bits may not be located
                EXPECT_EQ(counts.failed, 0);
            }
        }
    }
}

/// Multiplies the first six products, which only estimate the norm, by 10^6. The checks do not see
/// this, because they are inside of `a`.
class LargeAtFirst final : public Operator<double> {
  public:
    explicit LargeAtFirst(Operator<double>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const double> x, BlockView<double> y) override {
        a_.apply(ctx, x, y);
        if (++products_ <= 6) {
            axpby(ctx, 0.0, x, 1e6, y);
        }
    }

  private:
    Operator<double>& a_;
    int products_ = 0;
};

TEST(Abft, ANormAboveThatOfTheRowsIsRejected) {
    Context ctx = make_context();
    SparseMatrix<double> a = laplace3d<double>(ctx, 8, 7, 6);
    for (const Method method : {Method::lobpcg, Method::jacobi_davidson}) {
        ProtectedMatrix<double> guarded(ctx, a, {AbftMode::detect, {}, log_chunk});
        EXPECT_EQ(guarded.largest_row(), 12);
        LargeAtFirst large(guarded);
        EigenProblem<double> problem{large};
        problem.protection = &guarded;
        EigenOptions options;
        options.method = method;
        options.k = 2;
        options.max_iterations = 200;
        const EigenResult<double> result = eigensolve(ctx, problem, options);
        ASSERT_GT(result.norm_estimate, 1e5) << to_string(method);
        EXPECT_FALSE(result.converged) << to_string(method);
        EXPECT_EQ(result.multiplicity, Multiplicity::unverified);
        EXPECT_NE(result.message.find("the rows of the matrix allow only 12"), std::string::npos)
            << result.message;
    }
}

/// The checks at the end of a protected solve accept any norm: one whose square overflows, and the
/// norm 0 with the target 1.
TEST(Abft, NormsFarFromOne) {
    Context ctx = make_context();
    const auto solve = [&](SparseMatrix<double>& a, const EigenOptions& options) {
        ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, {}, log_chunk});
        EigenProblem<double> problem{guarded};
        problem.protection = &guarded;
        return eigensolve(ctx, problem, options);
    };
    EigenOptions options;
    options.k = 2;
    options.method = Method::dense;
    SparseMatrix<double> huge = diagonal<double>(ctx, {1e200, 2e200, 3e200});
    const EigenResult<double> large = solve(huge, options);
    EXPECT_TRUE(large.converged) << large.message;
    EXPECT_NEAR(large.eigenvalues.front(), 1e200, 1e187);

    options.method = Method::jacobi_davidson;
    options.which = Which::target;
    options.target = 1;
    SparseMatrix<double> zero = diagonal<double>(ctx, {0, 0, 0});
    const EigenResult<double> small = solve(zero, options);
    EXPECT_TRUE(small.converged) << small.message;
    EXPECT_NEAR(small.eigenvalues.front(), 0, 1e-14);
}

/// B = I. The application with the number `change_at` (from 1; 0 for none) then changes the first
/// element of its X by a relative 2^-20, as a memory fault would.
class IdentityThatChangesX final : public Operator<double> {
  public:
    explicit IdentityThatChangesX(const RowMap& map) : map_(map) {}
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const double> x, BlockView<double> y) override {
        copy(ctx, x, y);
        if (++applications == change_at && x.rows > 0) {
            *const_cast<double*>(x.data) *= 1 + std::ldexp(1.0, -20);
        }
    }

    int applications = 0;
    int change_at = 0;

  private:
    const RowMap& map_;
};

/// The last residuals of a protected eigensolve need a product with A, then one with B. The
/// operator changes X at the end of the product with B, so the change shows in no residual.
TEST(Abft, AVectorThatChangesDuringTheLastCheckWithdrawsThePairs) {
    Context ctx = make_context();
    if (ctx.place() == Place::device) {
        GTEST_SKIP() << "the operator of this test changes host memory";
    }
    SparseMatrix<double> a = laplace3d<double>(ctx, 12, 11, 10);
    const auto solve = [&](int change_at) {
        IdentityThatChangesX b(a.row_map());
        b.change_at = change_at;
        ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, {}, log_chunk});
        EigenProblem<double> problem{guarded};
        problem.b = &b;
        problem.protection = &guarded;
        EigenOptions options;
        options.method = Method::lobpcg;
        options.k = 3;
        // eigensolve() would multiply by B again, for the bounds of errors.
        return std::pair(lobpcg(ctx, problem, options), b.applications);
    };
    const auto [unchanged, applications] = solve(0);
    EXPECT_TRUE(unchanged.converged) << unchanged.message;
    const EigenResult<double> changed = solve(applications).first;
    EXPECT_FALSE(changed.converged);
    EXPECT_EQ(changed.multiplicity, Multiplicity::unverified);
    EXPECT_NE(changed.message.find("changed in memory"), std::string::npos) << changed.message;
}

/// The last all-reduces of a protected linear solve sum ||r||^2, ||x||^2 and the comparison of the
/// checksums of X. A change of X during the first two shows in no residual.
TEST(Abft, AChangeOfXDuringTheLastCheckWithdrawsTheSolution) {
    Context ctx = make_context();
    if (ctx.place() == Place::device || ctx.comm().size() == 1) {
        GTEST_SKIP() << "this test changes host memory during an all-reduce";
    }
    SparseMatrix<double> a = laplace3d<double>(ctx, 12, 11, 10);
    BlockVector<double> b(ctx, a.row_map(), 2);
    BlockVector<double> x(ctx, a.row_map(), 2);
    fill_random(ctx, 3, b);
    const auto solve = [&](LinearMethod method, long change_at) {
        ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, {}, log_chunk});
        LinearProblem<double> problem{guarded, b.view()};
        problem.protection = &guarded;
        LinearOptions options;
        const long before = all_reduces;
        in_all_reduce = [&, before] {
            if (all_reduces - before == change_at && ctx.comm().rank() == 0) {
                x.view().data[0] *= 1 + std::ldexp(1.0, -20);
            }
        };
        const LinearResult result = linear_solve(ctx, method, problem, x.view(), options);
        in_all_reduce = {};
        return std::pair(result, all_reduces - before);
    };
    for (const LinearMethod method :
         {LinearMethod::cg, LinearMethod::minres, LinearMethod::gmres, LinearMethod::bicgstab}) {
        SCOPED_TRACE(to_string(method));
        const auto [unchanged, last] = solve(method, 0);
        EXPECT_TRUE(unchanged.converged) << unchanged.message;
        for (const long change_at : {last - 2, last - 1}) {
            const LinearResult changed = solve(method, change_at).first;
            EXPECT_FALSE(changed.converged) << "all-reduce " << change_at << " of " << last;
            EXPECT_NE(changed.message.find("changed in memory"), std::string::npos)
                << changed.message;
        }
    }
}

TEST(Abft, RanksWithoutRows) {
    Context ctx = make_context();
    SparseMatrix<double> a = diagonal<double>(ctx, {1, 3});
    for (const Method method : {Method::lanczos, Method::chebyshev}) {
        ProtectedMatrix<double> guarded(ctx, a, {AbftMode::correct, {}, log_chunk});
        EigenProblem<double> problem{guarded};
        problem.protection = &guarded;
        EigenOptions options;
        options.method = method;
        options.k = 1;
        const EigenResult<double> result = eigensolve(ctx, problem, options);
        check_pairs(ctx, static_cast<Operator<double>&>(a), result, {1, 3}, 1, options.which);
        EXPECT_EQ(guarded.counts().faults, 0);
    }
}

TEST(Abft, InjectionIsReadAndRepeats) {
    const InjectOptions options =
        parse_injection("rate=0.25,where=output+matrix,bit=3-17,seed=9,rank=1,step=4");
    EXPECT_EQ(options.rate, 0.25);
    EXPECT_TRUE(options.where[static_cast<int>(FaultPlace::output)]);
    EXPECT_TRUE(options.where[static_cast<int>(FaultPlace::matrix)]);
    EXPECT_FALSE(options.where[static_cast<int>(FaultPlace::input)]);
    EXPECT_EQ(options.low_bit, 3);
    EXPECT_EQ(options.high_bit, 17);
    EXPECT_EQ(options.seed, 9u);
    EXPECT_EQ(options.rank, 1);
    EXPECT_EQ(options.step, 4);
    for (const char* bad : {"", "rate", "rate=2", "rate=nan", "where=output", "rate=1,where=cpu",
                            "rate=1,bit=64", "rate=1,bit=9-3", "rate=1,rate=1", "rate=1,colour=red",
                            "rate=1,step=0", "rate=1,bit=1-2-3"}) {
        EXPECT_THROW(parse_injection(bad), InputError) << bad;
    }
    Context ctx = make_context();
    std::vector<InjectedFault> runs[2];
    for (auto& faults : runs) {
        InjectOptions inject = strikes(FaultPlace::output, 7);
        inject.rate = 0.3;
        inject.low_bit = 10;
        inject.high_bit = 20;
        FaultInjector injector(inject);
        BlockVector<float> x(ctx, uneven_map(ctx, 900), 3);
        for (int step = 1; step <= 400; ++step) {
            fill(ctx, 1.0F, x.view());
            injector.set_step(step);
            injector.strike(ctx, FaultPlace::output, x.view());
            EXPECT_FALSE(injector.strike(ctx, FaultPlace::matrix, x.view()));
        }
        faults = injector.faults();
    }
    ASSERT_EQ(runs[0].size(), runs[1].size());
    if (ctx.comm().rank() != 1) {
        // 400 draws at 0.3: 120 +- 9.2.
        EXPECT_NEAR(static_cast<double>(runs[0].size()), 120, 5 * 9.2);
    }
    for (std::size_t i = 0; i < runs[0].size(); ++i) {
        const InjectedFault& fault = runs[0][i];
        EXPECT_EQ(fault.row, runs[1][i].row);
        EXPECT_EQ(fault.bit, runs[1][i].bit);
        EXPECT_GE(fault.bit, 10);
        EXPECT_LE(fault.bit, 20);
        EXPECT_EQ(fault.before, 1);
        // Bit b of a float in [1, 2) is worth 2^(b - 23).
        EXPECT_EQ(fault.after, 1 + std::ldexp(1.0, fault.bit - 23));
    }
}

}  // namespace
}  // namespace quiver::test

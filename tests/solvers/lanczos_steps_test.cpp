// SPDX-License-Identifier: BSD-3-Clause
// Block Lanczos: the host synchronisations of a step, the repetition of steps that were enqueued
// before a block was known to lose directions, and short runs that bound the spectrum.
#include <algorithm>
#include <complex>
#include <limits>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "blockvec/overhead.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/lanczos/short_lanczos.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class LanczosSteps : public ::testing::Test {
  protected:
    static constexpr double eps = static_cast<double>(epsilon_v<T>);
    std::int64_t count(Overhead kind) { return OverheadCounts::of(ctx)[kind].count; }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(LanczosSteps, Scalars);

/// Compares the calls of a step with the counts of docs/notes/solvers.md.
TYPED_TEST(LanczosSteps, AskForOneLateResultEach) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 12, 11, 10);
    constexpr int block = 4;
    LanczosBasis<T> basis(this->ctx, EigenProblem<T>{a}, Which::smallest, 3, 60, 4, block);
    basis.start(block);
    basis.step();
    Ledger& ledger = this->ctx.ledger();
    ledger.clear();
    OverheadCounts::of(this->ctx).clear();
    constexpr int steps = 6;
    double sums = 0;
    for (int i = 0; i < steps; ++i) {
        basis.step();
        // C = V^H W and the Gram matrix of W - V C, in two passes; the first one with the last two
        // blocks only.
        sums += (basis.size() + 2.0 * block) * block + 2.0 * block * block;
    }
    const bool alone = this->ctx.comm().size() == 1;
    EXPECT_EQ(this->count(Overhead::late_result), steps);
    if (alone || this->ctx.place() == Place::host) {  // devices may sum among themselves
        EXPECT_EQ(this->count(Overhead::result), alone ? 0 : 4 * steps);
    }
    EXPECT_EQ(this->count(Overhead::all_reduce), alone ? 0 : 4 * steps);
    EXPECT_EQ(OverheadCounts::of(this->ctx)[Overhead::all_reduce].bytes,
              alone ? 0 : static_cast<double>(sizeof(T)) * sums);
    std::map<std::string, std::int64_t> calls;
    for (const KernelRecord& record : ledger.records()) {
        calls[record.call.name] += record.calls;
    }
    std::map<std::string, std::int64_t> expected{
        {"spmmv", steps},           {"tsmttsm", 2 * steps}, {"tsmm_gram", 2 * steps},
        {"gram_factor", 2 * steps}, {"tsmm", 2 * steps},    {"copy", steps}};
    if (!alone) {
        expected["sum over ranks"] = 4 * steps;
    }
    EXPECT_EQ(calls, expected);
    if (this->ctx.place() == Place::device && alone) {
        EXPECT_EQ(this->count(Overhead::upload), 0);
        EXPECT_LE(this->count(Overhead::launch), 16 * steps);
    }
}

/// Checks H and R of the relation A V = V H + F R E^T by the Ritz values, which are the eigenvalues
/// of A once V spans the whole space.
TYPED_TEST(LanczosSteps, RepeatStepsIfABlockLosesDirections) {
    using T = TypeParam;
    // Three distinct eigenvalues: after three blocks there are no new directions, and the next
    // block consists of random columns.
    std::vector<double> values(90, 1.0);
    for (std::size_t i = 0; i < 20; ++i) {
        values[i] = -2;
        values[30 + i] = 3;
    }
    auto a = test::diagonal<T>(this->ctx, values);
    LanczosBasis<T> basis(this->ctx, EigenProblem<T>{a}, Which::smallest, 3, 90, 4, 3);
    basis.start(3);
    while (!basis.full()) {
        basis.step();
    }
    basis.ritz();
    while (!basis.full()) {
        basis.step();
        basis.ritz();
    }
    std::sort(values.begin(), values.end());
    ASSERT_EQ(basis.size(), 90);
    for (int j = 0; j < 90; ++j) {
        EXPECT_NEAR(basis.ritz_value(j), values[static_cast<std::size_t>(j)],
                    100 * 90 * this->eps * 3)
            << j;
    }
}

TYPED_TEST(LanczosSteps, FindTheSpectrumOfWholeSpaces) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 4, 3, 3);
    const auto spectrum = test::laplace3d_spectrum(4, 3, 3);
    for (const int block : {1, 2, 5}) {
        LanczosBasis<T> basis(this->ctx, EigenProblem<T>{a}, Which::largest, 3, 36, 5, block);
        basis.start(block);
        while (!basis.full()) {
            basis.step();
        }
        basis.ritz();
        while (!basis.full()) {
            basis.step();
            basis.ritz();
        }
        ASSERT_EQ(basis.size(), 36) << block;
        for (int j = 0; j < 36; ++j) {
            EXPECT_NEAR(basis.ritz_value(j), spectrum[static_cast<std::size_t>(35 - j)],
                        100 * 36 * this->eps * 12)
                << block << ", " << j;
        }
    }
}

TYPED_TEST(LanczosSteps, NameTheProductThatWasNotFinite) {
    using T = TypeParam;
    class Broken final : public Operator<T> {
      public:
        Broken(Operator<T>& a, int good) : a_(a), good_(good) {}
        const RowMap& row_map() const override { return a_.row_map(); }
        void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
            a_.apply(ctx, x, y);
            if (--good_ < 0 && ctx.comm().rank() == ctx.comm().size() - 1) {
                fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y.row_range(0, 1));
            }
        }

      private:
        Operator<T>& a_;
        int good_;
    };
    auto a = test::laplace3d<T>(this->ctx, 9, 8, 7);
    Broken broken(a, 2);
    LanczosBasis<T> basis(this->ctx, EigenProblem<T>{broken}, Which::smallest, 3, 40, 4, 4);
    basis.start(4);
    try {
        basis.step();
        basis.step();
        basis.step();
        basis.ritz();
        FAIL() << "the third product is not finite";
    } catch (const NumericalError& error) {
        EXPECT_NE(std::string(error.what()).find("in step 3 "), std::string::npos) << error.what();
        EXPECT_TRUE(error.collective());
    }
}

TYPED_TEST(LanczosSteps, ShortRunsBoundTheSpectrum) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 14, 13, 12);
    const auto spectrum = test::laplace3d_spectrum(14, 13, 12);
    OverheadCounts::of(this->ctx).clear();
    const ShortLanczos run = short_lanczos<T>(this->ctx, a, {}, 20, 5);
    EXPECT_TRUE(run.complete);
    EXPECT_EQ(run.products, 20);
    EXPECT_EQ(this->count(Overhead::all_reduce), this->ctx.comm().size() == 1 ? 0 : 1 + 2 * 20);
    const double rounding = 100 * this->eps * 12;
    EXPECT_GE(run.values.front(), spectrum.front() - rounding);
    EXPECT_LE(run.values.back(), spectrum.back() + rounding);
    EXPECT_GE(run.values.back() + run.coupling, spectrum.back() - rounding);
    EXPECT_LE(run.values.front() - run.coupling, spectrum.front() + rounding);
    EXPECT_EQ(run.norm, std::max(std::abs(run.values.front()), std::abs(run.values.back())));
    for (std::size_t j = 0; j < run.values.size(); ++j) {
        // An eigenvalue is within the residual of the Ritz value.
        double nearest = std::numeric_limits<double>::infinity();
        for (const double value : spectrum) {
            nearest = std::min(nearest, std::abs(value - run.values[j]));
        }
        EXPECT_LE(nearest, run.residuals[j] + rounding) << j;
    }
}

TYPED_TEST(LanczosSteps, ShortRunsEndWithTheSpace) {
    using T = TypeParam;
    for (const double value : {2.0, 0.0}) {
        auto a = test::diagonal<T>(this->ctx, std::vector<double>(30, value));
        const ShortLanczos run = short_lanczos<T>(this->ctx, a, {}, 20, 5);
        EXPECT_FALSE(run.complete);
        EXPECT_EQ(run.products, 1);
    }
    std::vector<double> values(60, 1.0);
    values[7] = -5;
    values[40] = 9;
    auto a = test::diagonal<T>(this->ctx, values);
    const ShortLanczos run = short_lanczos<T>(this->ctx, a, {}, 20, 5);
    EXPECT_FALSE(run.complete);
    EXPECT_LE(run.products, 3);
}

TYPED_TEST(LanczosSteps, ShortRunsRefuseWhatIsNotHermitian) {
    using T = TypeParam;
    auto a = test::matrix_from_rows<T>(this->ctx, 40, [](std::int64_t row, RowEntries<T>& entries) {
        entries.add(row, T(2));
        if (row > 0) {
            entries.add(row - 1, T(real_t<T>(-1.5)));
        }
    });
    EXPECT_THROW(short_lanczos<T>(this->ctx, a, {}, 20, 5), NumericalError);
    // With constraints a short run stays in their complement.
    std::vector<double> values(50);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = i == 0 ? 1000 : static_cast<double>(i);
    }
    auto d = test::diagonal<T>(this->ctx, values);
    BlockVector<T> c(this->ctx, d.row_map(), 1);
    fill(this->ctx, T(0), c.view());
    if (this->ctx.comm().rank() == 0) {
        fill(this->ctx, T(1), c.view().row_range(0, 1));
    }
    const ShortLanczos run = short_lanczos<T>(this->ctx, d, std::as_const(c).view(), 9, 5);
    ASSERT_TRUE(run.complete);
    EXPECT_LE(run.values.back(), 49 * (1 + 100 * this->eps));
    EXPECT_GE(run.values.back(), 40);
}

TEST(ShortLanczos, ShowsASmallAsymmetryWithAnExponent) {
    Context ctx = test::make_context();
    auto a =
        test::matrix_from_rows<double>(ctx, 40, [](std::int64_t row, RowEntries<double>& entries) {
            entries.add(row, 2.0);
            if (row > 0) {
                entries.add(row - 1, -1.0 - 4e-7);
            }
            if (row < 39) {
                entries.add(row + 1, -1.0);
            }
        });
    try {
        short_lanczos<double>(ctx, a, {}, 20, 5);
        ADD_FAILURE() << "no error";
    } catch (const NumericalError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("e-0"), std::string::npos) << text;
        EXPECT_EQ(text.find("0.000000"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace quiver

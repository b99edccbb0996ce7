// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/block_lanczos.hpp"

#include <complex>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class BlockLanczosTest : public ::testing::Test {
  protected:
    EigenResult<T> check(Operator<T>& a, const std::vector<double>& spectrum,
                         const EigenOptions& options) {
        EigenResult<T> result = block_lanczos(ctx, a, options);
        test::check_pairs(ctx, a, result, spectrum, options.k, options.which);
        return result;
    }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BlockLanczosTest, Scalars);

EigenOptions options_for(int k, Which which, int block = 0) {
    EigenOptions options;
    options.k = k;
    options.which = which;
    options.block = block;
    return options;
}

TYPED_TEST(BlockLanczosTest, EveryCopyOfTheLaplacian) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 20, 20, 20);
    const auto spectrum = test::laplace3d_spectrum(20, 20, 20);
    const auto smallest = this->check(a, spectrum, options_for(10, Which::smallest));
    EXPECT_FALSE(smallest.cluster_cut);
    this->check(a, spectrum, options_for(10, Which::largest));
}

TYPED_TEST(BlockLanczosTest, BlocksNarrowerThanTheMultiplicity) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 9, 9, 9);
    const auto spectrum = test::laplace3d_spectrum(9, 9, 9);
    for (const int block : {1, 2, 3, 8}) {
        this->check(a, spectrum, options_for(11, Which::smallest, block));
    }
    // k = 8 cuts a threefold eigenvalue (1, 3, 3, then 1 of 3).
    const auto cut = this->check(a, spectrum, options_for(8, Which::smallest, 2));
    EXPECT_TRUE(cut.cluster_cut);
    const auto single = this->check(a, spectrum, options_for(1, Which::smallest));
    EXPECT_EQ(single.block, 1);
}

TYPED_TEST(BlockLanczosTest, IdentityAndZero) {
    using T = TypeParam;
    for (const double value : {1.0, 0.0}) {
        const std::vector<double> values(30, value);
        auto a = test::diagonal<T>(this->ctx, values);
        for (const int k : {1, 5, 29, 30}) {
            const auto result = this->check(a, values, options_for(k, Which::smallest));
            EXPECT_EQ(result.cluster_cut, k < 30) << k;
        }
    }
}

TYPED_TEST(BlockLanczosTest, FewRowsAndAllPairs) {
    using T = TypeParam;
    for (const int n : {1, 2, 3, 7, 20}) {
        std::vector<double> values;
        values.reserve(static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) {
            const int turn = i / 3;
            values.push_back(i % 3 + 0.25 * turn);
        }
        auto a = test::diagonal<T>(this->ctx, values);
        std::sort(values.begin(), values.end());
        for (const int k : {1, n / 2 + 1, n}) {
            this->check(a, values, options_for(k, Which::smallest, std::min(2, n)));
            this->check(a, values, options_for(k, Which::largest, std::min(3, n)));
        }
    }
}

TYPED_TEST(BlockLanczosTest, ManyCopiesFewColumns) {
    using T = TypeParam;
    std::vector<double> values(60, 1.25);
    for (int i = 0; i < 12; ++i) {
        values.push_back(0.5);
    }
    for (int i = 0; i < 200; ++i) {
        values.push_back(2 + 0.01 * i);
    }
    auto a = test::diagonal<T>(this->ctx, values);
    std::sort(values.begin(), values.end());
    this->check(a, values, options_for(12, Which::smallest, 2));
    const auto cut = this->check(a, values, options_for(20, Which::smallest, 4));
    EXPECT_TRUE(cut.cluster_cut);
}

TYPED_TEST(BlockLanczosTest, DiagonalWithManyEqualEntries) {
    using T = TypeParam;
    std::vector<double> values{1.25, 1.5,  1.5, 1.25, 1.5, 1.25, 1.5, 0,
                               1.13, 1.13, 1.5, 1.13, 1.5, 1.5,  1.13};
    auto a = test::diagonal<T>(this->ctx, values);
    std::sort(values.begin(), values.end());
    const auto result = this->check(a, values, options_for(2, Which::smallest));
    EXPECT_TRUE(result.cluster_cut);
}

TYPED_TEST(BlockLanczosTest, CopiesHiddenByABulkOfEqualEigenvalues) {
    using T = TypeParam;
    std::vector<double> values(20000, 1.0);
    std::fill_n(values.begin() + 100, 5, 0.0);
    values[7] = 0.1;
    auto a = test::diagonal<T>(this->ctx, values);
    std::sort(values.begin(), values.end());
    for (const std::uint64_t seed : {1, 2, 3}) {
        EigenOptions options = options_for(5, Which::smallest);
        options.seed = seed;
        EXPECT_FALSE(this->check(a, values, options).cluster_cut);
        options = options_for(2, Which::smallest, 1);
        options.seed = seed;
        EXPECT_TRUE(this->check(a, values, options).cluster_cut);
    }
}

TYPED_TEST(BlockLanczosTest, ALooseToleranceDoesNotHideAnEigenvalueInABulk) {
    using T = TypeParam;
    std::vector<double> values(5000, 1.0);
    values[11] = 0.99;
    auto a = test::diagonal<T>(this->ctx, values);
    std::sort(values.begin(), values.end());
    EigenOptions options = options_for(1, Which::smallest);
    options.tol = 1e-3;
    this->check(a, values, options);
}

TYPED_TEST(BlockLanczosTest, RankFarBelowTheNumberOfPairs) {
    using T = TypeParam;
    // A star graph: eigenvalues -7, 7 and 48 zeros.
    auto star = test::matrix_from_rows<T>(this->ctx, 50, [](std::int64_t row, RowEntries<T>& e) {
        if (row > 0) {
            e.add(0, T(1));
            return;
        }
        for (std::int64_t leaf = 1; leaf < 50; ++leaf) {
            e.add(leaf, T(1));
        }
    });
    std::vector<double> spectrum(50, 0.0);
    spectrum.front() = -7;
    spectrum.back() = 7;
    for (const int k : {9, 10, 40}) {
        this->check(star, spectrum, options_for(k, Which::smallest));
        this->check(star, spectrum, options_for(k, Which::largest));
    }
}

TYPED_TEST(BlockLanczosTest, NormsWhoseSquaresUnderflowAreRefused) {
    using T = TypeParam;
    const double tiny = static_cast<double>(std::numeric_limits<real_t<T>>::min()) * 1e10;
    std::vector<double> values;
    for (int i = 1; i <= 30; ++i) {
        values.push_back(i * tiny);
    }
    auto a = test::diagonal<T>(this->ctx, values);
    try {
        block_lanczos(this->ctx, a, options_for(2, Which::smallest));
        FAIL() << "a norm of " << 30 * tiny << " was accepted";
    } catch (const NumericalError& error) {
        EXPECT_NE(std::string(error.what()).find("scale the matrix"), std::string::npos)
            << error.what();
    }
}

TYPED_TEST(BlockLanczosTest, TheSameBitsEveryTime) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 8, 7, 6);
    const auto first = block_lanczos(this->ctx, a, options_for(6, Which::smallest));
    const auto second = block_lanczos(this->ctx, a, options_for(6, Which::smallest));
    EXPECT_EQ(first.eigenvalues, second.eigenvalues);
    EXPECT_EQ(first.residuals, second.residuals);
    EXPECT_EQ(first.operator_applications, second.operator_applications);
}

TYPED_TEST(BlockLanczosTest, GivingUpIsAResult) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 12, 12, 12);
    EigenOptions options = options_for(10, Which::smallest);
    options.max_iterations = 12;
    const auto result = block_lanczos(this->ctx, a, options);
    EXPECT_FALSE(result.converged);
    EXPECT_EQ(result.multiplicity, Multiplicity::unverified);
    EXPECT_EQ(result.iterations, 12);
    EXPECT_EQ(result.eigenvalues.size(), 10u);
    EXPECT_EQ(result.residuals.size(), 10u);
    EXPECT_NE(result.message.find("12 block steps"), std::string::npos) << result.message;
}

TYPED_TEST(BlockLanczosTest, ToleranceBelowTheAttainableIsRaised) {
    auto a = test::laplace3d<TypeParam>(this->ctx, 7, 7, 7);
    EigenOptions options = options_for(5, Which::smallest);
    options.tol = 1e-20;
    const auto result = this->check(a, test::laplace3d_spectrum(7, 7, 7), options);
    EXPECT_TRUE(result.tolerance_raised);
    EXPECT_GT(result.tolerance, static_cast<double>(epsilon_v<TypeParam>));
    EXPECT_LT(result.tolerance, 100 * static_cast<double>(epsilon_v<TypeParam>));
}

TYPED_TEST(BlockLanczosTest, ImpossibleOptionsAreInputErrors) {
    using T = TypeParam;
    auto a = test::diagonal<T>(this->ctx, std::vector<double>(9, 1.0));
    const auto refuses = [&](auto&& change) {
        EigenOptions options = options_for(3, Which::smallest);
        change(options);
        EXPECT_THROW(block_lanczos(this->ctx, a, options), InputError);
    };
    refuses([](EigenOptions& o) { o.k = 0; });
    refuses([](EigenOptions& o) { o.k = 10; });
    refuses([](EigenOptions& o) { o.max_basis = 8; });  // a basis needs all 9 rows
    refuses([](EigenOptions& o) { o.max_basis = -1; });
    refuses([](EigenOptions& o) { o.block = -1; });
    refuses([](EigenOptions& o) { o.block = 10; });
    refuses([](EigenOptions& o) { o.tol = 0; });
    refuses([](EigenOptions& o) { o.tol = 1; });
    refuses([](EigenOptions& o) { o.k = 2000000000; });
    refuses([](EigenOptions& o) { o.tol = std::numeric_limits<double>::quiet_NaN(); });
    refuses([](EigenOptions& o) { o.max_iterations = -1; });
    refuses([](EigenOptions& o) { o.max_seconds = -1; });
    refuses([](EigenOptions& o) { o.max_seconds = std::numeric_limits<double>::infinity(); });
}

/// Products with A. If `nan`, the third product has NaN in a column.
template <class T>
class Wrong final : public Operator<T> {
  public:
    Wrong(SparseMatrix<T>& a, bool nan) : a_(a), nan_(nan) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        a_.apply(ctx, x, y);
        if (nan_ && ++applications_ == 3) {
            fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y.columns(0, 1));
        }
    }

  private:
    SparseMatrix<T>& a_;
    bool nan_;
    int applications_ = 0;
};

TYPED_TEST(BlockLanczosTest, NaNFromTheOperatorIsAnError) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 6, 6, 6);
    Wrong<T> wrong(a, true);
    EXPECT_THROW(block_lanczos(this->ctx, wrong, options_for(3, Which::smallest)), NumericalError);
}

/// Throws in its third product on one rank only.
template <class T>
class FailsOnOneRank final : public Operator<T> {
  public:
    FailsOnOneRank(const RowMap& map, int rank) : map_(map), rank_(rank) {}
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        if (++applications_ == 3 && map_.rank() == rank_) {
            throw std::runtime_error("out of luck");
        }
        copy(ctx, x, y);
        scale(ctx, T(real_t<T>(applications_)), y.columns(0, 1));
    }

  private:
    RowMap map_;
    int rank_;
    int applications_ = 0;
};

TYPED_TEST(BlockLanczosTest, AnOperatorThatThrowsOnOneRankEndsAllRanks) {
    using T = TypeParam;
    const int failing = this->ctx.comm().size() - 1;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 97);
    FailsOnOneRank<T> wrong(map, failing);
    try {
        block_lanczos(this->ctx, wrong, options_for(3, Which::smallest));
        ADD_FAILURE() << "no error";
    } catch (const NumericalError& error) {
        EXPECT_NE(map.rank(), failing);
        EXPECT_TRUE(error.collective());
    } catch (const std::runtime_error& error) {
        EXPECT_EQ(map.rank(), failing) << error.what();
        EXPECT_STREQ(error.what(), "out of luck");
    }
}

TYPED_TEST(BlockLanczosTest, UnsymmetricOperatorsAreErrors) {
    using T = TypeParam;
    auto a = test::matrix_from_rows<T>(this->ctx, 100, [](std::int64_t row, RowEntries<T>& e) {
        e.add(row, T(2));
        if (row + 1 < 100) {
            e.add(row + 1, T(real_t<T>(-1.5)));
        }
        if (row > 0) {
            e.add(row - 1, T(real_t<T>(-0.5)));
        }
    });
    EXPECT_THROW(block_lanczos(this->ctx, a, options_for(3, Which::smallest)), NumericalError);
}

}  // namespace
}  // namespace quiver

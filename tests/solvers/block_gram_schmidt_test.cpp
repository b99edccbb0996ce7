// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/block_gram_schmidt.hpp"

#include <cmath>
#include <complex>
#include <limits>

#include <gtest/gtest.h>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/overhead.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/orth/two_passes.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

template <class T>
class BlockGramSchmidt : public ::testing::Test {
  protected:
    /// A block whose element (row, column) is value(row, column).
    template <class F>
    BlockVector<T> make(std::int64_t rows, int cols, F&& value) {
        const RowMap map = RowMap::by_rows(ctx.comm(), rows);
        BlockVector<T> host(ctx, map, cols, cols, Place::host);
        for (std::int64_t i = 0; i < host.rows(); ++i) {
            for (int j = 0; j < cols; ++j) {
                host.view()(i, j) = value(map.first_row() + i, j);
            }
        }
        BlockVector<T> block(ctx, map, cols);
        copy(ctx, host.view(), block.view());
        return block;
    }
    BlockVector<T> random(std::int64_t rows, int cols, std::uint64_t seed) {
        BlockVector<T> block(ctx, RowMap::by_rows(ctx.comm(), rows), cols);
        fill_random(ctx, seed, block);
        return block;
    }
    BlockVector<T> orthonormal(std::int64_t rows, int cols) {
        BlockVector<T> v = random(rows, cols, 99);
        const BlockView<const T> none(nullptr, v.rows(), 0, 0, ctx.place());
        block_gram_schmidt(ctx, v.row_map(), none, v.view());
        return v;
    }
    /// max |A^H B - I| if `identity`, else max |A^H B|.
    double defect(BlockView<const T> a, BlockView<const T> b, bool identity) {
        SmallMatrix<T> gram(a.cols, b.cols);
        tsmttsm(ctx, T(1), a, b, T(0), gram);
        double most = 0;
        for (int i = 0; i < gram.rows(); ++i) {
            for (int j = 0; j < gram.cols(); ++j) {
                const T exact = identity && i == j ? T(1) : T(0);
                most = std::max(most, static_cast<double>(std::abs(gram(i, j) - exact)));
            }
        }
        return most;
    }
    /// Orthonormalises W against V and checks W_in = V h + Q r, Q^H Q = I, V^H Q = 0.
    OrthResult<T> check(BlockVector<T>& v, BlockVector<T>& w, bool replace = true) {
        BlockVector<T> input(ctx, w.row_map(), w.width());
        copy(ctx, w.view(), input.view());
        OrthResult<T> result = block_gram_schmidt<T>(ctx, w.row_map(), std::as_const(v).view(),
                                                     w.view(), OrthOptions{replace, 7});
        check(v, w, input, result);
        return result;
    }
    /// The same checks of a given result. `input`: a copy of W_in, which is overwritten.
    void check(BlockVector<T>& v, BlockVector<T>& w, BlockVector<T>& input,
               const OrthResult<T>& result) {
        std::vector<real_t<T>> length(static_cast<std::size_t>(w.width()));
        norms(ctx, input.view(), std::span<real_t<T>>(length));
        const BlockView<T> q = w.columns(0, result.columns);
        const double eps = static_cast<double>(epsilon_v<T>);
        const double size = v.width() + w.width();
        EXPECT_LE(defect(q, q, true), 10 * size * eps);
        EXPECT_LE(defect(std::as_const(v).view(), q, false), 10 * size * eps);
        tsmm(ctx, T(-1), std::as_const(v).view(), result.h.view(), T(1), input.view());
        tsmm(ctx, T(-1), q, result.r.view(), T(1), input.view());
        std::vector<real_t<T>> left(length.size());
        norms(ctx, input.view(), std::span<real_t<T>>(left));
        for (std::size_t j = 0; j < left.size(); ++j) {
            EXPECT_LE(static_cast<double>(left[j]),
                      50 * size * eps * static_cast<double>(length[j]))
                << "column " << j;
        }
    }
    using Verdict = typename TwoPasses<T>::Verdict;
    /// The verdict of two passes on W against V; checks the result if the verdict is sound.
    Verdict verdict(BlockVector<T>& v, BlockVector<T>& w, int skipped = 0) {
        BlockVector<T> input(ctx, w.row_map(), w.width());
        copy(ctx, w.view(), input.view());
        TwoPasses<T> passes(ctx, v.width(), w.width());
        passes.begin(std::as_const(v).view(), w.view(), skipped);
        const auto outcome = passes.finish();
        if (outcome.verdict == Verdict::sound) {
            EXPECT_EQ(outcome.result.columns, w.width());
            EXPECT_EQ(outcome.result.rank, w.width());
            check(v, w, input, outcome.result);
        }
        return outcome.verdict;
    }

    Context ctx = test::make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BlockGramSchmidt, Scalars);

TYPED_TEST(BlockGramSchmidt, RandomBlocksTakeTwoPasses) {
    for (const auto& [p, w] : {std::pair{0, 1}, {0, 8}, {5, 1}, {13, 4}, {40, 7}, {90, 32}}) {
        auto v = this->orthonormal(401, p);
        auto block = this->random(401, w, 5);
        const auto result = this->check(v, block);
        EXPECT_EQ(result.columns, w);
        EXPECT_EQ(result.rank, w);
        EXPECT_FALSE(result.used_svqb);
        EXPECT_LE(result.passes, 3);
    }
}

TYPED_TEST(BlockGramSchmidt, LaeuchliBlocksKeepFullRank) {
    using T = TypeParam;
    const real_t<T> tiny = std::sqrt(epsilon_v<T>) / real_t<T>(10);
    auto v = this->orthonormal(301, 3);
    auto block = this->make(301, 6, [&](std::int64_t row, int col) {
        return T(row == 0 ? real_t<T>(1) : row == col + 1 ? tiny : real_t<T>(0));
    });
    const auto result = this->check(v, block);
    EXPECT_EQ(result.rank, 6);
    EXPECT_TRUE(result.used_svqb);
}

TYPED_TEST(BlockGramSchmidt, HilbertLikeBlocksStayOrthonormal) {
    using T = TypeParam;
    auto v = this->orthonormal(251, 4);
    auto block = this->make(251, 12, [](std::int64_t row, int col) {
        return T(real_t<T>(1) / static_cast<real_t<T>>(row + col + 1));
    });
    this->check(v, block);
}

TYPED_TEST(BlockGramSchmidt, RepeatedColumnsAreReplaced) {
    using T = TypeParam;
    auto v = this->orthonormal(151, 5);
    auto block = this->random(151, 3, 11);
    BlockVector<T> repeated(this->ctx, block.row_map(), 7);
    const std::vector<int> source{0, 1, 0, 2, 1, 1, 2};
    gather_columns(this->ctx, std::as_const(block).view(), source, repeated.view());
    auto again = BlockVector<T>(this->ctx, block.row_map(), 7);
    copy(this->ctx, repeated.view(), again.view());
    const auto replaced = this->check(v, repeated);
    EXPECT_EQ(replaced.columns, 7);
    EXPECT_EQ(replaced.rank, 3);
    const auto dropped = this->check(v, again, false);
    EXPECT_EQ(dropped.columns, 3);
    EXPECT_EQ(dropped.rank, 3);
}

TYPED_TEST(BlockGramSchmidt, ColumnsInTheSpanOfTheBasisAreReplaced) {
    using T = TypeParam;
    auto v = this->orthonormal(151, 6);
    BlockVector<T> block(this->ctx, v.row_map(), 4);
    copy(this->ctx, v.columns(1, 4), block.view());
    const auto result = this->check(v, block);
    EXPECT_EQ(result.columns, 4);
    EXPECT_EQ(result.rank, 0);
}

TYPED_TEST(BlockGramSchmidt, ZeroBlocksAreReplaced) {
    using T = TypeParam;
    auto v = this->orthonormal(51, 2);
    auto block = this->make(51, 3, [](std::int64_t, int) { return T(0); });
    const auto result = this->check(v, block);
    EXPECT_EQ(result.columns, 3);
    EXPECT_EQ(result.rank, 0);
}

TYPED_TEST(BlockGramSchmidt, BadlyScaledColumnsKeepTheirDirections) {
    using T = TypeParam;
    auto v = this->orthonormal(201, 3);
    auto block = this->random(201, 5, 3);
    const std::vector<T> factors{T(1), T(real_t<T>(1e-12)), T(real_t<T>(1e6)), T(real_t<T>(1e-6)),
                                 T(real_t<T>(1e10))};
    scale(this->ctx, factors, block.view());
    const auto result = this->check(v, block);
    EXPECT_EQ(result.rank, 5);
}

/// Scaling a column by a power of two changes only h and r, for every method.
TYPED_TEST(BlockGramSchmidt, ColumnsWithSquaresThatUnderflowAreFactored) {
    using T = TypeParam;
    using Real = real_t<T>;
    const Real tiny = std::ldexp(Real(1), sizeof(Real) == sizeof(double) ? -600 : -85);
    const Real big = 1 / tiny;
    for (const int p : {0, 3}) {
        auto v = this->orthonormal(1201, p);
        for (const OrthMethod method :
             {OrthMethod::robust, OrthMethod::cholesky_qr2, OrthMethod::shifted_cholesky_qr3,
              OrthMethod::svqb, OrthMethod::tsqr, OrthMethod::mixed_cholesky_qr}) {
            SCOPED_TRACE(to_string(method));
            auto input = this->random(1201, 5, 3);
            fill(this->ctx, T(0), input.columns(2, 1));
            if (method != OrthMethod::robust && method != OrthMethod::svqb) {
                fill_random(this->ctx, 8, input.row_map().first_row(), 0, input.columns(2, 1));
            }
            auto w = this->random(1201, 5, 3);
            copy(this->ctx, input.view(), w.view());
            scale(this->ctx, {{T(tiny), T(1), T(tiny), T(tiny), T(1)}}, w.view());
            OrthOptions options;
            options.method = method;
            options.replace_deficient = false;
            auto result = block_gram_schmidt<T>(this->ctx, w.row_map(), std::as_const(v).view(),
                                                w.view(), options);
            EXPECT_EQ(result.breakdown, -1);
            EXPECT_EQ(result.rank,
                      input.width() - (method == OrthMethod::robust || method == OrthMethod::svqb));
            for (const int j : {0, 2, 3}) {
                for (int i = 0; i < p; ++i) {
                    result.h(i, j) *= big;
                }
                for (int i = 0; i < result.columns; ++i) {
                    result.r(i, j) *= big;
                }
            }
            this->check(v, w, input, result);
        }
    }
}

/// More than 256 columns are orthonormalised in panels. Columns of one panel repeat columns of
/// others and of the basis.
TYPED_TEST(BlockGramSchmidt, WideBlocksWithMissingDirections) {
    using T = TypeParam;
    constexpr int independent = 500;
    constexpr int width = 600;
    auto v = this->orthonormal(701, 10);
    auto some = this->random(701, independent, 3);
    std::vector<int> source(width);
    for (int j = 0; j < width; ++j) {
        source[static_cast<std::size_t>(j)] = j < 300 ? j : j < 400 ? j - 200 : j - 100;
    }
    BlockVector<T> block(this->ctx, some.row_map(), width + 3, width + 5);
    gather_columns(this->ctx, std::as_const(some).view(), source, block.columns(0, width));
    copy(this->ctx, v.columns(4, 3), block.columns(width, 3));
    BlockVector<T> again(this->ctx, block.row_map(), width + 3);
    copy(this->ctx, block.view(), again.view());
    const auto replaced = this->check(v, block);
    EXPECT_EQ(replaced.columns, width + 3);
    EXPECT_EQ(replaced.rank, independent);
    const auto dropped = this->check(v, again, false);
    EXPECT_EQ(dropped.columns, independent);
    EXPECT_EQ(dropped.rank, independent);
    auto fewer = this->random(280, 300, 5);
    const BlockVector<T> no_basis(this->ctx, fewer.row_map(), 0);
    const auto whole =
        block_gram_schmidt<T>(this->ctx, fewer.row_map(), no_basis.view(), fewer.view());
    EXPECT_EQ(whole.columns, 280);
    EXPECT_LE(this->defect(std::as_const(fewer).columns(0, 280),
                           std::as_const(fewer).columns(0, 280), true),
              3000 * static_cast<double>(epsilon_v<T>));
}

TYPED_TEST(BlockGramSchmidt, AFullSpaceLeavesFewerColumns) {
    auto v = this->orthonormal(10, 8);
    auto block = this->random(10, 5, 21);
    const auto result = this->check(v, block);
    EXPECT_EQ(result.columns, 2);
    auto everything = this->orthonormal(6, 6);
    auto more = this->random(6, 2, 22);
    EXPECT_EQ(this->check(everything, more).columns, 0);
}

TYPED_TEST(BlockGramSchmidt, NaNIsNamedByColumn) {
    using T = TypeParam;
    auto v = this->orthonormal(30, 2);
    auto block = this->make(30, 3, [](std::int64_t row, int col) {
        return row == 7 && col == 1 ? T(std::numeric_limits<real_t<T>>::quiet_NaN())
                                    : T(static_cast<real_t<T>>(row % (col + 2)));
    });
    try {
        block_gram_schmidt<T>(this->ctx, block.row_map(), std::as_const(v).view(), block.view());
        FAIL() << "NaN was accepted";
    } catch (const NumericalError& error) {
        EXPECT_NE(std::string(error.what()).find("in column 1"), std::string::npos) << error.what();
    }
}

TYPED_TEST(BlockGramSchmidt, NaNInAWideBlockIsNamedByColumn) {
    using T = TypeParam;
    auto block = this->random(400, 300, 5);
    fill(this->ctx, std::numeric_limits<real_t<T>>::quiet_NaN(), block.columns(299, 1));
    const BlockVector<T> v(this->ctx, block.row_map(), 0);
    try {
        block_gram_schmidt<T>(this->ctx, block.row_map(), v.view(), block.view());
        FAIL() << "NaN was accepted";
    } catch (const NumericalError& error) {
        EXPECT_NE(std::string(error.what()).find("in column 299"), std::string::npos)
            << error.what();
    }
}

TYPED_TEST(BlockGramSchmidt, TwoPassesWithoutSynchronisationGiveTheSameResult) {
    using T = TypeParam;
    using Verdict = typename TwoPasses<T>::Verdict;
    for (const auto& [p, w] : {std::pair{0, 1}, {0, 8}, {5, 1}, {13, 4}, {40, 7}, {90, 32}}) {
        auto v = this->orthonormal(401, p);
        auto block = this->random(401, w, 5);
        scale(this->ctx, T(real_t<T>(1e-3)), block.columns(0, 1));
        BlockVector<T> again(this->ctx, block.row_map(), w);
        copy(this->ctx, block.view(), again.view());
        EXPECT_EQ(this->verdict(v, block), Verdict::sound) << p << " x " << w;
        const auto looked = this->check(v, again);
        EXPECT_EQ(looked.passes, 2);
        // Q with a positive diagonal of r is unique, so both must agree up to rounding.
        axpby(this->ctx, T(-1), std::as_const(again).view(), T(1), block.view());
        std::vector<real_t<T>> left(static_cast<std::size_t>(w));
        norms(this->ctx, block.view(), std::span<real_t<T>>(left));
        for (const real_t<T> length : left) {
            EXPECT_LE(static_cast<double>(length),
                      100.0 * (p + w) * static_cast<double>(epsilon_v<T>));
        }
    }
}

TYPED_TEST(BlockGramSchmidt, TwoPassesReportUnsoundResults) {
    using T = TypeParam;
    using Verdict = typename TwoPasses<T>::Verdict;
    auto v = this->orthonormal(151, 6);
    BlockVector<T> inside(this->ctx, v.row_map(), 4);
    copy(this->ctx, v.columns(1, 4), inside.view());
    EXPECT_EQ(this->verdict(v, inside), Verdict::unsound) << "in the span of the basis";

    auto three = this->random(151, 3, 11);
    BlockVector<T> repeated(this->ctx, v.row_map(), 4);
    const std::vector<int> source{0, 1, 0, 2};
    gather_columns(this->ctx, std::as_const(three).view(), source, repeated.view());
    EXPECT_EQ(this->verdict(v, repeated), Verdict::unsound) << "a column twice";

    auto zero = this->random(151, 3, 12);
    fill(this->ctx, T(0), zero.columns(1, 1));
    EXPECT_EQ(this->verdict(v, zero), Verdict::unsound) << "a column of zeros";

    const real_t<T> tiny = std::sqrt(epsilon_v<T>) / real_t<T>(10);
    auto laeuchli = this->make(151, 5, [&](std::int64_t row, int col) {
        return T(row == 0 ? real_t<T>(1) : row == col + 1 ? tiny : real_t<T>(0));
    });
    EXPECT_EQ(this->verdict(v, laeuchli), Verdict::unsound) << "too ill-conditioned for Cholesky";

    for (const auto bad : {std::numeric_limits<real_t<T>>::quiet_NaN(),
                           std::numeric_limits<real_t<T>>::infinity()}) {
        auto block = this->random(151, 3, 13);
        if (this->ctx.comm().rank() == this->ctx.comm().size() - 1) {
            fill(this->ctx, T(bad), block.columns(2, 1).row_range(0, 1));
        }
        EXPECT_EQ(this->verdict(v, block), Verdict::not_finite) << bad;
    }
}

/// The second pass removes what the first one leaves of the skipped columns, up to a tenth.
TYPED_TEST(BlockGramSchmidt, TwoPassesMaySkipColumnsInTheFirst) {
    using T = TypeParam;
    using Verdict = typename TwoPasses<T>::Verdict;
    std::mt19937_64 generator = test::make_generator();
    for (const auto& [p, w] : {std::pair{7, 1}, {20, 4}, {61, 8}}) {
        const int skipped = 1 + static_cast<int>(generator() % static_cast<unsigned>(p - 1));
        SCOPED_TRACE(std::to_string(p) + " x " + std::to_string(w) + ", skipped " +
                     std::to_string(skipped));
        auto v = this->orthonormal(401, p);
        for (const double share : {0.0, 1e-3, 10.0}) {
            // Columns orthogonal to V, and a share of the first skipped columns.
            auto block = this->random(401, w, static_cast<std::uint64_t>(generator()));
            block_gram_schmidt<T>(this->ctx, block.row_map(), std::as_const(v).view(),
                                  block.view());
            SmallMatrix<T> left(skipped, w);
            SmallMatrix<T> kept(p - skipped, w);
            for (int j = 0; j < w; ++j) {
                left(j % skipped, j) = T(static_cast<real_t<T>>(share));
                kept(j % (p - skipped), j) = T(real_t<T>(-2));
            }
            tsmm(this->ctx, T(1), v.columns(0, skipped), left.view(), T(1), block.view());
            tsmm(this->ctx, T(1), v.columns(skipped, p - skipped), kept.view(), T(1), block.view());
            EXPECT_EQ(this->verdict(v, block, skipped),
                      share > 1 ? Verdict::unsound : Verdict::sound)
                << share;
        }
    }
}

TYPED_TEST(BlockGramSchmidt, TwoPassesMayOverlapAndCopyOnce) {
    using T = TypeParam;
    using Verdict = typename TwoPasses<T>::Verdict;
    OverheadCounts& counts = OverheadCounts::of(this->ctx);
    auto v = this->orthonormal(301, 12);
    auto first = this->random(301, 4, 21);
    auto second = this->random(301, 3, 22);
    BlockVector<T> first_input(this->ctx, v.row_map(), 4);
    BlockVector<T> second_input(this->ctx, v.row_map(), 3);
    copy(this->ctx, first.view(), first_input.view());
    copy(this->ctx, second.view(), second_input.view());
    TwoPasses<T> passes(this->ctx, 12, 4);
    counts.clear();
    passes.begin(std::as_const(v).view(), first.view());
    passes.begin(v.columns(0, 7), second.view());
    const bool alone = this->ctx.comm().size() == 1;
    // Reductions in or through host memory wait; one rank makes no reductions.
    const bool known = alone || this->ctx.place() == Place::host;
    const std::int64_t waits = counts[Overhead::result].count;
    if (known) {
        EXPECT_EQ(waits, alone ? 0 : 8);
    }
    EXPECT_EQ(counts[Overhead::all_reduce].count, alone ? 0 : 8);
    EXPECT_EQ(counts[Overhead::all_reduce].bytes,
              alone ? 0.0 : static_cast<double>(sizeof(T)) * 2 * (12 * 4 + 4 * 4 + 7 * 3 + 3 * 3));
    EXPECT_EQ(passes.under_way(), 2);
    auto one = passes.finish();
    auto two = passes.finish();
    EXPECT_EQ(counts[Overhead::late_result].count, 1);
    EXPECT_EQ(counts[Overhead::result].count, waits + 1);
    ASSERT_EQ(one.verdict, Verdict::sound);
    ASSERT_EQ(two.verdict, Verdict::sound);
    this->check(v, first, first_input, one.result);
    BlockVector<T> seven(this->ctx, v.row_map(), 7);
    copy(this->ctx, BlockView<const T>(v.columns(0, 7)), seven.view());
    this->check(seven, second, second_input, two.result);
}

}  // namespace
}  // namespace quiver

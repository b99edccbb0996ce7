// SPDX-License-Identifier: BSD-3-Clause
// Block Gram-Schmidt in the inner product of a positive definite B.
#include <cmath>
#include <complex>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"

namespace quiver {
namespace {

/// Counts the products, and fails on request.
template <class T>
class Counted final : public Operator<T> {
  public:
    explicit Counted(Operator<T>& inner) : inner_(inner) {}
    const RowMap& row_map() const override { return inner_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        inner_.apply(ctx, x, y);
        ++products;
        columns += x.cols;
        if (products == fail_at && ctx.comm().rank() == failing_rank) {
            throw InputError("B is broken here");
        }
    }

    int products = 0;
    int columns = 0;
    int fail_at = 0;
    int failing_rank = 0;

  private:
    Operator<T>& inner_;
};

/// A^H A + D as an operator that is never assembled.
template <class T>
class NormalForm final : public Operator<T> {
  public:
    NormalForm(SparseMatrix<T>& a, SparseMatrix<T>& d) : a_(a), d_(d) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        BlockVector<T> middle(ctx, row_map(), x.cols);
        a_.apply(ctx, x, middle.view());  // A is Hermitian
        a_.apply(ctx, std::as_const(middle).view(), y);
        ApplyOptions<T> more;
        more.beta = T(1);
        d_.apply_fused(ctx, x, y, more);
    }

  private:
    SparseMatrix<T>& a_;
    SparseMatrix<T>& d_;
};

template <class T>
class OrthWithB : public ::testing::Test {
  protected:
    using Real = real_t<T>;

    /// A random diagonal from 1/sqrt(condition) to sqrt(condition), uniform in the logarithm.
    SparseMatrix<T> diagonal_b(std::int64_t rows, double condition) {
        std::vector<double> values(static_cast<std::size_t>(rows));
        for (double& value : values) {
            value = std::pow(condition, std::uniform_real_distribution<double>(-0.5, 0.5)(random));
        }
        values.front() = std::sqrt(condition);
        values.back() = 1 / std::sqrt(condition);
        return test::diagonal<T>(ctx, values);
    }
    BlockVector<T> block(const RowMap& map, int cols) {
        BlockVector<T> w(ctx, map, cols);
        fill_random(ctx, random(), w);
        return w;
    }
    BlockVector<T> times_b(Operator<T>& b, BlockView<const T> x) {
        BlockVector<T> result(ctx, b.row_map(), x.cols);
        if (x.cols > 0) {
            b.apply(ctx, x, result.view());
        }
        return result;
    }
    std::vector<Real> lengths(BlockView<const T> x) {
        std::vector<Real> result(static_cast<std::size_t>(x.cols));
        norms(ctx, x, std::span<Real>(result));
        return result;
    }
    /// max |A^H C - I| if `identity`, else max |A^H C|.
    double defect(BlockView<const T> a, BlockView<const T> c, bool identity) {
        SmallMatrix<T> gram(a.cols, c.cols);
        tsmttsm(ctx, T(1), a, c, T(0), gram);
        double most = 0;
        for (int i = 0; i < gram.rows(); ++i) {
            for (int j = 0; j < gram.cols(); ++j) {
                const T exact = identity && i == j ? T(1) : T(0);
                most = std::max(most, static_cast<double>(std::abs(gram(i, j) - exact)));
            }
        }
        return most;
    }
    void subtract(BlockView<const T> x, const SmallMatrix<T>& c, BlockView<T> y) {
        tsmm(ctx, T(-1), x, c.view(), T(1), y);
    }

    struct Kept {
        bool bv = true;
        bool bw = true;
        bool product_given = false;
    };

    /// Orthonormalises w against v and checks W_in = V h + Q r, Q^H B Q = I, V^H B Q = 0 and the
    /// kept product, with `condition` at least cond(B).
    OrthResult<T> check(const InnerProduct<T>& inner, double condition, const BlockVector<T>& v,
                        BlockVector<T>& w, Kept kept, bool replace = true) {
        Operator<T>& b = *inner.b;
        BlockVector<T> input(ctx, w.row_map(), w.width());
        copy(ctx, w.view(), input.view());
        const std::vector<Real> length = lengths(std::as_const(w).view());
        const BlockVector<T> bv = times_b(b, v.view());
        BlockVector<T> bw(ctx, w.row_map(), w.width());
        if (kept.product_given) {
            b.apply(ctx, std::as_const(w).view(), bw.view());
        } else {
            fill(ctx, test::poison<T>(), bw.view());
        }
        OrthResult<T> result = block_gram_schmidt<T>(
            ctx, w.row_map(), inner, v.view(), kept.bv ? bv.view() : BlockView<const T>(), w.view(),
            kept.bw ? bw.view() : BlockView<T>(), {replace, 7, kept.product_given});
        EXPECT_LE(result.rank, result.columns);
        const BlockView<T> q = w.columns(0, result.columns);
        const double eps = static_cast<double>(epsilon_v<T>);
        const double size = v.width() + w.width();
        const BlockVector<T> bq = times_b(b, q);
        EXPECT_LE(defect(q, bq.view(), true), 10 * size * eps * condition);
        EXPECT_LE(defect(v.view(), bq.view(), false), 10 * size * eps * condition);
        if (kept.bw && result.columns > 0) {
            // The product has an error relative to ||B|| ||q||, and so has each update.
            const std::vector<Real> q_length = lengths(q);
            BlockVector<T> difference(ctx, w.row_map(), result.columns);
            copy(ctx, bw.columns(0, result.columns), difference.view());
            axpby(ctx, T(-1), bq.view(), T(1), difference.view());
            const std::vector<Real> off = lengths(std::as_const(difference).view());
            for (std::size_t j = 0; j < off.size(); ++j) {
                EXPECT_LE(static_cast<double>(off[j]), 100 * size * eps *
                                                           static_cast<double>(inner.norm) *
                                                           static_cast<double>(q_length[j]))
                    << "product of column " << j;
            }
        }
        // In the B-norm V and Q have norm 1; ||x||_2 is up to sqrt(cond(B)) times that.
        subtract(v.view(), result.h, input.view());
        subtract(q, result.r, input.view());
        const std::vector<Real> left = lengths(std::as_const(input).view());
        for (std::size_t j = 0; j < left.size(); ++j) {
            EXPECT_LE(static_cast<double>(left[j]),
                      50 * size * eps * std::sqrt(condition) * static_cast<double>(length[j]))
                << "column " << j;
        }
        return result;
    }
    BlockVector<T> orthonormal(const InnerProduct<T>& inner, int cols) {
        BlockVector<T> v = block(inner.b->row_map(), cols);
        block_gram_schmidt<T>(ctx, v.row_map(), inner, {}, {}, v.view(), {});
        return v;
    }

    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};
TYPED_TEST_SUITE(OrthWithB, test::Scalars, test::ScalarName);

TYPED_TEST(OrthWithB, RandomBlocksForEveryKindOfCaller) {
    using T = TypeParam;
    const double condition = sizeof(real_t<T>) == 4 ? 1e2 : 1e5;
    auto b = this->diagonal_b(307, condition);
    Counted<T> counted(b);
    const InnerProduct<T> inner = inner_product<T>(this->ctx, &counted);
    EXPECT_LE(inner.norm, std::sqrt(condition) * 1.001);
    EXPECT_GE(inner.norm, std::sqrt(condition) * 0.1);
    for (const auto& [p, w] : {std::pair{0, 1}, {0, 8}, {5, 1}, {13, 4}, {40, 7}}) {
        const auto v = this->orthonormal(inner, p);
        for (const bool bv : {true, false}) {
            for (const bool bw : {true, false}) {
                for (const bool given : {true, false}) {
                    auto x = this->block(v.row_map(), w);
                    const auto result = this->check(inner, condition, v, x, {bv, bw, given && bw});
                    EXPECT_EQ(result.columns, w);
                    EXPECT_EQ(result.rank, w);
                    EXPECT_LE(result.passes, 3);
                }
            }
        }
    }
}

TYPED_TEST(OrthWithB, KeptProductsAreNotFormedAgain) {
    using T = TypeParam;
    auto b = this->diagonal_b(307, 4);
    Counted<T> counted(b);
    const InnerProduct<T> inner = inner_product<T>(this->ctx, &counted);
    const auto v = this->orthonormal(inner, 6);
    const auto bv = this->times_b(b, v.view());
    auto w = this->block(v.row_map(), 5);
    auto bw = this->times_b(b, std::as_const(w).view());
    counted.products = counted.columns = 0;
    block_gram_schmidt<T>(this->ctx, v.row_map(), inner, v.view(), bv.view(), w.view(), bw.view(),
                          {true, 7, true});
    EXPECT_EQ(counted.products, 0);
    auto x = this->block(v.row_map(), 5);
    block_gram_schmidt<T>(this->ctx, v.row_map(), inner, v.view(), bv.view(), x.view(), {});
    EXPECT_EQ(counted.products, 1);
    EXPECT_EQ(counted.columns, 5);
}

TYPED_TEST(OrthWithB, AProductFormIsEnough) {
    using T = TypeParam;
    auto a = test::laplace3d<T>(this->ctx, 7, 6, 5);
    auto d = test::diagonal<T>(this->ctx, std::vector<double>(210, 1.0));
    NormalForm<T> b(a, d);
    const double condition = 1 + 12 * 12;
    const InnerProduct<T> inner = inner_product<T>(this->ctx, &b);
    const auto v = this->orthonormal(inner, 9);
    auto w = this->block(v.row_map(), 6);
    EXPECT_EQ(this->check(inner, condition, v, w, {}).rank, 6);
}

TYPED_TEST(OrthWithB, IllConditionedBlocksKeepTheProduct) {
    using T = TypeParam;
    auto b = this->diagonal_b(251, 1e2);
    const InnerProduct<T> inner = inner_product<T>(this->ctx, &b);
    const auto v = this->orthonormal(inner, 4);
    // Columns that differ by a little more than rounding, from each other and from the basis.
    auto w = this->block(v.row_map(), 6);
    const real_t<T> tiny = std::sqrt(epsilon_v<T>) * real_t<T>(3);
    for (int j = 1; j < 5; ++j) {
        axpby(this->ctx, T(1), w.columns(0, 1), T(tiny), w.columns(j, 1));
    }
    axpby(this->ctx, T(1), v.columns(2, 1), T(tiny), w.columns(5, 1));
    const auto result = this->check(inner, 1e2, v, w, {});
    EXPECT_EQ(result.rank, 6);
}

TYPED_TEST(OrthWithB, MissingDirectionsAreReplacedOrDropped) {
    using T = TypeParam;
    auto b = this->diagonal_b(151, 1e2);
    const InnerProduct<T> inner = inner_product<T>(this->ctx, &b);
    const auto v = this->orthonormal(inner, 5);
    const auto three = this->block(v.row_map(), 3);
    for (const bool bv : {true, false}) {
        for (const bool replace : {true, false}) {
            BlockVector<T> w(this->ctx, v.row_map(), 9);
            const std::vector<int> source{0, 1, 0, 2, 1, 1, 2};
            gather_columns(this->ctx, three.view(), source, w.columns(0, 7));
            copy(this->ctx, v.columns(1, 2), w.columns(7, 2));
            const auto result = this->check(inner, 1e2, v, w, {bv, true, false}, replace);
            EXPECT_EQ(result.rank, 3);
            EXPECT_EQ(result.columns, replace ? 9 : 3);
        }
    }
}

/// More than 256 columns are orthonormalised in panels.
TYPED_TEST(OrthWithB, WideBlocksWithMissingDirections) {
    auto b = this->diagonal_b(401, 1e2);
    const InnerProduct<TypeParam> inner = inner_product<TypeParam>(this->ctx, &b);
    const auto v = this->orthonormal(inner, 5);
    using Kept = typename OrthWithB<TypeParam>::Kept;
    for (const Kept kept : {Kept{}, Kept{false, true, true}, Kept{true, false, false}}) {
        auto w = this->block(v.row_map(), 290);
        copy(this->ctx, v.columns(1, 2), w.columns(100, 2));
        copy(this->ctx, w.columns(7, 9), w.columns(270, 9));
        const auto result = this->check(inner, 1e2, v, w, kept, false);
        EXPECT_EQ(result.rank, 279);
        EXPECT_EQ(result.columns, 279);
    }
}

TYPED_TEST(OrthWithB, WithoutBItEqualsTheStandardFunction) {
    using T = TypeParam;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 123);
    auto w = this->block(map, 5);
    BlockVector<T> same(this->ctx, map, 5);
    copy(this->ctx, w.view(), same.view());
    const InnerProduct<T> inner = inner_product<T>(this->ctx, nullptr);
    const auto one = block_gram_schmidt<T>(this->ctx, map, inner, {}, {}, w.view(), {});
    const auto other = block_gram_schmidt<T>(this->ctx, map, {}, same.view());
    for (int i = 0; i < 5; ++i) {
        for (int j = 0; j < 5; ++j) {
            EXPECT_EQ(one.r(i, j), other.r(i, j));
        }
    }
}

TYPED_TEST(OrthWithB, AnInvalidInnerProductIsRefused) {
    using T = TypeParam;
    std::vector<double> values(100, 1.0);
    values[3] = -1000;
    auto indefinite = test::diagonal<T>(this->ctx, values);
    EXPECT_THROW(inner_product<T>(this->ctx, &indefinite), IndefiniteError);
    InnerProduct<T> unchecked{&indefinite, real_t<T>(1000)};
    auto w = this->block(indefinite.row_map(), 4);
    EXPECT_THROW(block_gram_schmidt<T>(this->ctx, w.row_map(), unchecked, {}, {}, w.view(), {}),
                 IndefiniteError);
    auto skew = SparseMatrix<T>(this->ctx,
                                rows_from_callback<T>(this->ctx.comm(), 100, Symmetry::general,
                                                      [](std::int64_t row, RowEntries<T>& entries) {
                                                          entries.add(row, T(2));
                                                          entries.add((row + 1) % 100, T(1));
                                                      }));
    InnerProduct<T> not_hermitian{&skew, real_t<T>(3)};
    auto x = this->block(skew.row_map(), 4);
    EXPECT_THROW(block_gram_schmidt<T>(this->ctx, x.row_map(), not_hermitian, {}, {}, x.view(), {}),
                 NumericalError);
}

TYPED_TEST(OrthWithB, AFailureOnOneRankEndsAll) {
    using T = TypeParam;
    auto b = this->diagonal_b(101, 1e2);
    Counted<T> counted(b);
    const InnerProduct<T> inner{&counted, real_t<T>(10)};
    const int last = this->ctx.comm().size() - 1;
    counted.failing_rank = last;
    auto v = this->orthonormal(inner, 3);
    for (const int ahead : {1, 2}) {
        counted.fail_at = counted.products + ahead;
        auto w = this->block(v.row_map(), 4);
        try {
            block_gram_schmidt<T>(this->ctx, v.row_map(), inner, std::as_const(v).view(), {},
                                  w.view(), {});
            FAIL() << "the failure was overlooked";
        } catch (const InputError& error) {
            EXPECT_EQ(this->ctx.comm().rank(), last) << error.what();
        } catch (const NumericalError& error) {
            EXPECT_NE(this->ctx.comm().rank(), last) << error.what();
        }
    }
}

}  // namespace
}  // namespace quiver

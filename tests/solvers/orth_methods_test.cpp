// SPDX-License-Identifier: BSD-3-Clause
// Checks the documented accuracy of each method of orthonormalisation for blocks of any condition.
#include <atomic>
#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/orth/tsqr.hpp"
#include "solvers/small_dense.hpp"
#include "solvers/small_dense_qr.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"

namespace {
std::atomic<int> all_reduces = 0;
}

// Counts the library's calls and passes them on to MPI.
extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
    ++all_reduces;
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

namespace quiver {
namespace {

constexpr OrthMethod all_methods[] = {OrthMethod::robust,
                                      OrthMethod::cholesky_qr,
                                      OrthMethod::cholesky_qr2,
                                      OrthMethod::shifted_cholesky_qr3,
                                      OrthMethod::svqb,
                                      OrthMethod::tsqr,
                                      OrthMethod::mixed_cholesky_qr};

bool is_robust(OrthMethod method) {
    return method != OrthMethod::cholesky_qr && method != OrthMethod::cholesky_qr2;
}
/// True if W - Q R is small for any W.
bool keeps_residual(OrthMethod method) {
    return method == OrthMethod::robust || method == OrthMethod::svqb || method == OrthMethod::tsqr;
}

template <class T>
class OrthMethods : public ::testing::Test {
  protected:
    using Real = real_t<T>;
    using Wide = test::wide_t<T>;
    static constexpr double eps = static_cast<double>(epsilon_v<T>);

    /// A block whose element (row, column) is value(row, column).
    BlockVector<T> make(std::int64_t rows, int cols,
                        const std::function<double(std::int64_t, int)>& value) {
        const RowMap map = test::uneven_map(ctx, rows);
        BlockVector<T> host(ctx, map, cols, cols, Place::host);
        for (std::int64_t i = 0; i < host.rows(); ++i) {
            for (int j = 0; j < cols; ++j) {
                host.view()(i, j) = T(static_cast<Real>(value(map.first_row() + i, j)));
            }
        }
        return moved(host, ctx.place());
    }
    BlockVector<T> random_block(std::int64_t rows, int cols) {
        BlockVector<T> block(ctx, test::uneven_map(ctx, rows), cols);
        fill_random(ctx, random(), block);
        return block;
    }
    BlockVector<T> orthonormal(std::int64_t rows, int cols) {
        BlockVector<T> v = random_block(rows, cols);
        block_gram_schmidt<T>(ctx, v.row_map(), none(v), v.view());
        return v;
    }
    /// U diag(1 .. 1 / condition) Z^H with random orthonormal U and unitary Z.
    BlockVector<T> with_condition(std::int64_t rows, int cols, double condition) {
        const BlockVector<T> u = orthonormal(rows, cols);
        SmallMatrix<T> z(cols, cols);
        for (int i = 0; i < cols * cols; ++i) {
            z.data()[i] = test::random_value<T>(random);
        }
        householder_qr<T>(z, 1,
                          [&](const SmallMatrix<T>&) { return SmallMatrix<T>::identity(cols); });
        SmallMatrix<T> c(cols, cols);
        for (int i = 0; i < cols; ++i) {
            const auto sigma = static_cast<Real>(std::pow(condition, -double(i) / (cols - 1)));
            for (int j = 0; j < cols; ++j) {
                c(i, j) = sigma * z(i, j);
            }
        }
        BlockVector<T> x(ctx, u.row_map(), cols);
        tsmm(ctx, T(1), u.view(), c.view(), T(0), x.view());
        return x;
    }
    BlockVector<T> moved(const BlockVector<T>& x, Place place) {
        BlockVector<T> y(ctx, x.row_map(), x.width(), x.width(), place);
        copy(ctx, x.view(), y.view());
        return y;
    }
    static BlockView<const T> none(const BlockVector<T>& like) {
        return {nullptr, like.rows(), 0, 0, like.place()};
    }

    /// ||A^H B - I||_F if `identity`, else ||A^H B||_F, summed in long double.
    double defect(const BlockVector<T>& a, const BlockVector<T>& b, bool identity) {
        const BlockVector<T> x = moved(a, Place::host);
        const BlockVector<T> y = moved(b, Place::host);
        std::vector<double> parts;
        for (int i = 0; i < x.width(); ++i) {
            for (int j = 0; j < y.width(); ++j) {
                Wide sum = identity && i == j && ctx.comm().rank() == 0 ? Wide(-1) : Wide(0);
                for (std::int64_t row = 0; row < x.rows(); ++row) {
                    sum += Wide(conjugate(x.view()(row, i))) * Wide(y.view()(row, j));
                }
                parts.push_back(static_cast<double>(std::real(sum)));
                parts.push_back(static_cast<double>(std::imag(sum)));
            }
        }
        ctx.comm().sum(std::span<double>(parts));
        double squares = 0;
        for (const double part : parts) {
            squares += part * part;
        }
        return std::sqrt(squares);
    }
    /// ||X - V h - Q r||_F / ||X||_F in long double.
    double residual(const BlockVector<T>& x, const BlockVector<T>& v, const BlockVector<T>& q,
                    const OrthResult<T>& result) {
        const BlockVector<T> hx = moved(x, Place::host);
        const BlockVector<T> hv = moved(v, Place::host);
        const BlockVector<T> hq = moved(q, Place::host);
        std::vector<double> squares(2);
        for (std::int64_t row = 0; row < hx.rows(); ++row) {
            for (int j = 0; j < hx.width(); ++j) {
                Wide value(hx.view()(row, j));
                squares[1] += static_cast<double>(std::norm(value));
                for (int k = 0; k < hv.width(); ++k) {
                    value -= Wide(hv.view()(row, k)) * Wide(result.h(k, j));
                }
                for (int k = 0; k < hq.width(); ++k) {
                    value -= Wide(hq.view()(row, k)) * Wide(result.r(k, j));
                }
                squares[0] += static_cast<double>(std::norm(value));
            }
        }
        ctx.comm().sum(std::span<double>(squares));
        return std::sqrt(squares[0] / squares[1]);
    }
    /// The largest row sum of |R^-1| |R|.
    static double growth(const SmallMatrix<T>& r) {
        const SmallMatrix<T> inverse = inverse_of_upper(r);
        double most = 0;
        for (int i = 0; i < r.rows(); ++i) {
            double sum = 0;
            for (int k = i; k < r.rows(); ++k) {
                for (int j = k; j < r.cols(); ++j) {
                    sum += static_cast<double>(std::abs(inverse(i, k))) *
                           static_cast<double>(std::abs(r(k, j)));
                }
            }
            most = std::max(most, sum);
        }
        return most;
    }

    struct Outcome {
        OrthResult<T> result;
        double loss = 0;
        double on_v = 0;
    };
    /// Orthonormalises a copy of x; checks W - V h - Q r and shapes.
    Outcome check(OrthMethod method, const BlockVector<T>& x, const BlockVector<T>& v,
                  Projection projection = Projection::classical_twice) {
        SCOPED_TRACE(to_string(method));
        BlockVector<T> w = moved(x, ctx.place());
        OrthOptions options;
        options.replace_deficient = false;
        options.method = method;
        options.projection = projection;
        options.panel = 4;
        Outcome outcome;
        outcome.result = block_gram_schmidt<T>(ctx, x.row_map(), v.view(), w.view(), options);
        const OrthResult<T>& result = outcome.result;
        if (result.breakdown >= 0) {
            EXPECT_EQ(result.columns, 0);
            EXPECT_LT(result.breakdown, x.width());
            return outcome;
        }
        BlockVector<T> q(ctx, w.row_map(), result.columns);
        copy(ctx, w.columns(0, result.columns), q.view());
        outcome.loss = defect(q, q, true);
        outcome.on_v = defect(v, q, false);
        const double size = v.width() + w.width();
        const double allowed = keeps_residual(method) ? 100.0 : 10 * (1 + growth(result.r));
        EXPECT_LE(residual(x, v, q, result), allowed * size * eps);
        return outcome;
    }
    Outcome check(OrthMethod method, const BlockVector<T>& x) {
        return check(method, x, BlockVector<T>(ctx, x.row_map(), 0));
    }
    /// Checks the robust methods, which must reach machine precision.
    void check_robust(const BlockVector<T>& x, bool full_rank) {
        for (const OrthMethod method : all_methods) {
            if (!is_robust(method)) {
                continue;
            }
            const Outcome outcome = check(method, x);
            // Only some methods report a breakdown for a block without full rank.
            if (outcome.result.breakdown >= 0) {
                EXPECT_FALSE(full_rank) << to_string(method);
                EXPECT_TRUE(method == OrthMethod::mixed_cholesky_qr ||
                            method == OrthMethod::shifted_cholesky_qr3);
            } else {
                EXPECT_LE(outcome.loss, 10 * x.width() * eps) << to_string(method);
            }
        }
    }

    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};
TYPED_TEST_SUITE(OrthMethods, test::Scalars, test::ScalarName);

TYPED_TEST(OrthMethods, LossOfOrthogonalityFollowsTheTheory) {
    constexpr double eps = TestFixture::eps;
    constexpr int n = 8;
    const double unit = 10 * n * eps;
    for (double condition = 10; condition < 0.2 / eps; condition *= 31) {
        SCOPED_TRACE("condition " + std::to_string(condition));
        const auto x = this->with_condition(331, n, condition);
        for (const OrthMethod method : all_methods) {
            const auto outcome = this->check(method, x);
            const double squared = eps * condition * condition;
            if (is_robust(method)) {
                EXPECT_LT(outcome.result.breakdown, 0) << to_string(method);
                EXPECT_LE(outcome.loss, unit) << to_string(method);
            } else if (100 * squared < 1) {
                EXPECT_LT(outcome.result.breakdown, 0) << to_string(method);
                if (method == OrthMethod::cholesky_qr) {
                    EXPECT_LE(outcome.loss, unit + 10 * n * squared);
                    // Checks that the block is as ill-conditioned as intended.
                    EXPECT_GE(outcome.loss, 1e-3 * squared);
                } else {
                    EXPECT_LE(outcome.loss, unit);
                }
            } else if (method == OrthMethod::cholesky_qr && squared > 1e4) {
                EXPECT_TRUE(outcome.result.breakdown >= 0 || outcome.loss > unit)
                    << "better than it can be";
            } else if (method == OrthMethod::cholesky_qr2 && outcome.result.breakdown < 0) {
                // Beyond its limit Cholesky-QR2 must fail or, by chance, be accurate.
                EXPECT_LE(outcome.loss, unit);
            }
        }
    }
}

TYPED_TEST(OrthMethods, LaeuchliBlocks) {
    constexpr double eps = TestFixture::eps;
    for (const double tiny : {0.1, std::sqrt(eps) / 10, 100 * eps}) {
        const auto x = this->make(301, 6, [&](std::int64_t row, int col) {
            return row == 0 ? 1.0 : row == col + 1 ? tiny : 0.0;
        });
        this->check_robust(x, true);
        if (tiny < 0.01) {
            // 1 + tiny^2 is 1: the Gram matrix has rank one.
            for (const auto method : {OrthMethod::cholesky_qr, OrthMethod::cholesky_qr2}) {
                EXPECT_EQ(this->check(method, x).result.breakdown, 1) << to_string(method);
            }
        }
    }
}

TYPED_TEST(OrthMethods, HilbertLikeKrylovAndGluedBlocks) {
    constexpr double eps = TestFixture::eps;
    this->check_robust(this->make(251, 9,
                                  [](std::int64_t row, int col) {
                                      return 1.0 / static_cast<double>(row + col + 1);
                                  }),
                       sizeof(real_t<TypeParam>) == 8);
    // A Krylov block A^j v of a diagonal A: rows with large entries of A dominate.
    this->check_robust(this->make(251, 9,
                                  [](std::int64_t row, int col) {
                                      return std::pow(0.1 + static_cast<double>(row) / 251, col);
                                  }),
                       sizeof(real_t<TypeParam>) == 8);
    // Groups of nearly equal columns.
    this->check_robust(this->make(251, 9,
                                  [&](std::int64_t row, int col) {
                                      const double x = static_cast<double>(row + 1);
                                      const int group = 1 + col / 3;
                                      const double apart = 10 * std::sqrt(eps) * (col % 3);
                                      return std::sin(x * group) + apart * std::cos(x * x * col);
                                  }),
                       true);
}

TYPED_TEST(OrthMethods, RankIsRevealedOrTheFailureReported) {
    using T = TypeParam;
    const auto three = this->random_block(151, 3);
    BlockVector<T> x(this->ctx, three.row_map(), 7);
    gather_columns(this->ctx, three.view(), std::vector<int>{0, 1, 0, 2, 1, 1, 2}, x.view());
    this->check_robust(x, false);
    for (const OrthMethod method : {OrthMethod::robust, OrthMethod::svqb}) {
        EXPECT_EQ(this->check(method, x).result.rank, 3) << to_string(method);
        BlockVector<T> w = this->moved(x, this->ctx.place());
        OrthOptions options;
        options.method = method;
        const auto result =
            block_gram_schmidt<T>(this->ctx, w.row_map(), this->none(w), w.view(), options);
        EXPECT_EQ(result.rank, 3);
        EXPECT_EQ(result.columns, 7);
        EXPECT_LE(this->defect(w, w, true), 10 * 7 * TestFixture::eps);
    }
    // All methods that cannot continue with a column of zeros report it.
    fill(this->ctx, T(0), x.columns(1, 1));
    for (const OrthMethod method :
         {OrthMethod::cholesky_qr, OrthMethod::cholesky_qr2, OrthMethod::shifted_cholesky_qr3,
          OrthMethod::mixed_cholesky_qr}) {
        EXPECT_EQ(this->check(method, x).result.breakdown, 1) << to_string(method);
    }
}

TYPED_TEST(OrthMethods, AgainstABasis) {
    using T = TypeParam;
    constexpr double eps = TestFixture::eps;
    const auto v = this->orthonormal(271, 9);
    for (const double near : {1.0, 30 * std::sqrt(eps)}) {
        // The projection leaves about the fraction `near` of the block.
        auto x = this->with_condition(271, 6, 8);
        SmallMatrix<T> c(9, 6);
        for (int i = 0; i < 54; ++i) {
            c.data()[i] = test::random_value<T>(this->random);
        }
        tsmm(this->ctx, T(1), v.view(), c.view(), T(static_cast<real_t<T>>(near)), x.view());
        for (const OrthMethod method : all_methods) {
            for (const auto projection :
                 {Projection::classical_once, Projection::classical_twice, Projection::modified}) {
                const auto outcome = this->check(method, x, v, projection);
                ASSERT_LT(outcome.result.breakdown, 0) << to_string(method);
                const double unit = 10 * 15 * eps;
                const bool twice = projection == Projection::classical_twice;
                EXPECT_LE(outcome.on_v, twice ? unit : 10 * 8 * unit / near)
                    << to_string(method) << ' ' << to_string(projection) << ' ' << near;
                EXPECT_LE(outcome.loss,
                          method == OrthMethod::cholesky_qr && !twice ? 100 * unit : unit)
                    << to_string(method) << ' ' << to_string(projection);
            }
        }
    }
}

TYPED_TEST(OrthMethods, ABasisMadeBlockByBlock) {
    using T = TypeParam;
    constexpr double eps = TestFixture::eps;
    constexpr int n = 12;
    const double condition = 0.03 / std::sqrt(eps);
    const auto x = this->with_condition(301, n, condition);
    const auto build = [&](Projection projection) {
        BlockVector<T> basis = this->moved(x, this->ctx.place());
        for (int first = 0; first < n; first += 3) {
            OrthOptions options;
            options.method = OrthMethod::tsqr;
            options.projection = projection;
            options.panel = 3;
            block_gram_schmidt<T>(this->ctx, basis.row_map(),
                                  std::as_const(basis).columns(0, first), basis.columns(first, 3),
                                  options);
        }
        return this->defect(basis, basis, true);
    };
    EXPECT_LE(build(Projection::classical_twice), 10 * n * eps);
    EXPECT_LE(build(Projection::modified), 10 * n * eps * condition);
    EXPECT_LE(build(Projection::classical_once), 10 * n * eps * condition * condition);
}

TYPED_TEST(OrthMethods, AllReducesAreAsDocumented) {
    using T = TypeParam;
    const int others = this->ctx.comm().size() > 1 ? 1 : 0;
    struct Row {
        OrthMethod method;
        int alone, once, twice;
    };
    // For 13 columns, panels of 4 need three more all-reduces than one projection.
    for (const Row& row :
         {Row{OrthMethod::robust, 2, 3, 4}, Row{OrthMethod::cholesky_qr, 1, 2, 4},
          Row{OrthMethod::cholesky_qr2, 2, 3, 4}, Row{OrthMethod::shifted_cholesky_qr3, 2, 3, 4},
          Row{OrthMethod::svqb, 2, 3, 4}, Row{OrthMethod::tsqr, 0, 1, 3},
          Row{OrthMethod::mixed_cholesky_qr, 2, 3, 4}}) {
        const auto count = [&](int p, Projection projection, double condition) {
            const auto v = this->orthonormal(311, p);
            auto w = this->with_condition(311, 5, condition);
            OrthOptions options;
            options.method = row.method;
            options.projection = projection;
            options.panel = 4;
            all_reduces = 0;
            block_gram_schmidt<T>(this->ctx, w.row_map(), v.view(), w.view(), options);
            return all_reduces.load();
        };
        SCOPED_TRACE(to_string(row.method));
        EXPECT_EQ(count(0, Projection::classical_twice, 3), others * row.alone);
        EXPECT_EQ(count(13, Projection::classical_once, 3), others * row.once);
        EXPECT_EQ(count(13, Projection::classical_twice, 3), others * row.twice);
        EXPECT_EQ(count(13, Projection::modified, 3), others * (row.once + 3));
        if (row.method == OrthMethod::shifted_cholesky_qr3) {
            const double condition = 100 / std::sqrt(TestFixture::eps);
            EXPECT_EQ(count(0, Projection::classical_twice, condition), others * 3);
        }
    }
}

TYPED_TEST(OrthMethods, InTheInnerProductOfB) {
    using T = TypeParam;
    std::vector<double> values(211);
    for (double& value : values) {
        value = std::uniform_real_distribution<double>(0.1, 10)(this->random);
    }
    auto b = test::diagonal<T>(this->ctx, values);
    const InnerProduct<T> inner = inner_product<T>(this->ctx, &b);
    for (const OrthMethod method : all_methods) {
        BlockVector<T> w(this->ctx, b.row_map(), 5);
        fill_random(this->ctx, this->random(), w);
        OrthOptions options;
        options.method = method;
        if (method == OrthMethod::tsqr || method == OrthMethod::mixed_cholesky_qr) {
            EXPECT_THROW(
                block_gram_schmidt<T>(this->ctx, w.row_map(), inner, {}, {}, w.view(), {}, options),
                UnsupportedError);
            continue;
        }
        const auto result =
            block_gram_schmidt<T>(this->ctx, w.row_map(), inner, {}, {}, w.view(), {}, options);
        ASSERT_EQ(result.columns, 5);
        BlockVector<T> bw(this->ctx, b.row_map(), 5);
        b.apply(this->ctx, std::as_const(w).view(), bw.view());
        EXPECT_LE(this->defect(w, bw, true), 10 * 5 * 100 * TestFixture::eps) << to_string(method);
    }
}

TYPED_TEST(OrthMethods, TsqrOfAnyRowsByEitherLocalMethod) {
    using T = TypeParam;
    constexpr double eps = TestFixture::eps;
    for (const auto local : {LocalQr::householder, LocalQr::products}) {
        if (local == LocalQr::householder && this->ctx.place() == Place::device) {
            continue;
        }
        for (const auto& [rows, n] : {std::pair{7, 5}, {40, 12}, {301, 1}, {20011, 9}}) {
            SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(n));
            auto x =
                n == 1 ? this->random_block(rows, n) : this->with_condition(rows, n, 0.01 / eps);
            if (n == 9) {
                // Without full rank.
                gather_columns(this->ctx, x.view(), std::vector<int>{0, 1, 0, 3, 1, 5, 6, 7, 0},
                               x.view());
            }
            BlockVector<T> q = this->moved(x, this->ctx.place());
            OrthResult<T> result;
            result.r = tsqr(this->ctx, q.view(), local);
            EXPECT_LE(this->defect(q, q, true), 10 * n * eps);
            // Products drop directions below the noise, as block Gram-Schmidt does.
            EXPECT_LE(this->residual(x, BlockVector<T>(this->ctx, x.row_map(), 0), q, result),
                      (local == LocalQr::products ? 100 : 10) * n * eps);
            for (int i = 0; i < n; ++i) {
                EXPECT_GE(std::real(result.r(i, i)), 0);
                for (int j = 0; j < i; ++j) {
                    EXPECT_EQ(result.r(i, j), T(0));
                }
            }
            // The same bits on all ranks, and in a second call.
            SmallMatrix<T> other = result.r;
            this->ctx.comm().broadcast(other.data(), static_cast<std::size_t>(n * n) * sizeof(T),
                                       0);
            BlockVector<T> again = this->moved(x, this->ctx.place());
            const SmallMatrix<T> second = tsqr(this->ctx, again.view(), local);
            for (int i = 0; i < n * n; ++i) {
                EXPECT_TRUE(test::same_bits(other.data()[i], result.r.data()[i]));
                EXPECT_TRUE(test::same_bits(second.data()[i], result.r.data()[i]));
            }
        }
    }
}

TYPED_TEST(OrthMethods, NaNIsReportedByAllMethodsOnAllRanks) {
    using T = TypeParam;
    const auto v = this->orthonormal(91, 2);
    for (const OrthMethod method : all_methods) {
        const auto x = this->make(91, 3, [](std::int64_t row, int col) {
            return row == 5 && col == 1 ? std::nan("") : static_cast<double>(row % (col + 2));
        });
        for (const int p : {0, 2}) {
            BlockVector<T> w = this->moved(x, this->ctx.place());
            OrthOptions options;
            options.method = method;
            try {
                block_gram_schmidt<T>(this->ctx, w.row_map(), v.columns(0, p), w.view(), options);
                FAIL() << to_string(method) << " accepted NaN";
            } catch (const NumericalError& error) {
                EXPECT_TRUE(error.collective());
            }
        }
    }
}

}  // namespace
}  // namespace quiver

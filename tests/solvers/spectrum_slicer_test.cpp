// SPDX-License-Identifier: BSD-3-Clause
// The slices of shift-invert, with factorisations whose errors are known.
#include "solvers/eigen/shift_invert/spectrum_slicer.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/shift_invert/common_null_vectors.hpp"
#include "solvers/eigen/shift_invert/factorisation.hpp"
#include "tests/solvers/dense_rows.hpp"
#include "tests/solvers/factorisation_checks.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::as_oracle;
using test::DenseRows;

/// SparseLdlt, with errors: solves with several columns add `size` times the norm of a column to
/// its first entry, at every shift or only at the first one. With bases that grow by one column,
/// the Ritz values are right but the vectors are not.
template <class W>
class ContaminatedFactorisation final : public Factorisation<W> {
  public:
    ContaminatedFactorisation(double size, bool everywhere)
        : size_(size), everywhere_(everywhere) {}
    FactorFacts factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) override {
        sigma_ = sigma;
        FactorFacts facts = ldlt_.factor(a, b, sigma);
        facts.error = 0;  // else iterative refinement would remove the error
        return facts;
    }
    void solve(BlockView<W> x) override {
        ldlt_.solve(x);
        if (x.cols == 1) {
            return;
        }
        first_ = first_.value_or(sigma_);
        if (!everywhere_ && sigma_ != *first_) {
            return;
        }
        for (int j = 0; j < x.cols; ++j) {
            double square = 0;
            for (std::int64_t i = 0; i < x.rows; ++i) {
                square += std::norm(x.data[i * x.ld + j]);
            }
            x.data[j] += W(size_ * std::sqrt(square));
        }
    }
    bool has_contaminated() const { return first_.has_value(); }

  private:
    LdltFactorisation<W> ldlt_;
    double size_;
    bool everywhere_;
    double sigma_ = 0;
    std::optional<double> first_;
};

template <class W>
class SpectrumSlicerTest : public ::testing::Test {
  protected:
    static constexpr int n = 80;

    /// The largest ||A x - lambda B x|| / (||x|| (||A|| + |lambda| ||B||)) of the pairs found.
    static double worst_residual(const DenseRows<W>& a, const DenseRows<W>* b,
                                 const SpectrumSlicer<W>& slicer, double norm, double norm_b) {
        const Eigen::MatrixXcd left = as_oracle(a);
        const Eigen::MatrixXcd right = b != nullptr ? as_oracle(*b) : Eigen::MatrixXcd();
        double worst = 0;
        std::size_t at = 0;
        for (const BlockVector<W>& part : slicer.vectors()) {
            for (int j = 0; j < part.width(); ++j, ++at) {
                const BlockView<const W> column = part.columns(j, 1);
                Eigen::MatrixXcd x(n, 1);
                for (int i = 0; i < n; ++i) {
                    x(i, 0) = column.data[i * column.ld];
                }
                const double value = slicer.values()[at];
                const Eigen::MatrixXcd bx = b != nullptr ? test::oracle::product(right, x) : x;
                const double length = (test::oracle::product(left, x) - value * bx).norm();
                worst = std::max(worst, length / x.norm() / (norm + std::abs(value) * norm_b));
            }
        }
        return worst;
    }

    std::mt19937_64 random = test::make_generator();
};
using Wides = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(SpectrumSlicerTest, Wides);

/// The residual in the inverted spectrum says nothing about an error of the last solve. The pairs
/// of the first shift inside the window are left to other shifts.
TYPED_TEST(SpectrumSlicerTest, PairsWithLargeResidualsAreLeftToAnotherShift) {
    using W = TypeParam;
    constexpr int n = TestFixture::n;
    for (const bool with_b : {false, true}) {
        const DenseRows<W> a = test::random_matrix<W>(this->random, n, 2, false);
        const DenseRows<W> b = test::random_matrix<W>(this->random, n, 1, true);
        const Eigen::VectorXd exact = with_b ? test::oracle::eigenvalues(as_oracle(a), as_oracle(b))
                                             : test::oracle::eigenvalues(as_oracle(a));
        const double low = exact[n / 2] - 1e-3;
        const double high = exact[n / 2 + 9] + 1e-3;
        ContaminatedFactorisation<W> factorisation(1e-6, false);
        ShiftedPencil<W> pencil(1, test::rows_of(a),
                                with_b ? std::optional(test::rows_of(b)) : std::nullopt,
                                factorisation);
        SlicerOptions options;
        options.block = 1;
        SpectrumSlicer<W> slicer(pencil, options);
        EXPECT_TRUE(slicer.find_between(low, high)) << slicer.message();
        EXPECT_TRUE(factorisation.has_contaminated());
        std::vector<double> found;
        for (const double value : slicer.values()) {
            if (low <= value && value <= high) {
                found.push_back(value);
            }
        }
        std::sort(found.begin(), found.end());
        ASSERT_EQ(found.size(), 10u);
        for (int j = 0; j < 10; ++j) {
            EXPECT_NEAR(found[static_cast<std::size_t>(j)], exact[n / 2 + j], 1e-12);
        }
        EXPECT_LE(
            this->worst_residual(a, with_b ? &b : nullptr, slicer, pencil.norm(), pencil.norm_b()),
            options.tolerance);
    }
}

/// If every shift has this error, the search ends all the same, with the right values.
TYPED_TEST(SpectrumSlicerTest, ResidualsThatNoShiftImprovesEndTheSearch) {
    using W = TypeParam;
    constexpr int n = TestFixture::n;
    const DenseRows<W> a = test::random_matrix<W>(this->random, n, 2, false);
    const Eigen::VectorXd exact = test::oracle::eigenvalues(as_oracle(a));
    ContaminatedFactorisation<W> factorisation(1e-8, true);
    ShiftedPencil<W> pencil(1, test::rows_of(a), std::nullopt, factorisation);
    SlicerOptions options;
    options.block = 1;
    SpectrumSlicer<W> slicer(pencil, options);
    EXPECT_TRUE(slicer.find_between(exact[20] - 1e-3, exact[29] + 1e-3)) << slicer.message();
    EXPECT_GE(slicer.values().size(), 10u);
    EXPECT_GT(this->worst_residual(a, nullptr, slicer, pencil.norm(), 1), options.tolerance);
    EXPECT_LE(pencil.factorisations(), 60);
}

/// M - V (V^H M): for a Hermitian M projected onto the complement of orthonormal V.
Eigen::MatrixXcd without(const Eigen::MatrixXcd& v, const Eigen::MatrixXcd& m) {
    return m - test::oracle::product(v, test::oracle::product(Eigen::MatrixXcd(v.adjoint()), m));
}

/// P M P for the projector P onto the complement of the orthonormal columns of V.
template <class W>
DenseRows<W> projected(const DenseRows<W>& m, const Eigen::MatrixXcd& v) {
    const Eigen::MatrixXcd once = without(v, as_oracle(m));
    const Eigen::MatrixXcd twice = without(v, Eigen::MatrixXcd(once.adjoint()));
    DenseRows<W> result = m;
    for (std::size_t i = 0; i < m.size(); ++i) {
        for (std::size_t j = 0; j < m.size(); ++j) {
            const std::complex<double> value =
                0.5 *
                (twice(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) +
                 std::conj(twice(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(i))));
            if constexpr (is_complex_v<W>) {
                result[i][j] = value;
            } else {
                result[i][j] = value.real();
            }
        }
    }
    return result;
}

template <class W>
CommonNullVectors null_vectors_of(const DenseRows<W>& a, const DenseRows<W>& b) {
    LdltFactorisation<W> unused;
    ShiftedPencil<W> pencil(1, test::rows_of(a), test::rows_of(b), unused);
    return find_common_null_vectors<W>(
        pencil, 0, [](const CsrRows<W>&) { return std::make_unique<LdltFactorisation<W>>(); });
}

/// A and B are singular on more than the common null vectors, which are found by their number. With
/// the diagonal entries that are named, B leaves none.
TYPED_TEST(SpectrumSlicerTest, CommonNullVectorsAreFoundAndCured) {
    using W = TypeParam;
    constexpr std::size_t n = TestFixture::n;
    for (const int common : {0, 1, 3, 8}) {
        SCOPED_TRACE(common);
        // Eigenvectors of a random matrix: 2 of A alone, 2 of B alone, the others of both.
        const Eigen::MatrixXcd q =
            test::oracle::eigenpairs(as_oracle(test::random_matrix<W>(this->random, n, 2, false)))
                .vectors;
        const DenseRows<W> m = test::random_matrix<W>(this->random, n, 3, false);
        const DenseRows<W> s = test::random_matrix<W>(this->random, n, 3, true);
        Eigen::MatrixXcd in_a(q.rows(), common + 2);
        Eigen::MatrixXcd in_b(q.rows(), common + 2);
        in_a << q.leftCols(common), q.middleCols(10, 2);
        in_b << q.leftCols(common), q.middleCols(20, 2);
        const DenseRows<W> a = projected(m, in_a);
        DenseRows<W> b = projected(s, in_b);
        const CommonNullVectors found = null_vectors_of(a, b);
        EXPECT_EQ(found.count, common);
        EXPECT_EQ(found.at_least, common == 8);
        EXPECT_LE(std::max(found.a, found.b), 1e-13);
        EXPECT_EQ(found.words().empty(), common == 0);
        ASSERT_EQ(found.rows.size(), static_cast<std::size_t>(common));
        for (const std::int64_t row : found.rows) {
            b[static_cast<std::size_t>(row)][static_cast<std::size_t>(row)] += 1;
        }
        EXPECT_EQ(null_vectors_of(a, b).count, 0);
    }
}

/// Known eigenvectors that are called far are found again neither if they are nearest the shift,
/// where the basis notices and projects them out of every step, nor if they are farthest from it.
TYPED_TEST(SpectrumSlicerTest, FarVectorsAreNotFoundAgain) {
    using W = TypeParam;
    constexpr int n = 60;
    constexpr int known = 6;
    for (const bool with_b : {false, true}) {
        for (const bool nearest : {false, true}) {
            DenseRows<W> a(n, std::vector<W>(n));
            DenseRows<W> b(n, std::vector<W>(n));
            for (std::size_t i = 0; i < n; ++i) {
                b[i][i] = W(with_b ? 1 + 0.1 * static_cast<double>(i % 7) : 1);
                a[i][i] = b[i][i] * W(static_cast<double>(i));
            }
            LdltFactorisation<W> factorisation;
            ShiftedPencil<W> pencil(
                1, test::rows_of(a),
                with_b ? std::optional(test::rows_of(b)) : std::optional<CsrRows<W>>(),
                factorisation);
            const ShiftedFactor factor = pencil.factor(-0.3);
            std::vector<BlockVector<W>> vectors;
            vectors.emplace_back(pencil.ctx(), pencil.map(), known);
            const BlockView<W> x = vectors[0].view();
            fill(pencil.ctx(), W(0), x);
            for (int j = 0; j < known; ++j) {
                const int row = nearest ? j : n - 1 - j;
                const auto at = static_cast<std::size_t>(row);
                x.data[row * x.ld + j] = W(1) / std::sqrt(b[at][at]);
            }
            InverseLanczos<W> lanczos(pencil, factor, vectors, known, 2, 40, 1);
            const std::vector<InversePair>& pairs = lanczos.fill_basis();
            for (int j = 0; j < 3; ++j) {
                const double value = factor.sigma + 1 / pairs[static_cast<std::size_t>(j)].theta;
                EXPECT_NEAR(value, j + (nearest ? known : 0), 1e-10) << with_b << nearest;
            }
        }
    }
}

/// Both ends meet inside the spectrum, or have all of it; copies lie on both sides.
TEST(ShiftInvert, BothEndsOfALatticeHaveAllCopies) {
    Context ctx = test::make_context();
    const std::vector<double> exact = test::laplace3d_spectrum(7, 7, 6);
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 7, 7, 6);
    const int n = static_cast<int>(exact.size());
    for (const int k : {60, 160, n - 9, n}) {
        EigenOptions options;
        options.method = Method::shift_invert;
        options.which = Which::both_ends;
        options.k = k;
        const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.multiplicity, Multiplicity::verified);
        ASSERT_EQ(result.eigenvalues.size(), static_cast<std::size_t>(k));
        for (int j = 0; j < k; ++j) {
            const int at = j < k / 2 ? j : n - k + j;
            EXPECT_NEAR(result.eigenvalues[static_cast<std::size_t>(j)],
                        exact[static_cast<std::size_t>(at)], 1e-12)
                << k << ' ' << j;
        }
        const BlockView<const double> x = result.vectors.view();
        SmallMatrix<double> gram(k, k);
        tsmttsm(ctx, 1.0, x, x, 0.0, gram);
        for (int i = 0; i < k; ++i) {
            for (int j = 0; j <= i; ++j) {
                EXPECT_NEAR(gram(i, j), i == j ? 1 : 0, 1e-12) << k;
            }
        }
    }
}

/// Rings whose number exceeds the pairs that the search may find beyond the wanted ones. The wanted
/// set ends inside a multiplet; without pivoting, all shifts near it have small pivots and move.
TEST(SpectrumSlicer, ASetThatEndsInsideOfAMultipletTakesFewFactorisations) {
    Context ctx = test::make_context();
    constexpr int copies = 12;
    constexpr int length = 40;
    SparseMatrix<double> a = test::matrix_from_rows<double>(
        ctx, copies * length, [](std::int64_t row, RowEntries<double>& entries) {
            const std::int64_t ring = row / length * length;
            entries.add(row, 2);
            entries.add(ring + (row + 1) % length, -1);
            entries.add(ring + (row + length - 1) % length, -1);
        });
    EigenOptions options;
    options.k = copies + 1;
    options.method = Method::shift_invert;
    const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.multiplicity, Multiplicity::verified);
    EXPECT_TRUE(result.cluster_cut);
    EXPECT_LT(result.iterations, 1000);
    ASSERT_EQ(result.eigenvalues.size(), static_cast<std::size_t>(copies) + 1);
    for (int j = 0; j < copies; ++j) {
        EXPECT_NEAR(result.eigenvalues[static_cast<std::size_t>(j)], 0, 1e-12);
    }
    EXPECT_NEAR(result.eigenvalues.back(), 2 - 2 * std::cos(2 * std::numbers::pi / length), 1e-12);
}

/// SparseLdlt that counts an eigenvalue too many from the second shift on, and that has no factors
/// from the third one on.
class FailingFactorisation final : public Factorisation<double> {
  public:
    FactorFacts factor(const CsrRows<double>& a, const CsrRows<double>* b, double sigma) override {
        FactorFacts facts = ldlt_.factor(a, b, sigma);
        ++shifts_;
        has_factors_ = facts.complete && shifts_ < 3;
        if (!has_factors_) {
            return {};
        }
        facts.below += shifts_ > 1 ? 1 : 0;
        return facts;
    }
    void solve(BlockView<double> x) override {
        solves_without_factors_ += has_factors_ ? 0 : 1;
        ldlt_.solve(x);
    }
    int shifts() const { return shifts_; }
    int solves_without_factors() const { return solves_without_factors_; }

  private:
    LdltFactorisation<double> ldlt_;
    int shifts_ = 0;
    int solves_without_factors_ = 0;
    bool has_factors_ = false;
};

/// The slicer looks for an eigenvalue that does not exist, and no shift has factors. The search
/// then ends; solves with factors that are not there would read any memory.
TEST(SpectrumSlicer, NoSolveFollowsAFailedFactorisation) {
    std::mt19937_64 random = test::make_generator();
    for (int trial = 0; trial < 10; ++trial) {
        Context ctx = test::make_context();
        const int n = std::uniform_int_distribution<int>(20, 60)(random);
        SCOPED_TRACE("trial " + std::to_string(trial) + ", " + std::to_string(n) + " rows");
        const CsrRows<double> rows = test::rows_of(test::random_matrix<double>(random, n, 2, true));
        FailingFactorisation factorisation;
        ShiftedPencil<double> pencil(1, rows, std::nullopt, factorisation);
        SpectrumSlicer<double> slicer(pencil, SlicerOptions{});
        EXPECT_FALSE(slicer.find_smallest(3));
        EXPECT_GE(factorisation.shifts(), 3);
        EXPECT_EQ(factorisation.solves_without_factors(), 0);
        EXPECT_NE(slicer.message(), "");
    }
}

}  // namespace
}  // namespace quiver

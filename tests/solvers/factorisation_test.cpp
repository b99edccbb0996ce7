// SPDX-License-Identifier: BSD-3-Clause
// The factorisations of shift-invert: SparseLdlt, and MUMPS on one rank and on all ranks. The
// inertia of A - sigma B, also if it is singular or nearly singular, is compared with dense
// spectra.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/shift_invert/cudss.hpp"
#include "solvers/eigen/shift_invert/mumps_factorisation.hpp"
#include "solvers/eigen/shift_invert/shifted_pencil.hpp"
#include "tests/solvers/factorisation_checks.hpp"
#include "tests/support/address_space_limit.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::as_oracle;
using test::backward_bound;
using test::backward_error;
using test::DenseRows;
using test::random_rows;
using test::rows_of;

enum class Library { ldlt, mumps, mumps_on_all_ranks };

template <class W>
class FactorisationTest : public ::testing::Test {
  protected:
    /// Runs work(factorisation) on every rank by itself. Exception: with mumps_on_all_ranks only
    /// rank 0 runs it, and the other ranks take part in its factorisations.
    template <class F>
    void run(Library library, const CsrRows<W>& a, const CsrRows<W>* b, F&& work) {
        if (library == Library::ldlt) {
            LdltFactorisation<W> ldlt;
            work(ldlt);
            return;
        }
        const Comm comm = library == Library::mumps ? Comm() : ctx.comm();
        constexpr int end = 0;
        const auto announce = [&](int job) { comm.broadcast(&job, sizeof(job), 0); };
        MumpsFactorisation<W> mumps(comm, 1, a, b, announce);
        if (comm.rank() == 0) {
            work(mumps);
            announce(end);
            return;
        }
        for (int job = end;;) {
            comm.broadcast(&job, sizeof(job), 0);
            if (job == end) {
                return;
            }
            mumps.follow(job);
        }
    }
    std::vector<Library> libraries() {
        return mumps_is_available(ctx.comm())
                   ? std::vector{Library::ldlt, Library::mumps, Library::mumps_on_all_ranks}
                   : std::vector{Library::ldlt};
    }

    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};
using Wides = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(FactorisationTest, Wides);

TYPED_TEST(FactorisationTest, InertiaAndSolvesOfIndefiniteMatrices) {
    using W = TypeParam;
    std::uniform_real_distribution<double> uniform(-2, 2);
    for (const int n : {1, 2, 5, 31, 90}) {
        for (const bool with_b : {false, true}) {
            const DenseRows<W> a = random_rows<W>(this->random, n, 4.0 / n, 0);
            const DenseRows<W> b = random_rows<W>(this->random, n, 1.0 / n, n);
            const Eigen::VectorXd spectrum =
                with_b ? test::oracle::eigenvalues(as_oracle(a), as_oracle(b))
                       : test::oracle::eigenvalues(as_oracle(a));
            std::vector<double> shifts{spectrum(0) - 1, spectrum(n - 1) + 1};
            for (int i = 0; i < 4; ++i) {
                shifts.push_back(uniform(this->random) / (with_b ? n : 1));
            }
            // Near an eigenvalue, on both sides.
            const double middle = spectrum(n / 2);
            for (const double distance : {1e-6, 1e-10, 1e-12}) {
                shifts.push_back(middle - distance);
                shifts.push_back(middle + distance);
            }
            const CsrRows<W> left = rows_of(a);
            const CsrRows<W> right = rows_of(b);
            for (const Library library : this->libraries()) {
                this->run(library, left, with_b ? &right : nullptr, [&](Factorisation<W>& solver) {
                    const int step = library == Library::mumps_on_all_ranks ? test::case_step() : 1;
                    for (std::size_t i = 0; i < shifts.size();
                         i += static_cast<std::size_t>(step)) {
                        const double sigma = shifts[i];
                        SCOPED_TRACE(std::to_string(static_cast<int>(library)) + ": " +
                                     std::to_string(n) + " rows, shift " + std::to_string(sigma));
                        const FactorFacts facts =
                            solver.factor(left, with_b ? &right : nullptr, sigma);
                        ASSERT_TRUE(facts.complete);
                        EXPECT_EQ(facts.zero, 0);
                        const auto below = std::count_if(spectrum.begin(), spectrum.end(),
                                                         [&](double v) { return v < sigma; });
                        if (library != Library::ldlt || *facts.error < 1e-13) {
                            EXPECT_EQ(facts.below, below);
                        }
                        if (library != Library::ldlt) {
                            EXPECT_LE(backward_error<W>(solver, a, with_b ? &b : nullptr, sigma,
                                                        this->random),
                                      backward_bound(a.size()));
                        }
                    }
                });
            }
        }
    }
}

/// A matrix with a zero diagonal needs 2 x 2 pivots: [0 C; C^H 0] has as many negative as positive
/// eigenvalues.
TYPED_TEST(FactorisationTest, MumpsPivots) {
    using W = TypeParam;
    if (!mumps_is_available(this->ctx.comm())) {
        GTEST_SKIP() << "no MUMPS";
    }
    const int half = 40;
    DenseRows<W> a = random_rows<W>(this->random, 2 * half, 0.2, 0);
    for (std::size_t i = 0; i < half; ++i) {
        for (std::size_t j = 0; j < half; ++j) {
            a[i][j] = a[half + i][half + j] = 0;
        }
        a[i][half + i] = a[half + i][i] = 5;
    }
    const CsrRows<W> rows = rows_of(a);
    for (const Library library : {Library::mumps, Library::mumps_on_all_ranks}) {
        this->run(library, rows, nullptr, [&](Factorisation<W>& solver) {
            const FactorFacts facts = solver.factor(rows, nullptr, 0);
            EXPECT_TRUE(facts.complete);
            EXPECT_EQ(facts.below, half);
            EXPECT_EQ(facts.zero, 0);
            EXPECT_LE(backward_error<W>(solver, a, nullptr, 0, this->random),
                      backward_bound(a.size()));
        });
    }
    if (this->ctx.comm().rank() == 0) {
        this->run(Library::ldlt, rows, nullptr, [&](Factorisation<W>& solver) {
            EXPECT_FALSE(solver.factor(rows, nullptr, 0).complete);
        });
    }
}

/// The Laplacian of a graph of separate paths has one eigenvalue 0 for each path.
TYPED_TEST(FactorisationTest, MumpsCountsZeros) {
    using W = TypeParam;
    if (!mumps_is_available(this->ctx.comm())) {
        GTEST_SKIP() << "no MUMPS";
    }
    for (const std::size_t copies : {1U, 3U, 8U}) {
        const DenseRows<W> a = test::disjoint_paths<W>(copies, 7);
        const CsrRows<W> rows = rows_of(a);
        for (const Library library : {Library::mumps, Library::mumps_on_all_ranks}) {
            this->run(library, rows, nullptr, [&](Factorisation<W>& solver) {
                const FactorFacts singular = solver.factor(rows, nullptr, 0);
                EXPECT_TRUE(singular.complete);
                EXPECT_EQ(singular.zero, static_cast<std::int64_t>(copies));
                EXPECT_EQ(singular.below, 0);
                EXPECT_FALSE(singular.is_positive_definite());
                EXPECT_EQ(solver.factor(rows, nullptr, 1e-9).below,
                          static_cast<std::int64_t>(copies));
                EXPECT_TRUE(solver.factor(rows, nullptr, -1e-9).is_positive_definite());
            });
        }
    }
    const CsrRows<W> zero = rows_of(DenseRows<W>(5, std::vector<W>(5)));
    this->run(Library::mumps, zero, nullptr, [&](Factorisation<W>& solver) {
        EXPECT_FALSE(solver.factor(zero, nullptr, 0).is_positive_definite());
        EXPECT_TRUE(solver.factor(zero, nullptr, -2).is_positive_definite());
    });
}

/// ShiftedPencil bounds the error of a count; with MUMPS, which pivots, it also moves a shift away
/// from an eigenvalue, by more than that error.
TYPED_TEST(FactorisationTest, AShiftAtAnEigenvalueMoves) {
    using W = TypeParam;
    const int n = 60;
    const DenseRows<W> a = random_rows<W>(this->random, n, 0.1, 0);
    const Eigen::VectorXd spectrum = test::oracle::eigenvalues(as_oracle(a));
    const double norm = std::max(-spectrum(0), spectrum(n - 1));
    const CsrRows<W> rows = rows_of(a);
    for (const Library library : this->libraries()) {
        if (library == Library::mumps_on_all_ranks && this->ctx.comm().size() == 1) {
            continue;
        }
        this->run(library, rows, nullptr, [&](Factorisation<W>& solver) {
            ShiftedPencil<W> pencil(1, rows, std::nullopt, solver);
            const ShiftedFactor clear = pencil.factor(spectrum(0) - norm);
            EXPECT_EQ(clear.below, 0);
            EXPECT_LT(clear.error, 1e-12 * norm);
            EXPECT_EQ(pencil.largest_move(), 0);
            for (const int j : {0, 17, n - 1}) {
                const ShiftedFactor factor = pencil.factor(spectrum(j));
                EXPECT_TRUE(factor.complete);
                // Without pivoting, the best attempt may have an error of any size.
                EXPECT_LT(factor.error, (library == Library::ldlt ? 1 : 1e-10) * norm) << j;
                const double distance = std::abs(factor.sigma - spectrum(j));
                if (library != Library::ldlt) {
                    const double oracle_error = 1e-14 * norm;
                    EXPECT_GT(distance + oracle_error, factor.error) << j;
                }
                if (distance > factor.error) {
                    EXPECT_EQ(factor.below, j + (factor.sigma > spectrum(j) ? 1 : 0));
                }
            }
            if (library != Library::ldlt) {
                EXPECT_GT(pencil.largest_move(), 0);
            }
        });
    }
}

/// The bound of the error is not finite if an entry of the factors is NaN, also where rows without
/// NaN follow.
TEST(Factorisation, NanInTheFactorsIsNotHidden) {
    // Pivots 1e-300, -inf and NaN in a block of few entries, which is eliminated first; then a full
    // block.
    constexpr std::size_t full = 8;
    DenseRows<double> a(3 + full, std::vector<double>(3 + full));
    a[0][0] = 1e-300;
    a[0][1] = a[1][0] = a[0][2] = a[2][0] = a[1][2] = a[2][1] = 1e300;
    a[1][1] = a[2][2] = 1;
    for (std::size_t i = 3; i < 3 + full; ++i) {
        for (std::size_t j = 3; j < 3 + full; ++j) {
            a[i][j] = i == j ? 10 : 1;
        }
    }
    const SparseLdlt<double> factors(rows_of(a), nullptr, 0);
    const std::vector<double> pivots = factors.pivots();
    ASSERT_TRUE(std::any_of(pivots.begin(), pivots.end(), [](double d) { return std::isnan(d); }));
    ASSERT_FALSE(std::isnan(pivots.back()));
    EXPECT_TRUE(std::isnan(factors.error())) << factors.error();
}

/// 52,900 rows: the eigenvalues nearest a target, including copies.
TEST(Factorisation, MumpsOrCudssTakesMoreThan50000Rows) {
    Context ctx = test::make_context();
    constexpr int nx = 230;
    SparseMatrix<double> a = test::laplace3d<double>(ctx, nx, nx, 1);
    EigenOptions options;
    options.method = Method::shift_invert;
    options.which = Which::target;
    options.target = 2.5;
    options.k = 7;
    if (!mumps_is_available(ctx.comm()) && !cudss_is_available(ctx)) {
        EXPECT_THROW(eigensolve(ctx, EigenProblem<double>{a}, options), InputError);
        return;
    }
    std::vector<double> spectrum = test::laplace3d_spectrum(nx, nx, 1);
    const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.multiplicity, Multiplicity::verified);
    std::sort(spectrum.begin(), spectrum.end(), [&](double x, double y) {
        return std::abs(x - options.target) < std::abs(y - options.target);
    });
    spectrum.resize(7);
    std::sort(spectrum.begin(), spectrum.end());
    ASSERT_EQ(result.eigenvalues.size(), 7U);
    for (std::size_t j = 0; j < 7; ++j) {
        EXPECT_NEAR(result.eigenvalues[j], spectrum[j], 1e-12) << j;
        EXPECT_LE(result.residuals[j], 1e-11);
    }
}

/// Before a factorisation, the memory that the analysis predicts is compared with the free memory.
TEST(Factorisation, FactorsThatDoNotFitAreRefused) {
    Context ctx = test::make_context();
    if (!mumps_is_available(ctx.comm()) || ctx.comm().size() > 1 || ctx.place() != Place::host ||
        test::address_space_is_vast) {
        GTEST_SKIP() << "needs MUMPS, one rank on the host and a limit of the address space";
    }
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 40, 40, 40);
    EigenOptions options;
    options.which = Which::target;
    options.target = 6.1;
    options.k = 3;
    // The solve needs 60 MB before the factors, which need 180 to 220. Memory that earlier tests
    // give back during the solve adds to the limit.
    const test::AddressSpaceLimit limit(rlim_t{100} << 20);
    options.method = Method::shift_invert;
    try {
        eigensolve(ctx, EigenProblem<double>{a}, options);
        FAIL() << "the factors fit";
    } catch (const MemoryError& error) {
        EXPECT_NE(std::string(error.what()).find("shift-invert: the factors"), std::string::npos)
            << error.what();
    }
}

}  // namespace
}  // namespace quiver

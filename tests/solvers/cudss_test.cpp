// SPDX-License-Identifier: BSD-3-Clause
// The factorisation of shift-invert by cuDSS: inertia and solves are compared with dense spectra
// and products, eigenvalues with those of Laplacians. Without a GPU only the choice of the library
// is tested.
#include "solvers/eigen/shift_invert/cudss.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/shift_invert.hpp"
#include "solvers/eigen/shift_invert/cudss_factorisation.hpp"
#include "solvers/eigen/shift_invert/shifted_pencil.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "tests/solvers/factorisation_checks.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::as_oracle;
using test::DenseRows;
using test::Environment;
using test::random_rows;
using test::rows_of;

/// The reason to skip a test that needs cuDSS; an empty string if it is available.
std::string why_no_cudss(Context& ctx) {
    if (ctx.place() != Place::device) {
        return "cuDSS needs a GPU";
    }
    return cudss_is_available(ctx) ? "" : "no cuDSS: " + ctx.service<Cudss>().why_none();
}

TEST(Cudss, AnotherVersionIsRefused) {
    try {
        const CudssLibrary library(QUIVER_FAKE_CUDSS);
        FAIL() << library.version;
    } catch (const UnsupportedError& error) {
        EXPECT_NE(std::string(error.what()).find("is cuDSS 0.7.1, and version 1 is needed"),
                  std::string::npos)
            << error.what();
    }
    const Environment chosen("QUIVER_CUDSS", QUIVER_FAKE_CUDSS);
    EXPECT_EQ(cudss_version(), "");
}

TEST(Cudss, AFileThatTheUserNamesMustWork) {
    EXPECT_THROW(CudssLibrary("/no/libcudss.so.1"), UnsupportedError);
    Context ctx = test::make_context();
    for (const char* const file : {"/no/libcudss.so.1", QUIVER_FAKE_CUDSS}) {
        const Environment chosen("QUIVER_CUDSS", file);
        if (ctx.place() == Place::device) {
            EXPECT_THROW(cudss_is_available(ctx), UnsupportedError);
        } else {
            EXPECT_FALSE(cudss_is_available(ctx)) << "on the host no library is opened";
        }
    }
    const Environment none("QUIVER_CUDSS", "none");
    EXPECT_FALSE(cudss_is_available(ctx));
}

TEST(Cudss, TheRefusalOfManyRowsNamesTheLibraryThatHelps) {
    const Environment no_cudss("QUIVER_CUDSS", "none");
    const Environment no_mumps("QUIVER_MUMPS", "none");
    Context ctx = test::make_context();
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 300, 300, 1);
    EigenOptions options;
    options.method = Method::shift_invert;
    try {
        eigensolve(ctx, EigenProblem<double>{a}, options);
        FAIL() << "90000 rows were factorised";
    } catch (const InputError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find(std::string(mumps_version()).empty()
                                ? "MUMPS (a build with libmumps-dev)"
                                : "MUMPS, which QUIVER_MUMPS=none disables"),
                  std::string::npos)
            << text;
        EXPECT_EQ(text.find("QUIVER_CUDSS") != std::string::npos, ctx.place() == Place::device)
            << text;
    }
}

template <class W>
class CudssTest : public ::testing::Test {
  protected:
    Context ctx = test::make_context();
    std::mt19937_64 random = test::make_generator();
};
using Wides = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(CudssTest, Wides);

/// One object factorises for one shift after another. A count must be right if no eigenvalue lies
/// within the pencil's bound of the error from the shift; the backward error must be small.
TYPED_TEST(CudssTest, InertiaAndSolvesOfIndefiniteMatrices) {
    using W = TypeParam;
    if (const std::string why = why_no_cudss(this->ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    if (this->ctx.comm().rank() != 0) {
        return;
    }
    std::uniform_real_distribution<double> uniform(-2, 2);
    for (const int n : {1, 2, 5, 31, 90, 300}) {
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
            for (const double distance : {1e-5, 1e-8}) {
                shifts.push_back(spectrum(n / 2) - distance);
                shifts.push_back(spectrum(n / 2) + distance);
            }
            const CsrRows<W> left = rows_of(a);
            const CsrRows<W> right = rows_of(b);
            CudssFactorisation<W> solver(this->ctx, left, with_b ? &right : nullptr);
            EXPECT_GE(solver.forecast().entries, n);
            EXPECT_GT(solver.forecast().bytes, 0);
            ShiftedPencil<W> pencil(1, left, with_b ? std::optional(right) : std::nullopt, solver);
            for (const double shift : shifts) {
                SCOPED_TRACE(std::to_string(n) + " rows, shift " + std::to_string(shift));
                const ShiftedFactor factor = pencil.factor(shift);
                ASSERT_TRUE(factor.complete);
                EXPECT_NEAR(factor.sigma, shift, 1e-7);
                // Relative to ||A|| + |sigma| ||B||, 1e4 units of rounding.
                EXPECT_LE(factor.backward, 2e-12 * pencil.scale(factor.sigma));
                const double distance = (spectrum.array() - factor.sigma).abs().minCoeff();
                if (distance * (with_b ? 1 / pencil.norm_b() : 1) > factor.error) {
                    EXPECT_EQ(factor.below,
                              std::count_if(spectrum.begin(), spectrum.end(),
                                            [&](double v) { return v < factor.sigma; }));
                } else {
                    EXPECT_LT(distance, 1e-7);
                }
                EXPECT_LE(test::backward_error<W>(solver, a, with_b ? &b : nullptr, factor.sigma,
                                                  this->random),
                          2e-12);
            }
        }
    }
}

/// [0 C; C^H 0] needs 2 x 2 pivots. Without delayed pivots the factors may lose digits; the
/// pencil's bound of the error must then reach the nearest eigenvalue wherever the count is wrong.
TYPED_TEST(CudssTest, ACountWithAZeroDiagonalIsRightOrRefused) {
    using W = TypeParam;
    if (const std::string why = why_no_cudss(this->ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    if (this->ctx.comm().rank() != 0) {
        return;
    }
    for (const int half : {1, 2, 10, 40, 200}) {
        const auto size = static_cast<std::size_t>(half);
        DenseRows<W> a = random_rows<W>(this->random, 2 * half, 2.0 / half, 0);
        for (std::size_t i = 0; i < size; ++i) {
            for (std::size_t j = 0; j < size; ++j) {
                a[i][j] = a[size + i][size + j] = 0;
            }
            a[i][size + i] = a[size + i][i] = 5;
        }
        const Eigen::VectorXd spectrum = test::oracle::eigenvalues(as_oracle(a));
        const CsrRows<W> rows = rows_of(a);
        CudssFactorisation<W> solver(this->ctx, rows, nullptr);
        ShiftedPencil<W> pencil(1, rows, std::nullopt, solver);
        const ShiftedFactor factor = pencil.factor(0);
        const double distance = (spectrum.array() - factor.sigma).abs().minCoeff();
        if (factor.complete && factor.error < distance) {
            EXPECT_EQ(factor.below, half);
        }
        this->RecordProperty("error_" + std::to_string(half), std::to_string(factor.error));
    }
}

/// A shift at an eigenvalue moves by more than the bound of the error.
TYPED_TEST(CudssTest, AShiftAtAnEigenvalueMoves) {
    using W = TypeParam;
    if (const std::string why = why_no_cudss(this->ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    if (this->ctx.comm().rank() != 0) {
        return;
    }
    const int n = 60;
    const DenseRows<W> a = random_rows<W>(this->random, n, 0.1, 0);
    const Eigen::VectorXd spectrum = test::oracle::eigenvalues(as_oracle(a));
    const double norm = std::max(-spectrum(0), spectrum(n - 1));
    const CsrRows<W> rows = rows_of(a);
    CudssFactorisation<W> solver(this->ctx, rows, nullptr);
    ShiftedPencil<W> pencil(1, rows, std::nullopt, solver);
    for (const int j : {0, 17, n - 1}) {
        const ShiftedFactor factor = pencil.factor(spectrum(j));
        EXPECT_TRUE(factor.complete);
        EXPECT_LT(factor.error, 1e-9 * norm) << j;
        const double distance = std::abs(factor.sigma - spectrum(j));
        EXPECT_GT(distance + 1e-14 * norm, factor.error) << j;
        if (distance > factor.error) {
            EXPECT_EQ(factor.below, j + (factor.sigma > spectrum(j) ? 1 : 0));
        }
    }
    EXPECT_GT(pencil.largest_move(), 0);
}

/// The Laplacian of separate paths is semidefinite, with an eigenvalue 0 for each path.
TYPED_TEST(CudssTest, DefinitenessOfASemidefiniteMatrix) {
    using W = TypeParam;
    if (const std::string why = why_no_cudss(this->ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    if (this->ctx.comm().rank() != 0) {
        return;
    }
    for (const std::size_t copies : {1U, 8U, 60U}) {
        const DenseRows<W> a = test::disjoint_paths<W>(copies, 7);
        const CsrRows<W> rows = rows_of(a);
        CudssFactorisation<W> solver(this->ctx, rows, nullptr);
        EXPECT_EQ(solver.factor(rows, nullptr, 1e-9).below, static_cast<std::int64_t>(copies));
        EXPECT_TRUE(solver.factor(rows, nullptr, -3e-14).is_positive_definite());
        EXPECT_FALSE(solver.factor(rows, nullptr, 3e-14).is_positive_definite());
    }
    const CsrRows<W> zero = rows_of(DenseRows<W>(5, std::vector<W>(5)));
    CudssFactorisation<W> solver(this->ctx, zero, nullptr);
    EXPECT_FALSE(solver.factor(zero, nullptr, 1).is_positive_definite());
    EXPECT_TRUE(solver.factor(zero, nullptr, -2).is_positive_definite());
}

/// The `count` values of the spectrum nearest `target`, ascending.
std::vector<double> nearest(std::vector<double> spectrum, double target, std::size_t count) {
    std::sort(spectrum.begin(), spectrum.end(),
              [&](double x, double y) { return std::abs(x - target) < std::abs(y - target); });
    spectrum.resize(count);
    std::sort(spectrum.begin(), spectrum.end());
    return spectrum;
}

template <class T>
void expect_values(const EigenResult<T>& result, const std::vector<double>& expected) {
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.multiplicity, Multiplicity::verified);
    ASSERT_EQ(result.eigenvalues.size(), expected.size());
    for (std::size_t j = 0; j < expected.size(); ++j) {
        EXPECT_NEAR(result.eigenvalues[j], expected[j], 1e-12) << j;
        EXPECT_LE(result.residuals[j], 1e-11) << j;
    }
}

/// 21,924 rows, which cuDSS factorises: a target, a window with many eigenvalues, and an end, each
/// for A and for the pencil (D A D, D^2), which has the same eigenvalues.
TYPED_TEST(CudssTest, EigenvaluesOfALaplacian) {
    using W = TypeParam;
    Context& ctx = this->ctx;
    if (const std::string why = why_no_cudss(ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    const int nx = 29;
    const auto scale_of = [](std::int64_t row) { return 1 + 0.5 * static_cast<double>(row % 3); };
    SparseMatrix<W> a = test::laplace3d<W>(ctx, nx, nx - 1, nx - 2);
    const std::int64_t n = a.row_map().global_rows();
    const auto scaled = [&](std::int64_t row, RowEntries<W>& entries) {
        // The rows of laplace3d(), one at a time.
        const std::int64_t x = row % nx;
        const std::int64_t y = row / nx % (nx - 1);
        const std::int64_t z = row / nx / (nx - 1);
        const auto add = [&](std::int64_t to, bool inside, double value) {
            if (inside) {
                entries.add(to, W(value * scale_of(row) * scale_of(to)));
            }
        };
        add(row, true, 6);
        add(row - 1, x > 0, -1);
        add(row + 1, x + 1 < nx, -1);
        add(row - nx, y > 0, -1);
        add(row + nx, y + 2 < nx, -1);
        add(row - std::int64_t{nx} * (nx - 1), z > 0, -1);
        add(row + std::int64_t{nx} * (nx - 1), z + 3 < nx, -1);
    };
    SparseMatrix<W> da = test::matrix_from_rows<W>(ctx, n, scaled);
    SparseMatrix<W> b =
        test::matrix_from_rows<W>(ctx, n, [&](std::int64_t row, RowEntries<W>& entries) {
            entries.add(row, W(scale_of(row) * scale_of(row)));
        });
    const std::vector<double> spectrum = test::laplace3d_spectrum(nx, nx - 1, nx - 2);
    for (SparseMatrix<W>* const mass : {static_cast<SparseMatrix<W>*>(nullptr), &b}) {
        const EigenProblem<W> problem{mass == nullptr ? a : da, mass};
        EigenOptions options;
        options.method = Method::shift_invert;
        options.which = Which::target;
        options.target = 3;
        options.k = 9;
        expect_values(eigensolve(ctx, problem, options), nearest(spectrum, 3, 9));
        options.which = Which::smallest;
        expect_values(eigensolve(ctx, problem, options), {spectrum.begin(), spectrum.begin() + 9});
        options.window = Window{4.98, 5.02};
        std::vector<double> inside;
        std::copy_if(spectrum.begin(), spectrum.end(), std::back_inserter(inside),
                     [](double v) { return v >= 4.98 && v <= 5.02; });
        ASSERT_GT(inside.size(), 20U);
        expect_values(eigensolve(ctx, problem, options), inside);
    }
}

/// 64,000 rows, more than SparseLdlt takes; the notice names the library.
TEST(Cudss, TakesMoreThan50000Rows) {
    Context ctx = test::make_context();
    if (const std::string why = why_no_cudss(ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    std::string notice;
    ctx.set_event_sink([&](const Event& event) {
        if (const auto* const note = std::get_if<NoticeEvent>(&event)) {
            notice += note->text;
        }
    });
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 40, 40, 40);
    EigenOptions options;
    options.method = Method::shift_invert;
    options.which = Which::target;
    options.target = 3;
    options.k = 9;
    const EigenResult<double> result = eigensolve(ctx, EigenProblem<double>{a}, options);
    expect_values(result, nearest(test::laplace3d_spectrum(40, 40, 40), 3, 9));
    if (ctx.comm().rank() == 0) {
        EXPECT_NE(notice.find("entries; cuDSS expects to take"), std::string::npos) << notice;
    }
}

/// `auto` forecasts with cuDSS, and chooses it for a small window of many rows.
TEST(Cudss, AWindowOfManyRowsIsFactorised) {
    Context ctx = test::make_context();
    if (const std::string why = why_no_cudss(ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    constexpr int nx = 300;
    SparseMatrix<double> a = test::laplace3d<double>(ctx, nx, nx - 1, 1);
    const std::vector<double> spectrum = test::laplace3d_spectrum(nx, nx - 1, 1);
    EigenOptions options;
    options.window = Window{spectrum[1000] - 1e-9, spectrum[1007] + 1e-9};
    const EigenResult<double> result = eigensolve(ctx, EigenProblem<double>{a}, options);
    EXPECT_EQ(result.method, Method::shift_invert) << result.method_reason;
    std::vector<double> inside;
    for (const double value : spectrum) {
        if (value >= options.window->low && value <= options.window->high) {
            inside.push_back(value);
        }
    }
    expect_values(result, inside);
    const Environment none("QUIVER_CUDSS", "none");
    Context other = test::make_context();
    SparseMatrix<double> same = test::laplace3d<double>(other, nx, nx - 1, 1);
    EXPECT_EQ(choose_method(other, EigenProblem<double>{same}, options).method, Method::filter);
}

TEST(Cudss, AnIndefiniteBIsRefused) {
    Context ctx = test::make_context();
    if (const std::string why = why_no_cudss(ctx); !why.empty()) {
        GTEST_SKIP() << why;
    }
    SparseMatrix<double> a = test::laplace3d<double>(ctx, 28, 28, 28);
    std::vector<double> values(21952, 1.0);
    values[300] = -1e-6;
    SparseMatrix<double> b = test::diagonal<double>(ctx, values);
    EigenOptions options;
    options.method = Method::shift_invert;
    options.k = 2;
    EXPECT_THROW(eigensolve(ctx, EigenProblem<double>{a, &b}, options), IndefiniteError);
}

}  // namespace
}  // namespace quiver

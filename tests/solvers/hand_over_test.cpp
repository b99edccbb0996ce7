// SPDX-License-Identifier: BSD-3-Clause
// Method::automatic: the methods that follow the first one. Results are compared with spectra known
// by construction.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "blockvec/context.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/solvers/beams.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

using test::at_end;
using test::automatic;
using test::beam;
using test::beam_spectrum;
using test::DenseMatrix;
using test::expect_result;

template <class T>
class HandOverTest : public ::testing::Test {
  protected:
    Context ctx = test::make_context();
};
using HandOverScalars = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(HandOverTest, HandOverScalars);

/// On a host a short Lanczos run finds that the eigenvalues of a beam are crowded at the lower end,
/// so that no iteration begins; with a preconditioner, here the identity, an iteration begins.
TYPED_TEST(HandOverTest, AFactorisationFollowsAnIterationThatStalls) {
    using T = TypeParam;
    for (const int n : test::is_host_repetition() ? std::vector{1100} : std::vector{1100, 3100}) {
        SparseMatrix<T> a = beam<T>(this->ctx, n);
        const std::vector<double> spectrum = beam_spectrum(n);
        SparseMatrix<T> identity = test::diagonal<T>(this->ctx, std::vector<double>(n, 1));
        for (const bool iterates : {false, true}) {
            EigenProblem<T> problem{a};
            problem.preconditioner = iterates ? &identity : nullptr;
            const auto result = eigensolve(this->ctx, problem, automatic(Which::smallest, 6));
            EXPECT_EQ(result.method, Method::shift_invert);
            const std::string& reason = result.method_reason;
            EXPECT_NE(reason.find("factors of "), std::string::npos) << reason;
            if (this->ctx.place() == Place::host && !iterates) {
                EXPECT_EQ(reason.find("the eigenvalues are crowded at this end; "), 0U) << reason;
                EXPECT_LT(result.iterations, 20);
            } else {
                EXPECT_EQ(reason.find(iterates ? "lobpcg had not converged after "
                                               : "chebyshev had not converged after "),
                          0U)
                    << reason;
                EXPECT_GE(result.iterations, 150);
            }
            expect_result(this->ctx, a, result, at_end(spectrum, Which::smallest, 6), 16);
        }
    }
}

TYPED_TEST(HandOverTest, WithBThePairsOfTheIterationAreReplaced) {
    using T = TypeParam;
    const int n = 1300;
    SparseMatrix<T> a = beam<T>(this->ctx, n, 3);
    SparseMatrix<T> b = test::diagonal<T>(this->ctx, std::vector<double>(n, 3.0));
    SparseMatrix<T> identity = test::diagonal<T>(this->ctx, std::vector<double>(n, 1));
    EigenProblem<T> pencil{a};
    pencil.b = &b;
    pencil.preconditioner = &identity;
    const auto result = eigensolve(this->ctx, pencil, automatic(Which::smallest, 5));
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.method, Method::shift_invert);
    EXPECT_EQ(result.method_reason.find("lobpcg had not converged after "), 0U)
        << result.method_reason;
    const std::vector<double> exact = at_end(beam_spectrum(n), Which::smallest, 5);
    ASSERT_EQ(result.eigenvalues.size(), 5U);
    for (std::size_t j = 0; j < 5; ++j) {
        EXPECT_NEAR(result.eigenvalues[j], exact[j], 32 * result.tolerance);
    }
}

/// A grid of side^2 unknowns, of which springs of `stiffness` tie every ninth to the next.
SparseMatrix<double> tied_grid(Context& ctx, int side, double stiffness) {
    const std::int64_t n = std::int64_t{side} * side;
    return test::matrix_from_rows<double>(ctx, n, [=](std::int64_t row, auto& entries) {
        const auto is_tied = [&](std::int64_t i) { return i >= 0 && i % 9 == 0 && i + 1 < n; };
        const auto spring = [&](std::int64_t other, bool is_inside, bool ties) {
            if (is_inside || ties) {
                entries.add(other, -(is_inside ? 1.0 : 0.0) - (ties ? stiffness : 0.0));
            }
        };
        entries.add(row, 4 + stiffness * (is_tied(row) + is_tied(row - 1)));
        spring(row - 1, row % side > 0, is_tied(row - 1));
        spring(row + 1, row % side + 1 < side, is_tied(row));
        spring(row - side, row >= side, false);
        spring(row + side, row + side < n, false);
    });
}

/// Rounding errors may move most eigenvalues into the window: shift-invert says so instead of
/// searching for them. A dense solve answers up to 4096 rows (by cuSOLVER up to 8192); a filter
/// would not end.
TEST(HandOver, AWindowThatNoFactorisationResolves) {
    Context ctx = test::make_context();
    EigenOptions options;
    options.window = Window{0.2, 0.3};
    SparseMatrix<double> small = tied_grid(ctx, 20, 1e13);
    options.method = Method::shift_invert;
    const auto failed = eigensolve(ctx, EigenProblem<double>{small}, options);
    EXPECT_FALSE(failed.converged);
    EXPECT_NE(failed.message.find("may be moved into it by rounding errors"), std::string::npos)
        << failed.message;
    EXPECT_LT(failed.iterations, 150);
    options.method = Method::automatic;
    for (const int side : test::is_host_repetition() ? std::vector{20} : std::vector{20, 56, 65}) {
        SparseMatrix<double> a = tied_grid(ctx, side, 1e13);
        const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
        if (side == 65 && ctx.place() == Place::host) {
            EXPECT_FALSE(result.converged);
            EXPECT_EQ(result.method, Method::shift_invert);
            EXPECT_NE(result.message.find("use dense"), std::string::npos) << result.message;
        } else {
            EXPECT_TRUE(result.converged) << result.message;
            EXPECT_EQ(result.method, Method::dense);
            EXPECT_FALSE(result.eigenvalues.empty());
        }
    }
}

/// A dense matrix with a useless inverse: the iteration stalls, and a dense solve follows.
TEST(HandOver, ADenseMatrixWithAUselessInverse) {
    Context ctx = test::make_context();
    const int n = 1030;
    SparseMatrix<double> sparse = beam<double>(ctx, n);
    DenseMatrix a(sparse);
    SparseMatrix<double> useless = test::diagonal<double>(ctx, std::vector<double>(n, 1.0));
    EigenProblem<double> problem{a};
    problem.inverse = &useless;
    EigenOptions options = automatic(Which::target, 4);
    options.target = 0;
    const auto result = eigensolve(ctx, problem, options);
    EXPECT_EQ(result.method, Method::dense);
    EXPECT_EQ(result.method_reason.find("jd had not converged after "), 0U) << result.method_reason;
    expect_result(ctx, a, result, at_end(beam_spectrum(n), Which::smallest, 4), 16);
}

/// Both ends with a constraint of the caller: at the lower end a dense solve follows the iteration.
TEST(HandOver, BothEndsWithAConstraint) {
    Context ctx = test::make_context();
    const int n = 1100;
    SparseMatrix<double> a = beam<double>(ctx, n);
    const RowMap& map = a.row_map();
    SmallMatrix<double> lowest(static_cast<int>(map.local_rows()), 1);  // its eigenvector
    for (int i = 0; i < lowest.rows(); ++i) {
        const auto row = static_cast<double>(map.first_row() + i + 1);
        lowest(i, 0) = std::sqrt(2.0 / (n + 1)) * std::sin(std::numbers::pi * row / (n + 1));
    }
    BlockVector<double> excluded(ctx, map, 1);
    copy(ctx, lowest.view(), excluded.view());
    EigenProblem<double> problem{a};
    problem.constraints = std::as_const(excluded).view();
    const auto result = eigensolve(ctx, problem, automatic(Which::both_ends, 4));
    EXPECT_EQ(result.method, Method::dense);
    const std::string& reason = result.method_reason;
    EXPECT_EQ(reason.find("at one end chebyshev: "), 0U) << reason;
    EXPECT_NE(reason.find("; at the other dense: chebyshev had not converged after "),
              std::string::npos)
        << reason;
    std::vector<double> rest = beam_spectrum(n);
    rest.erase(rest.begin());
    expect_result(ctx, a, result, at_end(rest, Which::both_ends, 4), 16);
    SmallMatrix<double> overlap(1, 4);
    tsmttsm(ctx, 1.0, problem.constraints, std::as_const(result.vectors).view(), 0.0, overlap);
    for (int j = 0; j < 4; ++j) {
        EXPECT_NEAR(overlap(0, j), 0, 1e-10);
    }
}

TEST(HandOver, TheCallersLimitEndsTheSolve) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = beam<double>(ctx, 1100);
    SparseMatrix<double> identity = test::diagonal<double>(ctx, std::vector<double>(1100, 1));
    EigenProblem<double> preconditioned{a};
    preconditioned.preconditioner = &identity;
    EigenOptions options = automatic(Which::smallest, 3);
    options.max_iterations = 100;
    const auto iterated = eigensolve(ctx, preconditioned, options);
    EXPECT_FALSE(iterated.converged);
    EXPECT_EQ(iterated.method, Method::lobpcg);
    options.which = Which::target;
    options.target = 1;
    options.max_iterations = 1;
    const auto factorised = eigensolve(ctx, EigenProblem<double>{a}, options);
    EXPECT_FALSE(factorised.converged);
    EXPECT_EQ(factorised.method, Method::shift_invert);
}

TEST(HandOver, ACallbackEndsTheSolveInEveryMethod) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = beam<double>(ctx, 20001);  // too large for a direct solve at once
    for (const std::int64_t last : {3, 600}) {
        EigenOptions options = automatic(Which::smallest, 3);
        std::int64_t calls = 0;
        bool factorises = false;
        options.keep_going = [&](const IterationEvent& event) {
            factorises = std::string(event.solver) == "shift-invert";
            return ++calls < last && !factorises;
        };
        const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
        EXPECT_TRUE(result.interrupted);
        EXPECT_FALSE(result.converged);
        EXPECT_EQ(factorises, last == 600);
        // The pairs of the iteration are kept.
        EXPECT_EQ(result.eigenvalues.size(), 3U);
        EXPECT_EQ(result.method, Method::chebyshev);
    }
}

TEST(HandOver, WhatFollowsIsAnnounced) {
    Context ctx = test::make_context();
    SparseMatrix<double> a = beam<double>(ctx, 1100);
    std::vector<std::string> texts;
    ctx.set_event_sink([&](const Event& event) {
        if (const auto* fallback = std::get_if<FallbackEvent>(&event)) {
            texts.push_back(fallback->what);
        }
    });
    SparseMatrix<double> identity = test::diagonal<double>(ctx, std::vector<double>(1100, 1));
    EigenProblem<double> problem{a};
    problem.preconditioner = &identity;
    const auto result = eigensolve(ctx, problem, automatic(Which::smallest, 3));
    EXPECT_TRUE(result.converged);
    ASSERT_FALSE(texts.empty());
    EXPECT_EQ(texts.back().find("auto: lobpcg had not converged after "), 0U) << texts.back();
    EXPECT_NE(texts.back().find("; shift-invert goes on"), std::string::npos) << texts.back();
}

/// A chain with a tenth of its springs at 10^10, where rounding errors of the norm exceed the
/// wanted eigenvalues: shift_invert() with the tolerance 1e-10 has larger error bounds than the
/// dense solve.
TEST(HandOver, TheAnswerWithSmallerErrorBoundsRemains) {
    Context ctx = test::make_context();
    constexpr int n = 700;
    std::mt19937_64 random = test::make_generator();
    std::vector<double> springs(n + 1, 1);
    for (int i = 0; i < n / 10; ++i) {
        springs[std::uniform_int_distribution<std::size_t>(1, n - 1)(random)] = 1e10;
    }
    SparseMatrix<double> a =
        test::matrix_from_rows<double>(ctx, n, [&](std::int64_t row, RowEntries<double>& entries) {
            const auto i = static_cast<std::size_t>(row);
            entries.add(row, springs[i] + springs[i + 1]);
            if (row > 0) {
                entries.add(row - 1, -springs[i]);
            }
            if (row + 1 < n) {
                entries.add(row + 1, -springs[i + 1]);
            }
        });
    EigenOptions options = automatic(Which::smallest, 6);
    const auto result = eigensolve(ctx, EigenProblem<double>{a}, options);
    options.method = Method::dense;
    const auto dense = eigensolve(ctx, EigenProblem<double>{a}, options);
    ASSERT_TRUE(result.converged && dense.converged) << result.message << dense.message;
    EXPECT_LE(result.errors[3], 1.01 * dense.errors[3]) << result.method_reason;
    const double size = 1e-3;  // of the wanted eigenvalues, at most
    EXPECT_LE(std::abs(result.eigenvalues[3]), size + result.errors[3]);
    EXPECT_LE(result.errors[3], 256 * epsilon_v<double> * result.norm_estimate);
}

/// Separate chains of 8 nodes with springs of 1 to 2^26, in single precision. Within rounding
/// errors of the norm around the window lie some hundred eigenvalues: shift_invert() in the units
/// of the problem, which comes first for singular rows, gives up, and balanced units separate them.
TEST(HandOver, AWindowNarrowerThanTheRoundingOfTheNorm) {
    Context ctx = test::make_context();
    constexpr int nodes = 8;
    constexpr int chains = 140;
    constexpr std::size_t wanted = 8;
    std::mt19937_64 random = test::make_generator();
    std::uniform_real_distribution<double> decade(0, 26);
    std::vector<std::array<float, nodes + 1>> springs(chains);
    std::vector<double> spectrum;
    for (auto& spring : springs) {
        Eigen::MatrixXd a = Eigen::MatrixXd::Zero(nodes, nodes);
        spring.fill(0);
        for (int i = 1; i < nodes; ++i) {
            spring[i] = static_cast<float>(std::round(std::exp2(decade(random))));
            a(i, i - 1) = a(i - 1, i) = -spring[i];
            a(i - 1, i - 1) = spring[i - 1] + spring[i];
        }
        a(nodes - 1, nodes - 1) = spring[nodes - 1];
        const Eigen::VectorXd values = test::oracle::eigenvalues(a);
        spectrum.insert(spectrum.end(), values.begin(), values.end());
    }
    std::sort(spectrum.begin(), spectrum.end());
    const auto first = std::upper_bound(spectrum.begin(), spectrum.end(), 5.0);
    EigenOptions options = automatic(Which::smallest, 1);
    options.window = Window{(first[-1] + first[0]) / 2, (first[wanted - 1] + first[wanted]) / 2};
    SparseMatrix<float> a = test::matrix_from_rows<float>(
        ctx, nodes * chains, [&](std::int64_t row, RowEntries<float>& entries) {
            const auto& spring = springs[static_cast<std::size_t>(row / nodes)];
            const auto i = static_cast<std::size_t>(row % nodes);
            entries.add(row, spring[i] + spring[i + 1]);
            if (i > 0) {
                entries.add(row - 1, -spring[i]);
            }
            if (i + 1 < nodes) {
                entries.add(row + 1, -spring[i + 1]);
            }
        });
    const auto result = eigensolve(ctx, EigenProblem<float>{a}, options);
    ASSERT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.method, Method::shift_invert) << result.method_reason;
    EXPECT_GE(result.eigenvalues.size(), wanted);
    EXPECT_LE(result.eigenvalues.size(), 2 * wanted);
    for (std::size_t j = 0; j < wanted; ++j) {
        double nearest = std::numeric_limits<double>::infinity();
        for (const double value : result.eigenvalues) {
            nearest = std::min(nearest, std::abs(value - first[static_cast<std::ptrdiff_t>(j)]));
        }
        EXPECT_LE(nearest, 1e-4) << j;
    }
}

}  // namespace
}  // namespace quiver

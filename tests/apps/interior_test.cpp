// SPDX-License-Identifier: BSD-3-Clause
// Jacobi-Davidson with shift and invert finds the 20 eigenvalues nearest a target. They are
// compared with those of a dense eigensolver.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "apps/matrices/generators.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/precond/preconditioner.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

std::vector<double> dense_spectrum(const std::string& spec) {
    const auto rows = generate<double>(Comm(), spec, 1);
    const auto n = static_cast<Eigen::Index>(rows.map.global_rows());
    Eigen::MatrixXd a = Eigen::MatrixXd::Zero(n, n);
    for (Eigen::Index i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        for (auto e = static_cast<std::size_t>(rows.row_start[at]);
             e < static_cast<std::size_t>(rows.row_start[at + 1]); ++e) {
            a(i, rows.column[e]) = rows.value[e];
        }
    }
    const Eigen::VectorXd values = test::oracle::eigenvalues(a);
    return {values.data(), values.data() + values.size()};
}

void check_nearest(const std::string& spec, double target) {
    SCOPED_TRACE(spec);
    if (Comm(MPI_COMM_WORLD).size() > 1) {
        GTEST_SKIP() << "a factorisation of all rows";
    }
    constexpr int count = 20;
    std::vector<double> exact = dense_spectrum(spec);
    const double norm = std::max(std::abs(exact.front()), std::abs(exact.back()));
    std::sort(exact.begin(), exact.end(),
              [&](double a, double b) { return std::abs(a - target) < std::abs(b - target); });
    const double radius = std::abs(exact[count - 1] - target);
    exact.resize(count);
    std::sort(exact.begin(), exact.end());

    Context ctx = test::make_context();
    SparseMatrix<double> a(ctx, generate<double>(ctx.comm(), spec, 1));
    EigenOptions options;
    options.k = count;
    options.which = Which::target;
    options.target = target;
    options.method = Method::jacobi_davidson;
    PreconditionerOptions ldlt = parse_preconditioner("ldlt");
    ldlt.shift = target;
    ldlt.absolute = false;
    const auto inverse = make_preconditioner(ctx, a, ldlt);
    EigenProblem<double> problem{a};
    problem.inverse = inverse.get();
    const auto result = eigensolve(ctx, problem, options);
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.method, Method::jacobi_davidson);
    ASSERT_EQ(result.eigenvalues.size(), exact.size());
    // Eigenvalues at the largest distance are not compared: they may lie on either side.
    const double allowed = (result.tolerance + 100 * epsilon_v<double>)*norm;
    for (std::size_t j = 0; j < exact.size(); ++j) {
        const double value = result.eigenvalues[j];
        if (std::abs(std::abs(value - target) - radius) > allowed) {
            EXPECT_NEAR(value, exact[j], allowed) << j;
        }
    }
    for (const double residual : test::fresh_residuals(ctx, a, result)) {
        EXPECT_LE(residual, allowed * (1 + 1e-3));
    }
    EXPECT_LE(test::orthonormality_defect(ctx, BlockView<const double>(result.vectors.view())),
              100 * epsilon_v<double> * std::sqrt(static_cast<double>(count)));
}

TEST(Interior, AndersonNearZero) {
    check_nearest("gen:anderson,L=9,W=16.5", 0);
}

TEST(Interior, GrapheneNearTheDiracPointAndBesideIt) {
    check_nearest("gen:graphene,W=24,L=24", 0);
    check_nearest("gen:graphene,W=24,L=24,gamma=0.5", 0.3);
}

}  // namespace
}  // namespace quiver::apps

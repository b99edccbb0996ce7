// SPDX-License-Identifier: BSD-3-Clause
// K x = lambda M x near a target, by shift and invert: the solver factorises sparse matrices K -
// sigma M = L D L^T, and the numbers of negative pivots in D prove that no eigenvalue is missing.
// (The method `automatic` chooses a dense solve for a problem as small as this one.) The problem is
// a vibrating string of n linear finite elements with stiffness K and mass M. The squares of the
// frequencies are 6 n^2 (1 - cos t_j) / (2 + cos t_j), t_j = j pi / n.
// Build: see README.md beside this file; target near_a_target.
#include <cmath>
#include <cstdio>
#include <numbers>

#include "kernels/sparse/assemble.hpp"
#include "solvers/eigen/eigensolver.hpp"

using namespace quiver;

/// A tridiagonal matrix with `diagonal` on the main diagonal and `beside` on the two others.
SparseMatrix<double> tridiagonal(Context& ctx, std::int64_t rows, double diagonal, double beside) {
    const auto make_row = [&](std::int64_t i, RowEntries<double>& row) {
        if (i > 0) {
            row.add(i - 1, beside);
        }
        row.add(i, diagonal);
        if (i < rows - 1) {
            row.add(i + 1, beside);
        }
    };
    return {ctx, rows_from_callback<double>(ctx.comm(), rows, Symmetry::symmetric, make_row)};
}

int main() {
    const int n = 1000;
    const double target = 1000;  // near the tenth tone, about (10 pi)^2
    Context ctx;
    SparseMatrix<double> stiffness = tridiagonal(ctx, n - 1, 2.0 * n, -1.0 * n);
    SparseMatrix<double> mass = tridiagonal(ctx, n - 1, 4.0 / (6 * n), 1.0 / (6 * n));

    EigenProblem<double> problem{stiffness};
    problem.b = &mass;
    const auto result = eigensolve(
        ctx, problem,
        {.k = 3, .which = Which::target, .target = target, .method = Method::shift_invert});

    bool good = result.converged;
    for (int i = 0; i < static_cast<int>(result.eigenvalues.size()); ++i) {
        const double t = (9 + i) * std::numbers::pi / n;
        const double exact = 6.0 * n * n * (1 - std::cos(t)) / (2 + std::cos(t));
        const double found = result.eigenvalues[static_cast<std::size_t>(i)];
        std::printf("tone %d: lambda = %.4f\n", 9 + i, found);
        good = good && std::abs(found - exact) < 1e-6 * exact;
    }
    std::printf("method %s\n", to_string(result.method));
    return good ? 0 : 1;
}
// It prints
//> tone 9: lambda = 799.4912
//> tone 10: lambda = 987.0416
//> tone 11: lambda = 1194.3410
//> method shift-invert

// SPDX-License-Identifier: BSD-3-Clause
// A first solve: a sparse matrix as CSR arrays, its smallest eigenvalues, and whether all copies of
// them were found. The matrix is the five-point Laplacian of a square membrane, whose eigenvalues
// are known: 4 - 2 cos(p pi / (n + 1)) - 2 cos(q pi / (n + 1)), p, q = 1 .. n. The second and third
// are equal.
// Build: see README.md beside this file; target first_solve.
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include "kernels/sparse/assemble.hpp"
#include "solvers/eigen/eigensolver.hpp"

int main() {
    using namespace quiver;
    const int n = 30;
    std::vector<int> row_start{0}, column;
    std::vector<double> value;
    const auto add = [&](int x, int y, double entry) {
        if (x >= 0 && x < n && y >= 0 && y < n) {
            column.push_back(x + n * y);
            value.push_back(entry);
        }
    };
    for (int y = 0; y < n; ++y) {
        for (int x = 0; x < n; ++x) {
            add(x, y, 4.0);
            add(x - 1, y, -1.0);
            add(x + 1, y, -1.0);
            add(x, y - 1, -1.0);
            add(x, y + 1, -1.0);
            row_start.push_back(static_cast<int>(column.size()));
        }
    }

    Context ctx;  // this process and its threads
    SparseMatrix<double> membrane(
        ctx, rows_from_csr<double, int>(ctx.comm(), RowMap::by_rows(ctx.comm(), n * n),
                                        Symmetry::symmetric, row_start, column, value));
    const auto result = eigensolve(ctx, EigenProblem<double>{membrane}, {.k = 4, .tol = 1e-10});
    if (!result.converged) {
        std::printf("not converged: %s\n", result.message.c_str());
        return 1;
    }

    const auto half = [&](int p) { return 2 - 2 * std::cos(p * std::numbers::pi / (n + 1)); };
    const double exact[] = {half(1) + half(1), half(1) + half(2), half(2) + half(1),
                            half(2) + half(2)};
    double error = 0;
    for (std::size_t i = 0; i < result.eigenvalues.size(); ++i) {
        std::printf("%.8f\n", result.eigenvalues[i]);
        error = std::fmax(error, std::abs(result.eigenvalues[i] - exact[i]));
    }
    const bool verified = result.multiplicity == Multiplicity::verified;
    std::printf("all copies found: %s\n", verified ? "yes" : "not verified");
    return error < 1e-9 && verified ? 0 : 1;
}
// It prints
//> 0.02052271
//> 0.05120147
//> 0.05120147
//> 0.08188023
//> all copies found: yes

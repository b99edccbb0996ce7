// SPDX-License-Identifier: BSD-3-Clause
// Many right-hand sides at once: block conjugate gradients with an incomplete Cholesky
// preconditioner. The matrix describes heat conduction in a plate of two materials, one of which
// conducts 1000 times better than the other. The 16 right-hand sides are computed from known
// solutions, so that the errors are known.
// Build: see README.md beside this file; target many_right_hand_sides.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/sparse/assemble.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "solvers/precond/preconditioner.hpp"

using namespace quiver;

constexpr std::int64_t n = 60;

/// A row of the matrix: the flow between neighbouring cells, by the harmonic mean of their
/// conductivities.
void make_row(std::int64_t cell, RowEntries<double>& row) {
    const auto conductivity = [](std::int64_t x, std::int64_t y) {
        return (x / 10 + y / 10) % 2 == 0 ? 1.0 : 1000.0;
    };
    const std::int64_t x = cell % n, y = cell / n;
    const double own = conductivity(x, y);
    double diagonal = 0;
    const std::int64_t neighbours[][2] = {{x - 1, y}, {x + 1, y}, {x, y - 1}, {x, y + 1}};
    for (const auto& [u, v] : neighbours) {
        const bool inside = u >= 0 && u < n && v >= 0 && v < n;
        const double other = inside ? conductivity(u, v) : own;
        const double flow = 2 * own * other / (own + other);
        diagonal += flow;  // the temperature beyond the rim is 0
        if (inside) {
            row.add(u + n * v, -flow);
        }
    }
    row.add(cell, diagonal);
}

int main() {
    Context ctx;
    SparseMatrix<double> plate(
        ctx, rows_from_callback<double>(ctx.comm(), n * n, Symmetry::symmetric, make_row));
    const int systems = 16;
    BlockVector<double> exact(ctx, plate.row_map(), systems), b(ctx, plate.row_map(), systems),
        x(ctx, plate.row_map(), systems);
    fill_random(ctx, 1, exact);
    plate.apply(ctx, exact, b);

    const auto cholesky = make_preconditioner(ctx, plate, {.kind = PreconditionerKind::ic});
    LinearProblem<double> problem{plate, b};
    const LinearResult plain = linear_solve(ctx, LinearMethod::cg, problem, x.view());
    problem.preconditioner = cholesky.get();
    const LinearResult result = linear_solve(ctx, LinearMethod::cg, problem, x.view());

    std::vector<double> error(systems), size(systems);
    norms(ctx, exact.view(), std::span(size));
    axpby(ctx, -1.0, exact, 1.0, x.view());
    norms(ctx, x.view(), std::span(error));
    double worst = 0;
    for (std::size_t j = 0; j < error.size(); ++j) {
        worst = std::max(worst, error[j] / size[j]);
    }
    const bool converged = plain.converged && result.converged;
    const bool right = worst < 1e-6;
    const bool fewer = 10 * result.iterations <= plain.iterations;
    const auto say = [](bool yes) { return yes ? "yes" : "no"; };
    std::printf("%d systems converged: %s\n", systems, say(converged));
    std::printf("solutions right to 6 digits: %s\n", say(right));
    std::printf("at least 10 times fewer steps with the preconditioner: %s\n", say(fewer));
    std::printf("(%ld steps and %ld)\n", long(result.iterations), long(plain.iterations));
    return converged && right && fewer ? 0 : 1;
}
// It prints, before the numbers of steps,
//> 16 systems converged: yes
//> solutions right to 6 digits: yes
//> at least 10 times fewer steps with the preconditioner: yes

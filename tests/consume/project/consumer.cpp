// SPDX-License-Identifier: BSD-3-Clause
// A separate program with its own CSR arrays and pointers: two eigenvalues and one product.
#include <cstdio>
#include <vector>

#include "blockvec/small_matrix.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/block_lanczos.hpp"

int main() {
    using namespace quiver;
    Context ctx;
    const std::vector<int> row_start{0, 2, 5, 7};  // 2 -1 0; -1 2 -1; 0 -1 2
    const std::vector<int> column{0, 1, 0, 1, 2, 1, 2};
    const std::vector<double> value{2, -1, -1, 2, -1, -1, 2};
    SparseMatrix<double> matrix(
        ctx, rows_from_csr<double, int>(ctx.comm(), RowMap::by_rows(ctx.comm(), 3),
                                        Symmetry::symmetric, row_start, column, value));
    for (const double eigenvalue : block_lanczos(ctx, matrix, {.k = 2}).eigenvalues) {
        std::printf("%.6f\n", eigenvalue);
    }

    double a[] = {1, 2, 3, 4};
    double b[] = {5, 11, 4, 14};
    double c[] = {0, 0, 0, 0};  // A^H B = [17 53; 26 78]
    tsmttsm<double>(ctx, 1.0, BlockView<const double>(a, 2, 2, 2),
                    BlockView<const double>(b, 2, 2, 2), 0.0, BlockView<double>(c, 2, 2, 2));
    std::printf("%g %g\n", c[0], c[1]);
}

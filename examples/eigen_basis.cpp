// SPDX-License-Identifier: BSD-3-Clause
// Orthogonalisation inside an Eigen application: a reduced basis of snapshots, stored in one Eigen
// matrix. The solver orthonormalises each block of snapshots in place against the columns of the
// basis and drops directions that the basis already contains. The snapshots are sums of 12 modes,
// so the final basis has 12 columns.
// Build: see README.md beside this file; target eigen_basis.
#include <cstdio>
#include <cstdlib>

#include <Eigen/Dense>

#include "blockvec/eigen_interop.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

using namespace quiver;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

int main() {
    const int points = 5000, modes = 12, block = 8;
    const Eigen::VectorXd place = Eigen::VectorXd::LinSpaced(points, 0, 1);
    Matrix shapes(points, modes);
    for (int m = 0; m < modes; ++m) {
        shapes.col(m) = ((m + 1) * place.array()).sin().exp();
    }

    Context ctx;
    const RowMap map = RowMap::by_rows(ctx.comm(), points);
    OrthOptions options;
    options.replace_deficient = false;
    Matrix basis(points, modes + block), snapshots(points, 3 * block);
    int size = 0;
    std::srand(1);
    for (int time = 0; time < 3; ++time) {
        const Matrix amplitudes = Matrix::Random(modes, block);
        basis.middleCols(size, block) = shapes * amplitudes;
        snapshots.middleCols(time * block, block) = basis.middleCols(size, block);
        const auto result =
            block_gram_schmidt<double>(ctx, map, as_view(basis.leftCols(size)),
                                       as_view(basis.middleCols(size, block)), options);
        size += result.columns;
        std::printf("%d snapshots: %d columns\n", (time + 1) * block, size);
    }

    const auto q = basis.leftCols(size);
    const double loss = (q.transpose() * q - Matrix::Identity(size, size)).norm();
    const double missed = (snapshots - q * (q.transpose() * snapshots)).norm() / snapshots.norm();
    const bool good = size == modes && loss < 1e-13 && missed < 1e-9;
    std::printf("an orthonormal basis of all snapshots: %s\n", good ? "yes" : "no");
    return good ? 0 : 1;
}
// It prints
//> 8 snapshots: 8 columns
//> 16 snapshots: 12 columns
//> 24 snapshots: 12 columns
//> an orthonormal basis of all snapshots: yes

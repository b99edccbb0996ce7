// SPDX-License-Identifier: BSD-3-Clause
// Ranks that own rows: every rank contributes the rows of its part of a mesh and gets those rows of
// the eigenvectors. The parts of this rod grow from rank to rank; the modes of the rod are sines.
// Build: see README.md beside this file; target rows_of_ranks. Run: mpirun -n 3 ./rows_of_ranks
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include <mpi.h>

#include "kernels/sparse/assemble.hpp"
#include "solvers/eigen/eigensolver.hpp"

using namespace quiver;

/// The distance of column j of this rank's rows from the sine, with the sign that fits better.
double distance_from_sine(const EigenResult<double>& result, int j) {
    const RowMap& map = result.vectors.row_map();
    const double length = static_cast<double>(map.global_rows() + 1);
    double plus = 0, minus = 0;
    for (std::int64_t i = 0; i < map.local_rows(); ++i) {
        const double place = static_cast<double>(map.first_row() + i + 1) / length;
        const double sine = std::sqrt(2 / length) * std::sin((j + 1) * std::numbers::pi * place);
        const double found = result.vectors.view()(i, j);
        plus = std::fmax(plus, std::abs(found - sine));
        minus = std::fmax(minus, std::abs(found + sine));
    }
    return std::fmin(plus, minus);
}

int run(const Comm& comm) {
    const int nodes = 1000, ranks = comm.size(), rank = comm.rank();
    const int parts = ranks * (ranks + 1) / 2;  // 1 + 2 + ... + ranks
    const int first = nodes * (rank * (rank + 1) / 2) / parts;
    const int end = nodes * ((rank + 1) * (rank + 2) / 2) / parts;

    std::vector<int> row_start{0}, column;  // of this rank's rows; columns are global
    std::vector<double> value;
    for (int i = first; i < end; ++i) {
        for (const int neighbour : {i - 1, i, i + 1}) {
            if (neighbour >= 0 && neighbour < nodes) {
                column.push_back(neighbour);
                value.push_back(neighbour == i ? 2 : -1);
            }
        }
        row_start.push_back(static_cast<int>(column.size()));
    }

    Context ctx(comm, Device::host());
    const RowMap map = RowMap::by_local_rows(comm, end - first);
    SparseMatrix<double> rod(
        ctx, rows_from_csr<double, int>(comm, map, Symmetry::symmetric, row_start, column, value));
    const auto result = eigensolve(ctx, EigenProblem<double>{rod}, {.k = 3, .tol = 1e-12});

    double error = 0;
    for (int j = 0; j < static_cast<int>(result.eigenvalues.size()); ++j) {
        error = std::fmax(error, distance_from_sine(result, j));
        if (rank == 0) {
            std::printf("%.6e\n", result.eigenvalues[static_cast<std::size_t>(j)]);
        }
    }
    const bool sines = result.converged && comm.max(error) < 1e-6;  // the same on all ranks
    if (rank == 0) {
        std::printf("eigenvectors are sines: %s\n", sines ? "yes" : "no");
    }
    return sines ? 0 : 1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int status = run(Comm(MPI_COMM_WORLD));
    MPI_Finalize();
    return status;
}
// It prints, on any number of ranks,
//> 9.849887e-06
//> 3.939945e-05
//> 8.864840e-05
//> eigenvectors are sines: yes

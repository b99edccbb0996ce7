// SPDX-License-Identifier: BSD-3-Clause
#include "apps/rival_programs/driver.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <numeric>

#include <mpi.h>
#include <nlohmann/json.hpp>

#include "kernels/column_ops.hpp"
#include "kernels/sparse/matrix_market.hpp"

namespace quiver::rivals {
namespace {

/// ||A x_j - lambda_j x_j|| / ||x_j|| for every pair of the answer.
std::vector<double> fresh_residuals(Context& ctx, SparseMatrix<double>& matrix,
                                    const Answer& answer) {
    const BlockView<const double> x = answer.vectors.view();
    BlockVector<double> residual(ctx, matrix.row_map(), x.cols);
    matrix.apply(ctx, x, residual.view());
    std::vector<double> minus;
    for (const double value : answer.eigenvalues) {
        minus.push_back(-value);
    }
    const std::vector<double> ones(minus.size(), 1.0);
    axpby(ctx, minus, x, ones, residual.view());
    std::vector<double> length(minus.size());
    std::vector<double> size(minus.size());
    norms(ctx, BlockView<const double>(residual.view()), std::span<double>(length));
    norms(ctx, x, std::span<double>(size));
    for (std::size_t j = 0; j < length.size(); ++j) {
        length[j] /= size[j];
    }
    return length;
}

void drive(int argc, char** argv, const std::function<Answer(const Problem&)>& solve) {
    if (argc != 9) {
        throw InputError("usage: METHOD FILE K smallest|largest RESIDUAL NORM END INNER");
    }
    Context ctx(Comm(MPI_COMM_WORLD), Device::host());
    Request request{.method = argv[1],
                    .k = std::stoi(argv[3]),
                    .largest = argv[4] == std::string("largest"),
                    .residual = std::stod(argv[5]),
                    .norm = std::stod(argv[6]),
                    .end = std::stod(argv[7]),
                    .inner = std::stod(argv[8])};
    const CsrRows<double> rows =
        read_matrix_market<double>(ctx.comm(), argv[2], Partition::by_rows);
    SparseMatrix<double> matrix(ctx, rows, {.width = 1});
    const Answer answer = solve({ctx, rows, matrix, request});
    const std::vector<double> residuals = fresh_residuals(ctx, matrix, answer);
    if (ctx.comm().rank() == 0) {
        std::vector<std::size_t> order(residuals.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
            return answer.eigenvalues[i] < answer.eigenvalues[j];
        });
        nlohmann::ordered_json report{{"library", answer.library},
                                      {"converged", answer.converged},
                                      {"seconds", answer.seconds},
                                      {"products", answer.products},
                                      {"eigenvalues", nlohmann::json::array()},
                                      {"residuals", nlohmann::json::array()}};
        for (const std::size_t j : order) {
            report["eigenvalues"].push_back(answer.eigenvalues[j]);
            report["residuals"].push_back(residuals[j]);
        }
        std::cout << report.dump() << std::endl;
    }
}

}  // namespace

double timed(const Context& ctx, const std::function<void()>& action) {
    ctx.comm().barrier();
    const auto begin = std::chrono::steady_clock::now();
    action();
    ctx.comm().barrier();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    return passed.count();
}

int run(int argc, char** argv, const std::function<Answer(const Problem&)>& solve) {
    MPI_Init(&argc, &argv);
    try {
        drive(argc, argv, solve);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    return 0;
}

}  // namespace quiver::rivals

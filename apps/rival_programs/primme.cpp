// SPDX-License-Identifier: BSD-3-Clause
// PRIMME (dynamic: PRIMME chooses between GD+k and JDQMR while it runs) with quiver's sparse
// product, without a preconditioner.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>
#include <primme.h>

#include "apps/rival_programs/driver.hpp"
#include "blockvec/interop.hpp"
#include "kernels/column_ops.hpp"

namespace quiver::rivals {
namespace {

/// PRIMME stores the columns of a block one after another.
void multiply(void* x, PRIMME_INT* ldx, void* y, PRIMME_INT* ldy, int* block,
              primme_params* settings, int* error) {
    const auto& problem = *static_cast<const Problem*>(settings->matrix);
    const auto n = static_cast<std::int64_t>(settings->nLocal);
    for (PRIMME_INT j = 0; j < *block; ++j) {
        problem.matrix.apply(problem.ctx, host_view(static_cast<const double*>(x) + j * *ldx, n, 1),
                             host_view(static_cast<double*>(y) + j * *ldy, n, 1));
    }
    *error = 0;
}

void sum_over_ranks(void* from, void* to, int* count, primme_params*, int* error) {
    *error = MPI_Allreduce(from == to ? MPI_IN_PLACE : from, to, *count, MPI_DOUBLE, MPI_SUM,
                           MPI_COMM_WORLD);
}

Answer solve(const Problem& problem) {
    const Request& request = problem.request;
    if (request.method != "dynamic") {
        throw std::runtime_error("PRIMME: dynamic, not " + request.method);
    }
    const auto n = problem.rows.map.local_rows();
    const auto columns = static_cast<std::size_t>(request.k);
    primme_params settings;
    primme_initialize(&settings);
    settings.n = problem.rows.map.global_rows();
    settings.nLocal = n;
    settings.numProcs = problem.ctx.comm().size();
    settings.procID = problem.ctx.comm().rank();
    settings.globalSumReal = sum_over_ranks;
    settings.matrix = const_cast<Problem*>(&problem);
    settings.matrixMatvec = multiply;
    settings.numEvals = request.k;
    settings.target = request.largest ? primme_largest : primme_smallest;
    settings.aNorm = request.norm;
    settings.eps = request.residual / request.norm;
    if (primme_set_method(PRIMME_DYNAMIC, &settings) != 0) {
        throw std::runtime_error("primme_set_method failed");
    }
    std::vector<double> values(columns);
    std::vector<double> residuals(columns);
    std::vector<double> vectors(columns * static_cast<std::size_t>(n));
    int status = 0;
    Answer answer;
    answer.library = "PRIMME " QUIVER_PRIMME_VERSION;
    answer.seconds = timed(problem.ctx, [&] {
        status = dprimme(values.data(), vectors.data(), residuals.data(), &settings);
    });
    answer.products = settings.stats.numMatvecs;
    const int found = std::min(request.k, settings.initSize);
    answer.converged = status == 0 && found == request.k;
    answer.vectors = BlockVector<double>(problem.ctx, problem.rows.map, found);
    for (int j = 0; j < found; ++j) {
        answer.eigenvalues.push_back(values[static_cast<std::size_t>(j)]);
        copy(problem.ctx, host_view<const double>(vectors.data() + j * n, n, 1),
             answer.vectors.columns(j, 1));
    }
    primme_free(&settings);
    return answer;
}

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    return quiver::rivals::run(argc, argv, quiver::rivals::solve);
}

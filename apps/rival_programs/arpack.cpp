// SPDX-License-Identifier: BSD-3-Clause
// ARPACK's implicitly restarted Lanczos (dsaupd; pdsaupd on several ranks) with quiver's sparse
// product.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>

#include <mpi.h>

#include "apps/rival_programs/driver.hpp"
#include "blockvec/interop.hpp"
#include "kernels/column_ops.hpp"

extern "C" {
void dsaupd_c(int* ido, const char* bmat, int n, const char* which, int nev, double tol,
              double* resid, int ncv, double* v, int ldv, int* iparam, int* ipntr, double* workd,
              double* workl, int lworkl, int* info);
void dseupd_c(int rvec, const char* howmny, const int* select, double* d, double* z, int ldz,
              double sigma, const char* bmat, int n, const char* which, int nev, double tol,
              double* resid, int ncv, double* v, int ldv, int* iparam, int* ipntr, double* workd,
              double* workl, int lworkl, int* info);
void pdsaupd_c(MPI_Fint comm, int* ido, const char* bmat, int n, const char* which, int nev,
               double tol, double* resid, int ncv, double* v, int ldv, int* iparam, int* ipntr,
               double* workd, double* workl, int lworkl, int* info);
void pdseupd_c(MPI_Fint comm, int rvec, const char* howmny, const int* select, double* d, double* z,
               int ldz, double sigma, const char* bmat, int n, const char* which, int nev,
               double tol, double* resid, int ncv, double* v, int ldv, int* iparam, int* ipntr,
               double* workd, double* workl, int lworkl, int* info);
}

namespace quiver::rivals {
namespace {

Answer solve(const Problem& problem) {
    Context& ctx = problem.ctx;
    const Request& request = problem.request;
    const int n = static_cast<int>(problem.rows.map.local_rows());
    const int k = request.k;
    const int basis = std::max(2 * k + 10, 30);
    const char* which = request.largest ? "LA" : "SA";
    const double shift = request.shift_to_norm();
    const double tolerance = request.residual / request.norm;
    const bool parallel = ctx.comm().size() > 1;
    const MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD);

    const auto columns = static_cast<std::size_t>(basis);
    const auto rows = static_cast<std::size_t>(n);
    std::vector<double> v(rows * columns);
    std::vector<double> start(rows);
    std::vector<double> work(3 * rows);
    std::vector<double> small(columns * (columns + 8));
    std::vector<double> values(static_cast<std::size_t>(k));
    std::vector<int> select(columns);
    std::array<int, 11> iparam{1, 0, 10000, 1, 0, 0, 1};
    std::array<int, 14> pointer{};
    const int length = static_cast<int>(small.size());
    ApplyOptions<double> shifted;
    shifted.shift = std::span<const double>(&shift, 1);
    long products = 0;
    int info = 0;
    const auto action = [&] {
        int ido = 0;
        while (true) {
            if (parallel) {
                pdsaupd_c(comm, &ido, "I", n, which, k, tolerance, start.data(), basis, v.data(), n,
                          iparam.data(), pointer.data(), work.data(), small.data(), length, &info);
            } else {
                dsaupd_c(&ido, "I", n, which, k, tolerance, start.data(), basis, v.data(), n,
                         iparam.data(), pointer.data(), work.data(), small.data(), length, &info);
            }
            if (ido != 1 && ido != -1) {
                break;
            }
            double* from = work.data() + pointer[0] - 1;
            double* to = work.data() + pointer[1] - 1;
            problem.matrix.apply_fused(ctx, host_view<const double>(from, n, 1),
                                       host_view(to, n, 1), shifted);
            ++products;
        }
        if (info < 0) {
            throw std::runtime_error("dsaupd: info " + std::to_string(info));
        }
        int failed = 0;
        if (parallel) {
            pdseupd_c(comm, 1, "A", select.data(), values.data(), v.data(), n, 0, "I", n, which, k,
                      tolerance, start.data(), basis, v.data(), n, iparam.data(), pointer.data(),
                      work.data(), small.data(), length, &failed);
        } else {
            dseupd_c(1, "A", select.data(), values.data(), v.data(), n, 0, "I", n, which, k,
                     tolerance, start.data(), basis, v.data(), n, iparam.data(), pointer.data(),
                     work.data(), small.data(), length, &failed);
        }
        if (failed != 0) {
            throw std::runtime_error("dseupd: info " + std::to_string(failed));
        }
    };
    Answer answer;
    answer.library = parallel ? "PARPACK" : "ARPACK";
    answer.seconds = timed(ctx, action);
    answer.products = products;
    const int found = std::min(k, iparam[4]);
    answer.converged = info == 0 && found == k;
    answer.vectors = BlockVector<double>(ctx, problem.rows.map, found);
    for (int j = 0; j < found; ++j) {
        answer.eigenvalues.push_back(values[static_cast<std::size_t>(j)] + shift);
        copy(ctx, host_view<const double>(v.data() + static_cast<std::size_t>(j) * rows, n, 1),
             answer.vectors.columns(j, 1));
    }
    return answer;
}

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    return quiver::rivals::run(argc, argv, quiver::rivals::solve);
}

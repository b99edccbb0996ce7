// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/automatic/direct_limits.hpp"

#include <array>
#include <limits>

#include "blockvec/scalar_list.hpp"
#include "kernels/dense_operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/dense/dense_pencil.hpp"
#include "solvers/dense/lapack.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {
namespace {

/// The limits of dense solves that eigensolve() chooses, in rows; halved without LAPACK.
/// One core takes 0.3 s for 1024 rows and 5 s for 3000; a method that iterates takes 0.01 to 10 s,
/// with a dense matrix up to 100 s.
constexpr std::int64_t dense_rows = 1024;
constexpr std::int64_t dense_rows_interior = 3000;
constexpr std::int64_t dense_rows_many = 4096;
constexpr std::int64_t dense_rows_by_products = 512;
/// Multiply-adds of a sparse factorisation that take as long as a dense solve, divided by n^3.
constexpr double dense_products = 0.2;
/// Assumed ratio of the work of a dense solve with B to that without. Measured for 1000 rows: 1.6
/// if B is well-conditioned, 9 with a shift; the condition of B is not known here.
constexpr double mass_work = 4;
/// The ratio of the work of a complex dense solve to that of a real one. Measured with a window:
/// 2.3 for 2,652 rows, 4.4 for 3,782.
constexpr double complex_work = 2.5;
/// How many times as fast cuSOLVER is for 4,000 and more rows
/// (docs/results/2026-11-27_direct_gpu.md: 0.5 s for 4,096 rows on an H100).
constexpr double cusolver_speed = 20;
/// Where cuSOLVER computes, dense solves may have this many times as many rows.
constexpr std::int64_t more_gpu_rows = 2;

/// True if cuSOLVER may make a dense solve worth while; other problems do not open the library.
bool wants_many_rows(std::int64_t rows, const EigenOptions& options) {
    return rows > dense_rows_interior && rows <= more_gpu_rows * dense_rows_many &&
           (is_interior(options) || large_part * options.k >= rows);
}

}  // namespace

double DirectLimits::dense_work(std::int64_t most) const {
    const auto n = static_cast<double>(rows);
    const double speed = (uses_cusolver ? cusolver_speed : 1) / (has_mass ? mass_work : 1) /
                         (is_complex ? complex_work : 1);
    return rows <= most ? dense_products * n * n * n / speed
                        : std::numeric_limits<double>::infinity();
}

bool is_interior(const EigenOptions& options) {
    return options.window || options.which == Which::target ||
           options.which == Which::smallest_magnitude;
}

template <class T>
double stored_entries(const Operator<T>* a) {
    if (dynamic_cast<const DenseOperator<T>*>(a) != nullptr) {
        const auto rows = static_cast<double>(a->row_map().global_rows());
        return rows * rows;
    }
    const auto* const stored = dynamic_cast<const SparseMatrix<T>*>(a);
    return stored == nullptr ? 0.0 : static_cast<double>(stored->global_nonzeros());
}

template <class T>
DirectLimits direct_limits(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options) {
    DirectLimits limits;
    limits.rows = problem.a.row_map().global_rows();
    const auto is_dense = [](const Operator<T>* a) {
        return dynamic_cast<const DenseOperator<T>*>(a) != nullptr;
    };
    const auto is_stored = [&](const Operator<T>* a) {
        return a == nullptr || is_dense(a) || dynamic_cast<const SparseMatrix<T>*>(a) != nullptr;
    };
    limits.is_stored = is_stored(&problem.a) && is_stored(problem.b);
    limits.is_dense = limits.is_stored && (is_dense(&problem.a) || is_dense(problem.b));
    limits.has_mass = problem.b != nullptr;
    limits.is_complex = is_complex_v<T>;
    limits.can_factorise = can_factorise(ctx, problem);
    limits.needs_cudss = limits.can_factorise && limits.rows > most_ldlt_rows &&
                         factor_library(ctx, limits.rows) == FactorLibrary::cudss;
    if (problem.checkpoint == nullptr && problem.protection == nullptr) {
        std::array<bool, 2> found{};  // LAPACK, cuSOLVER
        ctx.comm().agree([&] {
            if (ctx.comm().rank() == 0) {
                found = {ctx.service<Lapack>().is_available(),
                         limits.is_stored && wants_many_rows(limits.rows, options) &&
                             DensePencil<double>::uses_cusolver(ctx, limits.rows)};
            }
        });
        ctx.comm().broadcast(found.data(), sizeof(found), 0);
        const auto [has_lapack, has_cusolver] = found;
        limits.uses_cusolver = has_cusolver;
        const std::int64_t half = has_lapack ? 1 : 2;
        const std::int64_t more = has_cusolver ? more_gpu_rows : 1;
        const bool iterates_unaided =
            problem.inverse == nullptr && problem.preconditioner == nullptr;
        limits.dense = (!limits.is_stored                     ? dense_rows_by_products
                        : limits.is_dense && iterates_unaided ? dense_rows_interior
                                                              : dense_rows) /
                       half;
        limits.interior = limits.is_stored ? more * dense_rows_interior / half : 0;
        limits.many = limits.is_stored ? more * dense_rows_many : 0;
    }
    return limits;
}

#define QUIVER_INSTANTIATE(T)                                                                   \
    template DirectLimits direct_limits(Context&, const EigenProblem<T>&, const EigenOptions&); \
    template double stored_entries(const Operator<T>*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The limits up to which eigensolve() considers dense solves and factorisations. Private to
// solvers/eigen.
#pragma once

#include <cstdint>

#include "blockvec/context.hpp"
#include "kernels/operator.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"

namespace quiver {

/// k counts as a large part of the rows if it is at least 1 / large_part of them.
constexpr std::int64_t large_part = 8;

/// The limits up to which dense solves and factorisations are considered for a problem.
struct DirectLimits {
    std::int64_t rows = 0;
    /// True if the operators are sparse or dense matrices; `is_dense` if one of them is dense.
    bool is_stored = false;
    bool is_dense = false;
    bool has_mass = false;
    bool is_complex = false;
    /// Most rows of a dense solve: in general, for interior eigenvalues, and for large k; 0 if not
    /// possible.
    std::int64_t dense = 0;
    std::int64_t interior = 0;
    std::int64_t many = 0;
    bool can_factorise = false;
    /// True if a dense solve uses cuSOLVER; false where direct_limits() does not look for it.
    bool uses_cusolver = false;
    /// True if a factorisation is possible by cuDSS only: more than most_ldlt_rows rows on a GPU.
    bool needs_cudss = false;

    /// The work of a dense solve in multiply-adds of a sparse factorisation; infinity with more
    /// than `most` rows.
    double dense_work(std::int64_t most) const;
};

/// The limits for a problem, the same on all ranks. With a checkpoint or protection, which exclude
/// direct methods, no rows are allowed. Opens LAPACK on rank 0, above 50,000 rows on a GPU cuDSS,
/// and for 3,001 to 8,192 rows cuSOLVER if the eigenvalues are interior or many. Throws their
/// errors on all ranks. Collective. Cost: no products.
template <class T>
DirectLimits direct_limits(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options);

/// True for a window, a target and the smallest magnitude.
bool is_interior(const EigenOptions& options);

/// The entries of a matrix; 0 for other operators and null.
template <class T>
double stored_entries(const Operator<T>* a);

}  // namespace quiver

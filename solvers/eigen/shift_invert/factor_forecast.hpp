// SPDX-License-Identifier: BSD-3-Clause
// What a factorisation of A - sigma B would take, before it is made. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"

namespace quiver {

/// From the symbolic analysis of the pattern of A and B by what will factorise; the same on all
/// ranks.
struct FactorForecast {
    std::int64_t rows = 0;
    /// Entries of L; if the factors of SparseLdlt do not fit, a lower bound.
    std::int64_t entries = 0;
    /// Multiply-adds of one factorisation, at the speed of SparseLdlt.
    double products = 0;
    /// The factors, a column of vectors, and the memory that rank 0 may use for both.
    double bytes = 0;
    double column_bytes = 0;
    double most_bytes = 0;
    /// Of a window, if counted: the number of eigenvalues inside; else -1.
    std::int64_t inside = -1;

    /// Also with the three columns that shift_invert() keeps for each of `pairs` pairs.
    bool fits(double pairs) const { return bytes + 3 * pairs * column_bytes <= most_bytes; }
    /// "factors of 1.2e+06 entries, 18.3 MB"
    std::string words() const;
    /// The same, "are more than the 12.3 MB that they may take".
    std::string words_of_too_much() const;
    /// Multiply-adds of shift_invert() for `pairs` pairs.
    double solve_products(double pairs, bool interior) const;
};

/// True if shift_invert() takes this problem: A and B are SparseMatrix objects, without
/// constraints, checkpoint and protection, and have at most most_ldlt_rows rows, or there is MUMPS
/// and rank 0 has the memory for the entries, on the host. Collective.
template <class T>
bool can_factorise(Context& ctx, const EigenProblem<T>& problem);

/// For a problem that can_factorise(). The eigenvalues in a window are counted, by two
/// factorisations, if these take at most `most_counting` multiply-adds each. Throws the errors of
/// gather_rows(). Collective. Cost: gathers A and B on rank 0; the analysis of MUMPS, or
/// predict_fill().
template <class T>
FactorForecast forecast_factorisation(Context& ctx, const EigenProblem<T>& problem,
                                      const EigenOptions& options, double most_counting = 0);

}  // namespace quiver

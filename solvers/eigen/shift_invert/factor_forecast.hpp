// SPDX-License-Identifier: BSD-3-Clause
// Predicts the size and the work of a factorisation of A - sigma B without making it. Private to
// solvers/eigen.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"

namespace quiver {

/// The library that factorises A - sigma B.
enum class FactorLibrary : int { ldlt, mumps, cudss };
const char* to_string(FactorLibrary library);

/// The library that shift_invert() uses for this number of rows: cuDSS on a GPU from 20,000 rows
/// on, else MUMPS, else SparseLdlt. Throws the errors of Cudss. Collective.
FactorLibrary factor_library(Context& ctx, std::int64_t rows);

/// The prediction of the library that will factorise, from the pattern of A and B; the same on all
/// ranks.
struct FactorForecast {
    FactorLibrary library = FactorLibrary::ldlt;
    std::int64_t rows = 0;
    bool is_complex = false;
    /// Entries of L; if the factors of SparseLdlt do not fit, a lower bound.
    std::int64_t entries = 0;
    /// Costs in multiply-adds of SparseLdlt (some 0.8 ns each): the multiply-adds of one
    /// factorisation (estimated for cuDSS); the analysis before the first factorisation; the rest
    /// of one factorisation; a solve with one column.
    double products = 0;
    double analysis_products = 0;
    double overhead_products = 0;
    double column_products = 0;
    /// Bytes of the factors and of one vector, and the most bytes that rank 0 may use for factors
    /// and vectors, in host memory. With cuDSS: device memory, which holds factors only, so that
    /// column_bytes is 0.
    double bytes = 0;
    double column_bytes = 0;
    double most_bytes = 0;
    /// The number of eigenvalues in the window if they were counted, else -1.
    std::int64_t inside = -1;
    /// The ratio of the largest a_ii / b_ii to the least, in modulus: an estimate of that of the
    /// eigenvalues which no choice of units changes. Rows with a_ii = 0 do not count; infinity if a
    /// b_ii is not positive. 1 without B.
    double value_ratio = 1;

    /// True if the factors fit together with the three vectors that shift_invert() keeps for each
    /// of `pairs` pairs.
    bool fits(double pairs) const { return bytes + 3 * pairs * column_bytes <= most_bytes; }
    /// "factors of 1.2e+06 entries, 18.3 MB"
    std::string words() const;
    /// The same, followed by ", and the vectors take more than the 12.3 MB that shift-invert may
    /// use".
    std::string words_of_too_much() const;
    /// Multiply-adds of shift_invert() for `pairs` pairs.
    double solve_products(double pairs, bool interior) const;
};

/// True if shift_invert() can solve this problem: A and B are SparseMatrix objects; there are no
/// constraints, no checkpoint and no protection; there are at most most_ldlt_rows rows, or, on the
/// host with MUMPS and on a GPU with cuDSS, as many as rank 0 can gather. Collective.
template <class T>
bool can_factorise(Context& ctx, const EigenProblem<T>& problem);

/// For a problem that can_factorise(). The eigenvalues in a window are counted, by two
/// factorisations, if these take at most `most_counting` multiply-adds each. Throws the errors of
/// gather_rows() and of the library. Collective. Cost: gathers A and B on rank 0; the analysis of
/// MUMPS or cuDSS, or predict_fill().
template <class T>
FactorForecast forecast_factorisation(Context& ctx, const EigenProblem<T>& problem,
                                      const EigenOptions& options, double most_counting = 0);

}  // namespace quiver

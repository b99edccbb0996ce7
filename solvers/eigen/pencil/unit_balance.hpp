// SPDX-License-Identifier: BSD-3-Clause
// Units of the unknowns of A x = lambda B x in which the rows of A and B have similar norms.
// Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "blockvec/small_matrix.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/pencil/identity_mass.hpp"

namespace quiver {

/// The end of the message of a solve in other units.
inline constexpr const char* words_of_other_units =
    ": the rows of A or B differ by many powers of two; other units of the unknowns make them "
    "alike";

/// The exponents e of a diagonal D = 2^e. balance() chooses D so that, over all rows i, the larger
/// of the norms of row i of D A D and of row i of theta D B D is similar. If D is needed, the
/// largest row of D B D is between 1/2 and 4, so that rows of D A D and residuals tell the size and
/// the errors of eigenvalues.
///
/// A change of units of the unknowns, x = S x', turns the pencil into S A S and S B S with the same
/// eigenvalues. Random columns, residuals and thresholds that are relative to ||A|| and ||B|| then
/// see only the rows with the largest entries. In the units x = D y they do not depend on S.
///
/// Products with random columns estimate the norms of rows, so that A and B may be matrix-free.
/// If a matrix is semidefinite, its diagonal is then equilibrated too. Source: Ruiz, A scaling
/// algorithm to equilibrate both rows and columns norms in matrices, RAL-TR-2001-034; Bradley, PhD
/// thesis, Stanford 2010 (matrix-free).
template <class T>
class UnitBalance {
  public:
    /// Requires problem.b; ctx and problem must outlive this object. Equilibrates B alone if its
    /// rows differ by more than a factor of 256; rows of B that are zero keep their units. Other
    /// units are also needed if the rows of A differ by more than the factor `ratio`. Throws the
    /// errors of checked_product(). Collective. Cost in products with 8 columns: one with B, and up
    /// to 9 more if its rows differ; else, for a finite ratio, one with A and, if its rows differ,
    /// one more with B.
    UnitBalance(Context& ctx, const EigenProblem<T>& problem, Method method, std::uint64_t seed,
                double ratio = std::numeric_limits<double>::infinity());

    /// False if the rows of B and, for a finite ratio, of A differ by so little that other units
    /// would change nothing.
    bool is_needed() const { return is_needed_; }
    /// True if the rows of B alone make other units necessary.
    bool is_needed_for_b() const { return is_needed_for_b_; }
    /// Throws IndefiniteError on all ranks if a row of B is zero. Collective.
    void refuse_zero_rows() const;
    /// The size of the k-th wanted eigenvalue at an end or, for smallest_magnitude, of the k-th
    /// smallest |lambda|, estimated from the norms of rows; at least least_value(), but 1 if A has
    /// fewer than k rows that are not zero. Throws the errors of checked_product(). Collective.
    /// Cost: a product of A with 8 columns.
    double likely_value(Which which, int k);
    /// The smallest theta to pass to balance(): with a smaller one, x^H B x of the wanted vectors
    /// would be rounding noise. 0 before likely_value(), and if the
    /// smallest |lambda| are wanted.
    double least_value() const { return least_value_; }
    /// Equilibrates A and theta B; theta: the size of the wanted eigenvalues.
    /// Throws the errors of checked_product(). Collective. Cost: up to 8 products with A and B of 8
    /// columns each, and one with B.
    void balance(double theta);
    /// Equilibrates B alone again.
    void balance_b() { exponents_ = of_b_; }
    std::uint64_t seed() const { return seed_; }
    /// e of this rank's rows.
    const std::vector<int>& exponents() const { return exponents_; }
    /// The largest 2-norm of a row of D M D, with M = A or B, to a factor of about 2: at most
    /// ||D M D||, and at least a fraction 1 / sqrt(n) of it. Throws the errors of
    /// checked_product(). Collective. Cost: a product with 8 columns.
    double largest_row(Operator<T>& m) {
        return size_range(ctx_.comm(), row_sizes(m, nullptr)).largest;
    }
    /// True if the changes e - before of the exponents vary by more than 4 over the rows: a factor
    /// that all rows share has no effect. Collective.
    bool differs_from(const std::vector<int>& before) const;
    /// Products with A so far, counted by column.
    std::int64_t applications() const { return applications_; }

  private:
    /// The largest element of each row of D M D V. `quotients`: if not null, v_j^H D M D v_j.
    std::vector<double> row_sizes(Operator<T>& m, std::vector<double>* quotients);
    void equilibrate(const std::function<std::vector<double>()>& sizes);
    /// Multiplies D by a number, so that the largest row of D B D is between 1/2 and 4.
    void normalise();

    Context& ctx_;
    const EigenProblem<T>& problem_;
    Method method_;
    std::uint64_t seed_;
    SmallMatrix<T> probes_;
    std::vector<int> exponents_;
    /// The exponents that equilibrate B alone.
    std::vector<int> of_b_;
    bool is_needed_ = false;
    bool is_needed_for_b_ = false;
    /// The rows of B on this rank that are zero: their number, and the first (counted from 0 over
    /// all ranks).
    std::int64_t zero_rows_ = 0;
    std::int64_t first_zero_row_ = 0;
    double least_value_ = 0;
    std::int64_t applications_ = 0;
};

}  // namespace quiver

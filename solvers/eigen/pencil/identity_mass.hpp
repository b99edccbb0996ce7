// SPDX-License-Identifier: BSD-3-Clause
// A x = lambda x with a stiff A as a pencil. Private to solvers/eigen.
#pragma once

#include <optional>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigen_problem.hpp"

namespace quiver {

/// `least` is infinite if no size is positive.
struct SizeRange {
    double least = 0;
    double largest = 0;
};

/// The least positive and the largest of the sizes of all ranks. Collective.
SizeRange size_range(const Comm& comm, const std::vector<double>& sizes);

/// 1 / sqrt(eps). If the largest entries of two rows differ by more than this factor, rounding
/// errors of ||A|| leave eigenvalues of the size of the smaller row less than half of the digits of
/// T.
template <class T>
double stiff_row_ratio();

/// True if A has stored entries and the largest entries of its rows, without rows of zeros, differ
/// by more than stiff_row_ratio(). Collective. Cost: a pass over the entries on the host (a copy of
/// them if they are on a device) and two all-reduces.
template <class T>
bool is_stiff(Context& ctx, const Operator<T>& a);

/// Adds B = I to a problem without B whose A is stiff, because only a pencil can be solved in other
/// units of its unknowns (UnitBalance), in which the rows of A are alike. Any other problem is
/// unchanged.
template <class T>
class IdentityMass {
  public:
    /// Collective. Cost: that of is_stiff(), and one entry for each row.
    IdentityMass(Context& ctx, const EigenProblem<T>& problem);
    IdentityMass(const IdentityMass&) = delete;
    IdentityMass& operator=(const IdentityMass&) = delete;

    /// False if problem() is the given one.
    bool is_used() const { return b_.has_value(); }
    /// The operators of the given problem must outlive this object.
    const EigenProblem<T>& problem() const { return problem_; }

  private:
    EigenProblem<T> problem_;
    std::optional<SparseMatrix<T>> b_;
};

}  // namespace quiver

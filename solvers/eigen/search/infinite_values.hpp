// SPDX-License-Identifier: BSD-3-Clause
// Infinite eigenvalues of A x = lambda B x with a singular B. Private to solvers/eigen.
#pragma once

#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"

namespace quiver {

/// The part of a message that says what to request instead of infinite eigenvalues. `low` and
/// `high`: the lower or the upper end may be finite.
std::string finite_request(const EigenOptions& options, Which which, bool low, bool high);

/// True if the lower or the upper end of the spectrum has wanted eigenvalues. Of both ends with k =
/// 1 only the upper one has.
bool wants_low_end(const EigenOptions& options, Which which);
bool wants_high_end(const EigenOptions& options, Which which);

/// Throws InfiniteEigenvalueError on all ranks if rows of B are zero and the diagonal of A there
/// shows that wanted eigenvalues are infinite. For sparse matrices without constraints; otherwise
/// a no-op. Collective; costs a pass over the entries of B and, if rows
/// are zero, of A; entries on a device are copied first.
template <class T>
void refuse_infinite_ends(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options);

}  // namespace quiver

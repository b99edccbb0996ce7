// SPDX-License-Identifier: BSD-3-Clause
// A x = lambda B x in units of the unknowns in which the rows of A and B have similar norms.
// Private to solvers/eigen.
#pragma once

#include <functional>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// A solver of A x = lambda B x.
template <class T>
using PencilSolve =
    std::function<EigenResult<T>(Context&, const EigenProblem<T>&, const EigenOptions&)>;

/// Solves A x = lambda B x by `solve`, called `method` in messages, for an end of the spectrum or a
/// target. If the rows of B differ by more than a factor of 256, `solve` gets the pencil
///
///     D A D y = lambda D B D y,  x = D y
///
/// with powers of two in the diagonal D (UnitBalance): the eigenvalues are the same, and so are the
/// B-norms of x and y. Otherwise `solve` gets the problem itself. BalancedProblem tells what
/// becomes of the other parts of the problem; the method does not see `protection`.
///
/// D depends on the size of the wanted eigenvalues. If the eigenvalues found are of another size,
/// another solve with another D starts from the pairs found. The pairs meet the tolerance both for
/// x and for y: if a residual ||A x - lambda B x|| / ||x|| is above it, another solve with a
/// smaller tolerance follows. There are at most four solves; if a residual is then too large, the
/// result has not converged. A checkpoint also keeps the size from which D was made.
///
/// Throws the errors of check_problem(), check_options() and UnitBalance. Collective. Cost: those
/// of UnitBalance and of one solve, seldom more; if D is used also two short Lanczos runs, two
/// passes over the block for each product, and a product with A and B for each pair.
template <class T>
EigenResult<T> solve_balanced(Context& ctx, const EigenProblem<T>& problem,
                              const EigenOptions& options, Method method,
                              const PencilSolve<T>& solve);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The end of a solve under protection (solvers/abft): the matrix is compared with its checksums
// before a result counts as verified. Private to solvers/eigen.
#pragma once

#include <string>

#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"
#include "solvers/solve_audit.hpp"

namespace quiver {

/// The operator whose memory the audit compares: the protected matrix, or A if there is no
/// protection.
template <class T>
Operator<T>& checked_operator(const EigenProblem<T>& problem);

/// The result has not converged, and its multiplicity is unverified; `reason` says why.
template <class T>
void withdraw(EigenResult<T>& result, const std::string& reason);

/// Withdraws a result whose solve has left faults. With protection the residuals are computed again
/// with one product, because converged vectors stay in memory, where a fault may change them, while
/// the complement is searched; a result with a residual above its tolerance is withdrawn, and so is
/// one whose vectors change meanwhile. Collective.
template <class T>
void judge_faults(Context& ctx, const EigenProblem<T>& problem, const SolveFaults& faults,
                  EigenResult<T>& result);

/// solve(), then the audit and its judgement. If solve() throws, the matrix is audited as well.
template <class T, class Solve>
EigenResult<T> audited_solve(Context& ctx, const EigenProblem<T>& problem, Solve&& solve) {
    const SolveAudit<T> audit(checked_operator(problem));
    EigenResult<T> result;
    try {
        result = solve();
    } catch (...) {
        audit.clean_up(ctx);
        throw;
    }
    judge_faults(ctx, problem, audit.finish(ctx), result);
    return result;
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The audit at the end of a solve under protection (solvers/abft): the matrix is compared with its
// checksums before a result counts as verified. Private to solvers/eigen.
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

/// Marks the result as not converged and its multiplicity as unverified; `reason` says why.
template <class T>
void withdraw(EigenResult<T>& result, const std::string& reason);

/// Withdraws a result whose solve has left faults. With protection one product computes the
/// residuals again: converged vectors stay in memory while the complement is searched, and a fault
/// may change them there. The result is withdrawn if a residual is above its tolerance, or if a
/// vector changes during this check. With constraints the residuals cannot be checked; the result
/// is then withdrawn if the audit has repaired the matrix. Collective.
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

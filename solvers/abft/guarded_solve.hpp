// SPDX-License-Identifier: BSD-3-Clause
// One solve under protection: the block kernels are checked if the options ask for it, and an error
// states the faults found before. Private to solvers/.
#pragma once

#include <optional>
#include <string>

#include "blockvec/error.hpp"
#include "solvers/abft/guarded_kernels.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/solve_audit.hpp"

namespace quiver {

/// Describes the faults that the checksums of this rank found before a solve failed; they may be
/// the cause of the failure. Empty if there were none. Does not communicate, because other ranks
/// may not have failed.
inline std::string faults_until(const AbftCounts& counts, std::int64_t faults_of_updates,
                                AbftMode mode) {
    const std::int64_t faults = counts.faults + faults_of_updates;
    if (faults == 0) {
        return "";
    }
    return "; checksums had found " + std::to_string(faults) +
           (faults == 1 ? " fault" : " faults") + " before" +
           (mode == AbftMode::correct
                ? ""
                : ", which mode `detect` does not repair: use mode `correct`");
}

/// Runs solve(), which multiplies with `protection` (null: no protection), and returns its result.
/// With `updates`, block products and block updates are checked one by one; afterwards
/// `judge(faults, result)` gets the number of their faults that `detect` did not repair (0 with
/// `correct`). The counts of all checks go to `protection`. Collective; with `updates` one
/// all-reduce.
template <class T, class Solve, class Judge>
auto guarded_solve(Context& ctx, ProtectedMatrix<T>* protection, bool updates, Solve&& solve,
                   Judge&& judge) {
    std::optional<GuardedKernels> guarded;
    if (updates) {
        guarded.emplace(ctx, protection->options());
    }
    decltype(solve()) result;
    try {
        result = solve();
    } catch (const NumericalError& error) {
        const std::string faults =
            protection == nullptr
                ? ""
                : faults_until(protection->counts(), guarded ? guarded->counts().faults : 0,
                               protection->mode());
        if (faults.empty()) {
            throw;
        }
        NumericalError told(error.what() + faults);
        if (error.collective()) {
            told.set_collective();
        }
        throw told;
    }
    if (guarded) {
        const AbftCounts counts = guarded->counts();
        guarded.reset();
        protection->counts().add_updates(counts);
        const bool corrects = protection->mode() == AbftMode::correct;
        // Updates that could not be repaired with `correct` are judged by the fresh residuals.
        judge(SolveFaults{ctx.comm().sum(corrects ? 0 : counts.faults), 0, corrects}, result);
    }
    return result;
}

}  // namespace quiver

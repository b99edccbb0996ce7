// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigensolver.hpp"

#include <optional>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/abft/guarded_kernels.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "solvers/eigen/chebyshev_subspace.hpp"
#include "solvers/eigen/jacobi_davidson.hpp"
#include "solvers/eigen/lobpcg.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/both_ends.hpp"
#include "solvers/eigen/window_filter.hpp"

namespace quiver {

namespace {

/// Up to this many rows block Lanczos has a basis that may span the whole space.
constexpr std::int64_t whole_space_rows = 512;

/// Residuals are judged relative to the largest norm seen. An undetected fault that inflates this
/// norm would let any vector pass, so the norm is checked against a bound from the matrix rows.
template <class T>
void judge_norm(const EigenProblem<T>& problem, EigenResult<T>& result) {
    if (problem.protection == nullptr || problem.protection->mode() == AbftMode::off ||
        problem.b != nullptr) {
        return;
    }
    const double most = problem.protection->largest_row();
    // Without faults Ritz values exceed this bound by rounding only.
    if (result.norm_estimate > most * (1 + 1e-3)) {
        withdraw(result, "a Ritz value of " + number_text(result.norm_estimate, 6) +
                             " was found, but the rows of the matrix allow only " +
                             number_text(most, 6) +
                             ": faults that no check can detect (docs/abft.md); solve again");
    }
}

/// Describes the faults that checksums of this rank had found before the solve failed, which may be
/// its cause; empty if there were none. No communication, because other ranks may not have failed.
template <class T>
std::string faults_until(const EigenProblem<T>& problem, std::int64_t faults_of_updates) {
    std::int64_t faults = faults_of_updates;
    bool corrects = false;
    if (problem.protection != nullptr) {
        faults += problem.protection->counts().faults;
        corrects = problem.protection->mode() == AbftMode::correct;
    }
    if (faults == 0) {
        return "";
    }
    return "; checksums had found " + std::to_string(faults) +
           (faults == 1 ? " fault" : " faults") + " before" +
           (corrects ? "" : ", which mode `detect` does not repair: use mode `correct`");
}

/// Whether products and updates of blocks are checked one by one. Block Lanczos does not need this:
/// it carries checksums of its basis.
template <class T>
bool guards_blocks(const EigenProblem<T>& problem, Method method) {
    return problem.protection != nullptr && problem.protection->options().updates &&
           method != Method::lanczos;
}

}  // namespace

template <class T>
MethodChoice choose_method(const EigenProblem<T>& problem, const EigenOptions& options) {
    if (options.method != Method::automatic) {
        return {options.method, ""};
    }
    if (options.window) {
        return {Method::filter, "a window is given"};
    }
    if (options.which == Which::target || options.which == Which::smallest_magnitude) {
        return {Method::jacobi_davidson, "eigenvalues nearest a target"};
    }
    if (problem.b != nullptr) {
        return {Method::lobpcg, "B is given"};
    }
    if (problem.preconditioner != nullptr) {
        return {Method::lobpcg, "a preconditioner is given"};
    }
    if (dimensions(problem) <= whole_space_rows) {
        return {Method::lanczos, "the space is so small that the basis may span it"};
    }
    return {Method::chebyshev, "an end of the spectrum, without B or a preconditioner"};
}

template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options) {
    require_equal_options(ctx.comm(), problem, options);
    if (wants_both_ends(options.which)) {
        return solve_both_ends(ctx, problem, options);
    }
    if (options.which == Which::smallest_magnitude) {
        EigenOptions nearest_zero = options;
        nearest_zero.which = Which::target;
        nearest_zero.target = 0;
        return eigensolve(ctx, problem, nearest_zero);
    }
    MethodChoice choice = choose_method(problem, options);
    const auto refuse = [&](const char* why) {
        InputError error(std::string("eigensolver: method ") + to_string(choice.method) +
                         " finds an end of the spectrum; " + why);
        error.set_collective();
        throw error;
    };
    if (options.window && choice.method != Method::filter) {
        refuse("a window needs method filter");
    }
    if (!options.window && options.which == Which::target &&
        choice.method != Method::jacobi_davidson) {
        refuse("a target needs method jd");
    }
    const auto solve = [&]() -> EigenResult<T> {
        switch (choice.method) {
            case Method::lanczos:
                return block_lanczos(ctx, problem, options);
            case Method::jacobi_davidson:
                return jacobi_davidson(ctx, problem, options);
            case Method::chebyshev:
                return chebyshev_subspace(ctx, problem, options);
            case Method::filter:
                return window_filter(ctx, problem, options);
            case Method::lobpcg:
                return lobpcg(ctx, problem, options);
            default: {
                InputError error(std::string("eigensolver: method ") + to_string(choice.method) +
                                 " is not in this build");
                error.set_collective();
                throw error;
            }
        }
    };
    std::optional<GuardedKernels> guarded;
    if (guards_blocks(problem, choice.method)) {
        guarded.emplace(ctx, problem.protection->options());
    }
    EigenResult<T> result;
    try {
        result = solve();
    } catch (const NumericalError& error) {
        const std::string faults = faults_until(problem, guarded ? guarded->counts().faults : 0);
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
        problem.protection->counts().add_updates(counts);
        const bool corrects = problem.protection->mode() == AbftMode::correct;
        // Updates that could not be repaired with `correct` are judged by the fresh residuals.
        judge_faults(ctx, problem, {ctx.comm().sum(corrects ? 0 : counts.faults), 0, corrects},
                     result);
    }
    judge_norm(problem, result);
    result.method_reason = std::move(choice.reason);
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                         \
    template MethodChoice choose_method(const EigenProblem<T>&, const EigenOptions&); \
    template EigenResult<T> eigensolve(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

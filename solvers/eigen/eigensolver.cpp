// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigensolver.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/guarded_solve.hpp"
#include "solvers/eigen/automatic/both_ends.hpp"
#include "solvers/eigen/automatic/direct_limits.hpp"
#include "solvers/eigen/automatic/method_choice.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "solvers/eigen/chebyshev_subspace.hpp"
#include "solvers/eigen/dense_eigen.hpp"
#include "solvers/eigen/jacobi_davidson.hpp"
#include "solvers/eigen/lobpcg.hpp"
#include "solvers/eigen/pencil/identity_mass.hpp"
#include "solvers/eigen/pencil/solve_with_errors.hpp"
#include "solvers/eigen/pencil/unit_balance.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/infinite_values.hpp"
#include "solvers/eigen/search/scaled_problem.hpp"
#include "solvers/eigen/shift_invert.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"
#include "solvers/eigen/window_filter.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {

namespace {

/// Residuals are judged relative to the largest norm seen. An undetected fault that inflates this
/// norm would let any vector pass, so the norm is checked against a bound from the matrix rows.
template <class T>
void judge_norm(const EigenProblem<T>& problem, const EigenOptions& options,
                EigenResult<T>& result) {
    if (problem.protection == nullptr || problem.protection->mode() == AbftMode::off ||
        problem.b != nullptr) {
        return;
    }
    double most = problem.protection->largest_row();
    // If A is negligible beside the target, A - target I rounds to -target I, and Jacobi-Davidson
    // takes |target| as the norm.
    if (options.which == Which::target &&
        most <= static_cast<double>(epsilon_v<T>) * std::abs(options.target)) {
        most = std::abs(options.target);
    }
    // Without faults Ritz values exceed this bound by rounding only.
    if (result.norm_estimate > most * (1 + 1e-3)) {
        withdraw(result, "a Ritz value of " + number_text(result.norm_estimate, 6) +
                             " was found, but the rows of the matrix allow only " +
                             number_text(most, 6) +
                             ": faults that no check can detect (docs/abft.md); solve again");
    }
}

/// True if products and updates of blocks are checked one by one. Block Lanczos does not need this,
/// because it has checksums of its basis.
template <class T>
bool guards_blocks(const EigenProblem<T>& problem, Method method) {
    return problem.protection != nullptr && problem.protection->options().updates &&
           method != Method::lanczos;
}

/// Throws InputError on all ranks if the method cannot find the wanted eigenvalues.
void require_fitting_method(Method method, const EigenOptions& options) {
    const auto refuse = [&](const char* why) {
        throw_collective(ErrorKind::input,
                         std::string("eigensolver: method ") + to_string(method) + " finds " +
                             (method == Method::filter ? "the eigenvalues in a window; "
                              : method == Method::jacobi_davidson
                                  ? "eigenvalues at an end of the spectrum or nearest a target; "
                                  : "eigenvalues at an end of the spectrum; ") +
                             why);
    };
    if (options.window && method != Method::filter) {
        refuse("a window needs method filter, dense or shift-invert");
    }
    if (!options.window && options.which == Which::target && method != Method::jacobi_davidson) {
        refuse("a target needs method jd, dense or shift-invert");
    }
}

template <class T>
EigenResult<T> call_method(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options, Method method) {
    switch (method) {
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
        case Method::dense:
            return dense_eigen(ctx, problem, options);
        case Method::shift_invert:
            return shift_invert(ctx, problem, options);
        default: {
            throw_collective(ErrorKind::input, std::string("eigensolver: method ") +
                                                   to_string(method) + " is not in this build");
        }
    }
}

/// Rethrows an error of an iteration with an operator that is not scaled, and names the norm as a
/// possible cause.
template <class T>
[[noreturn]] void rethrow_with_range(const NumericalError& error) {
    const NormRange<T> range;
    NumericalError named(std::string(error.what()) +
                         "; an operator with checksums or without stored entries is not scaled: if "
                         "its norm lies outside " +
                         number_text(range.least, 2) + " to " + number_text(range.most, 2) +
                         ", multiply it by a factor");
    if (error.collective()) {
        named.set_collective();
    }
    throw named;
}

/// call_method() under the checks that the problem's protection asks for.
template <class T>
EigenResult<T> protected_solve(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options, Method method) {
    EigenResult<T> result = guarded_solve(
        ctx, problem.protection, guards_blocks(problem, method),
        [&] { return call_method(ctx, problem, options, method); },
        [&](const SolveFaults& faults, EigenResult<T>& solved) {
            judge_faults(ctx, problem, faults, solved);
        });
    judge_norm(problem, options, result);
    return result;
}

template <class T>
EigenResult<T> solve_once(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                          Method method);

/// solve_once() of a problem whose squares of norms would overflow or underflow.
template <class T>
EigenResult<T> solve_scaled(Context& ctx, const EigenProblem<T>& problem,
                            const EigenOptions& options, Method method, PencilExponents needed) {
    if (problem.checkpoint != nullptr) {
        throw_collective(
            ErrorKind::input,
            "eigensolver: the states of a checkpoint cannot be scaled, and squares of the norm of "
            "A or B overflow or underflow; omit the checkpoint, or scale the matrix");
    }
    const ScaledProblem<T> scaled(problem, needed);
    return scaled.restored(ctx, solve_once(ctx, scaled.problem(), scaled.scaled(options), method));
}

/// One solve by `method`, with the checks that belong to it.
template <class T>
EigenResult<T> solve_once(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                          Method method) {
    EigenOptions chosen = options;
    chosen.method = method;
    if (options.window) {
        chosen.which = Which::smallest;  // ignored
    }
    const bool selects = is_direct(method);
    if (const PencilExponents needed = selects ? PencilExponents{} : needed_exponents(ctx, problem);
        needed.a != 0 || needed.b != 0) {
        return solve_scaled(ctx, problem, options, method, needed);
    }
    if (!selects && chosen.which == Which::smallest_magnitude) {
        chosen.which = Which::target;
        chosen.target = 0;
    }
    if (!selects) {
        require_fitting_method(method, chosen);
    }
    try {
        return protected_solve(ctx, problem, chosen, method);
    } catch (const IndefiniteError&) {
        throw;
    } catch (const NumericalError& error) {
        const Operator<T>* const a = &problem.a;
        if (dynamic_cast<const SparseMatrix<T>*>(a) != nullptr ||
            dynamic_cast<const ScaledOperator<T>*>(a) != nullptr) {
            throw;
        }
        rethrow_with_range<T>(error);
    }
}

/// solve_once() with bounds of the errors and residuals judged in other units.
template <class T>
EigenResult<T> accurate_solve(Context& ctx, const EigenProblem<T>& problem,
                              const EigenOptions& options, Method method) {
    return solve_with_errors<T>(ctx, problem, options, [method](auto&... arguments) {
        return solve_once<T>(arguments..., method);
    });
}

/// The end of the message of a solve by lobpcg() that has not converged: what would help. Empty
/// after other solves. Collective.
template <class T>
std::string help_for_lobpcg(Context& ctx, const EigenProblem<T>& problem,
                            const EigenResult<T>& result) {
    const std::string direct = to_string(Method::shift_invert);
    if (result.method != Method::lobpcg || result.converged || result.interrupted ||
        result.message.find(direct) != std::string::npos) {
        return "";
    }
    if (can_factorise(ctx, problem)) {
        return "; " + direct +
               " factorises the stored entries and needs few factorisations where lobpcg needs "
               "many iterations";
    }
    return problem.preconditioner == nullptr ? "; a preconditioner would reduce the steps" : "";
}

/// Emits a notice with the options that options.method does not use.
void announce_unused(Context& ctx, const EigenOptions& options) {
    const Method method = options.method;
    std::string names;
    const auto add = [&](bool is_unused, const char* name) {
        names += is_unused ? (names.empty() ? "" : ", ") + std::string(name) : "";
    };
    add(options.max_basis > 0 && (method == Method::lobpcg || method == Method::dense),
        "max_basis");
    add(options.block > 0 && method == Method::dense, "block");
    add(options.inner != InnerSolver::minres && method != Method::jacobi_davidson, "inner");
    if (!names.empty()) {
        ctx.emit(NoticeEvent{std::string(to_string(method)) + " does not use " + names});
    }
}

/// A solve by Method::automatic: a method that has not converged hands over to another method.
template <class T>
class AutomaticSolve {
  public:
    AutomaticSolve(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : ctx_(ctx), problem_(problem), options_(options) {}

    EigenResult<T> run() {
        const MethodChoice first = choose_method(ctx_, problem_, options_);
        if (asks_for_both_ends(options_) &&
            (first.method != Method::dense || dense_lacks_digits())) {
            return solve_both_ends(ctx_, problem_, options_);
        }
        reason_ = first.reason;
        const bool limited =
            first.hand_over_after > 0 &&
            (options_.max_iterations == 0 || first.hand_over_after < options_.max_iterations);
        attempt(first.method, limited ? first.hand_over_after : options_.max_iterations);
        const bool stops =
            options_.max_iterations > 0 && result_.iterations >= options_.max_iterations;
        if (!refusal_.empty()) {
            replace_refused();
        } else if (!is_done() && first.method == Method::shift_invert && !stops) {
            replace_factorisation();
        } else if (first.method == Method::dense) {
            replace_dense();
        } else if (limited && first.method != Method::shift_invert && !is_useful()) {
            replace_iteration(!is_done() && result_.iterations >= first.hand_over_after);
        }
        result_.method_reason = std::move(reason_);
        tell_of_failures();
        return std::move(result_);
    }

  private:
    bool is_done() const { return result_.converged || result_.interrupted; }

    /// If no attempt has converged, the message tells of all of them.
    void tell_of_failures() {
        if (is_done()) {
            return;
        }
        std::string message;
        for (const auto& [method, why] : failures_) {
            const std::string name = std::string(to_string(method)) + ": ";
            const bool is_named = failures_.size() == 1 || why.rfind(name, 0) == 0;
            message += (message.empty() ? "" : "; ") + (is_named ? "" : name) + why;
        }
        result_.message = std::move(message);
        if (!can_factorise(ctx_, problem_)) {
            result_.message += help_for_lobpcg(ctx_, problem_, result_);
        }
    }

    /// True if A is stiff and a dense solve would work in the units of the problem, in which the
    /// small eigenvalues have few correct digits. It takes other units only if the rows of B
    /// differ.
    bool dense_lacks_digits() {
        return can_factorise(ctx_, problem_) && has_stiff_matrix() &&
               (problem_.b == nullptr ||
                !UnitBalance<T>(ctx_, problem_, Method::dense, options_.seed).is_needed());
    }
    bool has_stiff_matrix() {
        if (!stiff_) {
            stiff_ = is_stiff(ctx_, problem_.a);
        }
        return *stiff_;
    }

    /// True if the solve was interrupted, or has converged with at least half of its eigenvalues
    /// accurate: the error is at most half of the value, or the value may be 0 to rounding. If A is
    /// stiff and shift_invert() is possible, which finds more digits in other units, accurate means
    /// four digits. Collective.
    bool is_useful() {
        constexpr double vanishing_units = 256;
        constexpr double four_digits = 1e-4;
        const double rounding =
            vanishing_units * static_cast<double>(epsilon_v<T>) * result_.norm_estimate;
        std::size_t uncertain = 0;
        std::size_t vague = 0;
        for (std::size_t j = 0; j < result_.errors.size(); ++j) {
            const double size = std::abs(result_.eigenvalues[j]);
            const double error = result_.errors[j];
            uncertain += size > rounding && error > size / 2 ? 1 : 0;
            vague += error > four_digits * size ? 1 : 0;
        }
        const bool few_digits = 2 * vague > result_.errors.size();
        if (few_digits && result_.method != Method::shift_invert && can_factorise(ctx_, problem_)) {
            uncertain = has_stiff_matrix() ? vague : uncertain;
        }
        return is_done() && (2 * uncertain <= result_.errors.size() || result_.interrupted);
    }

    /// Solves by `method`, beginning with the vectors found so far. The work of all attempts is
    /// added. If the attempt does not converge, the previous pairs remain the result if they are
    /// more or had converged. If the method refuses B as not positive definite and shift_invert()
    /// is possible, the previous result remains, and refusal_ gets the message.
    void attempt(Method method, std::int64_t most) {
        EigenOptions options = options_;
        options.max_iterations = most;
        options.max_seconds = remaining_seconds(ctx_.comm(), options_, result_.seconds);
        if (method == Method::shift_invert && options.window && options.max_in_window == 0) {
            // Where a dense solve is possible, it is faster for a large part of the pairs. After
            // one, no more pairs are worth while than it has found.
            const DirectLimits limits = direct_limits(ctx_, problem_, options_);
            const auto found = static_cast<std::int64_t>(result_.eigenvalues.size());
            options.max_in_window =
                limits.rows <= limits.interior
                    ? std::max({limits.rows / large_part, found, std::int64_t{1}})
                    : 0;
        }
        EigenProblem<T> problem = problem_;
        if (result_.vectors.width() > 0) {
            problem.start = std::as_const(result_).vectors.view();
        }
        EigenResult<T> now;
        try {
            now = accurate_solve(ctx_, problem, options, method);
        } catch (const IndefiniteError& error) {
            const bool infinite = dynamic_cast<const InfiniteEigenvalueError*>(&error) != nullptr;
            if (error.operand() != IndefiniteError::Operand::mass || !error.collective() ||
                infinite || method == Method::shift_invert || !can_factorise(ctx_, problem_)) {
                throw;
            }
            refusal_ = error.what();
            failures_.emplace_back(method, refusal_);
            return;
        }
        if (!now.converged) {
            if (!failures_.empty() && failures_.back().first == method) {
                failures_.pop_back();  // the method has gone on
            }
            failures_.emplace_back(method, now.message);
        }
        EigenResult<T> before = std::exchange(result_, std::move(now));
        const bool is_worse =
            result_.converged
                ? before.converged && !before.errors.empty() &&
                      median(before.errors) <= median(result_.errors)
                : before.converged || result_.eigenvalues.size() < before.eigenvalues.size();
        result_.iterations += before.iterations;
        result_.operator_applications += before.operator_applications;
        result_.seconds += before.seconds;
        if (is_worse) {
            if (before.converged) {
                ctx_.emit(FallbackEvent{
                    std::string("auto: the previous pairs remain; ") + to_string(method) + ": " +
                    (result_.converged ? "its error bounds are not smaller" : result_.message)});
            }
            before.interrupted = result_.interrupted;
            before.iterations = result_.iterations;
            before.operator_applications = result_.operator_applications;
            before.seconds = result_.seconds;
            result_ = std::move(before);
        }
    }

    /// 0 without values.
    static double median(std::vector<double> values) {
        if (values.empty()) {
            return 0;
        }
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
        std::nth_element(values.begin(), middle, values.end());
        return *middle;
    }

    /// Called if the first method has refused B as not positive definite: shift_invert() takes a B
    /// that is singular to rounding, and throws if B is indefinite.
    void replace_refused() {
        reason_ = refusal_;
        ctx_.emit(FallbackEvent{"auto: " + reason_ + "; shift-invert goes on"});
        attempt(Method::shift_invert, options_.max_iterations);
    }

    void hand_over(Method method, std::int64_t most, const std::string& why) {
        const std::string name = to_string(result_.method);
        const std::string before = std::exchange(
            reason_, (is_done() ? "most eigenvalues of " + name + " have few certain digits; "
                                : name + " had not converged after " +
                                      std::to_string(result_.iterations) + " iterations; ") +
                         why);
        ctx_.emit(FallbackEvent{"auto: " + reason_ + "; " + to_string(method) + " goes on"});
        const Method previous = result_.method;
        attempt(method, most);
        if (result_.method == previous && method != previous && result_.converged) {
            reason_ = before + "; " + to_string(method) + " had no better answer";
        }
    }

    /// The work of the iteration so far, in multiply-adds of SparseLdlt.
    double work_so_far(bool on_gpu) const {
        const auto rows = static_cast<double>(problem_.a.row_map().global_rows());
        // Jacobi-Davidson makes each vector orthogonal, twice, to the basis and the pairs found.
        const double more = result_.method == Method::lobpcg ? lobpcg_overhead
                            : result_.method == Method::jacobi_davidson
                                ? 4 * static_cast<double>(result_.basis + options_.k) * rows
                                : 0;
        return static_cast<double>(std::max<std::int64_t>(result_.operator_applications, 1)) *
               (product_work(problem_, on_gpu) + more);
    }

    /// `may_go_on`: the iteration ended at the limit of its steps. Otherwise it stagnated, or its
    /// pairs are too inaccurate.
    void replace_iteration(bool may_go_on) {
        const DirectLimits limits = direct_limits(ctx_, problem_, options_);
        const double dense = limits.dense_work(limits.interior);
        FactorForecast forecast;
        double factorised = std::numeric_limits<double>::infinity();
        if (limits.can_factorise) {
            forecast = forecast_factorisation(ctx_, problem_, options_);
            const double pairs = likely_pairs(options_, result_.expected_count);
            if (forecast.fits(pairs)) {
                factorised = forecast.solve_products(pairs, is_interior(options_));
            }
        }
        const double direct = std::min(dense, factorised);
        if (is_done() && direct > cheap_products) {
            return;
        }
        const Method iteration = result_.method;
        if (const double spent = work_so_far(limits.needs_cudss);
            may_go_on && direct > patient_work * spent) {
            const auto done = static_cast<double>(result_.iterations);
            const auto most = static_cast<double>(options_.max_iterations);
            // 0 means no limit of steps.
            double steps = most;
            if (std::isfinite(direct)) {
                steps = std::min(done + done * direct / spent, 1e15);
                steps = most > 0 ? std::min(steps, most / 2) : steps;
            }
            if (steps > done || steps == 0) {
                hand_over(iteration,
                          steps > 0 ? static_cast<std::int64_t>(std::ceil(steps - done)) : 0,
                          !limits.can_factorise       ? "a dense solve would take longer"
                          : std::isfinite(factorised) ? forecast.words() + ", would take longer"
                                                      : forecast.words_of_too_much());
            }
        }
        if (std::isfinite(factorised) && (factorised <= dense || stiff_.value_or(false)) &&
            !is_useful()) {
            hand_over(Method::shift_invert, options_.max_iterations, forecast.words());
        }
        // Small eigenvalues of shift_invert() may have more correct digits than their bounds say.
        const bool may_have_digits = is_done() && result_.method == Method::shift_invert;
        if (std::isfinite(dense) && !is_useful() && !may_have_digits) {
            hand_over(Method::dense, options_.max_iterations, words_of_few_rows(limits.rows));
        }
    }

    /// After a dense solve: shift_invert() takes a B that is singular to rounding, and finds
    /// eigenvalues below the rounding errors of ||A||.
    void replace_dense() {
        const bool possible = can_factorise(ctx_, problem_);
        if (possible && !is_done() && problem_.b != nullptr) {
            hand_over(Method::shift_invert, options_.max_iterations,
                      "a factorisation of A - sigma B needs no inverse of an ill-conditioned B");
        } else if (possible && is_done() && !is_useful()) {
            const FactorForecast forecast = forecast_factorisation(ctx_, problem_, options_);
            const double pairs = likely_pairs(options_, result_.expected_count);
            if (forecast.fits(pairs) &&
                forecast.solve_products(pairs, is_interior(options_)) <= cheap_products) {
                const std::int64_t most =
                    patient_shifts(direct_limits(ctx_, problem_, options_), forecast);
                hand_over(
                    Method::shift_invert,
                    options_.max_iterations > 0 ? std::min(options_.max_iterations, most) : most,
                    forecast.words());
            }
        }
    }

    /// Called if shift_invert() has not converged.
    void replace_factorisation() {
        const DirectLimits limits = direct_limits(ctx_, problem_, options_);
        if (limits.rows <= (is_interior(options_) ? limits.many : limits.interior)) {
            hand_over(Method::dense, options_.max_iterations, words_of_few_rows(limits.rows));
        } else if (!options_.window || (problem_.b == nullptr && !has_stiff_matrix())) {
            // A filter for a window that is narrow beside a stiff A would not end.
            const MethodChoice next = choose_iteration(problem_, options_);
            hand_over(next.method, options_.max_iterations, next.reason);
        }
    }

    Context& ctx_;
    const EigenProblem<T>& problem_;
    const EigenOptions& options_;
    EigenResult<T> result_;
    std::string reason_;
    /// is_stiff(A), once it is known.
    std::optional<bool> stiff_;
    /// The message of a method that has refused B; empty if none has.
    std::string refusal_;
    /// The attempts that have not converged, with their messages.
    std::vector<std::pair<Method, std::string>> failures_;
};

}  // namespace

template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options) {
    require_equal_options(ctx.comm(), problem, options);
    if (options.method == Method::automatic || options.method == Method::shift_invert) {
        refuse_infinite_ends(ctx, problem, options);
    }
    if (options.method == Method::automatic) {
        return AutomaticSolve<T>(ctx, problem, options).run();
    }
    if (asks_for_both_ends(options) && !is_direct(options.method)) {
        return solve_both_ends(ctx, problem, options);
    }
    announce_unused(ctx, options);
    EigenResult<T> result = accurate_solve(ctx, problem, options, options.method);
    result.message += help_for_lobpcg(ctx, problem, result);
    return result;
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> eigensolve(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

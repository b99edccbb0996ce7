// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigensolver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/dense_operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/guarded_solve.hpp"
#include "solvers/eigen/automatic/both_ends.hpp"
#include "solvers/eigen/automatic/direct_limits.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "solvers/eigen/chebyshev/filter_step.hpp"
#include "solvers/eigen/chebyshev_subspace.hpp"
#include "solvers/eigen/dense_eigen.hpp"
#include "solvers/eigen/jacobi_davidson.hpp"
#include "solvers/eigen/lanczos/short_lanczos.hpp"
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
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {

namespace {

/// Up to this many rows block Lanczos has a basis that may span the whole space.
constexpr std::int64_t whole_space_rows = 512;

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

/// n^2 / 1000 steps of an iteration take about as long as a dense solve.
constexpr std::int64_t rows_squared_per_step = 1000;
/// An iteration is compared with a factorisation after this many steps, or this many for each of k
/// pairs if that is more; a filter after this many sweeps.
constexpr std::int64_t patient_steps = 500;
constexpr std::int64_t patient_steps_per_pair = 3;
constexpr std::int64_t patient_sweeps = 20;
/// The same where cuDSS factorises more than most_ldlt_rows rows: its analysis on the host takes as
/// long as thousands of steps on the GPU.
constexpr std::int64_t patient_gpu_steps = 5000;
constexpr std::int64_t patient_gpu_sweeps = 60;
/// An iteration continues if a direct solve takes more than this many times the work that the
/// iteration has done.
constexpr double patient_work = 16;
/// A solve with up to this many multiply-adds is cheap: some 5 s on one core.
constexpr double cheap_products = 5e9;
/// For an end of the spectrum of a matrix with up to crowded_rows rows, a Lanczos run of
/// crowding_steps steps looks for crowded eigenvalues. If it finds them, a solve by factorisation
/// comes first if it takes at most crowded_products multiply-adds, some 0.25 s. Its forecast takes
/// some 20 ms.
constexpr std::int64_t crowded_rows = 20000;
constexpr int crowding_steps = 60;
constexpr double crowded_products = 3e8;
/// The same limits for an end of a pencil: 500 steps of lobpcg without a preconditioner took 9 s
/// for 32,400 rows and 10 pairs, shift_invert() 1.4 s.
constexpr std::int64_t pencil_rows = 100000;
constexpr double pencil_products = 2.5e9;
/// Such steps of lobpcg before it is compared with a factorisation.
constexpr std::int64_t patient_pencil_steps = 150;
/// shift_invert() hands over to a dense solve after least_patient_shifts factorisations or, if that
/// is more, once they have taken patient_dense_solves times the work of the dense solve.
constexpr double least_patient_shifts = 30;
constexpr double patient_dense_solves = 2;
/// With more rows than this the forecast of a factorisation itself takes seconds.
constexpr std::int64_t most_forecast_rows = 200000;
/// With more rows than this the forecast by cuDSS takes more than about a second.
constexpr std::int64_t most_gpu_forecast_rows = 100000;
/// Multiply-adds besides a product (orthogonalisation and other steps) per row of a column.
constexpr double products_per_row = 12;
/// Multiply-adds that an iteration makes in the time of one multiply-add of SparseLdlt: 0.14 to
/// 0.21 ns were measured against 0.8 ns.
constexpr double iteration_speed = 4;
/// The same for an iteration on a GPU; used only where needs_cudss is true.
constexpr double gpu_iteration_speed = 120;
/// For a window without B, shift_invert() of any work is chosen if a filter would take at least
/// this many times its work. The eigenvalues are counted first if the two factorisations for this
/// take at most 2 / counting_share of the work of a filter for the fewest pairs.
constexpr double surely_slower = 4;
constexpr double counting_share = 20;
/// The small dense problems of lobpcg for each product, some 0.16 ms, in multiply-adds of
/// SparseLdlt.
constexpr double lobpcg_overhead = 2e5;

/// Lanczos steps that find the ends of the spectrum for the forecast of a filter.
constexpr int forecast_steps = 24;
/// The time of a product of a method that iterates, with one column, in multiply-adds of
/// SparseLdlt.
template <class T>
double product_work(const EigenProblem<T>& problem, bool on_gpu) {
    const auto rows = static_cast<double>(problem.a.row_map().global_rows());
    return (stored_entries<T>(&problem.a) + stored_entries<T>(problem.b) +
            products_per_row * rows) /
           (on_gpu ? gpu_iteration_speed : iteration_speed);
}

/// The number of ranks that compute on a GPU. Collective.
std::int64_t devices_of(Context& ctx) {
    return ctx.comm().sum(std::int64_t{ctx.place() == Place::device ? 1 : 0});
}

/// The prediction of window_filter() for a problem without B.
struct FilterForecast {
    /// The width of the window in the angle of ChebyshevInterval; 0 if there is no prediction.
    double angle = 0;
    double tolerance = 0;
    /// The work of a product, if all ranks and threads share it perfectly.
    double product = 0;

    double products(double inside) const {
        return angle > 0 ? filter_products(tolerance, inside, angle) : 0;
    }
    /// In multiply-adds of SparseLdlt on one core.
    double work(double inside) const { return product * products(inside); }
};

/// Collective. Cost: forecast_steps products with one column.
template <class T>
FilterForecast forecast_filter(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options) {
    FilterForecast forecast;
    if (!options.window || problem.b != nullptr) {
        return forecast;
    }
    try {
        const ShortLanczos run =
            short_lanczos<T>(ctx, problem.a, problem.constraints, forecast_steps, options.seed);
        if (run.complete && run.values.size() > 1) {
            const ChebyshevInterval spectrum{run.values.front(), run.values.back(), 0};
            forecast.angle =
                spectrum.angle(options.window->low) - spectrum.angle(options.window->high);
        }
    } catch (const NumericalError&) {
        return forecast;  // the method that is chosen finds the same fault, or scales the matrix
    }
    forecast.tolerance = attainable_tolerance<T>(options.tol);
    const std::int64_t workers = ctx.comm().sum(std::int64_t{ctx.threads()});
    forecast.product = product_work(problem, devices_of(ctx) > 0) / static_cast<double>(workers);
    return forecast;
}

/// The number of wanted pairs; for a window `inside`, but at least `few`.
double likely_pairs(const EigenOptions& options, double inside, double few = 20) {
    return options.window ? std::max(inside, few) : options.k;
}

std::string few_rows(std::int64_t rows) {
    return std::to_string(rows) + " rows are few enough for a dense solve";
}

/// Method::dense if the sizes alone decide for it, else Method::automatic.
MethodChoice choose_dense(const DirectLimits& limits, const EigenOptions& options) {
    const std::string rows = std::to_string(limits.rows) + " rows";
    if (limits.rows <= limits.dense) {
        return {Method::dense, limits.is_dense    ? rows + " of a dense matrix are few"
                               : limits.is_stored ? rows + " are few"
                                                  : rows + ", gathered by as many products"};
    }
    if (limits.rows <= limits.many && !options.window && large_part * options.k >= limits.rows) {
        return {Method::dense, std::to_string(options.k) + " of " + std::to_string(limits.rows) +
                                   " eigenpairs are a large part"};
    }
    return {Method::automatic, ""};
}

/// shift_invert() with the factorisations after which a dense solve follows where one is possible.
MethodChoice with_patience(MethodChoice choice, const DirectLimits& limits,
                           const FactorForecast& forecast) {
    if (limits.rows <= limits.interior) {
        const double dense = limits.dense_work(limits.interior);
        const double steps = patient_dense_solves * dense / std::max(forecast.products, 1.0);
        choice.hand_over_after =
            static_cast<std::int64_t>(std::clamp(steps, least_patient_shifts, 1e9));
    }
    return choice;
}

/// The direct method for a window or a target; Method::automatic if an iteration costs less or the
/// factors are too large (then with the reason).
template <class T>
MethodChoice choose_interior(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options, const DirectLimits& limits) {
    const std::string what = options.window ? "a window" : "eigenvalues nearest a target";
    const std::string rows = " of a matrix with " + std::to_string(limits.rows) + " rows";
    const double dense = limits.dense_work(limits.interior);
    std::string why_not;
    if (limits.can_factorise) {
        const FilterForecast filter = forecast_filter(ctx, problem, options);
        const FactorForecast forecast = forecast_factorisation(
            ctx, problem, options,
            std::max(cheap_products, filter.work(likely_pairs(options, 0))) / counting_share);
        if (limits.rows <= limits.many && large_part * forecast.inside >= limits.rows) {
            return {Method::dense, "the window has " + std::to_string(forecast.inside) + " of " +
                                       std::to_string(limits.rows) + " eigenvalues"};
        }
        const double pairs = forecast.inside < 0
                                 ? likely_pairs(options, 0)
                                 : likely_pairs(options, static_cast<double>(forecast.inside), 5);
        const double work = forecast.solve_products(pairs, true);
        // Of the methods that iterate, only the filter takes a window with a B, and not every B.
        const bool must = options.window && problem.b != nullptr;
        if (forecast.fits(pairs) && work < dense && (must || work <= cheap_products)) {
            return with_patience({Method::shift_invert, what + rows + ", " + forecast.words()},
                                 limits, forecast);
        }
        const auto inside = static_cast<double>(forecast.inside);
        if (forecast.fits(pairs) && work < dense && inside > 0 &&
            surely_slower * work <= filter.work(inside)) {
            return with_patience(
                {Method::shift_invert, what + rows + " with " + std::to_string(forecast.inside) +
                                           " eigenvalues, " + forecast.words() +
                                           "; a filter would take " +
                                           number_text(filter.products(inside), 2) + " products"},
                limits, forecast);
        }
        if (!forecast.fits(pairs)) {
            why_not = forecast.words_of_too_much();
        }
    }
    return std::isfinite(dense) ? MethodChoice{Method::dense, what + rows}
                                : MethodChoice{Method::automatic, why_not};
}

/// True if the first eigenvalues at this end are so crowded that an iteration will need many steps:
/// one of the first two Ritz values of a short Lanczos run has a residual above their distance, and
/// they are not much farther apart than the first two zeros of a Chebyshev polynomial, which are
/// the Ritz values of a spectrum without gaps. Always true with a B, because the run would need
/// B^-1.
template <class T>
bool is_hard_end(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options) {
    if (problem.b != nullptr) {
        return true;
    }
    try {
        const ShortLanczos run =
            short_lanczos<T>(ctx, problem.a, problem.constraints, crowding_steps, options.seed);
        const std::size_t count = run.values.size();
        if (!run.complete || count < 2) {
            return false;
        }
        const std::size_t first = options.which == Which::smallest ? 0 : count - 1;
        const std::size_t second = options.which == Which::smallest ? 1 : count - 2;
        const double distance = std::abs(run.values[first] - run.values[second]);
        // The Ritz values of one spectrum without gaps vary by some percent with the start vector.
        constexpr double margin = 1.25;
        const double angle = std::numbers::pi / (2 * crowding_steps);
        const double uniform =
            (std::cos(angle) - std::cos(3 * angle)) / 2 * (run.values.back() - run.values.front());
        return distance < margin * uniform &&
               distance < std::max(run.residuals[first], run.residuals[second]);
    } catch (const NumericalError&) {
        return false;  // the iteration finds the same fault, or scales the matrix
    }
}

/// Method::shift_invert for an end of the spectrum where it is likely to be faster than an
/// iteration; else, with a B, Method::dense if that takes some 5 s at most; else, and always on a
/// GPU, where iterations are fast, Method::automatic.
template <class T>
MethodChoice choose_end(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                        const DirectLimits& limits) {
    const bool is_pencil = problem.b != nullptr;
    if (!limits.can_factorise || limits.rows > (is_pencil ? pencil_rows : crowded_rows) ||
        is_interior(options) || problem.preconditioner != nullptr || problem.inverse != nullptr) {
        return {Method::automatic, ""};
    }
    if (devices_of(ctx) > 0 || !is_hard_end(ctx, problem, options)) {
        return {Method::automatic, ""};
    }
    const FactorForecast forecast = forecast_factorisation(ctx, problem, options);
    const double dense = limits.dense_work(is_pencil ? limits.interior : limits.dense);
    const double most = is_pencil ? pencil_products : crowded_products;
    // With a graded B an end may take as many shifts as an interior problem.
    if (!forecast.fits(options.k) || forecast.solve_products(options.k, false) > most ||
        forecast.solve_products(options.k, is_pencil) > dense) {
        return is_pencil && dense <= cheap_products
                   ? MethodChoice{Method::dense, "B is given; " + few_rows(limits.rows)}
                   : MethodChoice{Method::automatic, ""};
    }
    return with_patience(
        {Method::shift_invert,
         (is_pencil ? "B is given; " : "the eigenvalues are crowded at this end; ") +
             forecast.words() + ", are cheap"},
        limits, forecast);
}

/// The method that iterates, by the kind of problem alone.
template <class T>
MethodChoice choose_iteration(const EigenProblem<T>& problem, const EigenOptions& options) {
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

/// Throws InputError on all ranks if the method cannot find the wanted eigenvalues.
void require_fitting_method(Method method, const EigenOptions& options) {
    const auto refuse = [&](const char* why) {
        throw_collective(ErrorKind::input,
                         std::string("eigensolver: method ") + to_string(method) +
                             " finds eigenvalues at an end of the spectrum" +
                             (method == Method::jacobi_davidson ? " or nearest a target; " : "; ") +
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
        return std::move(result_);
    }

  private:
    bool is_done() const { return result_.converged || result_.interrupted; }

    /// True if a dense solve leaves the small eigenvalues of a stiff A few digits: in the units of
    /// the problem, which it takes if the rows of B are alike.
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

    /// True if the solve has ended and at least half of the eigenvalues have a certain digit or may
    /// be 0 to rounding. No digit is certain below the tolerance times ||A||. If A is stiff and
    /// shift_invert() could follow, which finds more digits in other units, at least half of them
    /// must have four. Collective.
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
    /// more or had converged. If the method takes no B that is singular to rounding but
    /// shift_invert() can, the attempt leaves the previous result and the method's message in
    /// refusal_.
    void attempt(Method method, std::int64_t most) {
        EigenOptions options = options_;
        options.max_iterations = most;
        options.max_seconds = remaining_seconds(ctx_.comm(), options_, result_.seconds);
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
            result_.message += (result_.message.empty() ? "" : "; ") + refusal_;
            return;
        }
        EigenResult<T> before = std::exchange(result_, std::move(now));
        const bool is_worse =
            !result_.converged &&
            (before.converged || result_.eigenvalues.size() < before.eigenvalues.size());
        result_.iterations += before.iterations;
        result_.operator_applications += before.operator_applications;
        result_.seconds += before.seconds;
        if (is_worse) {
            const std::string why = std::string(to_string(method)) + ": " + result_.message;
            if (before.converged) {
                ctx_.emit(FallbackEvent{"auto: the previous pairs remain; " + why});
            } else {
                before.message += (before.message.empty() ? "" : "; ") + why;
            }
            before.interrupted = result_.interrupted;
            before.iterations = result_.iterations;
            before.operator_applications = result_.operator_applications;
            before.seconds = result_.seconds;
            result_ = std::move(before);
        }
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
        reason_ = (is_done() ? "most eigenvalues of " + name + " have few certain digits; "
                             : name + " had not converged after " +
                                   std::to_string(result_.iterations) + " iterations; ") +
                  why;
        ctx_.emit(FallbackEvent{"auto: " + reason_ + "; " + to_string(method) + " goes on"});
        attempt(method, most);
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

    /// `may_go_on`: the iteration has used its steps. Otherwise it gave up, or its pairs are too
    /// inaccurate.
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
            // 0: no limit of their number.
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
            hand_over(Method::dense, options_.max_iterations, few_rows(limits.rows));
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
                hand_over(Method::shift_invert, options_.max_iterations, forecast.words());
            }
        }
    }

    /// Called if shift_invert() has not converged.
    void replace_factorisation() {
        const DirectLimits limits = direct_limits(ctx_, problem_, options_);
        if (limits.rows <= limits.interior) {
            hand_over(Method::dense, options_.max_iterations, few_rows(limits.rows));
        } else if (!options_.window || problem_.b == nullptr) {
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
};

}  // namespace

template <class T>
MethodChoice choose_method(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options) {
    if (options.method != Method::automatic) {
        return {options.method, ""};
    }
    if (options.window) {
        check_options(options, dimensions(problem));
    }
    const DirectLimits limits = direct_limits(ctx, problem, options);
    MethodChoice direct = choose_dense(limits, options);
    const bool interior = is_interior(options) && problem.inverse == nullptr;
    if (direct.method == Method::automatic && interior &&
        ((limits.can_factorise &&
          limits.rows <= (limits.needs_cudss ? most_gpu_forecast_rows : most_forecast_rows)) ||
         limits.rows <= limits.interior)) {
        direct = choose_interior(ctx, problem, options, limits);
    } else if (direct.method == Method::automatic) {
        direct = choose_end(ctx, problem, options, limits);
    }
    if (direct.method != Method::automatic) {
        return direct;
    }
    MethodChoice iteration = choose_iteration(problem, options);
    if (!direct.reason.empty()) {
        iteration.reason += "; " + direct.reason;
    }
    if (limits.can_factorise) {
        const bool on_gpu = limits.needs_cudss;
        std::int64_t steps = on_gpu ? patient_gpu_steps : patient_steps;
        if (!on_gpu && iteration.method == Method::lobpcg) {
            const double cheap = cheap_products / 2 / (lobpcg_overhead * options.k);
            steps = problem.preconditioner == nullptr
                        ? patient_pencil_steps
                        : std::clamp(static_cast<std::int64_t>(cheap), patient_pencil_steps, steps);
        }
        iteration.hand_over_after = iteration.method == Method::filter
                                        ? (on_gpu ? patient_gpu_sweeps : patient_sweeps)
                                        : std::max(steps, patient_steps_per_pair * options.k);
    } else if (limits.rows <= limits.interior) {
        iteration.hand_over_after = limits.rows * limits.rows / rows_squared_per_step;
    }
    return iteration;
}

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
    return asks_for_both_ends(options) && !is_direct(options.method)
               ? solve_both_ends(ctx, problem, options)
               : accurate_solve(ctx, problem, options, options.method);
}

#define QUIVER_INSTANTIATE(T)                                                                   \
    template MethodChoice choose_method(Context&, const EigenProblem<T>&, const EigenOptions&); \
    template EigenResult<T> eigensolve(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

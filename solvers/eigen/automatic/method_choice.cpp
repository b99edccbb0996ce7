// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/automatic/method_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/automatic/both_ends.hpp"
#include "solvers/eigen/automatic/direct_limits.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "solvers/eigen/chebyshev/filter_step.hpp"
#include "solvers/eigen/lanczos/short_lanczos.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"

namespace quiver {
namespace {

/// Up to this many rows block Lanczos has a basis that may span the whole space.
constexpr std::int64_t whole_space_rows = 512;
/// n^2 / 1000 steps of an iteration take about as long as a dense solve.
constexpr std::int64_t rows_squared_per_step = 1000;
/// An iteration is compared with a factorisation after max(patient_steps, patient_steps_per_pair k)
/// steps, a filter after patient_sweeps sweeps.
constexpr std::int64_t patient_steps = 500;
constexpr std::int64_t patient_steps_per_pair = 3;
constexpr std::int64_t patient_sweeps = 20;
/// The same where cuDSS factorises more than most_ldlt_rows rows: its analysis on the host takes as
/// long as thousands of steps on the GPU.
constexpr std::int64_t patient_gpu_steps = 5000;
constexpr std::int64_t patient_gpu_sweeps = 60;
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
/// lobpcg without a preconditioner is compared with a factorisation after this many steps; with one
/// after at least this many.
constexpr std::int64_t patient_pencil_steps = 150;
/// shift_invert() hands over to a dense solve after least_patient_shifts factorisations or, if that
/// is more, once they have taken as long as the dense solve. A shift takes at least shift_row
/// multiply-adds per row, some 1 us.
constexpr double least_patient_shifts = 30;
constexpr double shift_row = 1300;
/// With more rows than this the forecast of a factorisation itself takes seconds.
constexpr std::int64_t most_forecast_rows = 200000;
/// With more rows than this the forecast by cuDSS takes more than about a second.
constexpr std::int64_t most_gpu_forecast_rows = 100000;
/// Multiply-adds besides a product (orthogonalisation and other steps) per row of a column.
constexpr double products_per_row = 12;
/// Multiply-adds that an iteration makes in the time of one multiply-add of SparseLdlt: 0.14 to
/// 0.21 ns were measured against 0.8 ns.
constexpr double iteration_speed = 4;
/// The same for an iteration on a GPU.
constexpr double gpu_iteration_speed = 120;
/// The work of a complex multiply-add of an iteration: 4 real ones in the caches, twice the bytes
/// elsewhere. A filter for 287 of 3,782 eigenvalues took 5 times the prediction for real ones.
constexpr double complex_product = 3;
/// For a window without B, shift_invert() of any work is chosen if a filter would take at least
/// this many times its work. The eigenvalues in a window are counted first if each of the two
/// factorisations for this takes at most 1 / counting_share of cheap_products or, if that is more,
/// of the work of a filter for the fewest pairs.
constexpr double slower_filter = 1.5;
constexpr double counting_share = 20;
/// Pencils whose a_ii / b_ii differ by this factor count as graded. For 1000 rows with some masses
/// of 1e-9 to 1e-14 a dense solve took 0.25 s, with a shift 0.8 s, shift_invert() 0.1 to 0.2 s.
/// Up to least_graded_rows rows a dense solve takes 0.05 s even with shifts.
constexpr double graded_ratio = 1e6;
constexpr std::int64_t least_graded_rows = 256;
/// The ratio of the work of such a dense solve to DirectLimits::dense_work().
constexpr double shifted_dense = 2;

/// Lanczos steps that find the ends of the spectrum for the forecast of a filter.
constexpr int forecast_steps = 24;

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

/// Method::dense if the sizes alone decide for it, else Method::automatic.
MethodChoice choose_dense(const DirectLimits& limits, const EigenOptions& options) {
    const std::string rows = std::to_string(limits.rows) + " rows";
    if (limits.rows <= limits.dense) {
        return {Method::dense,
                limits.is_stored && !limits.is_dense
                    ? words_of_few_rows(limits.rows)
                    : rows + (limits.is_dense ? " of a dense matrix are few"
                                              : " are few; products with the columns of the "
                                                "identity gather the matrix")};
    }
    if (limits.rows <= limits.many && !options.window && large_part * options.k >= limits.rows) {
        return {Method::dense, std::to_string(options.k) + " of " + std::to_string(limits.rows) +
                                   " eigenpairs are a large part"};
    }
    return {Method::automatic, ""};
}

/// Sets hand_over_after of a choice of shift_invert(): a dense solve then follows, where one is
/// possible.
MethodChoice with_patience(MethodChoice choice, const DirectLimits& limits,
                           const FactorForecast& forecast) {
    choice.hand_over_after = patient_shifts(limits, forecast);
    return choice;
}

/// shift_invert() for few pairs of a small pencil whose eigenvalues differ so much in size that the
/// errors of a dense solve, which are relative to the largest, would need further solves with
/// shifts; else Method::automatic.
template <class T>
MethodChoice choose_graded(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options, const DirectLimits& limits) {
    const bool few = options.window || large_part * options.k <= limits.rows;
    if (problem.b == nullptr || limits.rows < least_graded_rows || limits.rows > limits.dense ||
        !limits.can_factorise || !few || options.which == Which::largest ||
        asks_for_both_ends(options) || problem.preconditioner != nullptr ||
        problem.inverse != nullptr) {
        return {Method::automatic, ""};
    }
    const FactorForecast forecast = forecast_factorisation(ctx, problem, options, cheap_products);
    const double pairs = likely_pairs(options, static_cast<double>(forecast.inside), 1);
    const bool counted =
        !options.window || (forecast.inside >= 0 && large_part * forecast.inside <= limits.rows);
    if (!counted || forecast.value_ratio < graded_ratio || !std::isfinite(forecast.value_ratio) ||
        !forecast.fits(pairs) ||
        forecast.solve_products(pairs, true) > shifted_dense * limits.dense_work(limits.dense)) {
        return {Method::automatic, ""};
    }
    MethodChoice choice{Method::shift_invert,
                        "few eigenvalues of a pencil whose a_ii / b_ii differ by a factor of " +
                            number_text(forecast.value_ratio, 2)};
    choice.hand_over_after = static_cast<std::int64_t>(least_patient_shifts);
    return choice;
}

/// The direct method for a window or a target; Method::automatic if an iteration costs less or the
/// factors are too large (then with the reason).
template <class T>
MethodChoice choose_interior(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options, const DirectLimits& limits) {
    const std::string what = options.window ? "a window" : "eigenvalues nearest a target";
    const std::string rows = " of a matrix with " + std::to_string(limits.rows) + " rows";
    double dense = limits.dense_work(limits.interior);
    std::string why_not;
    if (limits.can_factorise) {
        const FilterForecast filter = forecast_filter(ctx, problem, options);
        const FactorForecast forecast = forecast_factorisation(
            ctx, problem, options,
            std::max(cheap_products, filter.work(likely_pairs(options, 0))) / counting_share);
        const bool counted = forecast.inside >= 0;
        const auto inside = static_cast<double>(std::max<std::int64_t>(forecast.inside, 0));
        const double pairs = likely_pairs(options, inside, counted ? 5 : likely_pairs(options, 0));
        const double work = forecast.solve_products(pairs, true);
        const double filtered = filter.work(inside);
        dense = limits.dense_work(counted ? limits.many : limits.interior);
        const bool few_rows = limits.rows <= limits.interior;
        const bool many = counted && large_part * forecast.inside >= limits.rows;
        // Of the methods that iterate, only the filter takes a window with a B, and not every B.
        const bool must = options.window && problem.b != nullptr;
        const bool is_cheap = must || work <= cheap_products;
        const bool beats_filter = inside > 0 && slower_filter * work <= filtered;
        // For so many pairs of few rows eigensolve() does not let shift_invert() finish.
        if (forecast.fits(pairs) && work < dense && !(many && few_rows) &&
            (is_cheap || (counted && few_rows) || beats_filter)) {
            std::string why = what + rows;
            why += is_cheap ? ", " : " with " + std::to_string(forecast.inside) + " eigenvalues, ";
            why += forecast.words();
            if (!is_cheap && !few_rows) {
                why += "; a filter would take " + number_text(filter.products(inside), 2) +
                       " products";
            }
            return with_patience({Method::shift_invert, why}, limits, forecast);
        }
        if (std::isfinite(dense) && !few_rows && !many && filtered > 0 && filtered < dense) {
            return {Method::automatic, ""};
        }
        if (counted && std::isfinite(dense)) {
            return {Method::dense, "the window has " + std::to_string(forecast.inside) + " of " +
                                       std::to_string(limits.rows) + " eigenvalues"};
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
                   ? MethodChoice{Method::dense, "B is given; " + words_of_few_rows(limits.rows)}
                   : MethodChoice{Method::automatic, ""};
    }
    return with_patience(
        {Method::shift_invert,
         (is_pencil ? "B is given; " : "the eigenvalues are crowded at this end; ") +
             forecast.words() + ", are cheap"},
        limits, forecast);
}

}  // namespace

template <class T>
double product_work(const EigenProblem<T>& problem, bool on_gpu) {
    const auto rows = static_cast<double>(problem.a.row_map().global_rows());
    return (is_complex_v<T> ? complex_product : 1) *
           (stored_entries<T>(&problem.a) + stored_entries<T>(problem.b) +
            products_per_row * rows) /
           (on_gpu ? gpu_iteration_speed : iteration_speed);
}

std::int64_t patient_shifts(const DirectLimits& limits, const FactorForecast& forecast) {
    if (limits.rows > limits.interior) {
        return 0;
    }
    const double shift = std::max(forecast.products + forecast.overhead_products,
                                  shift_row * static_cast<double>(limits.rows));
    const double steps = limits.dense_work(limits.interior) / shift;
    return static_cast<std::int64_t>(std::clamp(steps, least_patient_shifts, 1e9));
}

double likely_pairs(const EigenOptions& options, double inside, double few) {
    return options.window ? std::max(inside, few) : options.k;
}

std::string words_of_few_rows(std::int64_t rows) {
    return std::to_string(rows) + " rows are few enough for a dense solve";
}

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
    MethodChoice direct = choose_graded(ctx, problem, options, limits);
    if (direct.method == Method::automatic) {
        direct = choose_dense(limits, options);
    }
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

#define QUIVER_INSTANTIATE(T)                                                            \
    template double product_work(const EigenProblem<T>&, bool);                          \
    template MethodChoice choose_iteration(const EigenProblem<T>&, const EigenOptions&); \
    template MethodChoice choose_method(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

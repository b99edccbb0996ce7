// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/solve_with_errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/pencil/identity_mass.hpp"
#include "solvers/eigen/pencil/unit_residuals.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/scaled_problem.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/eigen/search/verified_search.hpp"

namespace quiver {
namespace {

/// Rounding errors of an eigenvalue in units of eps ||A||.
constexpr double units_of_rounding = 8;
/// The largest bound, relative to its eigenvalue, of which terms of second order change little.
constexpr double first_order = 1.0 / 16;

/// Bounds of the errors of eigenvalues each of which is at most residuals[j] away from an exact
/// one.
template <class T>
std::vector<double> errors_by_distances(const EigenOptions& options, const EigenResult<T>& result,
                                        const std::vector<double>& residuals) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double>& values = result.eigenvalues;
    const bool in_one_piece =
        result.multiplicity == Multiplicity::verified && !wants_both_ends(options.which);
    // A lower bound of the distance between value j and the exact eigenvalue of neighbour i. If
    // there is no neighbour: infinity at an end of the spectrum, else 0 for an unknown distance.
    const auto distance = [&](std::size_t j, std::size_t i, Which end) {
        const bool is_end = !options.window && options.which == end;
        return i >= values.size() ? (is_end ? infinity : 0)
                                  : std::abs(values[j] - values[i]) - residuals[i];
    };
    std::vector<double> errors;
    for (std::size_t j = 0; j < values.size(); ++j) {
        const double r = residuals[j];
        const double gap = in_one_piece ? std::min(distance(j, j - 1, Which::smallest),
                                                   distance(j, j + 1, Which::largest))
                                        : 0;
        errors.push_back(gap > 2 * r ? r * (r / (gap - r)) : r);
    }
    return errors;
}

template <class T>
std::vector<double> errors_without_b(const EigenOptions& options, const EigenResult<T>& result) {
    std::vector<double> errors = errors_by_distances(options, result, result.residuals);
    for (double& error : errors) {
        error += units_of_rounding * static_cast<double>(epsilon_v<T>) * result.norm_estimate;
    }
    return errors;
}

/// A value whose error may reach beyond another one makes the number of that one in the order of
/// the spectrum uncertain.
void widen_beside_uncertain(const std::vector<double>& values, std::vector<double>& bounds) {
    const std::vector<double> own = bounds;
    for (std::size_t j = 0; j < values.size(); ++j) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            bounds[j] = std::max(bounds[j], own[i] - std::abs(values[i] - values[j]));
        }
    }
}

/// eigenvalue_errors() of a pencil whose norms lie within NormRange, for the vectors X.
template <class T>
EigenvalueErrors pencil_errors(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options, const EigenResult<T>& result,
                               BlockView<const T> x) {
    const std::vector<double>& values = result.eigenvalues;
    const double rounding = units_of_rounding * static_cast<double>(epsilon_v<T>);
    std::vector<real_t<T>> lengths(values.size());
    norms(ctx, x, std::span<real_t<T>>(lengths));
    EigenvalueErrors errors;
    for (std::size_t j = 0; j < values.size(); ++j) {
        const auto length = static_cast<double>(lengths[j]);
        errors.bounds.push_back((result.residuals[j] + rounding * result.norm_estimate) * length *
                                length);
    }
    UnitResiduals<T> units(ctx, problem, result.method, options.seed);
    if (!units.is_needed()) {
        widen_beside_uncertain(values, errors.bounds);
        return errors;
    }
    std::vector<double> by_distance(values.size(), 0.0);
    if (!is_direct(result.method)) {
        by_distance = errors_by_distances(options, result, units.distances(x, values));
    }
    const auto in_units = units.residuals(x, values);
    for (std::size_t j = 0; j < values.size(); ++j) {
        const auto& [relative, size, length] = in_units[j];
        errors.bounds[j] = (relative + rounding) * size * length * length;
        errors.bounds[j] = std::max(errors.bounds[j], by_distance[j]);
        errors.largest_residual = std::max(errors.largest_residual, relative);
    }
    widen_beside_uncertain(values, errors.bounds);
    return errors;
}

/// The largest accepted residual in the units of UnitResiduals, whose norms are lower bounds.
template <class T>
double largest_accepted(double tolerance) {
    constexpr double slack_of_norms = 4;
    return slack_of_norms * std::max(tolerance, attainable_slack * attainable_tolerance<T>(0));
}

/// If the wanted set ends inside a cluster, eigenvalues near its end may belong to other copies of
/// the cluster, and their numbers in the order of the spectrum are uncertain.
template <class T>
void widen_at_cut(const EigenOptions& options, const EigenResult<T>& result,
                  std::vector<double>& bounds) {
    const std::vector<double>& values = result.eigenvalues;
    const auto key = [&](std::size_t j) {
        const double value = values[j];
        switch (options.which) {
            case Which::largest:
                return -value;
            case Which::both_ends:
                return j < values.size() / 2 ? value : -value;
            case Which::largest_magnitude:
                return -std::abs(value);
            case Which::target:
                return std::abs(value - options.target);
            case Which::smallest_magnitude:
                return std::abs(value);
            default:
                return value;
        }
    };
    const std::size_t parts = options.which == Which::both_ends ? 2 : 1;
    for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t begin = part * (values.size() / parts);
        const std::size_t end = part + 1 == parts ? values.size() : values.size() / parts;
        double last = -std::numeric_limits<double>::infinity();
        for (std::size_t j = begin; j < end; ++j) {
            last = std::max(last, key(j));
        }
        for (std::size_t j = begin; j < end; ++j) {
            bounds[j] = std::max(bounds[j], result.cut_depth - (last - key(j)));
        }
    }
}

/// Adds x^H (A x - lambda x) / x^H x to each eigenvalue of a solve without B. Rayleigh-Ritz takes
/// x^H x = 1, but the sums of long columns have errors of up to rows eps, and so has x^H A x.
template <class T>
void correct_values(Context& ctx, const EigenProblem<T>& problem, EigenResult<T>& result) {
    using Real = real_t<T>;
    constexpr int panel_columns = 64;
    const BlockView<const T> x = std::as_const(result.vectors).view();
    if (problem.protection != nullptr || x.cols == 0) {
        return;  // a fault in this product would not be noticed
    }
    GuardedOperator<T> guarded(problem.a);
    BlockVector<T> panel;
    ctx.comm().agree(
        [&] { panel = BlockVector<T>(ctx, problem.a.row_map(), std::min(panel_columns, x.cols)); });
    const double most = static_cast<double>(problem.a.row_map().global_rows()) *
                        static_cast<double>(epsilon_v<T>) * result.norm_estimate;
    std::vector<double>& values = result.eigenvalues;
    for (int first = 0; first < x.cols; first += panel_columns) {
        const int width = std::min(panel_columns, x.cols - first);
        const BlockView<const T> some = x.columns(first, width);
        const BlockView<T> r = panel.columns(0, width);
        guarded.apply(ctx, some, r);
        result.operator_applications += width;
        std::vector<T> shifts;
        shifts.reserve(static_cast<std::size_t>(width));
        for (int j = first; j < first + width; ++j) {
            shifts.push_back(T(static_cast<Real>(-values[static_cast<std::size_t>(j)])));
        }
        axpby(ctx, shifts, some, std::vector<T>(shifts.size(), T(1)), r);
        std::vector<T> changes(shifts.size());
        dots(ctx, some, BlockView<const T>(r), std::span<T>(changes));
        for (std::size_t j = 0; j < shifts.size(); ++j) {
            double& value = values[static_cast<std::size_t>(first) + j];
            const double better = static_cast<double>(std::real(changes[j])) -
                                  static_cast<double>(std::real(shifts[j]));
            if (std::abs(better - value) <= most) {
                value = better;
            } else if (std::isnan(better)) {
                refuse_product(guarded, result.method);
            }
        }
    }
    std::sort(values.begin(), values.end());  // equal values have kept their order to rounding
}

}  // namespace

template <class T>
EigenvalueErrors eigenvalue_errors(Context& ctx, const EigenProblem<T>& problem,
                                   const EigenOptions& options, const EigenResult<T>& result) {
    if (problem.b == nullptr) {
        EigenvalueErrors errors{errors_without_b(options, result)};
        if (result.method == Method::shift_invert && result.vectors.width() > 0) {
            const IdentityMass<T> pencil(ctx, problem);
            if (pencil.is_used()) {
                const EigenvalueErrors in_units =
                    eigenvalue_errors(ctx, pencil.problem(), options, result);
                for (std::size_t j = 0; j < errors.bounds.size(); ++j) {
                    const double bound = in_units.bounds[j];
                    // A larger one is no estimate to first order.
                    const bool holds = bound <= first_order * std::abs(result.eigenvalues[j]);
                    errors.bounds[j] = holds ? std::min(errors.bounds[j], bound) : errors.bounds[j];
                }
            }
        }
        return errors;
    }
    if (result.eigenvalues.empty()) {
        return {};
    }
    const PencilExponents needed = needed_exponents(ctx, problem);
    if (needed.a == 0 && needed.b == 0) {
        return pencil_errors(ctx, problem, options, result, result.vectors.view());
    }
    const ScaledProblem<T> scaled(problem, needed);
    EigenResult<T> pairs;
    pairs.method = result.method;
    pairs.norm_estimate = std::ldexp(result.norm_estimate, -needed.a);
    for (std::size_t j = 0; j < result.eigenvalues.size(); ++j) {
        pairs.eigenvalues.push_back(std::ldexp(result.eigenvalues[j], needed.b - needed.a));
        pairs.residuals.push_back(std::ldexp(result.residuals[j], -needed.a));
    }
    BlockVector<T> x;
    ctx.comm().agree([&] { x = BlockVector<T>(ctx, problem.a.row_map(), result.vectors.width()); });
    copy(ctx, result.vectors.view(), x.view());
    scale(ctx, T(std::ldexp(real_t<T>(1), needed.b / 2)), x.view());
    EigenvalueErrors errors =
        pencil_errors(ctx, scaled.problem(), options, pairs, std::as_const(x).view());
    for (double& error : errors.bounds) {
        error = std::ldexp(error, needed.a - needed.b);
    }
    return errors;
}

template <class T>
EigenResult<T> solve_with_errors(Context& ctx, const EigenProblem<T>& problem,
                                 const EigenOptions& options, const PencilSolve<T>& solve) {
    constexpr int most_solves = 3;
    const double least = attainable_tolerance<T>(0);
    EigenResult<T> result = solve(ctx, problem, options);
    EigenOptions next = options;
    for (int solves = 1;; ++solves) {
        if (problem.b != nullptr && result.interrupted) {
            return result;
        }
        if (problem.b == nullptr && result.converged && !is_direct(result.method)) {
            correct_values(ctx, problem, result);
        }
        EigenvalueErrors errors = eigenvalue_errors(ctx, problem, options, result);
        if (result.cluster_cut) {
            widen_at_cut(options, result, errors.bounds);
        }
        result.errors = std::move(errors.bounds);
        const double worst = errors.largest_residual;
        const double accepted = largest_accepted<T>(result.tolerance);
        if (!result.converged || worst <= accepted || is_direct(result.method)) {
            return result;
        }
        const std::string words = "a residual is " + number_text(worst, 2) +
                                  " (||A|| + |lambda| ||B||) in units of the unknowns in which the "
                                  "rows of A and B are alike, above the tolerance";
        const bool out = options.max_iterations > 0 && result.iterations >= options.max_iterations;
        if (solves == most_solves || next.tol <= least || out || problem.checkpoint != nullptr) {
            withdraw(result, words + "; use shift-invert or dense");
            return result;
        }
        next.tol = std::max(least, std::min(next.tol, result.tolerance) * accepted / (8 * worst));
        ctx.emit(FallbackEvent{std::string(to_string(result.method)) + ": " + words +
                               "; a solve with the tolerance " + number_text(next.tol, 2) +
                               " starts from the pairs found"});
        next.max_iterations = std::max<std::int64_t>(0, options.max_iterations - result.iterations);
        next.max_seconds = remaining_seconds(ctx.comm(), options, result.seconds);
        EigenProblem<T> again = problem;
        again.start = std::as_const(result).vectors.view();
        EigenResult<T> better = solve(ctx, again, next);
        better.iterations += result.iterations;
        better.operator_applications += result.operator_applications;
        better.seconds += result.seconds;
        better.tolerance = std::max(result.tolerance, better.tolerance);
        better.tolerance_raised = better.tolerance > options.tol;
        result = std::move(better);
    }
}

#define QUIVER_INSTANTIATE(T)                                                                \
    template EigenvalueErrors eigenvalue_errors(Context&, const EigenProblem<T>&,            \
                                                const EigenOptions&, const EigenResult<T>&); \
    template EigenResult<T> solve_with_errors(Context&, const EigenProblem<T>&,              \
                                              const EigenOptions&, const PencilSolve<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

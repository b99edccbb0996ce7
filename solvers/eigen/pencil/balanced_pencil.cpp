// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/balanced_pencil.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"
#include "solvers/eigen/pencil/balanced_problem.hpp"
#include "solvers/eigen/pencil/unit_balance.hpp"
#include "solvers/eigen/search/annotated_checkpoint.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/eigen/search/verified_search.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {
namespace {

/// The number of a state that holds the size of the eigenvalues from which D was made.
constexpr const char* size_in_state = "balanced_for";

template <class T>
class BalancedSolve {
  public:
    BalancedSolve(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                  Method method, const PencilSolve<T>& solve)
        : ctx_(ctx),
          problem_(problem),
          options_(options),
          method_(method),
          solve_(solve),
          asked_(attainable_tolerance<T>(options.tol)),
          units_(ctx, problem, method, options.seed) {}

    EigenResult<T> run() {
        const SavedState<T>* saved = saved_state(problem_);
        units_.refuse_zero_rows();
        if (!units_.is_needed()) {
            return solve_(ctx_, problem_, options_);
        }
        constexpr int most_solves = 4;
        const double likely = likely_size();
        size_ = saved != nullptr ? saved->number(size_in_state) : likely;
        units_.balance(size_);
        ctx_.emit(FallbackEvent{std::string(to_string(method_)) + words_of_other_units});
        estimate_norms();
        EigenOptions options = options_;
        const double least = attainable_tolerance<T>(0);
        EigenResult<T> result;
        bool fits = false;
        double worst = 0;
        for (int solves = 1;; ++solves) {
            result = solve_once(options, result, saved);
            saved = nullptr;
            worst = judge_pairs(result);
            fits = !choose_other_units(result);
            const bool done =
                fits && (!result.converged || worst <= asked_ || options.tol <= least);
            const bool out = options_.max_iterations > 0 && iterations_ >= options_.max_iterations;
            if (done || out || result.interrupted || solves == most_solves) {
                break;
            }
            if (fits) {
                options.tol = std::max(least, options.tol * asked_ / (2 * worst));
            }
        }
        finish(result, worst, fits);
        return result;
    }

  private:
    /// Calls the method; errors about B tell of the units of their numbers.
    EigenResult<T> solve_in_units(const EigenProblem<T>& balanced, const EigenOptions& options) {
        try {
            return solve_(ctx_, balanced, options);
        } catch (const IndefiniteError& error) {
            if (error.operand() != IndefiniteError::Operand::mass || !error.collective()) {
                throw;
            }
            throw_indefinite(
                error.operand(),
                std::string(error.what()) + " (in units that make the rows of A and B alike)");
        }
    }
    /// One solve in the present units, from the pairs of `before` if there are any.
    EigenResult<T> solve_once(EigenOptions options, const EigenResult<T>& before,
                              const SavedState<T>* saved) {
        const BlockView<const T> start =
            before.vectors.width() > 0 ? before.vectors.view() : problem_.start;
        BalancedProblem<T> balanced(ctx_, problem_, start, units_.exponents());
        AnnotatedCheckpoint<T> checkpoint(problem_.checkpoint, {{size_in_state, {size_}}}, saved);
        balanced.problem().checkpoint = problem_.checkpoint == nullptr ? nullptr : &checkpoint;
        options.max_iterations =
            options_.max_iterations > 0
                ? std::max<std::int64_t>(1, options_.max_iterations - iterations_)
                : 0;
        options.max_seconds = remaining_seconds(ctx_.comm(), options_, seconds());
        EigenResult<T> result = solve_in_units(balanced.problem(), options);
        iterations_ += result.iterations;
        applications_ += result.operator_applications;
        BlockVector<T> x;
        ctx_.comm().agree(
            [&] { x = BlockVector<T>(ctx_, problem_.a.row_map(), result.vectors.width()); });
        if (x.width() > 0) {
            balanced.restore(ctx_, std::as_const(result.vectors).view(), x.view());
        }
        result.vectors = std::move(x);
        return result;
    }

    /// The size of the wanted eigenvalues before a solve.
    double likely_size() {
        if (options_.which != Which::target) {
            return units_.likely_value(options_.which, options_.k);
        }
        return options_.target != 0 ? std::abs(options_.target)
                                    : units_.likely_value(Which::smallest_magnitude, options_.k);
    }

    /// True if the eigenvalues found need units that differ from those in use; chooses them.
    bool choose_other_units(const EigenResult<T>& result) {
        if (result.eigenvalues.size() < static_cast<std::size_t>(options_.k)) {
            return false;
        }
        constexpr double close = 256;
        const double first = std::abs(result.eigenvalues.front());
        const double last = std::abs(result.eigenvalues.back());
        const double wanted = options_.which == Which::smallest  ? last
                              : options_.which == Which::largest ? first
                                                                 : std::max(first, last);
        const double found = std::max(wanted, units_.least_value());
        if (found <= close * size_ && size_ <= close * found) {
            return false;
        }
        const std::vector<int> before = units_.exponents();
        units_.balance(found);
        size_ = found;
        return units_.differs_from(before);
    }

    void estimate_norms() {
        norm_a_ = bounds_of_spectrum<T>(ctx_, problem_.a, options_.seed).bounds.norm;
        norm_b_ = bounds_of_spectrum<T>(ctx_, *problem_.b, options_.seed).bounds.norm;
        normals_ = constraint_normals(ctx_, method_, problem_);
    }

    /// Replaces the residuals by those in the units of the problem; returns the largest one
    /// relative to ||A|| + |lambda| ||B||.
    double judge_pairs(EigenResult<T>& result) {
        const BlockView<const T> x = std::as_const(result.vectors).view();
        const PencilExponents exponents{even_exponent(norm_a_), even_exponent(norm_b_)};
        double worst = 0;
        result.residuals = scaled_residuals(ctx_, method_, problem_, x, result.eigenvalues,
                                            exponents, std::as_const(normals_).view());
        result.norm_estimate = norm_a_;
        applications_ += x.cols;
        for (std::size_t j = 0; j < result.residuals.size(); ++j) {
            const double residual = result.residuals[j];
            const double size = norm_a_ + std::abs(result.eigenvalues[j]) * norm_b_;
            result.norm_estimate = std::max(result.norm_estimate, size);
            worst = std::max(worst, residual == 0 ? 0 : residual / size);
        }
        return worst;
    }

    void finish(EigenResult<T>& result, double worst, bool fits) {
        result.iterations = iterations_;
        result.operator_applications = applications_ + units_.applications();
        result.tolerance = std::max(asked_, result.tolerance);
        if (result.converged && !fits) {
            withdraw(result,
                     "the eigenvalues found differ so much in size from those expected "
                     "that no units of the unknowns fit them; use shift-invert or dense");
        } else if (result.converged && worst > result.tolerance) {
            if (worst <= attainable_slack * attainable_tolerance<T>(0)) {
                result.tolerance = worst;
            } else {
                withdraw(result, "a residual of the pencil stays at " + number_text(worst, 2) +
                                     " (||A|| + |lambda| ||B||), above the tolerance " +
                                     number_text(result.tolerance, 2) +
                                     ", because the rows of B differ by many powers of ten; use "
                                     "shift-invert or dense");
            }
        }
        result.tolerance_raised = result.tolerance > options_.tol;
        result.seconds = seconds();
    }

    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

    Context& ctx_;
    const EigenProblem<T>& problem_;
    const EigenOptions& options_;
    Method method_;
    const PencilSolve<T>& solve_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    /// The tolerance in force for residuals in the units of the problem.
    double asked_;
    UnitBalance<T> units_;
    /// The size of the wanted eigenvalues from which the units were made.
    double size_ = 0;
    double norm_a_ = 0;
    double norm_b_ = 0;
    /// An orthonormal basis of B times the constraints; residuals omit their components along it.
    BlockVector<T> normals_;
    std::int64_t iterations_ = 0;
    std::int64_t applications_ = 0;
};

}  // namespace

template <class T>
EigenResult<T> solve_balanced(Context& ctx, const EigenProblem<T>& problem,
                              const EigenOptions& options, Method method,
                              const PencilSolve<T>& solve) {
    check_problem(ctx, problem, options);
    check_options(options, dimensions(problem));
    return BalancedSolve<T>(ctx, problem, options, method, solve).run();
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template EigenResult<T> solve_balanced(Context&, const EigenProblem<T>&, const EigenOptions&, \
                                           Method, const PencilSolve<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

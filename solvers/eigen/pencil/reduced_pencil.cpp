// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/reduced_pencil.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/gathered_rows.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"
#include "solvers/eigen/pencil/congruent_operator.hpp"
#include "solvers/eigen/pencil/mass_factor.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/eigen/search/verified_search.hpp"

namespace quiver {
namespace {

/// The first solve asks for at least this many times the least tolerance that C attains, because
/// the bound of the pencil's residual by that of C is pessimistic.
constexpr double first_slack = 16;

template <class T>
class ReducedPencil {
  public:
    ReducedPencil(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                  Method method, const StandardSolve<T>& solve)
        : ctx_(ctx),
          problem_(problem),
          options_(options),
          method_(method),
          solve_(solve),
          asked_(attainable_tolerance<T>(options.tol)),
          factor_(factor_mass(ctx, *problem.b, method)) {
        form_c();
        map_columns(problem.start, start_);
        map_columns(problem.constraints, constraints_);
        normals_ = constraint_normals(ctx, method, problem);
        estimate_norms();
    }

    EigenResult<T> run() {
        constexpr int most_solves = 3;
        EigenOptions options = reduced_options();
        const double least = attainable_tolerance<T>(0);
        EigenResult<T> result;
        BlockVector<T> y;
        std::int64_t iterations = 0;
        double seconds = 0;
        double worst = 0;
        for (int solves = 1;; ++solves) {
            EigenProblem<T> standard{*c_};
            standard.start = std::as_const(start_).view();
            standard.constraints = std::as_const(constraints_).view();
            result = solve_(ctx_, standard, options);
            result.iterations += iterations;
            iterations = result.iterations;
            seconds += result.seconds;
            options.max_seconds = remaining_seconds(ctx_.comm(), options_, seconds);
            applications_ += result.operator_applications;
            y = std::move(result.vectors);
            restore(std::as_const(y).view(), result);
            worst = judge_pairs(result);
            if (!result.converged || worst <= asked_ || options.tol <= least ||
                solves == most_solves ||
                (options_.max_iterations > 0 && iterations >= options_.max_iterations)) {
                break;
            }
            options.max_iterations =
                std::max<std::int64_t>(0, options_.max_iterations - iterations);
            options.tol = std::max(least, options.tol * asked_ / (2 * worst));
            ctx_.emit(FallbackEvent{std::string(to_string(method_)) +
                                    ": a residual of the pencil is " +
                                    number_text(worst / asked_, 2) +
                                    " times the tolerance; a solve with the tolerance " +
                                    number_text(options.tol, 2) + " starts from the pairs found"});
            start_ = std::move(y);
        }
        finish(result, worst);
        return result;
    }

  private:
    /// C = G^-1 A G^-H, with stored entries if A has them and G is diagonal.
    void form_c() {
        Operator<T>& a = problem_.a;
        auto* const stored = dynamic_cast<SparseMatrix<T>*>(&a);
        if (stored != nullptr && factor_->inverse_diagonal() != nullptr) {
            c_ = std::make_unique<SparseMatrix<T>>(
                ctx_, scaled_rows<T>(ctx_, *stored, factor_->inverse_diagonal()->view()));
        } else {
            c_ = std::make_unique<CongruentOperator<T>>(
                a,
                [this](Context& ctx, BlockView<const T> x, BlockView<T> y) {
                    factor_->solve_adjoint(ctx, x, y);
                },
                [this](Context& ctx, BlockView<const T> x, BlockView<T> y) {
                    factor_->solve(ctx, x, y);
                });
        }
    }

    BlockVector<T> columns(int width) {
        BlockVector<T> block;
        ctx_.comm().agree([&] { block = BlockVector<T>(ctx_, problem_.a.row_map(), width); });
        return block;
    }

    /// Y = G^H X.
    void map_columns(BlockView<const T> x, BlockVector<T>& y) {
        if (x.cols > 0) {
            y = columns(x.cols);
            factor_->multiply_adjoint(ctx_, x, y.view());
        }
    }

    /// ||A||, ||B|| and ||C||: estimates that are lower bounds, close in practice.
    void estimate_norms() {
        const auto norm_of = [&](Operator<T>& a) {
            const CountedBounds found = bounds_of_spectrum<T>(ctx_, a, options_.seed);
            return std::pair(found.bounds.norm, found.applications);
        };
        const auto [a, products] = norm_of(problem_.a);
        norm_a_ = a;
        norm_b_ = norm_of(*problem_.b).first;
        const auto [c, more] = norm_of(*c_);
        norm_c_ = std::ldexp(c, -factor_->exponent());
        applications_ += products + more;
    }

    EigenOptions reduced_options() const {
        EigenOptions options = options_;
        if (options.window) {
            options.window = Window{std::ldexp(options.window->low, factor_->exponent()),
                                    std::ldexp(options.window->high, factor_->exponent())};
        }
        options.tol =
            std::max(safe_tolerance(), std::min(asked_, first_slack * attainable_tolerance<T>(0)));
        return options;
    }

    /// A tolerance of C with which every residual of the pencil meets the tolerance in force.
    double safe_tolerance() const {
        const double bound = norm_b_ * norm_c_;
        return norm_a_ < bound ? asked_ * norm_a_ / bound : asked_;
    }

    /// X <- 2^(-e/2) G^-H Y, and the eigenvalues of the pencil.
    void restore(BlockView<const T> y, EigenResult<T>& result) {
        const int exponent = factor_->exponent();
        for (double& value : result.eigenvalues) {
            value = std::ldexp(value, -exponent);
        }
        result.cut_depth = std::ldexp(result.cut_depth, -exponent);
        result.vectors = columns(y.cols);
        if (y.cols > 0) {
            factor_->solve_adjoint(ctx_, y, result.vectors.view());
            scale(ctx_, T(std::ldexp(real_t<T>(1), -exponent / 2)), result.vectors.view());
        }
    }

    double scale_of(double value) const { return norm_a_ + std::abs(value) * norm_b_; }

    /// Replaces the residuals by those of the pencil, and returns the largest one relative to
    /// ||A|| + |lambda| ||B||.
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
            const double size = scale_of(result.eigenvalues[j]);
            result.norm_estimate = std::max(result.norm_estimate, size);
            worst = std::max(worst, residual == 0 ? 0 : residual / size);
        }
        return worst;
    }

    void finish(EigenResult<T>& result, double worst) {
        // C may have attained only a larger tolerance than it was asked for.
        result.tolerance = std::max(asked_, result.tolerance);
        result.operator_applications = applications_;
        if (result.converged && worst > result.tolerance) {
            if (worst <= attainable_slack * attainable_tolerance<T>(0)) {
                result.tolerance = worst;
            } else {
                withdraw(result, "a residual of the pencil stays at " + number_text(worst, 2) +
                                     " (||A|| + |lambda| ||B||), above the tolerance " +
                                     number_text(result.tolerance, 2) + ": " + loss_of_digits());
            }
        } else if (!result.converged && !result.interrupted &&
                   safe_tolerance() < attainable_tolerance<T>(0)) {
            result.message += "; " + loss_of_digits();
        }
        result.tolerance_raised = result.tolerance > options_.tol;
        const auto time = std::chrono::steady_clock::now() - begin_;
        result.seconds = std::chrono::duration<double>(time).count();
    }

    std::string loss_of_digits() const {
        return "the condition number of B is at least " + number_text(factor_->pivot_ratio(), 2) +
               ", and rounding errors of " + to_string(method_) +
               " are relative to the largest |lambda|, about " + number_text(norm_c_, 2) +
               "; use shift-invert or " + (options_.window ? "dense" : "lobpcg");
    }

    Context& ctx_;
    const EigenProblem<T>& problem_;
    const EigenOptions& options_;
    Method method_;
    const StandardSolve<T>& solve_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    /// The tolerance in force for residuals of the pencil.
    double asked_;
    std::unique_ptr<MassFactor<T>> factor_;
    std::unique_ptr<Operator<T>> c_;
    /// G^H times the start vectors and the constraints.
    BlockVector<T> start_;
    BlockVector<T> constraints_;
    /// Residuals omit their components along these.
    BlockVector<T> normals_;
    double norm_a_ = 0;
    double norm_b_ = 0;
    double norm_c_ = 0;
    std::int64_t applications_ = 0;
};

/// Throws InputError on all ranks for the parts of a problem that the reduction does not support.
template <class T>
void require_reducible(const EigenProblem<T>& problem, Method method) {
    const auto refuse = [&](const char* part, const char* for_windows) {
        throw_collective(ErrorKind::input,
                         std::string(to_string(method)) + ": A x = lambda B x is solved without " +
                             part + "; " +
                             (method == Method::filter ? for_windows : "lobpcg and jd take both"));
    };
    if (problem.checkpoint != nullptr) {
        refuse("a checkpoint", "omit the checkpoint");
    }
    if (problem.protection != nullptr) {
        refuse("protection", "dense takes both");
    }
}

}  // namespace

template <class T>
EigenResult<T> solve_reduced(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options, Method method,
                             const StandardSolve<T>& solve) {
    check_problem(ctx, problem, options);
    require_reducible(problem, method);
    check_options(options, dimensions(problem));
    return ReducedPencil<T>(ctx, problem, options, method, solve).run();
}

#define QUIVER_INSTANTIATE(T)                                                                    \
    template EigenResult<T> solve_reduced(Context&, const EigenProblem<T>&, const EigenOptions&, \
                                          Method, const StandardSolve<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

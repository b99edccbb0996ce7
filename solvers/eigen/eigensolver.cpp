// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigensolver.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/guarded_solve.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "solvers/eigen/chebyshev_subspace.hpp"
#include "solvers/eigen/dense/lapack.hpp"
#include "solvers/eigen/dense_eigen.hpp"
#include "solvers/eigen/jacobi_davidson.hpp"
#include "solvers/eigen/lobpcg.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/both_ends.hpp"
#include "solvers/eigen/shift_invert.hpp"
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

/// Whether products and updates of blocks are checked one by one. Block Lanczos does not need this:
/// it carries checksums of its basis.
template <class T>
bool guards_blocks(const EigenProblem<T>& problem, Method method) {
    return problem.protection != nullptr && problem.protection->options().updates &&
           method != Method::lanczos;
}

/// The limits of dense solves that eigensolve() chooses, in rows; halved without LAPACK.
/// One core takes 0.3 s for 1024 rows and 5 s for 3000; an iteration takes 0.01 to 10 s.
constexpr std::int64_t dense_rows = 1024;
constexpr std::int64_t dense_rows_interior = 3000;
constexpr std::int64_t dense_rows_many = 4096;
constexpr std::int64_t dense_rows_by_products = 512;
/// k counts as a large part of the rows from this fraction on.
constexpr std::int64_t large_part = 8;
/// n^2 / 1000 steps of an iteration take about as long as a dense solve.
constexpr std::int64_t rows_squared_per_step = 1000;

/// The dense solve that problem and options take, or the steps after which one follows; neither if
/// the matrix is too large.
template <class T>
MethodChoice choose_dense(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options) {
    const std::int64_t n = problem.a.row_map().global_rows();
    if (n > dense_rows_many || problem.checkpoint != nullptr || problem.protection != nullptr) {
        return {Method::automatic, ""};
    }
    std::int64_t factor = 1;
    if (ctx.comm().rank() == 0) {
        factor = ctx.service<Lapack>().is_available() ? 2 : 1;
    }
    ctx.comm().broadcast(&factor, sizeof(factor), 0);
    const auto within = [&](std::int64_t rows) { return 2 * n <= factor * rows; };
    const std::string rows = std::to_string(n) + " rows";
    const auto is_stored = [](const Operator<T>* a) {
        return a == nullptr || dynamic_cast<const SparseMatrix<T>*>(a) != nullptr;
    };
    if (!is_stored(&problem.a) || !is_stored(problem.b)) {
        return within(dense_rows_by_products)
                   ? MethodChoice{Method::dense, rows + ", gathered by as many products"}
                   : MethodChoice{Method::automatic, ""};
    }
    if (within(dense_rows)) {
        return {Method::dense, rows + " are few"};
    }
    if (within(dense_rows_interior) && options.window) {
        return {Method::dense, "a window of a matrix with " + rows};
    }
    const bool target =
        options.which == Which::target || options.which == Which::smallest_magnitude;
    if (within(dense_rows_interior) && target && problem.inverse == nullptr) {
        return {Method::dense, "eigenvalues nearest a target of a matrix with " + rows};
    }
    if (!options.window && large_part * options.k >= n) {
        return {Method::dense, std::to_string(options.k) + " of " + std::to_string(n) +
                                   " eigenpairs are a large part"};
    }
    return {Method::automatic, "", within(dense_rows_interior) ? n * n / rows_squared_per_step : 0};
}

/// The method that iterates.
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
        InputError error(std::string("eigensolver: method ") + to_string(method) +
                         " finds an end of the spectrum; " + why);
        error.set_collective();
        throw error;
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
            InputError error(std::string("eigensolver: method ") + to_string(method) +
                             " is not in this build");
            error.set_collective();
            throw error;
        }
    }
}

/// call_method() under the checks that the problem's protection asks for.
template <class T>
EigenResult<T> protected_solve(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options, Method method) {
    require_protects(problem.protection, problem.a);
    EigenResult<T> result = guarded_solve(
        ctx, problem.protection, guards_blocks(problem, method),
        [&] { return call_method(ctx, problem, options, method); },
        [&](const SolveFaults& faults, EigenResult<T>& solved) {
            judge_faults(ctx, problem, faults, solved);
        });
    judge_norm(problem, result);
    return result;
}

/// The dense solve after `iterated`, which has not converged within its steps.
template <class T>
EigenResult<T> continue_dense(Context& ctx, const EigenProblem<T>& problem,
                              const EigenOptions& options, const EigenResult<T>& iterated) {
    EigenResult<T> result = dense_eigen(ctx, problem, options);
    result.method_reason = std::string(to_string(iterated.method)) + " had not converged after " +
                           std::to_string(iterated.iterations) + " iterations; " +
                           std::to_string(problem.a.row_map().global_rows()) +
                           " rows are few enough for a dense solve";
    result.iterations += iterated.iterations;
    result.operator_applications += iterated.operator_applications;
    result.seconds += iterated.seconds;
    return result;
}

}  // namespace

template <class T>
MethodChoice choose_method(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options) {
    if (options.method != Method::automatic) {
        return {options.method, ""};
    }
    MethodChoice dense = choose_dense(ctx, problem, options);
    if (dense.method == Method::dense) {
        return dense;
    }
    MethodChoice iteration = choose_iteration(problem, options);
    iteration.dense_after = dense.dense_after;
    return iteration;
}

template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options) {
    require_equal_options(ctx.comm(), problem, options);
    MethodChoice choice = choose_method(ctx, problem, options);
    EigenOptions limited = options;
    // These methods select from a spectrum, whatever is wanted.
    const bool selects = choice.method == Method::dense || choice.method == Method::shift_invert;
    if (wants_both_ends(options.which) && (!selects || options.window)) {
        return solve_both_ends(ctx, problem, options);
    }
    if (!selects) {
        if (options.which == Which::smallest_magnitude) {
            EigenOptions nearest_zero = options;
            nearest_zero.which = Which::target;
            nearest_zero.target = 0;
            return eigensolve(ctx, problem, nearest_zero);
        }
        require_fitting_method(choice.method, options);
        if (choice.dense_after > 0) {
            limited.max_iterations = std::min(options.max_iterations, choice.dense_after);
        }
    }
    EigenResult<T> result = protected_solve(ctx, problem, limited, choice.method);
    result.method_reason = std::move(choice.reason);
    const bool stalled =
        !result.converged && !result.interrupted && result.iterations >= limited.max_iterations;
    return stalled && limited.max_iterations < options.max_iterations
               ? continue_dense(ctx, problem, options, result)
               : std::move(result);
}

#define QUIVER_INSTANTIATE(T)                                                                   \
    template MethodChoice choose_method(Context&, const EigenProblem<T>&, const EigenOptions&); \
    template EigenResult<T> eigensolve(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

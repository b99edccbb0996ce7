// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/linear_solve.hpp"

#include <algorithm>
#include <vector>

#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/abft/guarded_solve.hpp"
#include "solvers/linear/bicgstab.hpp"
#include "solvers/linear/block_cg.hpp"
#include "solvers/linear/block_gmres.hpp"
#include "solvers/linear/block_minres.hpp"

namespace quiver {

namespace {

template <class T>
LinearResult solve_by(Context& ctx, LinearMethod method, const LinearProblem<T>& problem,
                      BlockView<T> x, const LinearOptions& options, LinearWorkspace<T>& workspace) {
    switch (method) {
        case LinearMethod::cg:
            return block_cg(ctx, problem, x, options, workspace);
        case LinearMethod::minres:
            return block_minres(ctx, problem, x, options, workspace);
        case LinearMethod::gmres:
            return block_gmres(ctx, problem, x, options, workspace);
        default:
            return bicgstab(ctx, problem, x, options, workspace);
    }
}

/// Withdraws the claim of a column.
void withdraw(LinearResult& result, LinearColumn& column, const std::string& reason) {
    column.status = LinearStatus::faulty;
    column.message = reason;
    result.converged = false;
    result.message = result.message.empty() ? reason : result.message;
}

/// Computes the residuals of converged columns by the matrix itself, which has passed its audit.
/// Converged columns stay in memory while others are still computed, so a fault may have changed
/// one since it converged. Collective, one product and two all-reduces.
template <class T>
void judge_residuals(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                     const LinearOptions& options, LinearResult& result) {
    using Real = real_t<T>;
    const auto columns = static_cast<std::size_t>(x.cols);
    const Scratch memory = ctx.scratch(memory_kind(ctx.place()),
                                       static_cast<std::size_t>(x.rows) * columns * sizeof(T));
    const BlockView<T> r(memory.as<T>(), x.rows, x.cols, x.cols, ctx.place());
    copy(ctx, problem.b, r);
    ApplyOptions<T> subtract;
    subtract.alpha = T(-1);
    subtract.beta = T(1);
    subtract.shift = problem.shift;
    problem.protection->matrix().apply_fused(ctx, x, r, subtract);
    std::vector<Real> residuals(columns);
    std::vector<Real> lengths(columns);
    norms(ctx, BlockView<const T>(r), std::span<Real>(residuals));
    norms(ctx, BlockView<const T>(x), std::span<Real>(lengths));
    for (std::size_t j = 0; j < columns; ++j) {
        LinearColumn& column = result.columns[j];
        if (column.status != LinearStatus::converged) {
            continue;
        }
        const double tol = options.column_tol.empty() ? options.tol : options.column_tol[j];
        const std::span<const T> shift = problem.shift;
        const double norm =
            problem.protection->largest_row() +
            (shift.empty() ? 0 : static_cast<double>(std::abs(shift[shift.size() == 1 ? 0 : j])));
        // The rounding errors of this product and of the solver's last one.
        const double rounding = 16 * static_cast<double>(epsilon_v<T>) *
                                (norm * static_cast<double>(lengths[j]) + column.b_norm);
        const auto residual = static_cast<double>(residuals[j]);
        if (!(residual <= tol * column.b_norm + rounding)) {
            withdraw(result, column,
                     "a residual computed at the end is " + number_text(residual / column.b_norm) +
                         " ||b||, above the tolerance, so a vector has changed in memory: solve "
                         "again");
        }
    }
}

}  // namespace

const char* to_string(LinearMethod method) {
    switch (method) {
        case LinearMethod::cg:
            return "cg";
        case LinearMethod::minres:
            return "minres";
        case LinearMethod::gmres:
            return "gmres";
        default:
            return "bicgstab";
    }
}

template <class T>
LinearResult linear_solve(Context& ctx, LinearMethod method, const LinearProblem<T>& problem,
                          BlockView<T> x, const LinearOptions& options,
                          LinearWorkspace<T>& workspace) {
    ProtectedMatrix<T>* const protection = problem.protection;
    const bool checks = protection != nullptr && protection->mode() != AbftMode::off;
    LinearResult result = guarded_solve(
        ctx, protection, protection != nullptr && protection->options().updates,
        [&] { return solve_by(ctx, method, problem, x, options, workspace); },
        [](const SolveFaults& faults, LinearResult& solved) {
            for (LinearColumn& column : solved.columns) {
                if (faults.left > 0 && column.status == LinearStatus::converged) {
                    withdraw(solved, column, faults.reason());
                }
            }
        });
    const auto converged = [](const LinearColumn& column) {
        return column.status == LinearStatus::converged && column.b_norm > 0;
    };
    if (checks && options.fresh_residuals &&
        std::any_of(result.columns.begin(), result.columns.end(), converged)) {
        judge_residuals(ctx, problem, x, options, result);
    }
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                           \
    template LinearResult linear_solve(Context&, LinearMethod, const LinearProblem<T>&, \
                                       BlockView<T>, const LinearOptions&, LinearWorkspace<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

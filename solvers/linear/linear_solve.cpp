// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/linear_solve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/abft/checksum.hpp"
#include "solvers/abft/guarded_solve.hpp"
#include "solvers/linear/bicgstab.hpp"
#include "solvers/linear/block_cg.hpp"
#include "solvers/linear/block_gmres.hpp"
#include "solvers/linear/block_minres.hpp"
#include "solvers/linear/linear_columns.hpp"

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

/// Marks a converged column as faulty.
void withdraw(LinearResult& result, std::size_t j, const std::string& reason) {
    LinearColumn& column = result.columns[j];
    column.status = LinearStatus::faulty;
    column.message = column_message(j, result.columns.size(), reason);
    result.converged = false;
    result.message = result.message.empty() ? column.message : result.message;
}

/// Computes the residuals of converged columns by the matrix itself, which has passed its audit,
/// and withdraws the columns above their tolerance. A converged column stays in memory while others
/// are still computed, so a fault may have changed it. Checksums show changes of X during the
/// product and after it. Collective, one product, two more passes over X and three all-reduces.
template <class T>
void judge_residuals(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                     const LinearOptions& options, LinearResult& result) {
    using Real = real_t<T>;
    const auto columns = static_cast<std::size_t>(x.cols);
    const Checksum<T> before(ctx, x);
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
    const bool unchanged = unchanged_since(ctx, before, BlockView<const T>(x));
    for (std::size_t j = 0; j < columns; ++j) {
        const LinearColumn& column = result.columns[j];
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
        if (!unchanged) {
            withdraw(result, j, "X has changed in memory during the last check: solve again");
        } else if (!(residual <= tol * column.b_norm + rounding)) {
            withdraw(result, j,
                     "a residual computed at the end is " + number_text(residual / column.b_norm) +
                         " ||b||, above the tolerance, so a vector has changed in memory: solve "
                         "again");
        }
    }
}

/// Solves the right-hand sides whose squares underflow or overflow again, scaled by powers of two
/// and without a guess. Columns of zeros and columns with NaN or infinity keep their result.
template <class T>
class ScaledColumns {
    using Real = real_t<T>;
    using Limits = std::numeric_limits<Real>;

  public:
    ScaledColumns(Context& ctx, const LinearProblem<T>& problem, const LinearResult& result)
        : ctx_(ctx), problem_(problem) {
        for (std::size_t j = 0; j < result.columns.size(); ++j) {
            const double length = result.columns[j].b_norm;
            if (!has_sane_square(length)) {
                columns_.push_back(static_cast<int>(j));
                exponents_.push_back(length < 1 ? Limits::max_exponent / 4 * 3
                                                : -Limits::max_exponent / 8 * 5);
            }
        }
    }
    bool empty() const { return columns_.empty(); }

    /// `solve(problem, x, options)` solves the scaled system. Collective.
    template <class Solve>
    void run(BlockView<T> x, const LinearOptions& options, LinearResult& result, Solve&& solve) {
        const std::size_t bytes = static_cast<std::size_t>(x.rows) * columns_.size() * sizeof(T);
        const Scratch memory_of_b = ctx_.scratch(memory_kind(ctx_.place()), bytes);
        keep_sane(memory_of_b);
        if (empty()) {
            return;
        }
        const BlockView<T> b = load_b(memory_of_b);
        const Scratch memory_of_x = ctx_.scratch(memory_kind(ctx_.place()), bytes);
        const BlockView<T> scaled_x(memory_of_x.as<T>(), x.rows, b.cols, b.cols, ctx_.place());
        LinearProblem<T> problem = problem_;
        problem.b = b;
        LinearOptions how = options;
        how.x_is_guess = false;
        std::vector<T> shift;
        std::vector<double> tol;
        for (const int j : columns_) {
            if (problem_.shift.size() > 1) {
                shift.push_back(problem_.shift[static_cast<std::size_t>(j)]);
            }
            if (!options.column_tol.empty()) {
                tol.push_back(options.column_tol[static_cast<std::size_t>(j)]);
            }
        }
        problem.shift = shift.empty() ? problem_.shift : std::span<const T>(shift);
        how.column_tol = tol;
        const LinearResult scaled = solve(problem, scaled_x, how);
        const std::vector<Real> lengths = lengths_of(scaled_x);
        scale_columns(scaled_x, -1);
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const int at = static_cast<int>(i);
            copy(ctx_, BlockView<const T>(scaled_x.columns(at, 1)), x.columns(columns_[i], 1));
            report(scaled.columns[i], i, static_cast<double>(lengths[i]), result);
        }
        combine(scaled, result);
    }

  private:
    static bool has_sane_square(double length) {
        return length >= std::sqrt(Limits::min() / Limits::epsilon()) && std::isfinite(length);
    }
    std::vector<Real> lengths_of(BlockView<const T> block) {
        std::vector<Real> lengths(static_cast<std::size_t>(block.cols));
        norms(ctx_, block, std::span<Real>(lengths));
        return lengths;
    }
    /// block(:, i) *= 2^(sign exponents_[i])
    void scale_columns(BlockView<T> block, int sign) {
        std::vector<T> factors;
        for (const int exponent : exponents_) {
            factors.push_back(T(std::ldexp(Real(1), sign * exponent)));
        }
        scale(ctx_, std::span<const T>(factors), block);
    }
    BlockView<T> load_b(const Scratch& memory) {
        const auto columns = static_cast<int>(columns_.size());
        const BlockView<T> b(memory.as<T>(), problem_.b.rows, columns, columns, ctx_.place());
        gather_columns(ctx_, problem_.b, columns_, b);
        scale_columns(b, 1);
        return b;
    }
    /// Drops the columns that are zero, NaN or infinite.
    void keep_sane(const Scratch& memory) {
        const std::vector<Real> lengths = lengths_of(load_b(memory));
        std::size_t kept = 0;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            if (has_sane_square(static_cast<double>(lengths[i]))) {
                columns_[kept] = columns_[i];
                exponents_[kept++] = exponents_[i];
            }
        }
        columns_.resize(kept);
        exponents_.resize(kept);
    }
    /// Writes the outcome of column i, with ||x|| = `length` before the scaling was undone.
    void report(const LinearColumn& scaled, std::size_t i, double length, LinearResult& result) {
        LinearColumn& column = result.columns[static_cast<std::size_t>(columns_[i])];
        const std::int64_t before = column.iterations;
        column = scaled;
        column.iterations += before;
        column.residual = std::ldexp(scaled.residual, -exponents_[i]);
        column.b_norm = std::ldexp(scaled.b_norm, -exponents_[i]);
        const double x_norm = std::ldexp(length, -exponents_[i]);
        if (column.status == LinearStatus::converged &&
            !(x_norm >= static_cast<double>(Limits::min()) &&
              x_norm <= static_cast<double>(Limits::max()))) {
            column.status = LinearStatus::not_finite;
            column.message = ": x is outside the range of numbers of this precision";
        }
        if (column.status != LinearStatus::converged) {
            const std::string reason = column.message.substr(column.message.find(": ") + 2);
            column.message = column_message(static_cast<std::size_t>(columns_[i]),
                                            result.columns.size(), reason);
        }
    }
    static void combine(const LinearResult& scaled, LinearResult& result) {
        result.iterations += scaled.iterations;
        result.operator_applications += scaled.operator_applications;
        result.preconditioner_applications += scaled.preconditioner_applications;
        result.seconds += scaled.seconds;
        const auto failed = std::find_if(
            result.columns.begin(), result.columns.end(),
            [](const LinearColumn& column) { return column.status != LinearStatus::converged; });
        result.converged = failed == result.columns.end();
        result.message = result.converged ? "" : failed->message;
    }

    Context& ctx_;
    const LinearProblem<T>& problem_;
    std::vector<int> columns_;
    std::vector<int> exponents_;
};

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
            for (std::size_t j = 0; j < solved.columns.size() && faults.left > 0; ++j) {
                if (solved.columns[j].status == LinearStatus::converged) {
                    withdraw(solved, j, faults.reason());
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
    ScaledColumns<T> scaled(ctx, problem, result);
    if (!scaled.empty()) {
        scaled.run(
            x, options, result,
            [&](const LinearProblem<T>& again, BlockView<T> solution, const LinearOptions& how) {
                return linear_solve(ctx, method, again, solution, how, workspace);
            });
    }
    if (result.message.starts_with("right-hand side")) {
        result.message = std::string(to_string(method)) + ": " + result.message;
    }
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                           \
    template LinearResult linear_solve(Context&, LinearMethod, const LinearProblem<T>&, \
                                       BlockView<T>, const LinearOptions&, LinearWorkspace<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

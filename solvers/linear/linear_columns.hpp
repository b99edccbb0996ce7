// SPDX-License-Identifier: BSD-3-Clause
// LinearColumns: the cycle, column states and operations that all linear solvers share. Private to
// solvers/linear.
#pragma once

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "blockvec/number_text.hpp"
#include "blockvec/scalar.hpp"
#include "solvers/guarded_operator.hpp"
#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"
#include "solvers/solve_audit.hpp"

namespace quiver {

/// The message of a column that has not converged.
inline std::string column_message(std::size_t j, std::size_t columns, const std::string& reason) {
    return "right-hand side " + std::to_string(j + 1) + " of " + std::to_string(columns) + ": " +
           reason;
}

/// Coefficients are formed in double precision for all scalars.
template <class T>
using wide_scalar_t = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

template <class T>
wide_scalar_t<T> widen(T value) {
    return static_cast<wide_scalar_t<T>>(value);
}

/// True without shifts or if all shifts are equal.
template <class T>
bool have_one_value(std::span<const T> shift) {
    return std::adjacent_find(shift.begin(), shift.end(), std::not_equal_to<>()) == shift.end();
}

/// Throws InputError for a complex shift, which would make the operator not Hermitian.
template <class T>
void require_real_shift(const char* solver, std::span<const T> shift);

/// Moves the elements x[columns[0]], x[columns[1]], ... to the front and drops the others.
template <class V>
void keep_elements(std::vector<V>& x, std::span<const int> columns) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
        x[j] = x[static_cast<std::size_t>(columns[j])];
    }
    x.resize(columns.size());
}

/// The active (unfinished) columns, stored side by side without gaps, and the cycle common to all
/// methods:
///
///    R = B - (A - shift) X from a fresh product; columns within their tolerance are finished
///    the method updates X, starting from R, reports residuals, and removes columns that leave
///    X is copied back to the caller; the cycle repeats for columns that are not finished
///
/// A column that left a cycle as converged but whose fresh residual is above the tolerance must
/// have halved its residual in that cycle, else it ends as stagnated. If a column does not converge
/// and its last cycle has increased the residual, its X is reset to the start of that cycle, or to
/// 0.
template <class T>
class LinearColumns {
    using Real = real_t<T>;
    using Wide = wide_scalar_t<T>;

  public:
    /// Blocks 0 and 1 of the workspace are X and R; the method owns blocks 2 .. blocks + 1 and the
    /// basis. `most_growth`: factor by which the residual may grow in regular steps.
    LinearColumns(Context& context, const char* solver, const LinearProblem<T>& problem,
                  BlockView<T> x, const LinearOptions& options, LinearWorkspace<T>& workspace,
                  int blocks, int basis_columns = 0, double most_growth = 1);

    /// The whole solve: cycle() runs the method from R until every column has left.
    template <class Cycle>
    LinearResult solve(Cycle&& cycle) {
        while (next_cycle()) {
            cycle();
            end_cycle();
        }
        return finish();
    }
    /// Loads X and R of the unfinished columns. Returns false if all columns are finished and the
    /// operator's memory has been audited. If the audit repaired the operator, the residuals of
    /// finished columns are computed again.
    bool next_cycle();
    /// Copies X back to the caller.
    void end_cycle();
    /// Completes the messages and returns the result.
    LinearResult finish();

    int width() const { return static_cast<int>(active_.size()); }
    bool empty() const { return active_.empty(); }
    BlockView<T> x() { return block(0); }
    BlockView<T> r() { return block(1); }
    /// Block `index` with `width` columns, by default as many as are active.
    BlockView<T> block(int index) { return workspace_.block(index, width()); }
    BlockView<T> block(int index, int width) { return workspace_.block(index, width); }
    void exchange(int a, int b) { workspace_.exchange(a, b); }
    /// Keeps the first `count` of the `width` columns of block `index`.
    void narrow(int index, int width, int count);
    BlockView<T> basis(int columns) { return workspace_.basis(columns); }
    const RowMap& row_map() const { return problem_.a.row_map(); }
    bool preconditioned() const { return problem_.preconditioner != nullptr; }
    /// ||r_j|| at the start of the cycle.
    double start_residual(int j) const { return column(j).residual; }
    /// Index of active column j among the caller's columns.
    int number(int j) const { return active_[static_cast<std::size_t>(j)]; }

    /// Y = (A - shift) X for the active columns, with their shifts, and with column dots if dot_xy
    /// is given.
    void multiply(BlockView<const T> x, BlockView<T> y, std::span<T> dot_xy = {});
    /// Y = (A - shift) X for any block X, not only the active columns. Requires that all shifts are
    /// equal.
    void multiply_block(BlockView<const T> x, BlockView<T> y);
    /// Y = M X; copies X if there is no preconditioner.
    void precondition(BlockView<const T> x, BlockView<T> y);
    /// A pair of blocks for fused_dots().
    struct Dots {
        BlockView<const T> x;
        BlockView<const T> y;
    };
    /// Element k width() + j of the result is x_j^H y_j of pair k. One all-reduce sums all elements
    /// over the ranks.
    std::span<const T> fused_dots(std::initializer_list<Dots> pairs);
    /// Y(:, j) = alpha[j] X(:, j) + beta[j] Y(:, j); set(j) returns the pair (alpha[j], beta[j]).
    template <class Set>
    void update(BlockView<const T> x, BlockView<T> y, Set&& set) {
        for (int j = 0; j < x.cols; ++j) {
            const auto [a, b] = set(j);
            alpha_[static_cast<std::size_t>(j)] = static_cast<T>(Wide(a));
            beta_[static_cast<std::size_t>(j)] = static_cast<T>(Wide(b));
        }
        run_update(x, y);
    }

    /// Completes a step; residuals[j] is the residual of active column j. Columns below their
    /// target leave as converged; columns that have made all their steps, or that options.stop
    /// ends, leave unconverged. options.stop is called if `steps` has one element per column, with
    /// all but `column` and `residual` set.
    void end_step(std::span<const double> residuals, std::span<LinearStep> steps = {});
    /// True if options.stop can be called in this cycle.
    bool wants_steps() const { return options_.stop && cycles_ == 1; }
    /// Sets `xx` to ||x||^2. One all-reduce.
    void take_lengths(std::span<LinearStep> steps);
    /// Column j leaves without another step. `text` describes the cause, with its values. If
    /// `may_restart`, another cycle follows if this cycle has halved the residual.
    void break_down(int j, LinearStatus status, const std::string& text, bool may_restart = false);
    /// break_down() with LinearStatus::breakdown, caused by a preconditioner that is not Hermitian
    /// positive definite; sets LinearColumn::preconditioner_is_unfit.
    void break_down_unfit_preconditioner(int j, const std::string& text);
    /// break_down() after a product that is not finite.
    void break_down_not_finite(int j) {
        break_down(j, LinearStatus::not_finite,
                   "the operator or the preconditioner gives NaN or infinity");
    }
    /// Throws on all ranks if an operator has thrown on any rank. Call it after a reduction whose
    /// result is not finite.
    void require_no_throw();
    /// Records that all columns have filled their search space. A column whose residual the cycle
    /// has not reduced then ends as stagnated.
    void leave_with_full_basis();
    bool any_leaves() const;
    bool leaves(int j) const { return leaving_[static_cast<std::size_t>(j)] != 0; }
    /// Removes the columns that leave: copies their X to the caller; X and `blocks` keep the other
    /// columns. Returns the indices of the kept columns, valid until the next call.
    std::span<const int> take_out(std::initializer_list<int> blocks);
    /// Removes the columns that leave by take_out(), and their elements from `state`, which has one
    /// element per column. Returns false if no column is left.
    template <class V>
    bool drop_leaving(std::vector<V>& state, std::initializer_list<int> blocks) {
        if (any_leaves()) {
            keep_elements(state, take_out(blocks));
        }
        return !empty();
    }

    Context& ctx;

  private:
    struct State {
        bool running = true;
        /// The column left the last cycle as converged (claimed) or after a breakdown (broken).
        bool claimed = false;
        bool broken = false;
        bool may_restart = false;
        /// options.stop has ended the column.
        bool stopped = false;
        /// The column left the last cycle with a full basis.
        bool restarted = false;
        double residual = 0;
        double before_cycle = 0;
        /// Residual of the first guess, or ||b|| if that is larger.
        double first = 0;
        double target = 0;
    };
    State& column(int j) { return states_[static_cast<std::size_t>(number(j))]; }
    const State& column(int j) const { return states_[static_cast<std::size_t>(number(j))]; }
    LinearColumn& report(int j) { return result_.columns[static_cast<std::size_t>(number(j))]; }
    bool has_steps(std::size_t number) const {
        return !states_[number].stopped &&
               result_.columns[number].iterations < options_.max_iterations;
    }
    void require_equal_options() const;
    void check(BlockView<T> x) const;
    double tolerance(int column) const;
    bool load_cycle();
    bool reopen_after_audit();
    void load();
    void judge();
    void finish_column(int j, LinearStatus status, const std::string& text);
    void return_to_zero(int j);
    void return_to_start(int j);
    void keep_start();
    /// X at the start of the cycle, for all the caller's columns.
    BlockView<T> start() { return workspace_.block(start_block_, caller_x_.cols); }
    void report_step() const;
    void run_update(BlockView<const T> x, BlockView<T> y);
    std::span<const T> active_shift() const;
    double seconds() const;

    const char* solver_;
    LinearProblem<T> problem_;
    GuardedOperator<T> a_;
    std::optional<GuardedOperator<T>> m_;
    BlockView<T> caller_x_;
    LinearOptions options_;
    LinearWorkspace<T>& workspace_;
    double most_growth_;
    int start_block_;
    bool start_is_kept_ = false;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    LinearResult result_;
    std::vector<State> states_;
    std::vector<int> active_;
    std::vector<T> shift_;
    std::vector<char> leaving_;
    std::vector<int> kept_;
    std::vector<T> alpha_;
    std::vector<T> beta_;
    std::vector<T> dots_;
    std::int64_t steps_ = 0;
    std::int64_t cycles_ = 0;
    SolveAudit<T> audit_;
    SolveFaults faults_;  // found by the last audit
    int reopened_ = 0;
};

}  // namespace quiver

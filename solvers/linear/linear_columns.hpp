// SPDX-License-Identifier: BSD-3-Clause
// LinearColumns: what all linear solvers share. Private to solvers/linear.
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
#include "solvers/eigen/guarded_operator.hpp"
#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// Coefficients are formed in double precision for all scalars.
template <class T>
using wide_scalar_t = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

template <class T>
wide_scalar_t<T> widen(T value) {
    return static_cast<wide_scalar_t<T>>(value);
}

/// No shift, or equal ones.
template <class T>
bool have_one_value(std::span<const T> shift) {
    return std::adjacent_find(shift.begin(), shift.end(), std::not_equal_to<>()) == shift.end();
}

/// Throws InputError for a complex shift, which would make the operator not Hermitian.
template <class T>
void require_real_shift(const char* solver, std::span<const T> shift);

/// x(j) for j in `columns`, moved to the front.
template <class V>
void keep_elements(std::vector<V>& x, std::span<const int> columns) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
        x[j] = x[static_cast<std::size_t>(columns[j])];
    }
    x.resize(columns.size());
}

/// The columns still at work, side by side without gaps, and the cycle that all methods go through:
///
///     R = B - (A - shift) X from a fresh product; columns within their tolerance are done
///     a method corrects X from R, steps, hands in residuals; columns that leave are taken out
///     X goes back to the caller; again, for the columns whose fresh residual is too large
///
/// A cycle that left a column as converged although its fresh residual is above the tolerance has
/// to halve the residual, or the column counts as stagnated. A column that does not converge and
/// whose last cycle has made the residual larger goes back to where that cycle started, or to 0.
template <class T>
class LinearColumns {
    using Real = real_t<T>;
    using Wide = wide_scalar_t<T>;

  public:
    /// Blocks 0 and 1 of the workspace are X and R; a method has 2 .. blocks + 1 and the basis.
    /// `most_growth`: what the residual of sane steps may grow by.
    LinearColumns(Context& context, const char* solver, const LinearProblem<T>& problem,
                  BlockView<T> x, const LinearOptions& options, LinearWorkspace<T>& workspace,
                  int blocks, int basis_columns = 0, double most_growth = 1);

    /// Loads X and R of the columns that are not done; false when all are.
    bool next_cycle();
    /// X back to the caller.
    void end_cycle();
    LinearResult finish();

    int width() const { return static_cast<int>(active_.size()); }
    bool empty() const { return active_.empty(); }
    BlockView<T> x() { return block(0); }
    BlockView<T> r() { return block(1); }
    /// Block `index` with as many columns as are at work, or `width`.
    BlockView<T> block(int index) { return workspace_.block(index, width()); }
    BlockView<T> block(int index, int width) { return workspace_.block(index, width); }
    void exchange(int a, int b) { workspace_.exchange(a, b); }
    /// Block `index` of `width` columns keeps the first `count`.
    void narrow(int index, int width, int count);
    BlockView<T> basis(int columns) { return workspace_.basis(columns); }
    const RowMap& row_map() const { return problem_.a.row_map(); }
    bool preconditioned() const { return problem_.preconditioner != nullptr; }
    /// ||r_j|| at the start of the cycle.
    double start_residual(int j) const { return column(j).residual; }
    /// Of the caller's columns.
    int number(int j) const { return active_[static_cast<std::size_t>(j)]; }

    /// Y = (A - shift) X, by column of those at work, with column dots where wanted.
    void multiply(BlockView<const T> x, BlockView<T> y, std::span<T> dot_xy = {});
    /// The same where X has other columns; all shifts are equal.
    void multiply_block(BlockView<const T> x, BlockView<T> y);
    /// Y = M X; a copy without a preconditioner.
    void precondition(BlockView<const T> x, BlockView<T> y);
    /// results[k](j) = x_kj^H y_kj over all ranks, with one all-reduce.
    struct Dots {
        BlockView<const T> x;
        BlockView<const T> y;
    };
    std::span<const T> fused_dots(std::initializer_list<Dots> pairs);
    /// Y(:, j) = alpha[j] X(:, j) + beta[j] Y(:, j) with coefficients that set(j) gives as a pair.
    template <class Set>
    void update(BlockView<const T> x, BlockView<T> y, Set&& set) {
        for (int j = 0; j < x.cols; ++j) {
            const auto [a, b] = set(j);
            alpha_[static_cast<std::size_t>(j)] = static_cast<T>(Wide(a));
            beta_[static_cast<std::size_t>(j)] = static_cast<T>(Wide(b));
        }
        run_update(x, y);
    }

    /// A step is done, after which column j at work has this residual. Columns below their target
    /// leave as converged, those that have made all their steps as unfinished.
    void end_step(std::span<const double> residuals);
    /// Column j leaves without another step. `text` is what happened, in numbers. Where it may
    /// restart, another cycle follows if this one has halved the residual.
    void break_down(int j, LinearStatus status, const std::string& text, bool may_restart = false);
    /// Throws on all ranks what an operator has thrown on any: for use after a sum over the ranks
    /// that is not finite.
    void require_no_throw();
    /// All columns are at the end of their search space, whose residuals do not grow.
    void leave_with_full_basis();
    bool any_leaves() const;
    bool leaves(int j) const { return leaving_[static_cast<std::size_t>(j)] != 0; }
    /// Takes out the columns that leave: X and `blocks` keep the others. Returns which those are,
    /// valid until the next call.
    std::span<const int> take_out(std::initializer_list<int> blocks);

    Context& ctx;

  private:
    struct State {
        bool running = true;
        /// Left the last cycle as converged, or broken.
        bool claimed = false;
        bool broken = false;
        bool may_restart = false;
        /// Left it with a full basis.
        bool restarted = false;
        double residual = 0;
        double before_cycle = 0;
        /// Of the first guess.
        double first = 0;
        double target = 0;
    };
    State& column(int j) { return states_[static_cast<std::size_t>(number(j))]; }
    const State& column(int j) const { return states_[static_cast<std::size_t>(number(j))]; }
    LinearColumn& report(int j) { return result_.columns[static_cast<std::size_t>(number(j))]; }
    bool has_steps(const LinearColumn& column) const {
        return column.iterations < options_.max_iterations;
    }
    void check(BlockView<T> x) const;
    double tolerance(int column) const;
    void load();
    void judge();
    void finish_column(int j, LinearStatus status, const std::string& text);
    void return_to_zero(int j);
    void return_to_start(int j);
    void keep_start();
    /// Of all the caller's columns, X at the start of the cycle.
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
    bool first_cycle_ = true;
};

}  // namespace quiver

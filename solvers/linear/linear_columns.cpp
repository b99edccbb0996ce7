// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/linear_columns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/prepare.hpp"
#include "solvers/equal_options.hpp"

namespace quiver {
namespace {

/// Columns leave when they are this factor below the tolerance, so that the fresh residual meets
/// it.
constexpr double leave_margin = 0.7;
/// A cycle that left a column as converged must have reduced its residual by this factor.
constexpr double least_progress = 0.5;
/// The same for a cycle that ended for another reason, such as a full basis.
constexpr double least_restart_progress = 0.9999;
/// A residual that has grown by this factor, which rounding cannot explain, is divergence.
constexpr double diverged = 2;
/// The number of times that columns run again because the audit repaired the operator.
constexpr int most_reopenings = 3;

/// The names of the solvers in messages.
constexpr std::array solver_names = {"cg", "minres", "gmres", "bicgstab"};

int method_index(std::string_view solver) {
    const auto* const found = std::find(solver_names.begin(), solver_names.end(), solver);
    return static_cast<int>(found - solver_names.begin());
}

[[noreturn]] void refuse(const char* solver, const std::string& text) {
    throw_collective(ErrorKind::input, std::string(solver) + ": " + text);
}

}  // namespace

template <class T>
void require_real_shift(const char* solver, std::span<const T> shift) {
    if constexpr (is_complex_v<T>) {
        for (const T value : shift) {
            if (value.imag() != 0) {
                refuse(solver, "a shift has the imaginary part " +
                                   number_text(static_cast<double>(value.imag())) +
                                   "; use gmres or bicgstab");
            }
        }
    }
}

const char* to_string(LinearStatus status) {
    switch (status) {
        case LinearStatus::converged:
            return "converged";
        case LinearStatus::out_of_iterations:
            return "out of iterations";
        case LinearStatus::stagnated:
            return "stagnated";
        case LinearStatus::breakdown:
            return "breakdown";
        case LinearStatus::faulty:
            return "silent faults";
        default:
            return "not finite";
    }
}

template <class T>
LinearColumns<T>::LinearColumns(Context& context, const char* solver,
                                const LinearProblem<T>& problem, BlockView<T> x,
                                const LinearOptions& options, LinearWorkspace<T>& workspace,
                                int blocks, int basis_columns, double most_growth)
    : ctx(context),
      solver_(solver),
      problem_(problem),
      a_(problem.a),
      caller_x_(x),
      options_(options),
      workspace_(workspace),
      most_growth_(most_growth),
      start_block_(blocks + 2),
      audit_(problem.a) {
    require_equal_options();
    check(x);
    if (problem.preconditioner != nullptr) {
        m_.emplace(*problem.preconditioner);
    }
    const int n = x.cols;
    const auto size = static_cast<std::size_t>(n);
    prepare_products<T>(ctx, {.rows = row_map().local_rows(),
                              .blocks = basis_columns > 0 ? std::vector<int>{1} : shrinking(n),
                              .bases = growing(basis_columns / std::max(n, 1)),
                              .stride = basis_columns,
                              .pairs = basis_columns == 0});
    problem.a.prepare(ctx, narrowing(n), true);
    workspace_.reserve(ctx, row_map(), blocks + (options.fresh_residuals ? 3 : 2), n,
                       basis_columns);
    result_.columns.resize(size);
    states_.resize(size);
    active_.reserve(size);
    shift_.reserve(size);
    leaving_.reserve(size);
    kept_.reserve(size);
    alpha_.resize(size);
    beta_.resize(size);
    dots_.resize(size * 4);
    std::vector<Real> lengths(size);
    norms(ctx, problem_.b, std::span<Real>(lengths));
    for (int j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(j);
        result_.columns[at].b_norm = static_cast<double>(lengths[at]);
        states_[at].target = tolerance(j) * result_.columns[at].b_norm;
    }
}

/// All ranks begin with this all-reduce, even if their arguments differ.
template <class T>
void LinearColumns<T>::require_equal_options() const {
    EqualOptions all("linear solver");
    all.add_choice("method", method_index(solver_),
                   [](int index) { return solver_names[static_cast<std::size_t>(index)]; });
    all.add("b (its columns)", problem_.b.cols);
    all.add("x (its columns)", caller_x_.cols);
    all.add_list("shift", problem_.shift.data(), problem_.shift.size(), sizeof(T));
    all.add("preconditioner (whether it is given)", problem_.preconditioner != nullptr);
    all.add("tol", options_.tol);
    all.add_list("column_tol", options_.column_tol.data(), options_.column_tol.size(),
                 sizeof(double));
    all.add("max_iterations", options_.max_iterations);
    all.add("x_is_guess", options_.x_is_guess);
    all.add("restart", options_.restart);
    all.add("share_search_space", options_.share_search_space);
    all.add("fresh_residuals", options_.fresh_residuals);
    all.add("stop (whether it is given)", static_cast<bool>(options_.stop));
    all.require(ctx.comm());
}

template <class T>
void LinearColumns<T>::check(BlockView<T> x) const {
    const BlockView<const T>& b = problem_.b;
    require_valid(x, solver_, "X");
    require_valid(b, solver_, "B");
    const auto both = [&] { return "X: " + describe(x) + "; B: " + describe(b); };
    require_shape(x.rows == row_map().local_rows() && b.rows == x.rows && b.cols == x.cols, solver_,
                  "X and B must have this rank's rows of the operator and the same width",
                  [&] { return std::to_string(row_map().local_rows()) + " rows; " + both(); });
    require_shape(x.empty() || (x.place == ctx.place() && b.place == ctx.place()), solver_,
                  "X and B must be in the Context's place", both);
    require_shape(!overlap(x, b), solver_, "X and B must not overlap", both);
    const auto columns = static_cast<std::size_t>(x.cols);
    const std::size_t shifts = problem_.shift.size();
    if (shifts > 1 && shifts != columns) {
        refuse(solver_, std::to_string(shifts) + " shifts for " + std::to_string(columns) +
                            " right-hand sides: give none, one, or one each");
    }
    if (!options_.column_tol.empty() && options_.column_tol.size() != columns) {
        refuse(solver_, std::to_string(options_.column_tol.size()) + " tolerances for " +
                            std::to_string(columns) + " right-hand sides");
    }
    for (int j = 0; j < x.cols; ++j) {
        if (!(tolerance(j) >= 0 && tolerance(j) < 1)) {
            refuse(solver_,
                   "tol = " + number_text(tolerance(j)) + ", must be at least 0 and below 1");
        }
    }
    if (options_.max_iterations < 1) {
        refuse(solver_, "max_iterations = " + std::to_string(options_.max_iterations) +
                            ", must be at least 1");
    }
    if (options_.stop && options_.x_is_guess) {
        refuse(solver_, "stop needs a first guess of 0: omit x_is_guess");
    }
    if (options_.restart < 1) {
        refuse(solver_, "restart = " + std::to_string(options_.restart) + ", must be at least 1");
    }
}

template <class T>
double LinearColumns<T>::tolerance(int column) const {
    return options_.column_tol.empty() ? options_.tol
                                       : options_.column_tol[static_cast<std::size_t>(column)];
}

template <class T>
double LinearColumns<T>::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

template <class T>
bool LinearColumns<T>::next_cycle() {
    do {
        if (load_cycle()) {
            return true;
        }
    } while (reopen_after_audit());
    return false;
}

/// Audits the operator. If the audit repaired it, the converged columns run again, and their fresh
/// residuals decide whether they have converged. Returns true if a column runs again.
template <class T>
bool LinearColumns<T>::reopen_after_audit() {
    faults_ = audit_.finish(ctx);
    bool reopened = false;
    if (faults_.repaired > 0 && ++reopened_ > most_reopenings) {
        faults_.left += faults_.repaired;  // the memory changes as fast as it is repaired
    }
    for (std::size_t j = 0; j < states_.size() && faults_.repaired > 0 && faults_.left == 0; ++j) {
        State& state = states_[j];
        const LinearColumn& now = result_.columns[j];
        if (now.status == LinearStatus::converged && now.b_norm > 0) {
            state.running = reopened = true;
            state.claimed = state.broken = state.restarted = false;
        }
    }
    return reopened;
}

template <class T>
bool LinearColumns<T>::load_cycle() {
    active_.clear();
    for (int j = 0; j < caller_x_.cols; ++j) {
        if (states_[static_cast<std::size_t>(j)].running) {
            active_.push_back(j);
        }
    }
    if (active_.empty()) {
        return false;
    }
    leaving_.assign(active_.size(), 0);
    shift_.clear();
    if (problem_.shift.size() > 1) {
        for (const int j : active_) {
            shift_.push_back(problem_.shift[static_cast<std::size_t>(j)]);
        }
    }
    load();
    judge();
    if (options_.fresh_residuals && (cycles_ > 0 || options_.x_is_guess)) {
        keep_start();
    }
    ++cycles_;
    if (any_leaves()) {
        take_out({1});
    }
    return !active_.empty();
}

template <class T>
void LinearColumns<T>::load() {
    gather_columns(ctx, problem_.b, active_, r());
    const bool from_zero = cycles_ == 0 && !options_.x_is_guess;
    std::span<const T> squares;
    if (from_zero) {
        fill(ctx, T(0), caller_x_);
        fill(ctx, T(0), x());
    } else {
        gather_columns(ctx, BlockView<const T>(caller_x_), active_, x());
        a_.apply_fused(ctx, x(), r(), {T(-1), T(1), active_shift(), {}, {}});
        squares = fused_dots({{r(), r()}});
    }
    for (int j = 0; j < width(); ++j) {
        State& state = column(j);
        state.before_cycle = report(j).residual;
        state.residual =
            from_zero
                ? report(j).b_norm
                : std::sqrt(static_cast<double>(real_part(squares[static_cast<std::size_t>(j)])));
        report(j).residual = state.residual;
        if (cycles_ == 0) {
            state.first = std::max(state.residual, report(j).b_norm);
        }
    }
}

template <class T>
void LinearColumns<T>::judge() {
    bool bad = false;
    for (int j = 0; j < width(); ++j) {
        State& state = column(j);
        const LinearColumn& now = report(j);
        if (!std::isfinite(state.residual) || !std::isfinite(now.b_norm)) {
            bad = true;
            finish_column(j, LinearStatus::not_finite,
                          "NaN, infinity or squares that overflow in B, X or their residual");
        } else if (now.b_norm == 0) {
            return_to_zero(j);
            finish_column(j, LinearStatus::converged, "");
        } else if (state.residual <= state.target) {
            finish_column(j, LinearStatus::converged, "");
        } else if (cycles_ == 0) {
            continue;
        } else if (state.residual > diverged * most_growth_ * state.first) {
            finish_column(j, LinearStatus::breakdown,
                          "the residual has grown to " + number_text(state.residual / now.b_norm) +
                              " ||b|| in " + std::to_string(now.iterations) +
                              " iterations: the operator is singular to rounding, or another "
                              "method is needed; x is reset");
        } else if (state.broken &&
                   !(state.may_restart && state.residual <= least_progress * state.before_cycle)) {
            finish_column(j, LinearStatus::breakdown, now.message);
        } else if (!has_steps(static_cast<std::size_t>(number(j)))) {
            finish_column(j, LinearStatus::out_of_iterations,
                          "residual " + number_text(state.residual / now.b_norm) + " ||b|| after " +
                              std::to_string(now.iterations) + " iterations");
        } else if ((state.claimed && state.residual > least_progress * state.before_cycle) ||
                   (state.restarted &&
                    state.residual > least_restart_progress * state.before_cycle)) {
            finish_column(j, LinearStatus::stagnated,
                          "the residual stays at " + number_text(state.residual / now.b_norm) +
                              (state.claimed ? " ||b||: rounding prevents a smaller one"
                                             : " ||b|| over a restart: try a longer restart"));
        }
        const double growth = now.status == LinearStatus::out_of_iterations ? most_growth_ : 1;
        if (!state.running && now.status != LinearStatus::converged &&
            !(state.residual <= growth * std::min(state.before_cycle, state.first))) {
            return_to_start(j);
        }
    }
    if (bad) {
        require_no_throw();
    }
    for (const int j : active_) {
        State& state = states_[static_cast<std::size_t>(j)];
        state.claimed = state.broken = state.restarted = false;
        if (state.running) {
            result_.columns[static_cast<std::size_t>(j)].message.clear();
        }
    }
}

/// Sets X of column j to 0; its residual is then ||b||.
template <class T>
void LinearColumns<T>::return_to_zero(int j) {
    fill(ctx, T(0), x().columns(j, 1));
    report(j).residual = report(j).b_norm;
}

template <class T>
void LinearColumns<T>::return_to_start(int j) {
    const double before = column(j).before_cycle;
    if (!start_is_kept_ || !(before < report(j).b_norm)) {
        return_to_zero(j);
        return;
    }
    copy(ctx, BlockView<const T>(start().columns(number(j), 1)), x().columns(j, 1));
    report(j).residual = before;
}

template <class T>
void LinearColumns<T>::keep_start() {
    for (int j = 0; j < width(); ++j) {
        copy(ctx, BlockView<const T>(x().columns(j, 1)), start().columns(number(j), 1));
    }
    start_is_kept_ = true;
}

template <class T>
void LinearColumns<T>::finish_column(int j, LinearStatus status, const std::string& text) {
    column(j).running = false;
    leaving_[static_cast<std::size_t>(j)] = 1;
    report(j).status = status;
    report(j).message = text;
}

template <class T>
void LinearColumns<T>::end_cycle() {
    std::fill(leaving_.begin(), leaving_.end(), char{1});
    take_out({});
    if (options_.fresh_residuals) {
        return;
    }
    for (std::size_t j = 0; j < states_.size(); ++j) {
        State& state = states_[j];
        LinearColumn& now = result_.columns[j];
        if (!state.running) {
            continue;
        }
        if (state.claimed || (state.broken && !state.may_restart) || !has_steps(j)) {
            state.running = false;
            now.status = state.claimed  ? LinearStatus::converged
                         : state.broken ? LinearStatus::breakdown
                                        : LinearStatus::out_of_iterations;
            now.residual = state.residual;
        }
    }
}

template <class T>
LinearResult LinearColumns<T>::finish() {
    result_.converged = true;
    for (std::size_t j = 0; j < result_.columns.size(); ++j) {
        LinearColumn& now = result_.columns[j];
        if (now.status == LinearStatus::converged && faults_.left > 0) {
            now.status = LinearStatus::faulty;
            now.message = faults_.reason();
        }
        if (now.status == LinearStatus::converged) {
            continue;
        }
        now.message = column_message(j, result_.columns.size(),
                                     now.message.empty() ? to_string(now.status) : now.message);
        if (result_.converged) {
            result_.message = std::string(solver_) + ": " + now.message;
        }
        result_.converged = false;
    }
    result_.iterations = steps_;
    result_.operator_applications = a_.applications();
    result_.preconditioner_applications = m_ ? m_->applications() : 0;
    result_.seconds = seconds();
    return std::move(result_);
}

template <class T>
std::span<const T> LinearColumns<T>::active_shift() const {
    return problem_.shift.size() > 1 ? std::span<const T>(shift_) : problem_.shift;
}

template <class T>
void LinearColumns<T>::require_no_throw() {
    ctx.comm().agree([&] {
        a_.rethrow_pending();
        if (m_) {
            m_->rethrow_pending();
        }
    });
}

template <class T>
void LinearColumns<T>::multiply(BlockView<const T> x, BlockView<T> y, std::span<T> dot_xy) {
    a_.apply_fused(ctx, x, y, {T(1), T(0), active_shift(), {}, dot_xy});
}

template <class T>
void LinearColumns<T>::multiply_block(BlockView<const T> x, BlockView<T> y) {
    const auto one = problem_.shift.first(std::min<std::size_t>(problem_.shift.size(), 1));
    a_.apply_fused(ctx, x, y, {T(1), T(0), one, {}, {}});
}

template <class T>
void LinearColumns<T>::precondition(BlockView<const T> x, BlockView<T> y) {
    if (m_) {
        m_->apply(ctx, x, y);
    } else {
        axpby(ctx, T(1), x, T(0), y);
    }
}

template <class T>
std::span<const T> LinearColumns<T>::fused_dots(std::initializer_list<Dots> pairs) {
    const auto columns = static_cast<std::size_t>(width());
    const std::span<T> all(dots_.data(), columns * pairs.size());
    std::size_t k = 0;
    for (const Dots& pair : pairs) {
        dots(ctx, pair.x, pair.y, all.subspan(k, columns), Reduce::this_rank);
        k += columns;
    }
    ctx.comm().sum(all);
    return all;
}

template <class T>
void LinearColumns<T>::run_update(BlockView<const T> x, BlockView<T> y) {
    const auto columns = static_cast<std::size_t>(x.cols);
    axpby<T>(ctx, std::span<const T>(alpha_.data(), columns), x,
             std::span<const T>(beta_.data(), columns), y);
}

template <class T>
void LinearColumns<T>::end_step(std::span<const double> residuals, std::span<LinearStep> steps) {
    ++steps_;
    for (int j = 0; j < width(); ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (leaving_[at] != 0) {
            continue;
        }
        State& state = column(j);
        ++report(j).iterations;
        state.residual = residuals[at];
        if (!std::isfinite(state.residual)) {
            break_down(j, LinearStatus::not_finite, "the residual is NaN or infinity");
        } else if (state.residual <= leave_margin * state.target) {
            state.claimed = true;
            leaving_[at] = 1;
        } else {
            if (!steps.empty()) {
                steps[at].column = number(j);
                steps[at].residual = state.residual;
                state.stopped = options_.stop(steps[at]);
            }
            leaving_[at] = has_steps(static_cast<std::size_t>(number(j))) ? 0 : 1;
        }
    }
    report_step();
}

template <class T>
void LinearColumns<T>::take_lengths(std::span<LinearStep> steps) {
    std::vector<Real> lengths(steps.size());
    norms(ctx, BlockView<const T>(x()), std::span<Real>(lengths));
    for (std::size_t j = 0; j < steps.size(); ++j) {
        steps[j].xx = static_cast<double>(lengths[j]) * static_cast<double>(lengths[j]);
    }
}

template <class T>
void LinearColumns<T>::report_step() const {
    int done = 0;
    for (const State& state : states_) {
        done += !state.running || state.claimed ? 1 : 0;
    }
    double worst = 0;
    for (const int j : active_) {
        const auto at = static_cast<std::size_t>(j);
        worst = std::max(worst, states_[at].residual / result_.columns[at].b_norm);
    }
    ctx.emit(IterationEvent{solver_, steps_, done, static_cast<int>(states_.size()), worst,
                            seconds(), "solve"});
}

template <class T>
void LinearColumns<T>::break_down(int j, LinearStatus status, const std::string& text,
                                  bool may_restart) {
    State& state = column(j);
    const std::string where = "iteration " + std::to_string(report(j).iterations + 1) + ": " + text;
    leaving_[static_cast<std::size_t>(j)] = 1;
    if (status == LinearStatus::not_finite) {
        finish_column(j, status, where);
        report(j).residual = state.residual;
        if (!(state.residual <= most_growth_ * state.first)) {
            return_to_zero(j);
        }
    } else {
        state.broken = true;
        state.may_restart = may_restart;
        report(j).message = where;
    }
}

template <class T>
void LinearColumns<T>::break_down_unfit_preconditioner(int j, const std::string& text) {
    report(j).preconditioner_is_unfit = true;
    break_down(j, LinearStatus::breakdown, text);
}

template <class T>
void LinearColumns<T>::leave_with_full_basis() {
    for (const int j : active_) {
        states_[static_cast<std::size_t>(j)].restarted = true;
    }
}

template <class T>
void LinearColumns<T>::narrow(int index, int width, int count) {
    if (count < width) {
        kept_.resize(static_cast<std::size_t>(count));
        std::iota(kept_.begin(), kept_.end(), 0);
        workspace_.keep(ctx, index, width, kept_);
    }
}

template <class T>
bool LinearColumns<T>::any_leaves() const {
    return std::any_of(leaving_.begin(), leaving_.end(), [](char leaves) { return leaves != 0; });
}

template <class T>
std::span<const int> LinearColumns<T>::take_out(std::initializer_list<int> blocks) {
    const int before = width();
    kept_.clear();
    bool bad = false;
    for (int j = 0; j < before; ++j) {
        if (!leaves(j)) {
            kept_.push_back(j);
            continue;
        }
        bad = bad || report(j).status == LinearStatus::not_finite;
    }
    if (bad) {
        require_no_throw();
    }
    if (kept_.empty() && before == caller_x_.cols) {
        copy(ctx, x(), caller_x_);
    } else {
        for (int j = 0; j < before; ++j) {
            if (leaves(j)) {
                copy(ctx, x().columns(j, 1), caller_x_.columns(number(j), 1));
            }
        }
    }
    if (!kept_.empty() && static_cast<int>(kept_.size()) < before) {
        workspace_.keep(ctx, 0, before, kept_);
        for (const int index : blocks) {
            workspace_.keep(ctx, index, before, kept_);
        }
    }
    keep_elements(active_, kept_);
    keep_elements(leaving_, kept_);
    if (!shift_.empty()) {
        keep_elements(shift_, kept_);
    }
    return kept_;
}

#define QUIVER_INSTANTIATE(T)                                          \
    template void require_real_shift(const char*, std::span<const T>); \
    template class LinearColumns<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

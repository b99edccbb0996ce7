// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/block_minres.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/linear/linear_columns.hpp"

namespace quiver {
namespace {

/// Blocks of the workspace: unscaled Lanczos vectors, their product, directions, M times the
/// Lanczos vectors; the last two blocks are used only with a preconditioner.
enum BlockName : int {
    lanczos = 1,
    older_lanczos = 2,
    product_block = 3,
    direction = 4,
    older_direction = 5,
    corrected = 6,
    next_corrected = 7,
    true_residual = 8,
};

template <class T>
class MinimalResiduals {
  public:
    MinimalResiduals(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                     const LinearOptions& options, LinearWorkspace<T>& workspace)
        : ctx_(ctx),
          columns_(ctx, "minres", problem, x, options, workspace,
                   problem.preconditioner == nullptr ? 5 : 7),
          with_m_(problem.preconditioner != nullptr),
          state_(static_cast<std::size_t>(x.cols)),
          residuals_(static_cast<std::size_t>(x.cols)),
          lengths_(static_cast<std::size_t>(x.cols)),
          norm_(static_cast<std::size_t>(x.cols)),
          steps_(static_cast<std::size_t>(x.cols)),
          dot_(static_cast<std::size_t>(x.cols)) {
        require_real_shift("minres", problem.shift);
    }

    LinearResult run() {
        return columns_.solve([&] { cycle(); });
    }

  private:
    /// For options.stop: b^H w and w^H r of the last two directions w, with r before the step of w
    /// (wr_old is multiplied by s^2 of its step), b^H x and x^H r.
    struct Scalars {
        double bw_old = 0, bw = 0, wr_old = 0, wr = 0, bx = 0, xr = 0;
    };
    /// The rotations of one column's tridiagonal matrix. gamma: the lengths of the Lanczos vectors.
    struct Column {
        double gamma_old = 1, gamma = 0, gamma_new = 0;
        bool first_step = true;
        double delta = 0;
        double c_old = 1, c = 1, s_old = 0, s = 0;
        double eta = 0;
        // Of the current step: the entries of R.
        double a1 = 1, a2 = 0, a3 = 0;
        double eta_before = 0;
        /// Estimate of the residual that rounding errors in x have added.
        double rounding = 0;
        Scalars scalars;
        // v^H v, r^H v and r^H r of the new Lanczos vector v and the residual r before the step.
        double vv = 0, rv = 0, rr = 0;
    };
    Column& state(int j) { return state_[static_cast<std::size_t>(j)]; }
    /// The length of the longest column of the tridiagonal matrices of all cycles: a lower bound of
    /// ||A||, or of the norm of the preconditioned operator.
    double& norm(int j) { return norm_[static_cast<std::size_t>(columns_.number(j))]; }
    static double inverse(double value) { return value == 0 ? 0 : 1 / value; }

    /// Removes the columns that leave; false if none is left.
    bool drop_leaving() {
        return with_m_ ? columns_.drop_leaving(
                             state_, {lanczos, older_lanczos, product_block, direction,
                                      older_direction, corrected, next_corrected, true_residual})
                       : columns_.drop_leaving(state_, {lanczos, older_lanczos, product_block,
                                                        direction, older_direction, corrected});
    }

    /// length <- sqrt(v^H M v); the column leaves if v^H M v is negative or not finite.
    void take_square(int j, double square, double& length) {
        length = std::sqrt(square);
        if (!std::isfinite(square)) {
            columns_.break_down_not_finite(j);
        } else if (square < 0) {
            columns_.break_down_unfit_preconditioner(
                j, "v^H M v = " + number_text(square) +
                       ": the preconditioner is not positive definite");
        }
    }

    bool start() {
        state_.assign(static_cast<std::size_t>(columns_.width()), Column());
        near_null_ = false;
        const BlockView<T> v = columns_.block(lanczos);
        const BlockView<T> z = columns_.block(corrected);
        if (with_m_) {
            axpby(ctx_, T(1), v, T(0), columns_.block(true_residual));
            columns_.precondition(v, z);
            const std::span<const T> squares = columns_.fused_dots({{v, z}});
            for (int j = 0; j < columns_.width(); ++j) {
                take_square(j, static_cast<double>(real_part(squares[static_cast<std::size_t>(j)])),
                            state(j).gamma);
            }
        } else {
            for (int j = 0; j < columns_.width(); ++j) {
                state(j).gamma = columns_.start_residual(j);
            }
        }
        for (const int block : {older_lanczos, direction, older_direction}) {
            fill(ctx_, T(0), columns_.block(block));
        }
        for (int j = 0; j < columns_.width(); ++j) {
            state(j).eta = state(j).gamma;
        }
        if (!drop_leaving()) {
            return false;
        }
        columns_.update(columns_.block(with_m_ ? corrected : lanczos), columns_.block(corrected),
                        [&](int j) { return std::pair(inverse(state(j).gamma), 0.0); });
        return true;
    }

    void cycle() {
        if (!start()) {
            return;
        }
        while (true) {
            lanczos_step();
            if (!drop_leaving()) {
                return;
            }
            rotate();
            if (!drop_leaving()) {
                return;
            }
            next_direction();
            if (near_null_) {
                leave_before_x_is_lost();
                if (!drop_leaving()) {
                    return;
                }
            }
            correct();
            columns_.end_step(std::span<const double>(residuals_.data(), state_.size()),
                              columns_.wants_steps() ? measure_x() : std::span<LinearStep>());
            if (!drop_leaving()) {
                return;
            }
            advance();
        }
    }

    /// product <- (A - shift) z - delta v / gamma - gamma v_old / gamma_old, and its length.
    void lanczos_step() {
        const BlockView<T> q = columns_.block(product_block);
        columns_.multiply(columns_.block(corrected), q, std::span<T>(dot_.data(), state_.size()));
        for (int j = 0; j < columns_.width(); ++j) {
            state(j).delta = static_cast<double>(real_part(dot_[static_cast<std::size_t>(j)]));
        }
        columns_.update(columns_.block(lanczos), q, [&](int j) {
            return std::pair(-state(j).delta * inverse(state(j).gamma), 1.0);
        });
        columns_.update(columns_.block(older_lanczos), q, [&](int j) {
            return std::pair(-state(j).gamma * inverse(state(j).gamma_old), 1.0);
        });
        const auto n = static_cast<std::size_t>(columns_.width());
        const auto real = [](T value) { return static_cast<double>(real_part(value)); };
        if (!with_m_) {
            const std::span<const T> squares = columns_.fused_dots({{q, q}});
            for (std::size_t j = 0; j < n; ++j) {
                take_square(static_cast<int>(j), real(squares[j]), state_[j].gamma_new);
            }
            return;
        }
        const BlockView<T> z = columns_.block(next_corrected);
        const BlockView<T> r = columns_.block(true_residual);
        columns_.precondition(q, z);
        const std::span<const T> sums = columns_.fused_dots({{q, z}, {q, q}, {r, q}, {r, r}});
        for (std::size_t j = 0; j < n; ++j) {
            take_square(static_cast<int>(j), real(sums[j]), state_[j].gamma_new);
            state_[j].vv = real(sums[n + j]);
            state_[j].rv = real(sums[2 * n + j]);
            state_[j].rr = real(sums[3 * n + j]);
        }
    }

    /// Computes the next column of the QR factorisation of the tridiagonal matrix.
    void rotate() {
        using Limits = std::numeric_limits<real_t<T>>;
        constexpr double eps = epsilon_v<T>;
        const double least_norm = std::sqrt(Limits::min() / Limits::epsilon());
        for (int j = 0; j < columns_.width(); ++j) {
            Column& at = state(j);
            const double a0 = at.c * at.delta - at.c_old * at.s * at.gamma;
            at.a1 = std::hypot(a0, at.gamma_new);
            at.a2 = at.s * at.delta + at.c_old * at.c * at.gamma;
            at.a3 = at.s_old * at.gamma;
            // ||A r|| = |eta| hypot(a0, c gamma_new) for the residual before this step.
            norm(j) =
                std::max(norm(j), std::hypot(at.first_step ? 0 : at.gamma, at.delta, at.gamma_new));
            const double slope = std::hypot(a0, at.c * at.gamma_new);
            near_null_ = near_null_ || slope < std::sqrt(eps) * norm(j);
            if (norm(j) > 0 && norm(j) < least_norm) {
                columns_.break_down(j, LinearStatus::breakdown,
                                    "the norm of the operator is about " + number_text(norm(j)) +
                                        ", so its squares underflow: scale the operator");
                continue;
            }
            if (!(slope > 100 * eps * norm(j))) {
                columns_.break_down(j, LinearStatus::breakdown,
                                    "the residual r is minimal, ||A r|| = " +
                                        number_text(slope * std::abs(at.eta)) +
                                        ": the operator is singular, no solution was found",
                                    true);
                continue;
            }
            at.c_old = std::exchange(at.c, a0 / at.a1);
            at.s_old = std::exchange(at.s, at.gamma_new / at.a1);
            at.eta_before = std::exchange(at.eta, -at.s * at.eta);
        }
    }

    /// w <- (z - a3 w_old - a2 w) / a1.
    void next_direction() {
        columns_.update(columns_.block(corrected), columns_.block(older_direction), [&](int j) {
            return std::pair(1 / state(j).a1, -state(j).a3 / state(j).a1);
        });
        columns_.update(columns_.block(direction), columns_.block(older_direction),
                        [&](int j) { return std::pair(-state(j).a2 / state(j).a1, 1.0); });
        columns_.exchange(direction, older_direction);
    }

    /// When A r is small, the directions of a singular operator grow towards its null vectors, and
    /// with them the rounding errors in x. Columns leave while the residual of the recurrence is
    /// still that of x. Source: Sleijpen, van der Vorst, Modersitzki, SIAM J. Matrix Anal. Appl. 22
    /// (2000) 726.
    void leave_before_x_is_lost() {
        if (with_m_) {
            return;  // norm() is that of the preconditioned operator
        }
        constexpr double eps = epsilon_v<T>;
        const double share = std::pow(eps, 0.25);
        norms(ctx_, BlockView<const T>(columns_.block(direction)),
              std::span<real_t<T>>(lengths_.data(), state_.size()));
        for (int j = 0; j < columns_.width(); ++j) {
            Column& at = state(j);
            at.rounding += eps * norm(j) * std::abs(at.c * at.eta_before) *
                           static_cast<double>(lengths_[static_cast<std::size_t>(j)]);
            if (!(at.rounding <= share * std::abs(at.eta_before))) {
                columns_.break_down(j, LinearStatus::breakdown,
                                    "x grows while the residual stays at " +
                                        number_text(std::abs(at.eta_before)) +
                                        ": the operator is singular, no solution was found",
                                    true);
            }
        }
    }

    /// x <- x + c eta w, and ||r||.
    void correct() {
        columns_.update(columns_.block(direction), columns_.x(),
                        [&](int j) { return std::pair(state(j).c * state(j).eta_before, 1.0); });
        if (!with_m_) {
            for (int j = 0; j < columns_.width(); ++j) {
                residuals_[static_cast<std::size_t>(j)] = std::abs(state(j).eta);
            }
            return;
        }
        // r <- s^2 r + c eta v / gamma
        const auto factors = [&](int j) {
            const Column& at = state(j);
            return std::pair(at.c * at.eta * inverse(at.gamma_new), at.s * at.s);
        };
        for (int j = 0; j < columns_.width(); ++j) {
            const auto [t, s2] = factors(j);
            const double square =
                s2 * s2 * state(j).rr + 2 * s2 * t * state(j).rv + t * t * state(j).vv;
            residuals_[static_cast<std::size_t>(j)] = std::sqrt(std::max(square, 0.0));
        }
        columns_.update(columns_.block(product_block), columns_.block(true_residual), factors);
    }

    /// b^H x and x^H r, which follow from b^H z = 0 for all Lanczos vectors z
    /// but the first, v^H z' = 0 for v and z' of different steps, and the recurrences of w and r.
    std::span<LinearStep> measure_x() {
        const std::span<LinearStep> steps(steps_.data(), state_.size());
        columns_.take_lengths(steps);
        for (int j = 0; j < columns_.width(); ++j) {
            const Column& at = state(j);
            Scalars& sums = state(j).scalars;
            const double s2 = at.s * at.s;
            const double bz = at.first_step ? at.gamma : 0;
            const double bw = (bz - at.a2 * sums.bw - at.a3 * sums.bw_old) / at.a1;
            const double rz = at.c_old * at.eta_before;
            const double wr =
                (rz - at.s_old * at.s_old * (at.a2 * sums.wr + at.a3 * sums.wr_old)) / at.a1;
            sums.bw_old = std::exchange(sums.bw, bw);
            sums.wr_old = at.s_old * at.s_old * std::exchange(sums.wr, wr);
            sums.bx += at.c * at.eta_before * bw;
            sums.xr = s2 * (sums.xr + at.c * at.eta_before * wr);
            steps[static_cast<std::size_t>(j)].bx = sums.bx;
            steps[static_cast<std::size_t>(j)].xr = sums.xr;
        }
        return steps;
    }

    /// Makes the new vectors the current ones.
    void advance() {
        columns_.exchange(older_lanczos, lanczos);
        columns_.exchange(lanczos, product_block);
        if (with_m_) {
            columns_.exchange(corrected, next_corrected);
        }
        columns_.update(columns_.block(with_m_ ? corrected : lanczos), columns_.block(corrected),
                        [&](int j) { return std::pair(inverse(state(j).gamma_new), 0.0); });
        for (Column& at : state_) {
            at.gamma_old = std::exchange(at.gamma, at.gamma_new);
            at.first_step = false;
        }
    }

    Context& ctx_;
    LinearColumns<T> columns_;
    bool with_m_;
    std::vector<Column> state_;
    std::vector<double> residuals_;
    std::vector<real_t<T>> lengths_;
    std::vector<double> norm_;
    std::vector<LinearStep> steps_;
    bool near_null_ = false;
    std::vector<T> dot_;
};

}  // namespace

template <class T>
LinearResult block_minres(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                          const LinearOptions& options, LinearWorkspace<T>& workspace) {
    return MinimalResiduals<T>(ctx, problem, x, options, workspace).run();
}

#define QUIVER_INSTANTIATE(T)                                                           \
    template LinearResult block_minres(Context&, const LinearProblem<T>&, BlockView<T>, \
                                       const LinearOptions&, LinearWorkspace<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/block_gmres.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/linear/linear_columns.hpp"

namespace quiver {
namespace {

/// Blocks of the workspace; the last one is used only with a preconditioner.
enum BlockName : int { newest = 1, product_block = 2, corrected = 3 };

/// The least-squares problem of one column: a growing Hessenberg matrix, reduced to triangular form
/// by rotations. Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 6.5.3.
template <class Wide>
class HessenbergColumn {
  public:
    HessenbergColumn() = default;
    explicit HessenbergColumn(int steps)
        : steps_(steps),
          r_(static_cast<std::size_t>(steps) * static_cast<std::size_t>(steps + 1)),
          right_(static_cast<std::size_t>(steps) + 1),
          left_(static_cast<std::size_t>(steps) + 1),
          solution_(static_cast<std::size_t>(steps)),
          sine_(static_cast<std::size_t>(steps)),
          cosine_(static_cast<std::size_t>(steps)) {}

    /// `largest`: the length of the longest column of the Hessenberg matrices of earlier cycles.
    void start(double residual, double largest) {
        size_ = 0;
        largest_ = largest;
        right_[0] = residual;
        left_[0] = residual;
    }
    double largest() const { return largest_; }
    int size() const { return size_; }
    double residual() const { return left_[static_cast<std::size_t>(size_)]; }
    /// Element i of the next column, before its rotations; i = 0 .. size().
    Wide& entry(int i) { return at(i, size_); }

    /// Sets b^H x, x^H r and ||x||^2 of the solution after all steps, for a basis that starts with
    /// b / ||b||. The residual is V Q^H e right_k, with the unit vector e and the rotations Q.
    void measure(LinearStep& step) {
        const double length = substitute(size_);
        step.xx = length * length;
        step.bx = left_[0] * real_part(solution_[0]);
        step.xr = 0;
        Wide below = right_[static_cast<std::size_t>(size_)];
        for (int i = size_ - 1; i >= 0; --i) {
            const auto s = static_cast<std::size_t>(i);
            // Element i + 1 is complete only after rotation i, which leaves 0 times it in place.
            step.xr +=
                i + 1 < size_ ? real_part(conjugate(solution_[s + 1]) * cosine_[s] * below) : 0;
            below = -sine_[s] * below;
        }
        step.xr += real_part(conjugate(solution_[0]) * below);
    }

    /// Appends the next column, with `below` under the diagonal. Returns false if the triangular
    /// matrix would be singular; the result of solve() then does not change.
    bool add(double below, double eps) {
        const int k = size_;
        for (int i = 0; i < k; ++i) {
            const auto s = static_cast<std::size_t>(i);
            const Wide upper = at(i, k);
            const Wide lower = at(i + 1, k);
            at(i, k) = cosine_[s] * upper + sine_[s] * lower;
            at(i + 1, k) = -conjugate(sine_[s]) * upper + cosine_[s] * lower;
        }
        const Wide corner = at(k, k);
        const double length = std::hypot(std::abs(corner), below);
        largest_ = std::max(largest_, length);
        if (!(length > 100 * eps * largest_)) {
            return false;
        }
        // (c s; -s^H c) with real c takes (corner, below) to (phase length, 0).
        const double size = std::abs(corner);
        const Wide phase = size == 0 ? Wide(1) : corner / size;
        const auto s = static_cast<std::size_t>(k);
        cosine_[s] = size / length;
        sine_[s] = phase * (below / length);
        at(k, k) = phase * length;
        right_[s + 1] = -conjugate(sine_[s]) * right_[s];
        right_[s] = cosine_[s] * right_[s];
        left_[s + 1] = std::abs(right_[s + 1]);
        ++size_;
        return true;
    }

    /// Computes the y of least residual; returns the length of y. Omits the last steps if their
    /// rounding errors, 10 eps ||A|| ||y||, exceed their gain; steps towards a null vector are of
    /// this kind.
    template <class T>
    int solve(T* y, double eps) {
        double least = std::numeric_limits<double>::infinity();
        int best = 0;
        for (int steps = size_; steps > 0; --steps) {
            const double left = left_[static_cast<std::size_t>(steps)];
            const double rounding = 10 * eps * largest_ * substitute(steps);
            if (left + rounding < least) {
                least = left + rounding;
                best = steps;
                std::transform(solution_.begin(), solution_.begin() + steps, y,
                               [](const Wide& value) { return static_cast<T>(value); });
            }
            if (rounding <= left) {
                break;  // fewer steps have a larger residual
            }
        }
        return best;
    }

  private:
    Wide& at(int i, int k) {
        return r_[static_cast<std::size_t>(k) * static_cast<std::size_t>(steps_ + 1) +
                  static_cast<std::size_t>(i)];
    }
    /// Solves for the first `steps` steps into solution_; returns its norm.
    double substitute(int steps) {
        double squares = 0;
        for (int i = steps - 1; i >= 0; --i) {
            Wide sum = right_[static_cast<std::size_t>(i)];
            for (int k = i + 1; k < steps; ++k) {
                sum -= at(i, k) * solution_[static_cast<std::size_t>(k)];
            }
            solution_[static_cast<std::size_t>(i)] = sum / at(i, i);
            squares += std::norm(solution_[static_cast<std::size_t>(i)]);
        }
        return std::sqrt(squares);
    }

    int steps_ = 0;
    int size_ = 0;
    double largest_ = 0;
    std::vector<Wide> r_;
    std::vector<Wide> right_;
    /// left_[k]: the residual after k steps.
    std::vector<double> left_;
    std::vector<Wide> solution_;
    std::vector<Wide> sine_;
    std::vector<double> cosine_;
};

template <class T>
class GeneralisedMinimalResiduals {
    using Wide = wide_scalar_t<T>;

  public:
    GeneralisedMinimalResiduals(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                                const LinearOptions& options, LinearWorkspace<T>& workspace)
        : ctx_(ctx),
          steps_(steps_of_a_cycle(options, problem.a.row_map().global_rows(), x.cols)),
          columns_(ctx, "gmres", problem, x, options, workspace,
                   problem.preconditioner == nullptr ? 1 : 2, x.cols * (steps_ + 1)),
          with_m_(problem.preconditioner != nullptr),
          state_(static_cast<std::size_t>(x.cols), HessenbergColumn<Wide>(steps_)),
          largest_(static_cast<std::size_t>(x.cols)),
          residuals_(static_cast<std::size_t>(x.cols)),
          measured_(static_cast<std::size_t>(x.cols)),
          length_(static_cast<std::size_t>(x.cols)),
          sums_(static_cast<std::size_t>(x.cols) * static_cast<std::size_t>(steps_ + 1)),
          solution_(static_cast<std::size_t>(steps_)) {}

    LinearResult run() {
        return columns_.solve([&] {
            cycle();
            update_x();
        });
    }

  private:
    static constexpr double eps = epsilon_v<T>;

    /// Steps of a cycle: limited by the rows, by max_iterations, and by the range of int for basis
    /// columns.
    static int steps_of_a_cycle(const LinearOptions& options, std::int64_t rows, int width) {
        const std::int64_t most = std::numeric_limits<int>::max() / std::max(width, 1) - 1;
        return static_cast<int>(std::max<std::int64_t>(
            1, std::min({std::int64_t{options.restart}, options.max_iterations, rows, most})));
    }
    HessenbergColumn<Wide>& state(int j) { return state_[static_cast<std::size_t>(j)]; }
    double& largest(int j) { return largest_[static_cast<std::size_t>(columns_.number(j))]; }
    /// The first `count` basis vectors of column j.
    BlockView<T> basis(int j, int count) {
        return columns_.basis(columns_.width() * (steps_ + 1)).columns(j * (steps_ + 1), count);
    }
    T* sums_of(int j, int count) {
        return sums_.data() + static_cast<std::ptrdiff_t>(j) * (count + 1);
    }
    void sum_over_ranks(int count) {
        ctx_.comm().sum(std::span<T>(sums_.data(), static_cast<std::size_t>(columns_.width()) *
                                                       static_cast<std::size_t>(count + 1)));
    }

    void cycle() {
        const int n = columns_.width();
        for (int j = 0; j < n; ++j) {
            state(j).start(columns_.start_residual(j), largest(j));
            length_[static_cast<std::size_t>(j)] = columns_.start_residual(j);
        }
        append(newest, 0);
        int k = 0;
        for (; k < steps_; ++k) {
            int source = newest;
            if (with_m_) {
                columns_.precondition(columns_.block(newest), columns_.block(corrected));
                source = corrected;
            }
            columns_.multiply(columns_.block(source), columns_.block(product_block));
            orthogonalise(k + 1);
            for (int j = 0; j < n; ++j) {
                add_column(j);
                residuals_[static_cast<std::size_t>(j)] = state(j).residual();
            }
            columns_.end_step(
                std::span<const double>(residuals_.data(), static_cast<std::size_t>(n)),
                columns_.wants_steps() && !with_m_ ? measure_x() : std::span<LinearStep>());
            int left = 0;
            for (int j = 0; j < n; ++j) {
                left += columns_.leaves(j) ? 0 : 1;
            }
            if (left == 0 || (left < n && 2 * left <= n)) {
                return;
            }
            if (k + 1 < steps_) {
                append(product_block, k + 1);
                columns_.exchange(newest, product_block);
            }
        }
        columns_.leave_with_full_basis();
    }

    /// w_j <- w_j - V_j (V_j^H w_j), twice. The coefficients go to the Hessenberg columns, the
    /// remaining ||w_j|| to length_.
    void orthogonalise(int count) {
        const BlockView<T> w = columns_.block(product_block);
        const int n = w.cols;
        for (const bool last : {false, true}) {
            for (int j = 0; j < n; ++j) {
                T* const sums = sums_of(j, count);
                if (!columns_.leaves(j)) {
                    tsmttsm(ctx_, T(1), basis(j, count), w.columns(j, 1), T(0),
                            BlockView<T>(sums, count, 1, 1), Reduce::this_rank);
                }
                sums[count] = last ? square_[static_cast<std::size_t>(j)] : T(0);
            }
            sum_over_ranks(count);
            square_.resize(static_cast<std::size_t>(n));
            for (int j = 0; j < n; ++j) {
                if (columns_.leaves(j)) {
                    continue;
                }
                T* const sums = sums_of(j, count);
                const BlockView<const T> coefficients(sums, count, 1, 1);
                if (last) {
                    tsmm(ctx_, T(-1), basis(j, count), coefficients, T(1), w.columns(j, 1));
                    take_coefficients(j, sums, count);
                    continue;
                }
                tsmm_gram(ctx_, T(-1), basis(j, count), coefficients, T(1), w.columns(j, 1),
                          BlockView<T>(&square_[static_cast<std::size_t>(j)], 1, 1, 1),
                          Reduce::this_rank);
                for (int i = 0; i < count; ++i) {
                    state(j).entry(i) = widen(sums[i]);
                }
            }
        }
    }
    /// Adds the coefficients of the second pass; `sums` ends with the squared length before that
    /// pass.
    void take_coefficients(int j, const T* sums, int count) {
        double square = real_part(sums[count]);
        double taken = 0;
        for (int i = 0; i < count; ++i) {
            state(j).entry(i) += widen(sums[i]);
            taken += std::norm(widen(sums[i]));
        }
        square = std::isfinite(square) ? std::max(square - taken, 0.0) : square;
        length_[static_cast<std::size_t>(j)] = std::sqrt(square);
    }

    void add_column(int j) {
        if (columns_.leaves(j)) {
            return;
        }
        double size = 0;
        for (int i = 0; i <= state(j).size(); ++i) {
            size += std::norm(state(j).entry(i));
        }
        double& length = length_[static_cast<std::size_t>(j)];
        if (!std::isfinite(size) || !std::isfinite(length)) {
            columns_.break_down_not_finite(j);
            return;
        }
        // If only rounding noise is left of the product, the Krylov space is exhausted.
        if (length <= 10 * eps * std::sqrt(size)) {
            length = 0;
        }
        if (!state(j).add(length, eps)) {
            columns_.break_down(j, LinearStatus::breakdown,
                                "the operator is singular on the Krylov space, which ends after " +
                                    std::to_string(state(j).size() + 1) + " steps",
                                true);
        }
    }

    std::span<LinearStep> measure_x() {
        for (int j = 0; j < columns_.width(); ++j) {
            if (!columns_.leaves(j)) {
                state(j).measure(measured_[static_cast<std::size_t>(j)]);
            }
        }
        return {measured_.data(), static_cast<std::size_t>(columns_.width())};
    }

    /// Scales block `source` to unit columns and stores them as basis vector k of each column.
    void append(int source, int k) {
        const BlockView<T> v = columns_.block(source);
        columns_.update(v, v, [&](int j) {
            const double length = length_[static_cast<std::size_t>(j)];
            return std::pair(columns_.leaves(j) || length == 0 ? 0 : 1 / length, 0.0);
        });
        for (int j = 0; j < v.cols; ++j) {
            if (!columns_.leaves(j)) {
                copy(ctx_, v.columns(j, 1), basis(j, k + 1).columns(k, 1));
            }
        }
    }

    /// x_j <- x_j + M V_j y_j.
    void update_x() {
        const BlockView<T> u = columns_.block(product_block);
        for (int j = 0; j < u.cols; ++j) {
            largest(j) = state(j).largest();
            const int size = state(j).solve(solution_.data(), eps);
            if (size == 0) {
                fill(ctx_, T(0), u.columns(j, 1));
                continue;
            }
            tsmm(ctx_, T(1), basis(j, size), BlockView<const T>(solution_.data(), size, 1, 1), T(0),
                 u.columns(j, 1));
        }
        int source = product_block;
        if (with_m_) {
            columns_.precondition(u, columns_.block(corrected));
            source = corrected;
        }
        axpby(ctx_, T(1), columns_.block(source), T(1), columns_.x());
    }

    Context& ctx_;
    int steps_;
    LinearColumns<T> columns_;
    bool with_m_;
    std::vector<HessenbergColumn<Wide>> state_;
    std::vector<double> largest_;
    std::vector<double> residuals_;
    std::vector<LinearStep> measured_;
    std::vector<double> length_;
    std::vector<T> square_;
    std::vector<T> sums_;
    std::vector<T> solution_;
};

}  // namespace

template <class T>
LinearResult block_gmres(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                         const LinearOptions& options, LinearWorkspace<T>& workspace) {
    return GeneralisedMinimalResiduals<T>(ctx, problem, x, options, workspace).run();
}

#define QUIVER_INSTANTIATE(T)                                                          \
    template LinearResult block_gmres(Context&, const LinearProblem<T>&, BlockView<T>, \
                                      const LinearOptions&, LinearWorkspace<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

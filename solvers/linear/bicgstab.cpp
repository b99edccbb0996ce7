// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/bicgstab.hpp"

#include <cmath>
#include <complex>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/linear/linear_columns.hpp"

namespace quiver {
namespace {

/// Blocks of the workspace; the last two are used only with a preconditioner.
enum BlockName : int {
    residual = 1,
    shadow = 2,
    direction = 3,
    product_block = 4,
    second_product = 5,
    corrected = 6,
    second_corrected = 7,
};

template <class T>
class StabilisedBiconjugate {
    using Wide = wide_scalar_t<T>;

  public:
    StabilisedBiconjugate(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                          const LinearOptions& options, LinearWorkspace<T>& workspace)
        : ctx_(ctx),
          columns_(ctx, "bicgstab", problem, x, options, workspace,
                   problem.preconditioner == nullptr ? 4 : 6),
          with_m_(problem.preconditioner != nullptr),
          state_(static_cast<std::size_t>(x.cols)),
          residuals_(static_cast<std::size_t>(x.cols)) {}

    LinearResult run() {
        return columns_.solve([&] { cycle(); });
    }

  private:
    static constexpr double eps = epsilon_v<T>;

    struct Column {
        Wide rho{};
        double shadow_norm = 0;
        Wide alpha{};
        Wide omega{};
        Wide beta{};
    };
    Column& state(int j) { return state_[static_cast<std::size_t>(j)]; }

    /// Removes the columns that leave; false if none is left.
    bool drop_leaving() {
        return with_m_
                   ? columns_.drop_leaving(state_, {residual, shadow, direction, product_block,
                                                    second_product, corrected, second_corrected})
                   : columns_.drop_leaving(
                         state_, {residual, shadow, direction, product_block, second_product});
    }
    /// Applies M to block `source` and returns the block with the result; without M, `source`
    /// itself.
    int correct(int source, int target) {
        if (!with_m_) {
            return source;
        }
        columns_.precondition(columns_.block(source), columns_.block(target));
        return target;
    }

    void cycle() {
        state_.assign(static_cast<std::size_t>(columns_.width()), Column());
        for (int j = 0; j < columns_.width(); ++j) {
            const double norm = columns_.start_residual(j);
            state(j).shadow_norm = norm;
            state(j).rho = norm * norm;
        }
        axpby(ctx_, T(1), columns_.r(), T(0), columns_.block(shadow));
        axpby(ctx_, T(1), columns_.r(), T(0), columns_.block(direction));
        while (true) {
            const int y = correct(direction, corrected);
            first_half(y);
            if (!drop_leaving()) {
                return;
            }
            const int z = correct(residual, second_corrected);
            second_half(y, z);
            if (!drop_leaving()) {
                return;
            }
            close_step();
            if (!drop_leaving()) {
                return;
            }
            // p <- r + beta (p - omega v)
            columns_.update(columns_.block(product_block), columns_.block(direction), [&](int j) {
                return std::pair(-state(j).beta * state(j).omega, state(j).beta);
            });
            axpby(ctx_, T(1), columns_.r(), T(1), columns_.block(direction));
        }
    }

    /// v = A y, alpha = rho / shadow^H v, r <- r - alpha v.
    void first_half(int y) {
        const BlockView<T> v = columns_.block(product_block);
        columns_.multiply(columns_.block(y), v);
        const auto n = static_cast<std::size_t>(columns_.width());
        const std::span<const T> sums = columns_.fused_dots({{columns_.block(shadow), v}, {v, v}});
        for (int j = 0; j < columns_.width(); ++j) {
            const auto at = static_cast<std::size_t>(j);
            const Wide along = widen(sums[at]);
            const double length = std::sqrt(static_cast<double>(real_part(sums[n + at])));
            state(j).alpha = state(j).rho / along;
            if (!is_finite(along) || !std::isfinite(length)) {
                columns_.break_down_not_finite(j);
            } else if (!(std::abs(along) > eps * state(j).shadow_norm * length)) {
                columns_.break_down(
                    j, LinearStatus::breakdown,
                    "the shadow residual is orthogonal to the product, |cos| = " +
                        number_text(length == 0 ? 0
                                                : std::abs(along) / state(j).shadow_norm / length),
                    true);
            }
        }
        if (!drop_leaving()) {
            return;
        }
        columns_.update(columns_.block(product_block), columns_.r(),
                        [&](int j) { return std::pair(-state(j).alpha, Wide(1)); });
    }

    /// t = A z, omega = t^H r / t^H t, x <- x + alpha y + omega z, r <- r - omega t.
    void second_half(int y, int z) {
        const BlockView<T> t = columns_.block(second_product);
        columns_.multiply(columns_.block(z), t);
        const auto n = static_cast<std::size_t>(columns_.width());
        const std::span<const T> sums = columns_.fused_dots({{t, columns_.r()}, {t, t}});
        for (int j = 0; j < columns_.width(); ++j) {
            const auto at = static_cast<std::size_t>(j);
            const double square = real_part(sums[n + at]);
            state(j).omega = square > 0 ? widen(sums[at]) / square : Wide(0);
            if (!is_finite(state(j).omega) || !std::isfinite(square)) {
                columns_.break_down_not_finite(j);
            }
        }
        if (!drop_leaving()) {
            return;
        }
        columns_.update(columns_.block(y), columns_.x(),
                        [&](int j) { return std::pair(state(j).alpha, Wide(1)); });
        columns_.update(columns_.block(z), columns_.x(),
                        [&](int j) { return std::pair(state(j).omega, Wide(1)); });
        columns_.update(columns_.block(second_product), columns_.r(),
                        [&](int j) { return std::pair(-state(j).omega, Wide(1)); });
    }

    /// ||r||, and rho and beta of the next step.
    void close_step() {
        const BlockView<T> r = columns_.r();
        const auto n = static_cast<std::size_t>(columns_.width());
        const std::span<const T> sums = columns_.fused_dots({{r, r}, {columns_.block(shadow), r}});
        for (std::size_t j = 0; j < n; ++j) {
            residuals_[j] = std::sqrt(static_cast<double>(real_part(sums[j])));
        }
        columns_.end_step(std::span<const double>(residuals_.data(), n));
        for (int j = 0; j < columns_.width(); ++j) {
            if (columns_.leaves(j)) {
                continue;
            }
            Column& at = state(j);
            const Wide rho = widen(sums[n + static_cast<std::size_t>(j)]);
            const double residual_norm = residuals_[static_cast<std::size_t>(j)];
            at.beta = rho / at.rho * at.alpha / at.omega;
            at.rho = rho;
            if (at.omega == Wide(0)) {
                columns_.break_down(j, LinearStatus::breakdown,
                                    "the residual is orthogonal to its product, omega = 0", true);
            } else if (!(std::abs(rho) > eps * at.shadow_norm * residual_norm) ||
                       !is_finite(at.beta)) {
                columns_.break_down(j, LinearStatus::breakdown,
                                    "the shadow residual is orthogonal to the residual, |cos| = " +
                                        number_text(std::abs(rho) / at.shadow_norm / residual_norm),
                                    true);
            }
        }
    }

    Context& ctx_;
    LinearColumns<T> columns_;
    bool with_m_;
    std::vector<Column> state_;
    std::vector<double> residuals_;
};

}  // namespace

template <class T>
LinearResult bicgstab(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                      const LinearOptions& options, LinearWorkspace<T>& workspace) {
    return StabilisedBiconjugate<T>(ctx, problem, x, options, workspace).run();
}

#define QUIVER_INSTANTIATE(T)                                                       \
    template LinearResult bicgstab(Context&, const LinearProblem<T>&, BlockView<T>, \
                                   const LinearOptions&, LinearWorkspace<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

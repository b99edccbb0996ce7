// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/block_cg.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/linear/linear_columns.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// Blocks of the workspace; the last one is used only with a preconditioner.
enum BlockName : int { residual = 1, search = 2, product_block = 3, corrected = 4 };

template <class T>
bool all_finite(const SmallMatrix<T>& a) {
    return std::all_of(a.data(), a.data() + std::ptrdiff_t{a.rows()} * a.cols(),
                       [](T value) { return is_finite(value); });
}

template <class T>
SmallMatrix<T> keep_columns(const SmallMatrix<T>& a, std::span<const int> columns) {
    SmallMatrix<T> result(a.rows(), static_cast<int>(columns.size()));
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < result.cols(); ++j) {
            result(i, j) = a(i, columns[static_cast<std::size_t>(j)]);
        }
    }
    return result;
}

/// A^-1 B for A = R^H R.
template <class T>
SmallMatrix<T> solve(const Cholesky<T>& factor, const SmallMatrix<T>& b) {
    const SmallMatrix<T> inverse = inverse_of_upper(factor.r);
    return product(inverse, product(adjoint(inverse), b));
}

/// The largest |g_ij - conj(g_ji)| of G = X^H M X, relative to the largest diagonal element: 0 for
/// a Hermitian M, up to rounding.
template <class T>
double hermitian_defect(const SmallMatrix<T>& g) {
    double difference = 0;
    double largest = 0;
    for (int i = 0; i < g.rows(); ++i) {
        largest = std::max(largest, std::abs(real_part(widen(g(i, i)))));
        for (int j = 0; j <= i; ++j) {
            difference = std::max(difference, std::abs(widen(g(i, j)) - conjugate(widen(g(j, i)))));
        }
    }
    return largest > 0 ? difference / largest : 0;
}

/// Finds out that the block method fails because M is not Hermitian. Such an M of small defect
/// still leads to the solution; of large defect it may not, and the residual then stays as it is
/// for a long time or grows.
class HermitianWatch {
  public:
    template <class T>
    void see(const SmallMatrix<T>& gamma) {
        defect_ = std::max(defect_, hermitian_defect(gamma));
    }
    /// `progress`: the largest residual relative to the start. True if the method should end.
    bool ends(double progress) {
        if (progress <= 0.5 * best_) {
            best_ = progress;
            defect_ = 0;
            idle_steps_ = 0;
            return false;
        }
        return ++idle_steps_ >= patient_steps && defect_ > large_defect;
    }
    std::string words() const {
        return "the preconditioner M is not Hermitian: for residuals x and y, x^H M y and "
               "conj(y^H M x) differ by " +
               number_text(defect_, 2) + " of the largest x^H M x, and " +
               std::to_string(idle_steps_) +
               " steps have not halved the residual; use gmres, or a Hermitian M";
    }
    /// After fewer steps a solve that has not converged need not have failed.
    static constexpr int patient_steps = 20;

  private:
    /// Measured: incomplete factors with pivots converge with defects up to 0.03 and fail from
    /// 0.05.
    static constexpr double large_defect = 0.05;
    double best_ = 1;
    double defect_ = 0;
    int idle_steps_ = 0;
};

template <class T>
class ConjugateGradients {
  public:
    ConjugateGradients(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                       const LinearOptions& options, LinearWorkspace<T>& workspace)
        : ctx_(ctx),
          columns_(ctx, "cg", problem, x, options, workspace,
                   problem.preconditioner == nullptr ? 2 : 3, 0,
                   1 / std::sqrt(static_cast<double>(
                           epsilon_v<T>))),  // the residual may grow by sqrt(cond)
          explains_(options.fresh_residuals),
          shared_(options.share_search_space && have_one_value(problem.shift)),
          state_(static_cast<std::size_t>(x.cols)),
          residuals_(static_cast<std::size_t>(x.cols)),
          steps_(static_cast<std::size_t>(x.cols)),
          dot_(static_cast<std::size_t>(x.cols)) {
        require_real_shift("cg", problem.shift);
    }

    LinearResult run() {
        LinearResult result = columns_.solve([&] {
            if (shared_ && columns_.width() > 1) {
                shared_ = shared_cycle();
                if (!shared_) {
                    ctx_.emit(FallbackEvent{
                        "cg: the projected operator or preconditioner is not positive definite, "
                        "the columns continue in separate search spaces"});
                }
            } else {
                separate_cycle();
            }
        });
        if (explains_) {
            explain_failure(result);
        }
        return result;
    }

  private:
    struct Column {
        double rz = 0;
        double imaginary = 0;  // of r^H M r
        double alpha = 0;
        double beta = 0;
        double bx = 0;
    };

    /// Removes the columns that leave; false if none is left.
    bool drop_leaving(std::initializer_list<int> blocks) {
        return columns_.drop_leaving(state_, blocks);
    }

    /// Computes M R, r^H M r and ||r|| of all columns.
    void correct_residual(bool first) {
        const bool with_m = columns_.preconditioned();
        if (with_m) {
            columns_.precondition(columns_.r(), columns_.block(corrected));
        } else if (first) {
            for (int j = 0; j < columns_.width(); ++j) {
                const double norm = columns_.start_residual(j);
                state_[static_cast<std::size_t>(j)].rz = norm * norm;
            }
            return;
        }
        const BlockView<T> r = columns_.r();
        const BlockView<T> z = with_m ? columns_.block(corrected) : r;
        const std::span<const T> sums =
            with_m ? columns_.fused_dots({{r, r}, {r, z}}) : columns_.fused_dots({{r, r}});
        const int n = columns_.width();
        for (int j = 0; j < n; ++j) {
            const auto at = static_cast<std::size_t>(j);
            const double rr = real_part(sums[at]);
            const wide_scalar_t<T> dot =
                widen(sums[with_m ? at + static_cast<std::size_t>(n) : at]);
            const double rz = real_part(dot);
            state_[at].imaginary = std::abs(dot - wide_scalar_t<T>(rz));
            state_[at].beta = first ? 0 : rz / state_[at].rz;
            state_[at].rz = rz;
            residuals_[at] = std::sqrt(rr);
        }
    }
    /// Columns whose r^H M r is not positive, or is far from real, leave.
    void require_positive_m() {
        for (int j = 0; j < columns_.width(); ++j) {
            const Column& column = state_[static_cast<std::size_t>(j)];
            const double rz = column.rz;
            if (columns_.leaves(j)) {
                continue;
            }
            if (rz > 0) {
                if (columns_.preconditioned() && column.imaginary > 0.5 * rz) {
                    columns_.break_down_unfit_preconditioner(
                        j, "r^H M r has the real part " + number_text(rz) +
                               " and an imaginary part of size " + number_text(column.imaginary) +
                               ": the preconditioner is not Hermitian; use gmres");
                }
                continue;
            }
            if (std::isfinite(rz)) {
                columns_.break_down_unfit_preconditioner(
                    j, "r^H M r = " + number_text(rz) +
                           ": the preconditioner is not positive definite; use gmres");
            } else {
                columns_.break_down(j, LinearStatus::not_finite,
                                    "the preconditioner gives NaN or infinity");
            }
        }
    }

    void separate_cycle() {
        const bool with_m = columns_.preconditioned();
        const int source = with_m ? corrected : residual;
        state_.resize(static_cast<std::size_t>(columns_.width()));
        correct_residual(true);
        require_positive_m();
        if (!drop_leaving({residual, source})) {
            return;
        }
        axpby(ctx_, T(1), columns_.block(source), T(0), columns_.block(search));
        while (true) {
            const BlockView<T> p = columns_.block(search);
            const BlockView<T> q = columns_.block(product_block);
            columns_.multiply(p, q, std::span<T>(dot_.data(), state_.size()));
            for (int j = 0; j < columns_.width(); ++j) {
                const auto at = static_cast<std::size_t>(j);
                const double curvature = real_part(dot_[at]);
                state_[at].alpha = state_[at].rz / curvature;
                if (!is_finite(dot_[at])) {
                    columns_.break_down(j, LinearStatus::not_finite,
                                        "the operator gives NaN or infinity");
                } else if (!(curvature > 0)) {
                    columns_.break_down(j, LinearStatus::breakdown,
                                        "p^H (A - shift) p = " + number_text(curvature) +
                                            ": the operator is not positive definite; use minres "
                                            "or gmres");
                }
            }
            if (!drop_leaving({residual, search, product_block})) {
                return;
            }
            columns_.update(columns_.block(search), columns_.x(), [&](int j) {
                return std::pair(state_[static_cast<std::size_t>(j)].alpha, 1.0);
            });
            columns_.update(columns_.block(product_block), columns_.r(), [&](int j) {
                return std::pair(-state_[static_cast<std::size_t>(j)].alpha, 1.0);
            });
            const std::span<LinearStep> steps =
                columns_.wants_steps() ? measure_x() : std::span<LinearStep>();
            correct_residual(false);
            columns_.end_step(std::span<const double>(residuals_.data(), state_.size()), steps);
            require_positive_m();
            if (!(with_m ? drop_leaving({residual, search, corrected})
                         : drop_leaving({residual, search}))) {
                return;
            }
            columns_.update(columns_.block(source), columns_.block(search), [&](int j) {
                return std::pair(1.0, state_[static_cast<std::size_t>(j)].beta);
            });
        }
    }

    /// b^H x, a sum over steps because b^H p = r^H M r, and ||x||^2; x^H r = 0.
    std::span<LinearStep> measure_x() {
        const std::span<LinearStep> steps(steps_.data(), state_.size());
        columns_.take_lengths(steps);
        for (std::size_t j = 0; j < state_.size(); ++j) {
            steps[j].bx = state_[j].bx += state_[j].alpha * state_[j].rz;
            steps[j].xr = 0;
        }
        return steps;
    }

    /// Makes the columns of block `residual` orthonormal, fewer if they are dependent; returns the
    /// coefficients.
    SmallMatrix<T> orthonormalise(int width) {
        const BlockView<T> q = columns_.block(residual, width);
        const BlockView<const T> none(nullptr, q.rows, 0, 0, q.place);
        OrthResult<T> orth =
            block_gram_schmidt<T>(ctx_, columns_.row_map(), none, q, {.replace_deficient = false});
        columns_.narrow(residual, width, orth.columns);
        return std::move(orth.r);
    }
    /// Computes M Q and Gamma = Q^H M Q; returns the block that holds M Q.
    int correct(int width, SmallMatrix<T>& gamma) {
        gamma = SmallMatrix<T>::identity(width);
        if (!columns_.preconditioned()) {
            return residual;
        }
        const BlockView<T> q = columns_.block(residual, width);
        const BlockView<T> z = columns_.block(corrected, width);
        columns_.precondition(q, z);
        tsmttsm(ctx_, T(1), q, z, T(0), gamma);
        return corrected;
    }
    bool factor(const SmallMatrix<T>& matrix, Cholesky<T>& result) {
        if (!all_finite(matrix)) {
            columns_.require_no_throw();
            return false;
        }
        result = cholesky(matrix);
        return result.positive;
    }

    /// One cycle in a shared search space; false if the projected operator or preconditioner is not
    /// positive definite.
    bool shared_cycle() {
        try {
            return shared_steps();
        } catch (const NumericalError&) {
            columns_.require_no_throw();  // the block became neither orthonormal nor finite
            return false;
        }
    }

    bool shared_steps() {
        SmallMatrix<T> delta = orthonormalise(columns_.width());
        int s = delta.rows();
        SmallMatrix<T> gamma;
        Cholesky<T> gamma_factor;
        Cholesky<T> curvature;
        HermitianWatch watch;
        int z = correct(s, gamma);
        watch.see(gamma);
        if (!factor(gamma, gamma_factor)) {
            return false;
        }
        axpby(ctx_, T(1), columns_.block(z, s), T(0), columns_.block(search, s));
        while (true) {
            const BlockView<T> directions = columns_.block(search, s);
            const BlockView<T> products = columns_.block(product_block, s);
            columns_.multiply_block(directions, products);
            SmallMatrix<T> projected(s, s);
            tsmttsm(ctx_, T(1), directions, products, T(0), projected);
            if (!factor(projected, curvature)) {
                return false;
            }
            const SmallMatrix<T> alpha = solve(curvature, gamma);
            const SmallMatrix<T> step = product(alpha, delta);
            tsmm(ctx_, T(1), directions, step.view(), T(1), columns_.x());
            tsmm(ctx_, T(-1), products, alpha.view(), T(1), columns_.block(residual, s));
            const SmallMatrix<T> rho = orthonormalise(s);
            delta = product(rho, delta);
            double progress = 0;
            for (int j = 0; j < columns_.width(); ++j) {
                const double norm = column_norm(delta, j);
                residuals_[static_cast<std::size_t>(j)] = norm;
                progress = std::max(progress, norm / columns_.start_residual(j));
            }
            columns_.end_step(std::span<const double>(residuals_.data(),
                                                      static_cast<std::size_t>(columns_.width())));
            if (watch.ends(progress)) {
                explained_ = true;
                for (int j = 0; j < columns_.width(); ++j) {
                    if (!columns_.leaves(j)) {
                        columns_.break_down(j, LinearStatus::breakdown, watch.words());
                    }
                }
            }
            if (columns_.any_leaves()) {
                delta = keep_columns(delta, columns_.take_out({}));
            }
            const int left = columns_.width();
            if (left == 0 || rho.rows() == 0 || (left < s && 2 * left <= rho.rows())) {
                return true;
            }
            z = correct(rho.rows(), gamma);
            watch.see(gamma);
            const SmallMatrix<T> rho_gamma = product(adjoint(rho), gamma);
            const SmallMatrix<T> beta =
                columns_.preconditioned() ? solve(gamma_factor, rho_gamma) : rho_gamma;
            if (!factor(gamma, gamma_factor)) {
                return false;
            }
            next_directions(beta, z);
            s = rho.rows();
        }
    }

    /// S <- Z + S beta; S then has as many columns as Z.
    void next_directions(const SmallMatrix<T>& beta, int z) {
        const int s = beta.rows();
        const int next = beta.cols();
        if (next == s) {
            const SmallMatrix<T> one = SmallMatrix<T>::identity(s);
            tsmm(ctx_, T(1), columns_.block(z, s), one.view(), T(1), columns_.block(search, s),
                 beta.view());
            return;
        }
        const BlockView<T> target = columns_.block(product_block, next);
        axpby(ctx_, T(1), columns_.block(z, next), T(0), target);
        tsmm(ctx_, T(1), columns_.block(search, s), beta.view(), T(1), target);
        columns_.exchange(search, product_block);
    }

    /// Columns of a solve with M may have failed because M is not Hermitian. If a random block
    /// shows that, the messages of these columns say so.
    void explain_failure(LinearResult& result) {
        const auto has_failed = [](const LinearColumn& column) {
            return column.status == LinearStatus::breakdown ||
                   column.status == LinearStatus::stagnated ||
                   (column.status == LinearStatus::out_of_iterations &&
                    column.iterations >= HermitianWatch::patient_steps);
        };
        if (!columns_.preconditioned() || explained_ ||
            std::none_of(result.columns.begin(), result.columns.end(), has_failed)) {
            return;
        }
        constexpr int width = 2;
        BlockVector<T> x;
        BlockVector<T> z;
        ctx_.comm().agree([&] {
            x = BlockVector<T>(ctx_, columns_.row_map(), width);
            z = BlockVector<T>(ctx_, columns_.row_map(), width);
        });
        fill_random(ctx_, 0x9e3779b9u, x);
        columns_.precondition(std::as_const(x).view(), z.view());
        result.preconditioner_applications += width;
        SmallMatrix<T> gamma(width, width);
        tsmttsm(ctx_, T(1), std::as_const(x).view(), std::as_const(z).view(), T(0), gamma);
        if (!all_finite(gamma)) {
            columns_.require_no_throw();
            return;
        }
        const double defect = hermitian_defect(gamma);
        // An M in single precision has a defect near 1e-7.
        if (!(defect > std::max(1e-5, 1e3 * static_cast<double>(epsilon_v<T>)))) {
            return;
        }
        const std::string cause =
            "; the preconditioner M is not Hermitian: for random x and y, x^H M y and "
            "conj(y^H M x) differ by " +
            number_text(defect, 2) + " of the largest x^H M x; use gmres, or a Hermitian M";
        for (LinearColumn& column : result.columns) {
            column.message += has_failed(column) ? cause : "";
        }
        const auto first = std::find_if(
            result.columns.begin(), result.columns.end(),
            [](const LinearColumn& column) { return column.status != LinearStatus::converged; });
        result.message += has_failed(*first) ? cause : "";
    }

    static double column_norm(const SmallMatrix<T>& a, int j) {
        double sum = 0;
        for (int i = 0; i < a.rows(); ++i) {
            sum += std::norm(widen(a(i, j)));
        }
        return std::sqrt(sum);
    }

    Context& ctx_;
    LinearColumns<T> columns_;
    /// Inner solvers do not pay for the search of causes.
    bool explains_;
    bool shared_;
    /// True if the messages of failed columns name an M that is not Hermitian.
    bool explained_ = false;
    std::vector<Column> state_;
    std::vector<double> residuals_;
    std::vector<LinearStep> steps_;
    std::vector<T> dot_;
};

}  // namespace

template <class T>
LinearResult block_cg(Context& ctx, const LinearProblem<T>& problem, BlockView<T> x,
                      const LinearOptions& options, LinearWorkspace<T>& workspace) {
    return ConjugateGradients<T>(ctx, problem, x, options, workspace).run();
}

#define QUIVER_INSTANTIATE(T)                                                       \
    template LinearResult block_cg(Context&, const LinearProblem<T>&, BlockView<T>, \
                                   const LinearOptions&, LinearWorkspace<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

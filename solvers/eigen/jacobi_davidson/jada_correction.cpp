// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/jacobi_davidson/jada_correction.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/linear/block_cg.hpp"
#include "solvers/linear/block_gmres.hpp"
#include "solvers/linear/block_minres.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

template <class T>
JadaCorrection<T>::JadaCorrection(Context& ctx, JadaBasis<T>& basis, const EigenProblem<T>& problem,
                                  const EigenOptions& options, int max_fixed, int block)
    : ctx_(ctx),
      basis_(basis),
      inner_(options.inner),
      sign_(inner_ == InnerSolver::cg && options.which == Which::largest ? -1 : 1),
      operator_(basis.a(), basis.b(), basis.b() != nullptr && problem.preconditioner == nullptr,
                sign_) {
    if (problem.inverse != nullptr) {
        k_.emplace(*problem.inverse);
    } else if (problem.preconditioner != nullptr) {
        k_.emplace(*problem.preconditioner);
        preconditioner_.emplace(*k_);
    }
    const RowMap& map = basis.a().row_map();
    ctx.comm().agree([&] {
        p_ = BlockVector<T>(ctx, map, 0, max_fixed + block);
        r_ = BlockVector<T>(ctx, map, 0, block);
        if (basis.b() != nullptr) {
            b_p_ = BlockVector<T>(ctx, map, 0, max_fixed + block);
        }
        if (preconditioner_) {
            z_ = BlockVector<T>(ctx, map, 0, max_fixed + block);
        }
    });
}

template <class T>
void JadaCorrection<T>::fail(const std::string& text) {
    rethrow_pending();
    basis_.fail(text + ", after " + std::to_string(basis_.products()) + " outer block products");
}

template <class T>
void JadaCorrection<T>::residual_directions(BlockView<T> t) {
    if (k_) {
        k_->apply(ctx_, r(t.cols), t);
    } else {
        copy(ctx_, r(t.cols), t);
    }
}

/// Copies [C Q], B [C Q] and K B [C Q] if the locked pairs have changed.
template <class T>
void JadaCorrection<T>::take_locked() {
    if (epoch_ == basis_.epoch()) {
        return;
    }
    const int count = fixed();
    copy(ctx_, basis_.fixed_columns(), p_.columns(0, count));
    if (b_p_) {
        copy(ctx_, basis_.b_fixed_columns(), b_p_->columns(0, count));
    }
    if (k_) {
        k_->apply(ctx_, (b_p_ ? *b_p_ : p_).columns(0, count), z_.columns(0, count));
    }
    epoch_ = basis_.epoch();
}

/// Computes Z = K BP and (BP^H Z)^-1.
template <class T>
void JadaCorrection<T>::project_preconditioner(int width) {
    const int all = fixed() + width;
    k_->apply(ctx_, bx(width), z_.columns(fixed(), width));
    const BlockView<T> bp = (b_p_ ? *b_p_ : p_).columns(0, all);
    SmallMatrix<T> g(all, all);
    tsmttsm(ctx_, T(1), bp, z_.columns(0, all), T(0), g);
    for (int j = 0; j < all; ++j) {
        if (!is_finite(g(j, j))) {
            fail("the preconditioner failed on some rank or its product is not finite");
        }
    }
    if (inner_ == InnerSolver::gmres) {
        SmallMatrix<T> inverse = inverse_of(g);
        if (!std::isfinite(frobenius_norm(inverse))) {
            fail("the preconditioner is singular on " + std::to_string(all) +
                 " approximate eigenvectors");
        }
        preconditioner_->set_projection(bp, z_.columns(0, all), std::move(inverse));
        return;
    }
    const Cholesky<T> factor = cholesky(g);
    if (!factor.positive) {
        rethrow_pending();
        throw_indefinite(IndefiniteError::Operand::preconditioner,
                         "Jacobi-Davidson: the preconditioner is not positive definite on " +
                             std::to_string(all) + " approximate eigenvectors, after " +
                             std::to_string(basis_.products()) + " block products");
    }
    const SmallMatrix<T> inverse = inverse_of_upper(factor.r);
    SmallMatrix<T> g_inverse(all, all);
    for (int i = 0; i < all; ++i) {
        for (int j = 0; j < all; ++j) {
            for (int l = 0; l < all; ++l) {
                g_inverse(i, j) += multiply(inverse(i, l), conjugate(inverse(j, l)));
            }
        }
    }
    preconditioner_->set_projection(bp, z_.columns(0, all), std::move(g_inverse));
}

template <class T>
LinearResult JadaCorrection<T>::run_inner(const LinearProblem<T>& system, BlockView<T> t,
                                          const LinearOptions& options) {
    switch (inner_) {
        case InnerSolver::cg:
            return block_cg<T>(ctx_, system, t, options, workspace_);
        case InnerSolver::gmres:
            return block_gmres<T>(ctx_, system, t, options, workspace_);
        default:
            return block_minres<T>(ctx_, system, t, options, workspace_);
    }
}

/// Columns whose first step has failed get their residual as direction. With cg it then has a
/// negative curvature, so it leads beyond the present Ritz values.
template <class T>
void JadaCorrection<T>::replace_failed(const LinearResult& result, BlockView<T> t) {
    for (int j = 0; j < t.cols; ++j) {
        const LinearColumn& column = result.columns[static_cast<std::size_t>(j)];
        if (column.status == LinearStatus::breakdown && column.iterations == 0) {
            copy(ctx_, BlockView<const T>(r(t.cols).columns(j, 1)), t.columns(j, 1));
        }
    }
}

template <class T>
std::int64_t JadaCorrection<T>::solve(BlockView<T> t, CorrectionTarget target) {
    const int width = t.cols;
    take_locked();
    const BlockView<T> p = p_.columns(0, fixed() + width);
    const BlockView<T> bp = (b_p_ ? *b_p_ : p_).columns(0, fixed() + width);
    operator_.set_projection(p, bp);
    // The component of R along X is rounding error only; the component along Q must be removed.
    remove_components<T>(ctx_, p, bp, r(width));
    if (k_) {
        project_preconditioner(width);
    }
    std::vector<T> shift;
    for (const InnerStop::Column& column : target.columns) {
        shift.push_back(T(static_cast<real_t<T>>(column.shift)));
    }
    const bool adaptive = inner_ == InnerSolver::jdqmr;
    if (adaptive && b_p_) {
        std::vector<real_t<T>> lengths(target.columns.size());
        norms(ctx_, BlockView<const T>(x(width)), std::span<real_t<T>>(lengths));
        for (std::size_t j = 0; j < lengths.size(); ++j) {
            target.columns[j].xx =
                static_cast<double>(lengths[j]) * static_cast<double>(lengths[j]);
        }
    }
    InnerStop stop(std::move(target.columns), sign_, target.free_steps);
    LinearOptions options;
    options.column_tol = target.tol;
    options.max_iterations = target.steps;
    options.restart = static_cast<int>(target.steps);
    options.share_search_space = false;
    options.fresh_residuals = false;
    if (adaptive) {
        options.stop = [&stop](const LinearStep& step) { return stop(step); };
    }
    const LinearResult result =
        run_inner({operator_, r(width), shift, k_ ? &*preconditioner_ : nullptr}, t, options);
    for (const LinearColumn& column : result.columns) {
        if (column.status == LinearStatus::not_finite) {
            fail("correction equation: " + column.message);
        }
        if (column.status == LinearStatus::breakdown && column.iterations == 0 &&
            column.preconditioner_is_unfit) {
            rethrow_pending();
            throw_indefinite(IndefiniteError::Operand::preconditioner,
                             "Jacobi-Davidson: correction equation: " + column.message);
        }
    }
    replace_failed(result, t);
    return result.iterations;
}

#define QUIVER_INSTANTIATE(T) template class JadaCorrection<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

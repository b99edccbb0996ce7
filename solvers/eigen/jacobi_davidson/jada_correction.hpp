// SPDX-License-Identifier: BSD-3-Clause
// The correction equation of block Jacobi-Davidson. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "solvers/eigen/jacobi_davidson/inner_stop.hpp"
#include "solvers/eigen/jacobi_davidson/jada_basis.hpp"
#include "solvers/eigen/jacobi_davidson/projected_operator.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// The correction equations to solve: one element per column, and the maximal number of steps.
struct CorrectionTarget {
    std::vector<InnerStop::Column> columns;
    /// Tolerances of the linear systems.
    std::vector<double> tol;
    std::int64_t steps = 0;
    /// The number of first steps in which only the tolerance and the wanted residual stop a column.
    int free_steps = 0;
};

/// The block X of Ritz vectors being improved, with B X and R = (A - theta B) X, and its correction
/// equations. With P = [C Q X], the inner solver solves for all columns at once
///
///    (I - BP P^H) (A - sigma_j B) (I - P BP^H) t_j = r_j,  P^H B t_j = 0
///
/// A column stops at its tolerance, or when InnerStop says so. At the upper end cg solves for -t_j
/// with the negative operator, which is positive definite.
template <class T>
class JadaCorrection {
  public:
    /// X has at most `block` columns.
    JadaCorrection(Context& ctx, JadaBasis<T>& basis, const EigenProblem<T>& problem,
                   const EigenOptions& options, int max_fixed, int block);

    /// X, B X (X itself if B = I) and R of `width` columns; X and B X lie behind the locked
    /// columns, so the views change when pairs are locked.
    BlockView<T> x(int width) { return p_.columns(fixed(), width); }
    BlockView<T> bx(int width) { return (b_p_ ? *b_p_ : p_).columns(fixed(), width); }
    BlockView<T> r(int width) { return r_.columns(0, width); }

    /// T <- K R, a step of the Davidson method; K is the problem's inverse or preconditioner, or
    /// the identity if neither is given.
    void residual_directions(BlockView<T> t);
    /// T <- the solutions. Returns the number of block products. Throws NumericalError if the
    /// preconditioner is not positive definite or a product is not finite.
    std::int64_t solve(BlockView<T> t, CorrectionTarget target);
    /// Throws the exception of a failed product with K on this rank, if there is one.
    void rethrow_pending() {
        if (k_) {
            k_->rethrow_pending();
        }
    }

  private:
    int fixed() const { return basis_.fixed_columns().cols; }
    void take_locked();
    void project_preconditioner(int width);
    LinearResult run_inner(const LinearProblem<T>& system, BlockView<T> t,
                           const LinearOptions& options);
    void replace_failed(const LinearResult& result, BlockView<T> t);
    [[noreturn]] void fail(const std::string& text);

    Context& ctx_;
    JadaBasis<T>& basis_;
    InnerSolver inner_;
    double sign_;
    std::optional<GuardedOperator<T>> k_;
    ProjectedOperator<T> operator_;
    std::optional<ProjectedPreconditioner<T>> preconditioner_;
    BlockVector<T> p_;
    std::optional<BlockVector<T>> b_p_;
    BlockVector<T> r_;
    /// K B P.
    BlockVector<T> z_;
    std::int64_t epoch_ = 0;
    LinearWorkspace<T> workspace_;
};

}  // namespace quiver

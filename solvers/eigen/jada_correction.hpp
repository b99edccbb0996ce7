// SPDX-License-Identifier: BSD-3-Clause
// The correction equation of block Jacobi-Davidson. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "blockvec/block_vector.hpp"
#include "solvers/eigen/jada_basis.hpp"
#include "solvers/eigen/projected_operator.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// How far a correction equation is solved: one tolerance and one shift a column.
struct CorrectionTarget {
    std::span<const double> shift;
    std::span<const double> tol;
    std::int64_t steps = 0;
};

/// The block X of Ritz vectors under work with B X, R = (A - theta B) X, and what is solved for
/// them: with P = [C Q X], all columns at once,
///
///     (I - BP P^H) (A - sigma_j B) (I - P BP^H) t_j = r_j,  P^H B t_j = 0
///
/// by block MINRES.
template <class T>
class JadaCorrection {
  public:
    /// X has at most `block` columns.
    JadaCorrection(Context& ctx, JadaBasis<T>& basis, const EigenProblem<T>& problem, int max_fixed,
                   int block);

    /// X, B X (X itself without B) and R of `width` columns; where they lie depends on what is
    /// locked.
    BlockView<T> x(int width) { return p_.columns(fixed(), width); }
    BlockView<T> bx(int width) { return (b_p_ ? *b_p_ : p_).columns(fixed(), width); }
    BlockView<T> r(int width) { return r_.columns(0, width); }

    /// T <- K R, K the problem's inverse or preconditioner, R itself without: a step of the
    /// Davidson method.
    void residual_directions(BlockView<T> t);
    /// T <- the solutions. Returns the block products made. NumericalError where the preconditioner
    /// is not positive definite or a product is not finite.
    std::int64_t solve(BlockView<T> t, const CorrectionTarget& target);
    /// Throws what K threw on this rank, if it did.
    void rethrow_pending() {
        if (k_) {
            k_->rethrow_pending();
        }
    }

  private:
    int fixed() const { return basis_.fixed_columns().cols; }
    void take_locked();
    void project_preconditioner(int width);
    [[noreturn]] void fail(const std::string& text);

    Context& ctx_;
    JadaBasis<T>& basis_;
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

// SPDX-License-Identifier: BSD-3-Clause
// The pencil D A D, D B D with powers of two in the diagonal D. Private to solvers/eigen.
#pragma once

#include <optional>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/pencil/congruent_operator.hpp"

namespace quiver {

/// D A D y = lambda D B D y with D = diag(2^exponents) in place of A x = lambda B x, x = D y, with
/// all parts of the problem but its protection: a preconditioner or inverse T becomes D^-1 T D^-1,
/// start vectors and constraints X become D^-1 X. The operators of the problem must outlive this
/// object.
template <class T>
class BalancedProblem {
  public:
    /// `start`: columns in the units of `problem`; `exponents`: those of this rank's rows.
    /// Collective.
    BalancedProblem(Context& ctx, const EigenProblem<T>& problem, BlockView<const T> start,
                    const std::vector<int>& exponents);
    BalancedProblem(const BalancedProblem&) = delete;
    BalancedProblem& operator=(const BalancedProblem&) = delete;

    EigenProblem<T>& problem() { return problem_; }
    /// X = D Y.
    void restore(Context& ctx, BlockView<const T> y, BlockView<T> x) { d_.apply(ctx, y, x); }
    /// Y = D^-1 X.
    void convert(Context& ctx, BlockView<const T> x, BlockView<T> y) {
        inverse_d_.apply(ctx, x, y);
    }

  private:
    BlockView<const T> converted(Context& ctx, BlockView<const T> x, BlockVector<T>& y);

    SparseMatrix<T> d_;
    SparseMatrix<T> inverse_d_;
    CongruentOperator<T> a_;
    CongruentOperator<T> b_;
    std::optional<CongruentOperator<T>> preconditioner_;
    std::optional<CongruentOperator<T>> approximate_inverse_;
    BlockVector<T> start_;
    BlockVector<T> constraints_;
    EigenProblem<T> problem_;
};

}  // namespace quiver

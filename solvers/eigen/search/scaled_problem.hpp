// SPDX-License-Identifier: BSD-3-Clause
// Problems whose norms lie outside NormRange, scaled by powers of two. Private to solvers/eigen.
#pragma once

#include <optional>
#include <span>

#include "blockvec/context.hpp"
#include "kernels/operator.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"

namespace quiver {

/// Y = 2^-exponent A X. Exact unless products of A underflow or overflow.
template <class T>
class ScaledOperator final : public Operator<T> {
  public:
    ScaledOperator(Operator<T>& a, int exponent) : a_(a), exponent_(exponent) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;
    void prepare(Context& ctx, std::span<const int> widths, bool dots) override {
        a_.prepare(ctx, widths, dots);
    }
    Operator<T>& unscaled() const { return a_; }
    int exponent() const { return exponent_; }

  private:
    Operator<T>& a_;
    int exponent_;
};

/// The exponents of scale factors that bring the largest entries of A and B near 1 if a norm lies
/// outside NormRange; else 0. Also 0 for operators without stored entries, and for entries that are
/// not finite. Collective. Cost for A, and the same for B: one pass over the stored entries and one
/// all-reduce; if a norm lies outside, another pass and two more all-reduces.
template <class T>
PencilExponents needed_exponents(Context& ctx, const EigenProblem<T>& problem);

/// 2^-a A x' = lambda' 2^-b B x' in place of A x = lambda B x, with lambda = 2^(a - b) lambda' and
/// x = 2^(-b / 2) x'. The operators of the problem must outlive this object.
template <class T>
class ScaledProblem {
  public:
    ScaledProblem(const EigenProblem<T>& problem, PencilExponents exponents);
    ScaledProblem(const ScaledProblem&) = delete;
    ScaledProblem& operator=(const ScaledProblem&) = delete;

    const EigenProblem<T>& problem() const { return *problem_; }
    /// Converts the target and the window to those of lambda'.
    EigenOptions scaled(EigenOptions options) const;
    /// Converts the result of problem() to that of A and B.
    EigenResult<T> restored(Context& ctx, EigenResult<T> result) const;

  private:
    PencilExponents exponents_;
    ScaledOperator<T> a_;
    std::optional<ScaledOperator<T>> b_;
    std::optional<ScaledOperator<T>> preconditioner_;
    std::optional<ScaledOperator<T>> inverse_;
    std::optional<EigenProblem<T>> problem_;
};

}  // namespace quiver

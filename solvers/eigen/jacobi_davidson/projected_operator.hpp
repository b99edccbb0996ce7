// SPDX-License-Identifier: BSD-3-Clause
// The operator of Jacobi-Davidson's correction equation and its preconditioner. Private to
// solvers/eigen.
#pragma once

#include <utility>

#include "blockvec/small_matrix.hpp"
#include "kernels/operator.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {

/// Y <- Y - BP (P^H Y). With P^H B P = I the result satisfies P^H Y = 0. One all-reduce.
template <class T>
void remove_components(Context& ctx, BlockView<const T> p, BlockView<const T> bp, BlockView<T> y);

/// Y = sign (I - BP P^H) (A - shift B) (I - P BP^H) X, Hermitian, for P with P^H B P = I. The shift
/// of ApplyOptions multiplies B here.
template <class T>
class ProjectedOperator final : public Operator<T> {
  public:
    /// `b` is null if B = I. Unless `project_right`, X must already satisfy BP^H X = 0.
    ProjectedOperator(GuardedOperator<T>& a, GuardedOperator<T>* b, bool project_right,
                      double sign = 1)
        : a_(a),
          b_(b),
          project_right_(project_right),
          sign_(static_cast<T>(static_cast<real_t<T>>(sign))) {}
    /// The views must outlive the following products. If B = I, pass P as `bp`.
    void set_projection(BlockView<const T> p, BlockView<const T> bp) {
        p_ = p;
        bp_ = bp;
    }

    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override;

  private:
    void apply_standard(Context& ctx, BlockView<const T> x, BlockView<T> y,
                        const ApplyOptions<T>& options);
    void apply_generalised(Context& ctx, BlockView<const T> x, BlockView<T> y,
                           const ApplyOptions<T>& options);

    GuardedOperator<T>& a_;
    GuardedOperator<T>* b_;
    bool project_right_;
    T sign_;
    BlockView<const T> p_;
    BlockView<const T> bp_;
};

/// Y = (I - Z G^-1 BP^H) K X with Z = K BP and G = BP^H Z. On the complement of P this is the
/// inverse of the skew-projected (I - BP P^H) K^-1 (I - P BP^H); Y is B-orthogonal to P. Source:
/// Sleijpen, Booten, Fokkema, van der Vorst, BIT 36 (1996) 595, section 4.
template <class T>
class ProjectedPreconditioner final : public Operator<T> {
  public:
    explicit ProjectedPreconditioner(GuardedOperator<T>& k) : k_(k) {}
    /// The views must outlive the following products.
    void set_projection(BlockView<const T> bp, BlockView<const T> z, SmallMatrix<T> g_inverse) {
        bp_ = bp;
        z_ = z;
        g_inverse_ = std::move(g_inverse);
    }

    const RowMap& row_map() const override { return k_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;

  private:
    GuardedOperator<T>& k_;
    BlockView<const T> bp_;
    BlockView<const T> z_;
    SmallMatrix<T> g_inverse_;
};

}  // namespace quiver

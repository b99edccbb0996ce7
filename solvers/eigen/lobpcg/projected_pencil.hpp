// SPDX-License-Identifier: BSD-3-Clause
// A - sigma B on the complement of known columns, as an operator. Private to solvers/eigen.
#pragma once

#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operator.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// sign P^H (A - sigma B) P with P = I - X (B X)^H and X^H B X = I: Hermitian, zero on X, and with
/// the same inertia as sign (A - sigma B) on the B-orthogonal complement of X.
template <class T>
class ProjectedPencil final : public Operator<T> {
  public:
    /// All arguments must outlive this object.
    ProjectedPencil(Context& ctx, Operator<T>& a, Operator<T>& b, double sigma, int sign,
                    BlockView<const T> x, BlockView<const T> bx)
        : a_(a), b_(b), sigma_(sigma), sign_(sign), x_(x), bx_(bx), memory_(ctx, a.row_map(), 0) {}

    const RowMap& row_map() const override { return a_.row_map(); }
    /// Cost: a product with A and one with B, 6 passes over X, 2 all-reduces.
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        if (memory_.capacity() < 2 * x.cols) {
            memory_ = BlockVector<T>(ctx, row_map(), 2 * x.cols);
        }
        const BlockView<T> z = memory_.columns(0, x.cols);
        const BlockView<T> bz = memory_.columns(x.cols, x.cols);
        copy(ctx, x, z);
        remove(ctx, bx_, x_, z);
        a_.apply(ctx, z, y);
        b_.apply(ctx, z, bz);
        axpby(ctx, T(static_cast<real_t<T>>(-sign_ * sigma_)), bz, T(static_cast<real_t<T>>(sign_)),
              y);
        remove(ctx, x_, bx_, y);
    }

  private:
    /// Y <- Y - V (U^H Y)
    void remove(Context& ctx, BlockView<const T> u, BlockView<const T> v, BlockView<T> y) {
        SmallMatrix<T> c(u.cols, y.cols);
        tsmttsm(ctx, T(1), u, y, T(0), c);
        tsmm(ctx, T(-1), v, c.view(), T(1), y);
    }

    Operator<T>& a_;
    Operator<T>& b_;
    double sigma_;
    int sign_;
    BlockView<const T> x_;
    BlockView<const T> bx_;
    BlockVector<T> memory_;
};

}  // namespace quiver

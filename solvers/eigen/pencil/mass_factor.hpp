// SPDX-License-Identifier: BSD-3-Clause
// A factorisation B = 2^e G G^H, which reduces A x = lambda B x to a standard problem. Private to
// solvers/eigen.
#pragma once

#include <memory>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "kernels/operator.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

/// G of B = 2^exponent() G G^H. The exponent is even and brings the largest entry of G G^H near 1.
/// Blocks X and Y have the rows of B and the place of the Context, and do not overlap.
template <class T>
class MassFactor {
  public:
    MassFactor() = default;
    MassFactor(const MassFactor&) = delete;
    MassFactor& operator=(const MassFactor&) = delete;
    virtual ~MassFactor() = default;

    /// Y = G^-1 X.
    virtual void solve(Context& ctx, BlockView<const T> x, BlockView<T> y) = 0;
    /// Y = G^-H X.
    virtual void solve_adjoint(Context& ctx, BlockView<const T> x, BlockView<T> y) = 0;
    /// Y = G^H X up to a positive factor, the same for all columns.
    virtual void multiply_adjoint(Context& ctx, BlockView<const T> x, BlockView<T> y) = 0;
    /// If G is diagonal, the diagonal of G^-1, one real column; else null.
    virtual const BlockVector<T>* inverse_diagonal() const { return nullptr; }

    int exponent() const { return exponent_; }
    /// The largest pivot divided by the least: a lower bound of the condition number of B.
    double pivot_ratio() const { return pivot_ratio_; }

  protected:
    int exponent_ = 0;
    double pivot_ratio_ = 1;
};

/// The factor of a B that is a SparseMatrix or a ScaledOperator of one. If B is diagonal, G =
/// B^(1/2), on any number of ranks and in any place. Otherwise one rank factorises on the host, in
/// double precision and without threads: P B P^T = L D L^H, G = P^T L D^1/2 (SparseLdlt); products
/// with blocks on a device then pass through host memory.
///
/// Throws on all ranks: InputError for a B without stored entries, and for a B that is not diagonal
/// on several ranks or with more than most_ldlt_rows rows; the message begins with the name of
/// `method` and names methods that solve the problem. IndefiniteError if a pivot is not positive,
/// or positive by rounding errors only: at most 16 eps times the diagonal entry of its row.
/// NumericalError if B is not finite or not Hermitian. Collective. Cost: a pass over the entries of
/// B and, unless B is diagonal, a sparse Cholesky factorisation.
template <class T>
std::unique_ptr<MassFactor<T>> factor_mass(Context& ctx, Operator<T>& b, Method method);

}  // namespace quiver

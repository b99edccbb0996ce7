// SPDX-License-Identifier: BSD-3-Clause
// Incomplete LU factorisation of the rows that a rank has, and its triangular solves.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

namespace cuda {
template <class T>
class TriangularFactors;
}

/// L U, where L U = A on the pattern of A and nothing is kept outside of it (ILU(0)); L has a unit
/// diagonal. Of a Hermitian A with positive pivots this is IC(0) in the form L D L^H, U = D L^H. A
/// is the diagonal block of this rank: no communication. On a device cuSPARSE does it (csrilu02,
/// SpSM), loaded when first asked for: UnsupportedError where it is not found or for 2^31 entries
/// and more, DeviceError for its own; the Context outlives this then.
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 10.3.2.
template <class T>
class IncompleteLu {
  public:
    /// `rows`: this rank's rows with the columns of its own rows alone, as
    /// SparseMatrix::diagonal_block() gives them. `diagonal_shift` is added, relative to each
    /// diagonal entry (Manteuffel's shift, for pivots that break down). Throws InputError, on the
    /// rank that sees it, for a row without a diagonal entry. Cost: some row lengths a nonzero.
    IncompleteLu(Context& ctx, CsrRows<T> rows, double diagonal_shift = 0);
    /// Factors that are known, complete ones, say: the rows of L - I + U, with every diagonal entry
    /// and no columns of other ranks.
    static IncompleteLu from_factors(Context& ctx, CsrRows<T> factors);

    /// The local row of the first pivot that is zero or not finite or, of a positive definite
    /// matrix, not real and positive to rounding; -1 when there is none.
    std::int64_t first_bad_pivot(bool positive) const;

    /// Y = (L U)^-1 X; X and Y are this rank's rows in the Context's place, of any width, either
    /// apart or the same. ShapeError. One thread on the host: a row needs those before it. Bytes:
    /// twice the factors and three times Y; flops as the product with the block.
    void solve(Context& ctx, std::type_identity_t<BlockView<const T>> x, BlockView<T> y) const;

    /// L = I + lower, U = D (I + upper), D^-1: strict triangles and a diagonal, with global
    /// columns.
    struct Parts {
        CsrRows<T> lower;
        CsrRows<T> inverse_diagonal;
        CsrRows<T> upper;
    };
    Parts parts() const;

  private:
    IncompleteLu() = default;
    void find_diagonal();
    void eliminate();
    void solve_on_host(BlockView<const T> x, BlockView<T> y) const;
    /// Factors on the device; `factorise`: of what factors_ holds, which become its factors.
    void to_device(Context& ctx, bool factorise);

    /// Of the columns local numbers.
    CsrRows<T> factors_;
    /// Where each row's diagonal entry lies; what it holds is the pivot, and its inverse.
    std::vector<std::int64_t> diagonal_;
    std::vector<T> inverse_pivot_;
    std::shared_ptr<cuda::TriangularFactors<T>> on_device_;
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// IncompleteLu: the incomplete LU factorisation of this rank's rows, and its triangular solves.
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

/// The factors L and U with L U = A on the pattern of A and no fill-in outside of it (ILU(0)); L
/// has a unit diagonal. For a Hermitian A with positive pivots this is IC(0) in the form L D L^H,
/// with U = D L^H. A is the diagonal block of this rank: no communication. On a device cuSPARSE
/// computes it (csrilu02, SpSM), loaded at the first use. Throws UnsupportedError if cuSPARSE is
/// not found or for 2^31 entries and more, DeviceError for errors of cuSPARSE. On a device the
/// Context must outlive this object.
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 10.3.2.
template <class T>
class IncompleteLu {
  public:
    /// `rows`: this rank's rows, restricted to the columns of its own rows, as
    /// SparseMatrix::diagonal_block() returns them. `diagonal_shift` is added to each diagonal
    /// entry, relative to that entry (Manteuffel's shift, against pivots that break down). Throws
    /// InputError, on the affected rank only, for a row without a diagonal entry. Cost per nonzero:
    /// a few times the length of a row.
    IncompleteLu(Context& ctx, CsrRows<T> rows, double diagonal_shift = 0);
    /// Wraps known factors, for instance complete ones: the rows of L - I + U, with every diagonal
    /// entry and no columns of other ranks.
    static IncompleteLu from_factors(Context& ctx, CsrRows<T> factors);

    /// The local row of the first pivot that is zero or not finite or, if `positive`, whose real
    /// part is not positive; -1 if there is none.
    std::int64_t first_bad_pivot(bool positive) const;

    /// Y = (L U)^-1 X; X and Y are this rank's rows in the Context's place, of any width, either
    /// disjoint or the same block. Throws ShapeError. On the host one thread works, because a row
    /// depends on earlier rows. Bytes: twice the factors and three times Y; flops: those of a
    /// product of the factors with the block.
    void solve(Context& ctx, std::type_identity_t<BlockView<const T>> x, BlockView<T> y) const;

    /// L = I + lower, U = D (I + upper), and D^-1: strict triangles and a diagonal, with global
    /// columns.
    struct Parts {
        CsrRows<T> lower;
        CsrRows<T> inverse_diagonal;
        CsrRows<T> upper;
    };
    Parts parts() const;

  private:
    IncompleteLu() = default;
    /// Throws InputError if the factors were moved to another object.
    void require_factors() const;
    void find_diagonal();
    void eliminate();
    void solve_on_host(BlockView<const T> x, BlockView<T> y) const;
    /// Moves the matrix to the device. If `factorise`, factors_ holds the matrix and receives its
    /// factors; otherwise it holds the factors.
    void to_device(Context& ctx, bool factorise);

    /// Columns are local row numbers.
    CsrRows<T> factors_;
    /// For each row, the position of its diagonal entry, which holds the pivot, and the inverse
    /// pivot.
    std::vector<std::int64_t> diagonal_;
    std::vector<T> inverse_pivot_;
    std::shared_ptr<cuda::TriangularFactors<T>> on_device_;
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// ProtectedDense: a dense matrix whose products with blocks are checked, and mended, as they are
// made.
//
// The walk of one call of Y = alpha A X + beta Y:
//  1. Once, when the matrix is known to be right: its column sums s = A^H w for the plain and mixed
//     weights w of kernels/checksum.hpp, by chunks of 2^log_chunk rows, and a parity of its memory.
//  2. One pass over X for each chunk of rows of A gives s^H X, and X's own sums; those of Y_old are
//     known or formed; with `correct` Y_old is copied.
//  3. The kernel of kernels/mtsm.hpp, with the arguments as they came.
//  4. The sums of Y must be w^H Y = alpha s^H X + beta w^H Y_old, to
//         4 eps ((sqrt(k) + 4) |alpha| ||A||_F ||x_j|| + (sqrt(k) + 4) |beta| ||y_old||)
//         + 2 eps_d |alpha| ||s|| ||x_j|| + 16 eps_d (the sums' own sizes),
//     twice that for complex scalars; A, Y_old by chunk.
//  5. Where that fails the kernel runs again, in place: same bits. If that agrees, Y was hit: one
//     row that differs is a mended row, more are a redone chunk.
//  6. If not, the memory of A and s is compared with its parity and mended, word by word, X and
//     Y_old are compared with their sums and restored, to rounding, and the kernel runs once more.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "blockvec/matrix_view.hpp"
#include "solvers/abft/operand.hpp"

namespace quiver {

/// A: m x k on this rank, by rows or by columns, as kernels/mtsm.hpp takes it. Products with A are
/// checked by its column sums, products with A^H by its row sums.
///
/// Found is what changes a sum of a chunk of Y by more than twice the bound: faults of the
/// arithmetic, of Y, of A since this object was made, of s, of X and Y_old after their sums were
/// formed. A with gaps between its lines, or not aligned to 8 bytes, has no parity: a fault in it
/// is found, not mended. What can not be mended is counted as failed, and from then on A is what it
/// is. Chunks are not compared where A, X or Y_old are not finite or have squares beyond double.
/// Local, as mtsm is.
template <class T>
class ProtectedDense {
  public:
    using Sum = checksum_t<T>;

    /// `a` outlives this. `adjoint`: products with A^H are wanted too. Cost: a read of A for its
    /// sums (of columns that memory does not hold side by side also a copy, 64 columns at a time),
    /// twice with `adjoint`, and one for its parity; scalars of sums: 2 k (m / 2^log_chunk).
    ProtectedDense(Context& ctx, OperationGuard& guard, MatrixView<T> a, bool adjoint = false);

    /// Y = alpha A X + beta Y; X: k x n, Y: m x n. Errors as mtsm. Cost: besides the product a read
    /// of X and s for every chunk of A's rows, of Y and, with beta, of Y_old; after an alarm
    /// products, and reads of A.
    void apply(Context& ctx, std::type_identity_t<T> alpha,
               std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
               BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known = {});
    /// Y = alpha A^H X + beta Y; X: m x n, Y: k x n. ShapeError unless made with `adjoint`.
    void apply_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                       std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
                       BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known = {});
    /// Compares A and its sums with their parities; with `correct` mends them. Faults found now
    /// had no effect above the bounds.
    void audit(Context& ctx);

  private:
    /// The sums of the columns of A or of its transposed, by chunks of rows.
    struct Side {
        std::int64_t rows = 0;
        std::int64_t columns = 0;
        std::int64_t chunks = 0;
        /// chunks x columns x 2, as kernels/checksum.hpp takes weights, and a copy in host memory.
        Buffer weights;
        std::vector<Sum> values;
        GuardedArray guarded;
        /// By chunk: ||A||_F, and ||s|| of both weights.
        std::vector<double> norms;
        std::vector<double> sum_norms;
    };

    MatrixView<T> matrix_of(bool adjoint) const { return adjoint ? a_.transposed() : a_; }
    Side make_side(Context& ctx, bool adjoint) const;
    BlockView<Sum> weights_of(const Side& side, std::int64_t chunk) const;
    void run(Context& ctx, bool adjoint, T alpha, const BlockView<const T>& x, T beta,
             const BlockView<T>& y, const KnownSums<T>& known);
    OperandRepair repair(Context& ctx);
    void count(const OperandRepair& repair);

    OperationGuard& guard_;
    MatrixView<T> a_;
    std::optional<GuardedArray> memory_;
    Side forward_;
    std::optional<Side> adjoint_;
};

}  // namespace quiver

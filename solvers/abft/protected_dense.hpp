// SPDX-License-Identifier: BSD-3-Clause
// ProtectedDense: a dense matrix whose products with blocks are checked and repaired.
//
// Steps of one call of Y = alpha A X + beta Y:
// 1. Once, while the matrix is known to be correct: form its column sums s = A^H w for the plain
//    and mixed weights w of kernels/checksum.hpp, by chunks of 2^log_chunk rows, and a parity of
//    its memory.
// 2. For each chunk of rows of A one pass over X gives s^H X and X's own checksums. The checksums
//    of Y_old are known or formed; with `correct` Y_old is copied.
// 3. Call the kernel of kernels/mtsm.hpp with the same arguments.
// 4. The checksums of Y must be w^H Y = alpha s^H X + beta w^H Y_old, up to
//        4 eps ((sqrt(k) + 4) |alpha| ||A||_F ||x_j|| + (sqrt(k) + 4) |beta| ||y_old||)
//        + 2 eps_d |alpha| ||s|| ||x_j|| + 16 eps_d (sizes of the checksums),
//    twice that for complex scalars; A and Y_old by chunk.
// 5. If they are not, run the kernel again, in place; it gives the same bits. If the checksums
//    agree now, the fault was in Y: one differing row counts as mended, more rows count as a
//    redone chunk.
// 6. Otherwise compare the memory of A and s with its parity and repair it word by word, compare
//    X and Y_old with their checksums and restore them up to rounding, and run the kernel again.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "blockvec/matrix_view.hpp"
#include "solvers/abft/operand.hpp"

namespace quiver {

/// A: m x k on this rank, by rows or by columns, as in kernels/mtsm.hpp. Products with A are
/// checked by its column sums, products with A^H by its row sums.
///
/// Detects faults that change a checksum of a chunk of Y by more than twice the bound: faults of
/// the arithmetic, of Y, of A since this object was made, of s, of X and Y_old after their
/// checksums were formed. An A with gaps between its lines, or not aligned to 8 bytes, has no
/// parity: a fault in it is detected but not repaired. A fault that cannot be repaired is counted
/// as failed, and the present contents of A become the reference. Chunks are not compared if A, X
/// or Y_old are not finite or have squares that overflow double. Local, like mtsm.
template <class T>
class ProtectedDense {
  public:
    using Sum = checksum_t<T>;

    /// `a` must outlive this object. `adjoint`: also supports products with A^H. Cost: a read of A
    /// for its column sums (if A is stored by columns also a copy, 64 columns at a time), twice
    /// with `adjoint`, and a read for its parity; memory for 2 k (m / 2^log_chunk) scalars of
    /// checksums.
    ProtectedDense(Context& ctx, OperationGuard& guard, MatrixView<T> a, bool adjoint = false);
    ProtectedDense(const ProtectedDense&) = delete;
    ProtectedDense& operator=(const ProtectedDense&) = delete;

    /// Y = alpha A X + beta Y; X: k x n, Y: m x n. Errors as mtsm. Cost besides the product: reads
    /// of X and s for every chunk of A's rows, a read of Y and, with beta, of Y_old; after an alarm
    /// more products and reads of A.
    void apply(Context& ctx, std::type_identity_t<T> alpha,
               std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
               BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known = {});
    /// Y = alpha A^H X + beta Y; X: m x n, Y: k x n. ShapeError unless constructed with `adjoint`.
    void apply_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                       std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
                       BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known = {});
    /// Compares A and its column sums with their parities; with `correct` repairs them. Faults that
    /// only this call finds had no effect above the bounds.
    void audit(Context& ctx);

  private:
    /// The column sums of A or of its transpose, by chunks of rows.
    struct Side {
        std::int64_t rows = 0;
        std::int64_t columns = 0;
        std::int64_t chunks = 0;
        /// chunks x columns x 2, in the layout of weights in kernels/checksum.hpp, and a copy in
        /// host memory.
        Buffer weights;
        std::vector<Sum> values;
        GuardedArray guarded;
        /// Per chunk: ||A||_F, and ||s|| for both weights.
        std::vector<double> norms;
        std::vector<double> sum_norms;
    };

    /// Y = alpha A X + beta Y or, if `adjoint`, Y = alpha A^H X + beta Y.
    struct Product {
        bool adjoint;
        T alpha;
        BlockView<const T> x;
        T beta;
        BlockView<T> y;

        const char* name() const { return adjoint ? "mtsm_adjoint" : "mtsm"; }
    };
    class CheckedProduct;

    MatrixView<T> matrix_of(bool adjoint) const { return adjoint ? a_.transposed() : a_; }
    Side make_side(Context& ctx, bool adjoint) const;
    BlockView<Sum> weights_of(const Side& side, std::int64_t chunk) const;
    void run(Context& ctx, const Product& product, const KnownSums<T>& known);
    void compute(Context& ctx, const Product& product) const;
    void strike_operands(Context& ctx, const Product& product) const;
    OperandRepair repair(Context& ctx);

    OperationGuard& guard_;
    MatrixView<T> a_;
    std::optional<GuardedArray> memory_;
    Side forward_;
    std::optional<Side> adjoint_;
};

}  // namespace quiver

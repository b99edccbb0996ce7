// SPDX-License-Identifier: BSD-3-Clause
// Rank-revealing block Gram-Schmidt with re-orthogonalisation, in any inner product.
#pragma once

#include <cstdint>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "solvers/orth/inner_product.hpp"

namespace quiver {

/// How the columns of W are orthonormalised among themselves. u is the unit round-off, kappa the
/// condition number of W after the projection; docs/solvers.md has measurements. One pass reads or
/// writes the block once.
enum class OrthMethod : std::uint8_t {
    /// Cholesky-QR, or SVQB if Cholesky-QR is unsafe, repeated until the block is orthonormal. Any
    /// kappa; reveals the rank.
    robust,
    /// Cholesky-QR once: 3 passes, 1 all-reduce. The loss of orthogonality is u kappa^2; fails for
    /// kappa above u^(-1/2).
    cholesky_qr,
    /// Cholesky-QR twice: 5 passes, 2 all-reduces. Orthonormal to machine precision for kappa up to
    /// about u^(-1/2); fails above.
    cholesky_qr2,
    /// Cholesky-QR of a shifted Gram matrix, then Cholesky-QR (shifted where that is unsafe) until
    /// the block is orthonormal: usually three times, each 2 passes and 1 all-reduce. For kappa up
    /// to 1/u.
    shifted_cholesky_qr3,
    /// SVQB, which uses eigenvectors of the Gram matrix, repeated until the block is orthonormal:
    /// each time 2 passes and 1 all-reduce. Any kappa; reveals the rank.
    svqb,
    /// Householder QR by a tree over the ranks, no all-reduce (see tsqr.hpp). Any kappa.
    tsqr,
    /// Cholesky-QR with the Gram matrix and its factor in twice the precision, then Cholesky-QR: 5
    /// passes, 2 all-reduces. For kappa up to 1/u.
    mixed_cholesky_qr,
};
/// "robust", "cholesky-qr", ...
const char* to_string(OrthMethod method);

/// How the component of W in the span of V is removed.
enum class Projection : std::uint8_t {
    /// W - V (V^H W), one all-reduce, before the first pass.
    classical_once,
    /// The same before every pass of the method, which then makes at least two passes (BCGSI+). V^H
    /// Q is then zero to machine precision, however little of W is left.
    classical_twice,
    /// W - V (V^H W), one panel of V after the other, before the first pass; one all-reduce per
    /// panel. The columns of a basis that is built block by block in this way lose orthogonality
    /// like u kappa, with classical_once like u kappa^2 (Carson, Lund, Rozloznik, Thomas, Linear
    /// Algebra Appl. 638 (2022) 150).
    modified,
};
const char* to_string(Projection projection);

struct OrthOptions {
    /// Replaces missing directions of W by random ones, so that Q keeps W's width unless the space
    /// has too few dimensions.
    bool replace_deficient = true;
    /// Seed of the random replacements; the same on all ranks.
    std::uint64_t seed = 1;
    /// With B: the memory for B W already holds that product.
    bool product_given = false;
    OrthMethod method = OrthMethod::robust;
    Projection projection = Projection::classical_twice;
    /// Columns of V in a panel of modified Gram-Schmidt.
    int panel = 16;
};

/// The result of orthonormalising W against V: W_in = V h + Q r, with Q in the first `columns`
/// columns of W.
template <class T>
struct OrthResult {
    SmallMatrix<T> h;  // V.cols x W.cols
    SmallMatrix<T> r;  // columns x W.cols; zero rows belong to random replacements
    /// Columns of Q: W.cols, or fewer if missing directions were not (or could not be) replaced.
    int columns = 0;
    /// Number of columns of Q that, together with V, span the columns of W_in: the numerical rank
    /// of (I - V V^H) W_in.
    int rank = 0;
    /// Sweeps over the block, usually 2; each makes two all-reduces (one if V has no columns). Of
    /// several panels the most that one took.
    int passes = 0;
    /// True if SVQB was used, by `robust` because Cholesky-QR was unsafe.
    bool used_svqb = false;
    /// The column of W at which a method that does not reveal the rank has failed, else -1: the
    /// column depends numerically on the columns before it, or is far from orthonormal to them
    /// after the last pass. After a failure there is no Q (columns = 0), and the contents of W are
    /// lost.
    int breakdown = -1;
};

/// W <- Q with Q^H Q = I and V^H Q = 0 to a small multiple of the unit round-off, whatever the
/// condition of W; methods other than `robust` have limits (see OrthMethod).
///
/// V: rows x p, orthonormal; W: rows x w. Both are distributed like `map` and in the Context's
/// place; they do not overlap (columns of one block are allowed). Each pass projects (classical
/// Gram-Schmidt) and orthonormalises within the block by Cholesky-QR or, if the Gram matrix is too
/// ill-conditioned, by SVQB with clamped eigenvalues. Passes repeat until a pass finds the block
/// already orthonormal to a tenth ("twice is enough"). `robust` with classical_twice takes more
/// than 256 columns in panels of 256, each against V and the panels before it. A direction is
/// missing if the projections leave only rounding noise, c eps ||w_j||, of it. Columns whose
/// squares underflow are scaled by a power of two first, which costs two passes over W.
///
/// Throws NumericalError naming the columns if W holds NaN or infinity, ShapeError if TSQR would
/// make more columns than there are rows. Cost of the usual two passes: 4 reads of V, 2 x (1 + 2 +
/// 2) passes over W, 8 rows (p w + w w) flops, 4 all-reduces; the same for each panel, where the
/// panels before it count as V. Sources: Stewart, SIAM J. Sci. Comput. 31 (2008) 761 (block
/// Gram-Schmidt); Stathopoulos and Wu, SIAM J. Sci. Comput. 23 (2002) 2165 (SVQB).
template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, BlockView<const T> v,
                                 BlockView<T> w, const OrthOptions& options = {});

/// The same in the inner product <x, y> = x^H B y: W <- Q with Q^H B Q = I and V^H B Q = 0 to a
/// small multiple of cond(B) times the unit round-off, and BW <- B Q.
///
/// BV: B V, or no columns if the caller does not store it; every pass then multiplies by B again.
/// BW: memory of W's shape that does not overlap W, or no columns if the caller does not need B Q.
/// With options.product_given BW already holds B W. Without B (a default InnerProduct) BV and BW
/// are ignored, and the function equals the one above.
///
/// A direction is missing if its length in the B-norm is c eps sqrt(||B||) ||w_j||_2. BW takes the
/// same updates as W; after a cancellation of more than a digit it is replaced by a fresh product.
/// Throws NumericalError on all ranks also if B is found not to be Hermitian positive definite or
/// its product not finite; if B throws on one rank, that rank throws B's exception. Cost of the
/// usual two passes with BV: 4 reads of V and 2 of BV, twice the updates of W, one product with B
/// (none if given and W is well conditioned; one more if W is not), 5 all-reduces.
template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, const InnerProduct<T>& inner,
                                 std::type_identity_t<BlockView<const T>> v,
                                 std::type_identity_t<BlockView<const T>> bv, BlockView<T> w,
                                 std::type_identity_t<BlockView<T>> bw,
                                 const OrthOptions& options = {});

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Block Gram-Schmidt with re-orthogonalisation, rank-revealing.
#pragma once

#include <cstdint>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

struct OrthOptions {
    /// Replace directions that W does not have by random ones, so that Q keeps W's width wherever
    /// the space has room.
    bool replace_deficient = true;
    /// Seed of the random replacements; the same on all ranks.
    std::uint64_t seed = 1;
};

/// What orthonormalising W against V gave: W_in = V h + Q r, with Q in the first `columns` columns
/// of W.
template <class T>
struct OrthResult {
    SmallMatrix<T> h;  // V.cols x W.cols
    SmallMatrix<T> r;  // columns x W.cols; zero rows belong to random replacements
    /// Columns of Q: W.cols, or less where directions were missing and not (or could not be)
    /// replaced.
    int columns = 0;
    /// Columns of Q that span (with V) what W_in had: the numerical rank of (I - V V^H) W_in.
    int rank = 0;
    /// Sweeps over the block, two all-reduces each (one when V has no columns); 2 as a rule.
    int passes = 0;
    /// A Cholesky factorisation was refused, SVQB stepped in.
    bool used_svqb = false;
};

/// W <- Q with Q^H Q = I and V^H Q = 0 to a small multiple of the unit round-off, whatever the
/// condition of W.
///
/// V: rows x p, orthonormal, W: rows x w, both distributed as `map` says and in the Context's
/// place; they do not overlap (columns of one block may). Each pass projects (classical
/// Gram-Schmidt) and orthonormalises within the block by Cholesky-QR or, where the Gram matrix is
/// too ill-conditioned for that, by SVQB with clamped eigenvalues; passes repeat until one finds
/// the block orthonormal already to a tenth ("twice is enough"). A direction is missing when what
/// projections left of it is rounding noise, c eps ||w_j||.
///
/// Throws NumericalError naming the columns when W holds NaN or infinity. Cost of the usual two
/// passes: 4 reads of V, 2 x (1 + 2 + 2) passes over W, 8 rows (p w + w w) flops, 4
/// all-reduces. Sources: Stewart, SIAM J. Sci. Comput. 31 (2008) 761 (block Gram-Schmidt);
/// Stathopoulos and Wu, SIAM J. Sci. Comput. 23 (2002) 2165 (SVQB).
template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, BlockView<const T> v,
                                 BlockView<T> w, const OrthOptions& options = {});

}  // namespace quiver

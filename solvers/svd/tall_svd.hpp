// SPDX-License-Identifier: BSD-3-Clause
// The singular value decomposition of a tall & skinny block.
#pragma once

#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

struct TallSvdOptions {
    /// The number of wanted singular values, the largest first; 0: all.
    int k = 0;
    /// Whether the left vectors are wanted.
    bool left = true;
    /// True: without left vectors, singular values and right vectors come from the Gram matrix
    /// alone, in one pass over X and without memory for a block, whatever their errors are.
    bool one_pass = false;
};

/// The k largest singular triplets of X, the same on all ranks except `left`.
template <class T>
struct TallSvd {
    /// Descending.
    std::vector<double> values;
    /// For each value a bound of its rounding error; docs/svd.md has its derivation.
    std::vector<double> errors;
    /// columns x k: the right vectors. The element of largest modulus of each one is positive.
    SmallMatrix<T> right;
    /// rows x k: the left vectors; empty unless they were wanted. Those of singular values that are
    /// 0 to rounding are any orthonormal vectors.
    BlockVector<T> left;
    /// The number of singular values of X, all of them, that are larger than max(rows, columns) eps
    /// times the largest; with one_pass, larger than their error.
    int rank = 0;
    /// True if the values come from the Gram matrix alone.
    bool from_gram = false;
    double seconds = 0;
};

/// X = U diag(s) V^H with orthonormal U and V.
///
/// X: rows x columns, this rank's rows of a global block that `map` distributes, in the Context's
/// place, with at least as many rows as columns over all ranks. The Gram matrix X^H X = V L V^H
/// (summed in double for s and c) gives first vectors V and values l. Without left vectors these
/// are the result if their errors, eps l_1^2 / l_j, are as small as those of the second step; that
/// is always so for s and c. Otherwise the columns of X V diag(1 / max(l, sqrt(c eps) l_1)) with
/// c = 8 + 4 sqrt(columns), which are almost orthonormal unless X is ill-conditioned, are
/// orthonormalised (see block_gram_schmidt), and the decomposition of the small factor corrects
/// values and vectors: all values then have errors of c eps s_1, as from Householder QR. A block
/// whose squares overflow or underflow is scaled by a power of two.
///
/// Throws on all ranks: InputError for k out of range, fewer rows than columns, NaN or infinity in
/// X (naming the column), options that differ between ranks; ShapeError if block and map disagree;
/// MemoryError. Cost: one pass over X; for the second step one more pass and usually 6 passes over
/// a block of the same size; 8 rows columns^2 flops (32 for complex), O(columns^3) on every rank,
/// 3 to 5 all-reduces.
/// Source: Stathopoulos, Wu, SIAM J. Sci. Comput. 23 (2002) 2165 (eigenvectors of the Gram matrix).
template <class T>
TallSvd<T> tall_svd(Context& ctx, const RowMap& map, BlockView<const T> x,
                    const TallSvdOptions& options = {});

}  // namespace quiver

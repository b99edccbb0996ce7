// SPDX-License-Identifier: BSD-3-Clause
// block_gram_schmidt() with a check of its result by checksums.
#pragma once

#include "solvers/abft/operation_guard.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {

/// W <- Q with X = V h + Q r, the result of block_gram_schmidt() on a copy of X. W has the shape of
/// X; none of the blocks overlap. Two conditions are checked after the last pass, for any method:
///    w^H X = (w^H V) h + (w^H Q) r
/// on each rank (BasisChecksums::relation_holds) with checksums of V and X from before the call,
/// and ||I - Q^H Q||_F + ||V^H Q||_F <= 16 eps (columns of V and Q + 4) over all ranks. These
/// checks detect faults in arithmetic, in small matrices, and in X, V and Q in memory until the
/// check. With guard.options.updates, every block product and block update is checked as well.
///
/// If a check fails, or the method breaks down or throws NumericalError, X and V are compared with
/// their checksums and, with `correct`, repaired to the same bits. Then the result is computed
/// again from X, up to three times (recovery.hpp). If the repetition gives the same bits, no fault
/// is reported: dependent columns, and methods that lose orthogonality, violate the checks without
/// a fault. With `detect` a fault is only counted. W must not be used if `failed` of the counts is
/// not 0, nor, with `detect`, if `faults` is not 0.
///
/// Collective; rank 0 counts the faults that all ranks find together. Throws as
/// block_gram_schmidt(). Cost: a read of X, V and Q, the products Q^H Q and V^H Q, and three
/// all-reduces; after an alarm the orthonormalisation once or more. With AbftMode::off nothing is
/// checked.
template <class T>
OrthResult<T> protected_gram_schmidt(Context& ctx, OperationGuard& guard, const RowMap& map,
                                     BlockView<const T> v, BlockView<const T> x, BlockView<T> w,
                                     const OrthOptions& options = {});

}  // namespace quiver

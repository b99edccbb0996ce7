// SPDX-License-Identifier: BSD-3-Clause
// Updates of blocks that are checked, and mended, as they are made: tsmm and axpby.
//
// The walk of one call of Y = alpha X C + beta Y (axpby is the same with diagonal C):
//  1. The sums of X and, unless beta is 0, of Y are those that the caller knows, or are formed.
//  2. With `correct`, what the kernel will overwrite and may have to read again is copied: Y unless
//     beta is 0, X where it is Y.
//  3. The kernel of kernels/, with the arguments as they came.
//  4. The sums of Y are formed. In every chunk of 2^log_chunk rows, every column j and for both
//     weights w of kernels/checksum.hpp
//         w^H Y = alpha (w^H X) C + beta w^H Y_old
//     must hold to
//         4 eps (sqrt(terms) + 4) sum_l |c_lj| ||x_l|| + 16 eps_d (the sums' own sizes),
//     twice that for complex scalars, over the terms of X and of Y_old, norms over the chunk: eight
//     standard deviations of a sum of independent errors were all as large as they can be.
//  5. Where that fails the kernel runs again, in place, on the same operands: same shapes, strides
//     and order of operations, so the same bits as without the fault. If the sums agree now, the
//     two results are compared: one row that differs is a mended row, more are a redone chunk.
//  6. If they still differ the operands are compared with their sums. What has changed is restored
//     from them, to rounding, and the kernel runs once more. Sound operands and the same sums twice
//     are rounding: errors are not independent where all rows are equal.
#pragma once

#include <span>
#include <type_traits>

#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// tsmm of kernels/tsmm.hpp, Y = alpha X C + beta Y, checked by the walk above; aliasing and errors
/// as there. `known`: of X and Y.
///
/// Found is what changes a sum of a chunk of Y by more than twice the bound: faults of the
/// arithmetic, of Y, and of X and Y_old after their sums were known. Not seen: C as it is read (in
/// host memory by both sides), and chunks whose operands are not finite, or have squares beyond
/// double: they are left as the kernel makes them, and the call is not counted as checked.
/// `detect` changes nothing; without Y_old or X (beta not 0, in place) it has no second look, and
/// counts what may be rounding as a fault.
/// Local. Cost: reads of X and Y_old where their sums are not known, of Y, of its own copies; on
/// the host m n multiply-adds a chunk.
template <class T>
void protected_tsmm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                    std::type_identity_t<BlockView<const T>> x,
                    std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
                    BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known = {});

/// The same for Y = alpha X C + beta Y D, w^H Y = alpha (w^H X) C + beta (w^H Y_old) D.
template <class T>
void protected_tsmm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                    std::type_identity_t<BlockView<const T>> x,
                    std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
                    BlockView<T> y, std::type_identity_t<BlockView<const T>> d,
                    const std::type_identity_t<KnownSums<T>>& known = {});

/// axpby of kernels/column_ops.hpp, Y = alpha X + beta Y; otherwise as protected_tsmm.
template <class T>
void protected_axpby(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                     std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
                     BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known = {});

/// Y(:, j) = alpha[j] X(:, j) + beta[j] Y(:, j).
template <class T>
void protected_axpby(Context& ctx, OperationGuard& guard,
                     std::type_identity_t<std::span<const T>> alpha,
                     std::type_identity_t<BlockView<const T>> x,
                     std::type_identity_t<std::span<const T>> beta, BlockView<T> y,
                     const std::type_identity_t<KnownSums<T>>& known = {});

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Block updates with checks and repair: tsmm and axpby.
//
// Steps of one call of Y = alpha X C + beta Y (axpby is the same with diagonal C):
// 1. The checksums of X and, unless beta is 0, of Y are known to the caller or formed.
// 2. With `correct`, copy what the kernel will overwrite and may have to read again: Y unless beta
//    is 0, X if it is Y.
// 3. Call the kernel of kernels/ with the same arguments.
// 4. Form the checksums of Y. In every chunk of 2^log_chunk rows, every column j and for both
//    weights w of kernels/checksum.hpp
//        w^H Y = alpha (w^H X) C + beta w^H Y_old
//    must hold up to
//        4 eps (sqrt(terms) + 4) sum_l |c_lj| ||x_l|| + 16 eps_d (sizes of the checksums),
//    twice that for complex scalars, over the terms of X and of Y_old, norms over the chunk: eight
//    standard deviations of a sum of independent rounding errors of maximal size.
// 5. If it does not, run the kernel again, in place, on the same operands: same shapes, strides
//    and order of operations, so the same bits as without the fault. If the checksums agree now,
//    compare the two results: one differing row counts as mended, more count as a redone chunk.
// 6. If they still differ, compare the operands with their checksums, restore changed elements up
//    to rounding, and run the kernel again. If the operands are sound and the checksums are the
//    same twice, the alarm was rounding: rounding errors are not independent if, for example, all
//    rows are equal.
#pragma once

#include <span>
#include <type_traits>

#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// tsmm of kernels/tsmm.hpp, Y = alpha X C + beta Y, with the checks above; aliasing and errors as
/// there. `known`: checksums of X and Y.
///
/// Detects faults that change a checksum of a chunk of Y by more than twice the bound: faults of
/// the arithmetic, of Y, and of X and Y_old after their checksums were formed. Not detected: faults
/// of C (in host memory; both sides of the check read it), and faults in chunks whose operands are
/// not finite or have squares that overflow double: these keep the kernel's result, and the call
/// does not count as checked. `detect` changes nothing; if the kernel overwrites an operand (beta
/// not 0, or in place), `detect` cannot repeat it and counts a possible rounding effect as a fault.
/// Local. Cost: reads of X and Y_old if their checksums are unknown, a read of Y, and its copies;
/// on the host m n multiply-adds per chunk.
template <class T>
void protected_tsmm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                    std::type_identity_t<BlockView<const T>> x,
                    std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
                    BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known = {});

/// The same for Y = alpha X C + beta Y D; the check is w^H Y = alpha (w^H X) C + beta (w^H Y_old)
/// D.
template <class T>
void protected_tsmm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                    std::type_identity_t<BlockView<const T>> x,
                    std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
                    BlockView<T> y, std::type_identity_t<BlockView<const T>> d,
                    const std::type_identity_t<KnownSums<T>>& known = {});

/// The same for axpby of kernels/column_ops.hpp, Y = alpha X + beta Y.
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

// SPDX-License-Identifier: BSD-3-Clause
// Batched factorisations with checks and repair.
//
// Steps of one call:
// 1. Copy A twice, and take its parity (kernels/checksum.hpp).
// 2. Factor A and the second copy by the kernel of kernels/batched.hpp.
// 3. Compare the parities of both factors, pivots and statuses: any difference is a fault.
// 4. If they differ, compare the first copy with the parity of A, repair it word by word, and
//    factor it as well. The result on which two of three runs agree is right: factors, pivots
//    and statuses are set to it, bit for bit.
// A row sum check, L (L^H e) against A e, would be cheaper for large orders. It would need batched
// products, which do not exist here, and thresholds that grow with the pivots. Comparing bits needs
// no thresholds: a matrix that is singular, not finite or not positive definite gets the same
// status twice and raises no alarm.
#pragma once

#include <span>
#include <type_traits>

#include "kernels/batched.hpp"
#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// lu_factor of kernels/batched.hpp with checks. The batch must lie in one piece of memory:
/// ShapeError for a batch by pointers; other errors as there. Arrays that do not start at a
/// multiple of 8 bytes are not checked. The memory between the matrices is read, and rewritten with
/// its own contents.
///
/// Detects every fault of the arithmetic, of the factors, pivots and statuses until the call
/// returns, and of A after its copies were made, in any bit. Does not detect faults in A before the
/// call or in the factors after it. `detect` keeps the first factors.
/// Cost: twice the factorisation, two copies of the batch and three parities; scratch of twice the
/// batch.
template <class T>
void protected_lu_factor(Context& ctx, OperationGuard& guard, MatrixBatch<T> a,
                         std::span<int> pivots, std::span<int> status);

/// The same for cholesky_factor.
template <class T>
void protected_cholesky_factor(Context& ctx, OperationGuard& guard, MatrixBatch<T> a,
                               std::span<int> status);

}  // namespace quiver

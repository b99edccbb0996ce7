// SPDX-License-Identifier: BSD-3-Clause
// Batched factorisations that are checked, and mended, as they are made.
//
// The walk of one call:
//  1. A is copied twice, and its parity taken (kernels/checksum.hpp).
//  2. A and the second copy are factored by the kernel of kernels/batched.hpp.
//  3. The parities of both factors, pivots and statuses are compared: same bits, or a fault.
//  4. Where they differ the first copy is compared with the parity of A, mended word by word, and
//     factored as well. What two of three agree on is right: factors, pivots and statuses become
//     that, bit for bit.
// A sum of a row, L (L^H e) against A e, would be cheaper for large orders; it would need products
// of batches that there are none of, and thresholds that grow with the pivots. Bits have none: a
// matrix that is not positive definite, singular or not finite has the same status twice and is no
// alarm.
#pragma once

#include <span>
#include <type_traits>

#include "kernels/batched.hpp"
#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// lu_factor of kernels/batched.hpp. The batch lies in one piece of memory: ShapeError for one by
/// pointers; otherwise errors as there. Arrays that do not start at a multiple of 8 bytes are not
/// checked. The memory between the
/// matrices is read, and written with what it holds.
///
/// Found is every fault of the arithmetic, of the factors, pivots and statuses until the call
/// returns, and of A after its copies were made, in any bit. Not seen: A before the call, factors
/// after it. `detect` leaves the first factors.
/// Cost: twice the factorisation, two copies of the batch and three parities; scratch of twice the
/// batch.
template <class T>
void protected_lu_factor(Context& ctx, OperationGuard& guard, MatrixBatch<T> a,
                         std::span<int> pivots, std::span<int> status);

/// cholesky_factor; otherwise as protected_lu_factor.
template <class T>
void protected_cholesky_factor(Context& ctx, OperationGuard& guard, MatrixBatch<T> a,
                               std::span<int> status);

}  // namespace quiver

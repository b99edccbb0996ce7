// SPDX-License-Identifier: BSD-3-Clause
// The inverses of the diagonal blocks of a sparse matrix.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// If a rank has at least this many rows, its device factorises and inverts the blocks. The device
/// saves 8 to 9 ns per element of blocks of 8 or more rows; its kernels for one block size are
/// compiled once on a machine, in 0.5 to 7 s.
inline constexpr std::int64_t least_rows_on_device = std::int64_t{1} << 19;

/// M = the inverses of the diagonal blocks of `size` rows, 1 to 64, of each rank, as a
/// SparseMatrix. On a device the blocks are taken from the matrix and stored again there. If a rank
/// has at least `least` rows, its device also factorises and inverts the blocks, otherwise its
/// host. The two ways differ in rounding.
///
/// Collective. Throws InputError, on all ranks, for a singular block; its message names the rows.
/// Cost: 8/3 size^2 flops per row (4 times that for complex). Memory: 3 rows x size elements.
template <class T>
std::unique_ptr<Operator<T>> block_jacobi(Context& ctx, SparseMatrix<T>& a, int size,
                                          std::int64_t least = least_rows_on_device);

}  // namespace quiver

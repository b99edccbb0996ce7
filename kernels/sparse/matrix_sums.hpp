// SPDX-License-Identifier: BSD-3-Clause
// MatrixSums: the column checksums that verify the products of a sparse matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/checksum.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// A^H w for one rank's rows and the weights w of kernels/checksum.hpp. These sums verify a product
/// by w^H (A X) = (A^H w)^H X, where X contains the rank's own rows and those it receives.
template <class T>
struct MatrixSums {
    /// (A^H w_k)(j) at 2 j + k: plain weights for k = 0, mixed weights for k = 1; columns j in the
    /// numbering of the stored matrix.
    std::vector<checksum_t<T>> sums;
    /// 2-norms over j of the rounding errors of `sums`.
    double lost[2] = {0, 0};
    /// The largest sums of |a| over a row and over a column of this rank's rows.
    double row_norm = 0;
    double column_norm = 0;
    std::int64_t longest_row = 0;
};

/// No communication. Cost: one pass over the entries on one thread; entries on a device are copied
/// first.
template <class T>
MatrixSums<T> matrix_sums(Context& ctx, const SparseMatrix<T>& a, int log_chunk);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The storage of a matrix on a device, made there from compressed rows. Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <optional>

#include "blockvec/context.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/sparse/matrix_storage.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// The storage of all `rows` rows of a matrix of one rank with `columns` columns, from arrays in
/// either place; arrays of the host are copied to the device first. Returns no value if the arrays
/// are invalid, have no entries, or have unsorted columns or duplicates, or if a copy of host
/// arrays does not fit the device memory. `sorted`: the caller knows that the columns are in range
/// and ascend in each row.
template <class T, class Index>
std::optional<MatrixStorage> store_on_device(Context& ctx, const CsrArrays<T, Index>& csr,
                                             std::int64_t rows, std::int64_t columns,
                                             const SparseFormat& wish, bool sorted = false);

/// The entries of `rows` rows in the blocks of `size` rows on the diagonal, row by row; the other
/// elements of the blocks stay.
template <class T>
void blocks_on_device(Context& ctx, const MatrixStorage& storage, std::int64_t rows, int size,
                      T* blocks);
/// The storage of a matrix of `rows` > 0 rows with nothing but such blocks. The last block has only
/// the elements of its rows, but these are `size` elements apart; its rows then move together.
template <class T>
MatrixStorage store_blocks_on_device(Context& ctx, std::int64_t rows, int size, T* blocks);

/// See MatrixStorage::replace_values().
template <class T>
void replace_on_device(Context& ctx, const MatrixStorage& storage, std::int64_t rows,
                       std::int64_t nonzeros, const T* new_value);

}  // namespace quiver

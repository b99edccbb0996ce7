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

/// See MatrixStorage::replace_values().
template <class T>
void replace_on_device(Context& ctx, const MatrixStorage& storage, std::int64_t rows,
                       std::int64_t nonzeros, const T* new_value);

}  // namespace quiver

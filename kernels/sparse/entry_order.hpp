// SPDX-License-Identifier: BSD-3-Clause
// The order of a caller's entries within the rows of a matrix. Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quiver {

/// The order of the entries of a caller's compressed rows after the columns of each row were
/// sorted and duplicates summed.
struct EntryOrder {
    /// The caller's number of each entry, row by row with ascending columns; its complement (~) if
    /// the entry is added to the one before. Empty if the caller's order is that of the rows.
    std::vector<std::int64_t> source;

    /// The order for valid rows; row_start has one entry more than there are rows and may begin
    /// with any number. Cost: one pass over the columns; if any row is not sorted, a sort of every
    /// row and 8 bytes per entry.
    template <class Index>
    static EntryOrder of(std::span<const Index> row_start, std::span<const Index> column,
                         int threads);
    /// The values of the rows' entries, for one value per entry of the caller. Duplicates are
    /// summed in ascending order, as rows_from_csr does. `source` must not be empty.
    template <class T>
    std::vector<T> apply(std::span<const T> value) const;
};

}  // namespace quiver

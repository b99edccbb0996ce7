// SPDX-License-Identifier: BSD-3-Clause
// The arrays of a matrix in the Context's place. Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/operations/spmmv.hpp"
#include "kernels/sparse/sparse_layout.hpp"

namespace quiver {

/// The storage of one rank's rows; see SpmmvArgs for the order of the entries.
struct MatrixStorage {
    std::int64_t stored = 0;          // matrix_entries, plus the entries that add pieces of rows
    std::int64_t matrix_entries = 0;  // nonzeros and padding
    bool wide = false;                // 64-bit indices
    SparseFormat format;
    // See SparseLayout.
    std::vector<SparseLayout::Part> part;
    SparseLayout::Apart apart;
    SparseLayout::Counts count;
    Buffer list;  // see SparseLayout::list()
    Buffer start;
    Buffer full;  // on the host only
    Buffer column;
    Buffer value;

    /// Sets everything but the entries, from a layout. `indices`: an upper bound of the numbers of
    /// rows and columns, with rows of other ranks or pieces of long rows.
    void arrange(Context& ctx, const SparseLayout& layout, std::int64_t indices);
    /// The rows of a part's slots.
    SpmmvRowList list_of(const SparseLayout::Part& p) const;
    /// Stores `new_value`: `nonzeros` values in the Context's place, row by row. `rows` and
    /// `nonzeros` are those of this rank. Throws NumericalError if the columns have another number
    /// of entries, which means a fault in memory. Cost: one pass over the columns and values.
    /// Memory: 8 bytes per row.
    template <class T>
    void replace_values(Context& ctx, std::int64_t rows, std::int64_t nonzeros,
                        const T* new_value) const;
};

/// Throws InputError if a value is not finite. `place`: where the values are.
template <class T>
void require_finite(Context& ctx, std::span<const T> value, Place place);

}  // namespace quiver

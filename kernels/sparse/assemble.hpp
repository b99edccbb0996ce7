// SPDX-License-Identifier: BSD-3-Clause
// Functions that build the rows of a SparseMatrix from a row callback, a caller's CSR arrays, or
// scattered entries.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// The distribution of rows over the ranks: as even as possible, or in proportion to `weights`, one
/// per rank and the same on all ranks (see RowMap).
struct Partition {
    enum Kind : std::uint8_t { by_rows, by_nonzeros };
    Kind kind;
    std::span<const double> weights;

    Partition(Kind kind_, std::span<const double> weights_ = {}) : kind(kind_), weights(weights_) {}
};

/// One row, filled by a callback: add() in any order; duplicates are summed.
template <class T>
struct RowEntries {
    std::vector<std::int64_t> column;
    std::vector<T> value;
    void add(std::int64_t col, T val) {
        column.push_back(col);
        value.push_back(val);
    }
};

/// Builds the rows by calling `make_row(row, entries)` with empty `entries` for every row of this
/// rank: once, or twice for a partition by nonzeros; from several threads at once if `threads` > 1.
/// global_cols: none for a square matrix. Collective; throws InputError for a column out of range,
/// on all ranks.
template <class T>
CsrRows<T> rows_from_callback(
    const Comm& comm, std::int64_t global_rows, Symmetry symmetry,
    const std::function<void(std::int64_t row, RowEntries<T>& entries)>& make_row,
    Partition partition = Partition::by_rows, int threads = 1,
    std::optional<std::int64_t> global_cols = std::nullopt);

/// Copies a caller's CSR arrays for this rank's rows, with `threads` threads: row_start has
/// map.local_rows() + 1 entries and may begin with any number. Columns are global and in any order;
/// duplicates are summed. column_map: see CsrRows; none: the matrix is square. Collective.
template <class T, class Index>
CsrRows<T> rows_from_csr(const Comm& comm, const RowMap& map, Symmetry symmetry,
                         std::span<const Index> row_start, std::span<const Index> column,
                         std::span<const T> value, int threads = 1,
                         const std::optional<RowMap>& column_map = std::nullopt);

template <class T>
struct Entry {
    std::int64_t row;
    std::int64_t column;
    T value;
};

/// Builds the rows from entries (row, column, value) that any rank holds, in any order: sends each
/// entry to the rank that owns its row, sorts, and sums duplicates. A by_nonzeros partition first
/// counts the entries of each row. Collective.
template <class T>
CsrRows<T> rows_from_entries(const Comm& comm, std::int64_t global_rows, std::int64_t global_cols,
                             Symmetry symmetry, std::vector<Entry<T>> entries,
                             Partition partition = Partition::by_nonzeros);
/// The same with given distributions of the rows and of the columns.
template <class T>
CsrRows<T> rows_from_entries(const Comm& comm, const RowMap& map, const RowMap& column_map,
                             Symmetry symmetry, std::vector<Entry<T>> entries);

}  // namespace quiver

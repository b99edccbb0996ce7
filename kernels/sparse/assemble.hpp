// SPDX-License-Identifier: BSD-3-Clause
// Ways to make the rows of a SparseMatrix: a row callback, a user's CSR arrays, scattered entries.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// How rows are dealt to ranks: as equal as can be, or in proportion to `weights`, one a rank, the
/// same on all ranks (see RowMap).
struct Partition {
    enum Kind : std::uint8_t { by_rows, by_nonzeros };
    Kind kind;
    std::span<const double> weights;

    Partition(Kind kind_, std::span<const double> weights_ = {}) : kind(kind_), weights(weights_) {}
};

/// One row as a callback makes it: push_back in any order; duplicates are summed.
template <class T>
struct RowEntries {
    std::vector<std::int64_t> column;
    std::vector<T> value;
    void add(std::int64_t col, T val) {
        column.push_back(col);
        value.push_back(val);
    }
};

/// `make_row(row, entries)` is called once for every row of this rank (twice when partitioned by
/// nonzeros), from several threads at once when `threads` > 1; `entries` comes empty. Collective;
/// throws InputError for a column out of range, on all ranks.
template <class T>
CsrRows<T> rows_from_callback(
    const Comm& comm, std::int64_t global_rows, Symmetry symmetry,
    const std::function<void(std::int64_t row, RowEntries<T>& entries)>& make_row,
    Partition partition = Partition::by_rows, int threads = 1);

/// A user's CSR arrays for this rank's rows: row_start has map.local_rows() + 1 entries (its first
/// may be any base), columns are global, in any order, duplicates summed. Copies. Collective.
template <class T, class Index>
CsrRows<T> rows_from_csr(const Comm& comm, const RowMap& map, Symmetry symmetry,
                         std::span<const Index> row_start, std::span<const Index> column,
                         std::span<const T> value);

/// Entries (row, column, value) that lie on any rank in any order: sends each to the rank that has
/// its row, sorts, sums duplicates. Two counts of rows decide a by_nonzeros partition. Collective.
template <class T>
struct Entry {
    std::int64_t row;
    std::int64_t column;
    T value;
};
template <class T>
CsrRows<T> rows_from_entries(const Comm& comm, std::int64_t global_rows, std::int64_t global_cols,
                             Symmetry symmetry, std::vector<Entry<T>> entries,
                             Partition partition = Partition::by_nonzeros);

}  // namespace quiver

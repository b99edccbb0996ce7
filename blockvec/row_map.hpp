// SPDX-License-Identifier: BSD-3-Clause
// RowMap: which rows of a global vector each rank has. Contiguous, in rank order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blockvec/comm.hpp"

namespace quiver {

/// Rank r has rows offsets[r] .. offsets[r + 1] - 1; a rank may have none. Cheap to copy.
class RowMap {
  public:
    /// No rows, one rank.
    RowMap() : RowMap(0, {0, 0}) {}
    /// `offsets` has one entry more than there are ranks, starts with 0 and never falls.
    RowMap(int rank, std::vector<std::int64_t> offsets);

    /// As equal as can be, or in proportion to `weights` (one per rank, the same on all ranks,
    /// none negative, not all zero). No communication.
    static RowMap by_rows(const Comm& comm, std::int64_t global_rows,
                          std::span<const double> weights = {});
    /// Each rank says how many rows it has. One all-gather.
    static RowMap by_local_rows(const Comm& comm, std::int64_t local_rows);
    /// Balances nonzeros (plus one for each row, the cost of the vectors) in proportion to
    /// `weights`: `row_nonzeros` holds the counts of the rows that this rank has in `initial`.
    /// Two all-gathers. Cost: one pass over the counts.
    static RowMap by_nonzeros(const Comm& comm, const RowMap& initial,
                              std::span<const std::int64_t> row_nonzeros,
                              std::span<const double> weights = {});

    int rank() const { return rank_; }
    int ranks() const { return static_cast<int>(offsets_->size()) - 1; }
    std::int64_t global_rows() const { return offsets_->back(); }
    std::int64_t first_row() const { return first_row(rank_); }
    std::int64_t local_rows() const { return local_rows(rank_); }
    std::int64_t first_row(int rank) const { return (*offsets_)[static_cast<std::size_t>(rank)]; }
    std::int64_t local_rows(int rank) const { return first_row(rank + 1) - first_row(rank); }
    /// The rank that has a row, 0 <= row < global_rows(). O(log ranks).
    int owner(std::int64_t row) const;
    const std::vector<std::int64_t>& offsets() const { return *offsets_; }
    bool operator==(const RowMap& other) const {
        return rank_ == other.rank_ && *offsets_ == *other.offsets_;
    }

  private:
    int rank_ = 0;
    std::shared_ptr<const std::vector<std::int64_t>> offsets_;
};

}  // namespace quiver

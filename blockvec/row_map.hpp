// SPDX-License-Identifier: BSD-3-Clause
// RowMap: the distribution of the rows of a global vector over the ranks, contiguous in rank order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blockvec/comm.hpp"

namespace quiver {

/// Rank r owns rows offsets[r] .. offsets[r + 1] - 1; a rank may own no rows. Cheap to copy.
class RowMap {
  public:
    /// An empty map of one rank.
    RowMap() : RowMap(0, {0, 0}) {}
    /// `offsets` has one entry per rank plus one, starts with 0 and is nondecreasing. Throws
    /// InputError otherwise.
    RowMap(int rank, std::vector<std::int64_t> offsets);
    /// A move is a copy, so that a RowMap that was moved from stays valid.
    RowMap(const RowMap&) = default;
    RowMap& operator=(const RowMap&) = default;
    ~RowMap() = default;

    /// Distributes the rows as evenly as possible, or in proportion to `weights`: one weight per
    /// rank, the same on all ranks, nonnegative, not all zero. No communication. Throws InputError.
    static RowMap by_rows(const Comm& comm, std::int64_t global_rows,
                          std::span<const double> weights = {});
    /// Distributes `global_rows` rows as evenly as possible over the ranks of this map. No
    /// communication. Throws InputError.
    RowMap evenly(std::int64_t global_rows) const;
    /// The offsets of by_rows() for any number of ranks.
    static std::vector<std::int64_t> even_offsets(int ranks, std::int64_t global_rows,
                                                  std::span<const double> weights = {});
    /// Every rank passes its own number of rows. One all-gather. Throws InputError for a negative
    /// number.
    static RowMap by_local_rows(const Comm& comm, std::int64_t local_rows);
    /// Balances nonzeros (plus one per row, for the cost of the vectors) in proportion to
    /// `weights`. `row_nonzeros` holds the counts of the rows that this rank owns in `initial`. One
    /// all-gather and one all-reduce. Cost: one pass over the counts. Throws ShapeError,
    /// InputError.
    static RowMap by_nonzeros(const Comm& comm, const RowMap& initial,
                              std::span<const std::int64_t> row_nonzeros,
                              std::span<const double> weights = {});
    /// The offsets of by_nonzeros() for any number of ranks, from the counts of all rows.
    static std::vector<std::int64_t> balanced_offsets(int ranks,
                                                      std::span<const std::int64_t> row_nonzeros,
                                                      std::span<const double> weights = {});

    int rank() const { return rank_; }
    int ranks() const { return static_cast<int>(offsets_->size()) - 1; }
    std::int64_t global_rows() const { return offsets_->back(); }
    std::int64_t first_row() const { return first_row(rank_); }
    std::int64_t local_rows() const { return local_rows(rank_); }
    std::int64_t first_row(int rank) const { return (*offsets_)[static_cast<std::size_t>(rank)]; }
    std::int64_t local_rows(int rank) const { return first_row(rank + 1) - first_row(rank); }
    /// The rank that owns a row, 0 <= row < global_rows(). O(log ranks).
    int owner(std::int64_t row) const;
    const std::vector<std::int64_t>& offsets() const { return *offsets_; }
    bool operator==(const RowMap& other) const {
        return rank_ == other.rank_ && (offsets_ == other.offsets_ || *offsets_ == *other.offsets_);
    }

  private:
    int rank_ = 0;
    std::shared_ptr<const std::vector<std::int64_t>> offsets_;
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Checksum: the checksums of a block by chunks of rows. Their comparison locates faults.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "blockvec/host_copy.hpp"
#include "kernels/checksum.hpp"

namespace quiver {

/// A chunk whose checksums show a fault.
struct FaultyChunk {
    std::int64_t chunk = 0;
    /// The changed row of the block if all differing word sums agree on one row, else -1.
    std::int64_t row = -1;
    /// The first column that differs.
    int column = 0;
};

/// The sums of all kinds of kernels/checksum.hpp over the chunks of this rank's rows, in host
/// memory. Word sums locate a changed element; the other sums predict the checksums of products.
template <class T>
class Checksum {
  public:
    using Sum = checksum_t<T>;
    static constexpr int default_log_chunk = 14;

    Checksum() = default;
    /// Forms the checksums of X. weights: rows x 2, or no columns. block: groups of that many
    /// columns get the same bits as in a Checksum of their own; 0: all columns form one group.
    /// Costs and errors as checksum().
    Checksum(Context& ctx, BlockView<const T> x, BlockView<const Sum> weights = {},
             int log_chunk = default_log_chunk, WordSums words = WordSums::yes, int block = 0);

    /// A Checksum that has only sums over all rows: total() and norm() have values, the chunks have
    /// none. `totals`: `columns` sums of each of the checksum_kinds(true) kinds, kind by kind.
    static Checksum of_totals(int columns, std::vector<Sum> totals);

    bool empty() const { return sums_.empty(); }
    bool has_totals() const { return !totals_.empty(); }
    std::int64_t chunks() const { return checksum_chunks(rows_, log_chunk_); }
    int columns() const { return columns_; }
    Sum operator()(std::int64_t chunk, int kind, int column) const {
        return sums_[index(chunk, kind, column)];
    }
    /// Compensated sum over all chunks.
    const std::vector<Sum>& totals() const { return totals_; }
    Sum total(int kind, int column) const {
        return totals_[static_cast<std::size_t>(kind * columns_ + column)];
    }
    /// The 2-norm of column `column` on this rank. Infinite if squares overflow.
    double norm(int column) const;
    /// True if all sums have the same bits; word sums are compared only if both objects have them.
    bool same(const Checksum& other) const;

    /// Compares the columns from `first` on with `before`, bit for bit, and returns the chunks that
    /// differ. Example: Checksum(ctx, x).changed_since(before). A row is named only if both objects
    /// have word sums. Throws ShapeError if rows, chunks or columns do not fit.
    std::vector<FaultyChunk> changed_since(const Checksum& before, int first = 0) const;
    /// The single word that has changed between this object's `chunk` and chunk `as` of `after`.
    /// `real`, `after_real`: the index of a real number within a row of the two blocks; complex
    /// scalars have two real numbers per column.
    struct ChangedWord {
        std::int64_t row_of_chunk = -1;  // -1: no word, or more than one
        std::uint64_t difference = 0;    // of the words, modulo 2^64
    };
    ChangedWord changed_word(std::int64_t chunk, int real, const Checksum& after, std::int64_t as,
                             int after_real) const;
    bool has_words() const { return !words_.empty(); }
    /// True if the chunk has the same sums as `alone`, which holds one chunk of the same rows
    /// without weights.
    bool same_chunk(std::int64_t chunk, const Checksum& alone) const;

    /// The first row of a chunk, and its number of rows.
    std::int64_t first_row(std::int64_t chunk) const { return chunk << log_chunk_; }
    std::int64_t chunk_rows(std::int64_t chunk) const;
    int log_chunk() const { return log_chunk_; }

  private:
    template <class U>
    friend class ChecksumUnderWay;
    static constexpr int reals = is_complex_v<T> ? 2 : 1;

    /// An object of a given shape, before its sums are known.
    Checksum(std::int64_t rows, int columns, bool weights, int log_chunk);
    std::int64_t lines() const { return chunks() * kinds_; }
    std::size_t sum_count() const { return static_cast<std::size_t>(lines() * columns_); }
    std::size_t word_count() const {
        return static_cast<std::size_t>(chunks() * word_kinds * columns_) * reals;
    }
    void add_up();

    std::size_t index(std::int64_t chunk, int kind, int column) const {
        return static_cast<std::size_t>((chunk * kinds_ + kind) * columns_ + column);
    }
    std::uint64_t word(std::int64_t chunk, ChecksumWord kind, int real) const {
        return words_[static_cast<std::size_t>((chunk * word_kinds + kind) * columns_) * reals +
                      static_cast<std::size_t>(real)];
    }

    std::int64_t rows_ = 0;
    int columns_ = 0;
    int kinds_ = 0;
    int log_chunk_ = default_log_chunk;
    std::vector<Sum> sums_;
    std::vector<std::uint64_t> words_;
    std::vector<Sum> totals_;  // kinds x columns
};

/// True if no rank's rows of X have changed since their checksums `before`, with word sums, were
/// formed. Collective, one pass over X and one all-reduce.
template <class T>
bool unchanged_since(Context& ctx, const Checksum<T>& before, BlockView<const T> x);

/// Checksums of one block at a time, in flight to the host while the device continues.
template <class T>
class ChecksumUnderWay {
  public:
    using Sum = checksum_t<T>;

    /// Enqueues the work of Checksum's constructor without waiting for it. X may change once the
    /// stream has reached this point. Discards checksums that are still in flight. The memory grows
    /// with the largest block.
    void begin(Context& ctx, BlockView<const T> x, BlockView<const Sum> weights = {},
               int log_chunk = Checksum<T>::default_log_chunk, WordSums words = WordSums::yes);
    bool under_way() const { return under_way_; }
    void forget() { under_way_ = false; }
    /// Waits for the checksums, but not for later work. `later_work` tells the ledger whether work
    /// was enqueued after them.
    Checksum<T> take(bool later_work);

  private:
    bool under_way_ = false;
    Checksum<T> shape_;
    std::size_t words_ = 0;
    Buffer memory_;
    std::optional<HostCopy> copy_;
};

/// The faults that correct() found in a block.
struct Correction {
    /// The number of chunks with one wrong row, and of chunks with more than one.
    std::int64_t rows = 0;
    std::int64_t chunks = 0;
};

/// Copies Z, the recomputed Y, to Y in those chunks whose checksums differ; with `write` = false
/// only finds them. Local; costs a pass over both blocks.
template <class T>
Correction correct(Context& ctx, BlockView<T> y, BlockView<const T> z, int log_chunk, bool write);

/// Restores a chunk of X bit for bit from its earlier word sums. In each column one element may
/// have changed, each in its own row (fault.row is -1 then). Returns false and changes nothing if
/// the chunk cannot be restored: no word sums, more than one changed element in a column, or a
/// double whose halves changed by the same amount. Exception: two changes may have the same effect
/// on both word sums as one change of a third element. If all three changes are below the rounding
/// of the other sums, the third element is changed by mistake. Local, several passes over the
/// chunk.
template <class T>
bool restore(Context& ctx, BlockView<T> x, const FaultyChunk& fault, const Checksum<T>& before);

/// The expected checksums of one chunk, plain (k = 0) and mixed (1) by column, and bounds for their
/// rounding errors; a column with an infinite bound is not compared.
template <class T>
struct ChunkSums {
    std::int64_t chunk = 0;
    int log_chunk = Checksum<T>::default_log_chunk;
    std::vector<checksum_t<T>> sums[2];
    std::vector<double> bounds[2];
};

/// The same with expected checksums that are known only up to rounding. The quotient of the mixed
/// and plain differences, estimated from all columns, identifies the row if the scatter of the
/// quotients leaves only one candidate. The restored values are as accurate as the checksums.
template <class T>
bool restore(Context& ctx, BlockView<T> x, const ChunkSums<T>& wanted);

}  // namespace quiver

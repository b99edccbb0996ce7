// SPDX-License-Identifier: BSD-3-Clause
// Checksum: the sums of a block by chunks of rows, and what two of them say of a fault.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "blockvec/host_copy.hpp"
#include "kernels/checksum.hpp"

namespace quiver {

/// A chunk whose sums tell of a fault.
struct FaultyChunk {
    std::int64_t chunk = 0;
    /// The row of the block if all sums of words that differ agree on one, else -1.
    std::int64_t row = -1;
    /// The first column that differs.
    int column = 0;
};

/// The sums of the kinds of kernels/checksum.hpp over the chunks of this rank's rows, in host
/// memory; those of words place what has changed, the others tell what a product must have.
template <class T>
class Checksum {
  public:
    using Sum = checksum_t<T>;
    static constexpr int default_log_chunk = 14;

    Checksum() = default;
    /// Encodes X; weights: rows x 2 or no columns; block: columns that get the bits of a Checksum
    /// of their own, 0: all. Costs and errors as checksum().
    Checksum(Context& ctx, BlockView<const T> x, BlockView<const Sum> weights = {},
             int log_chunk = default_log_chunk, WordSums words = WordSums::yes, int block = 0);

    bool empty() const { return sums_.empty(); }
    std::int64_t chunks() const { return checksum_chunks(rows_, log_chunk_); }
    int columns() const { return columns_; }
    Sum operator()(std::int64_t chunk, int kind, int column) const {
        return sums_[index(chunk, kind, column)];
    }
    /// Over all chunks, compensated.
    Sum total(int kind, int column) const {
        return totals_[static_cast<std::size_t>(kind * columns_ + column)];
    }
    /// The 2-norm of this rank's rows of a column. Infinite where squares overflow.
    double norm(int column) const;
    /// The same bits in every sum, those of words where both have them.
    bool same(const Checksum& other) const;

    /// Chunks whose sums, from column `first` on, are not those of as many columns before, bit for
    /// bit: Checksum(ctx, x).changed_since(before). No row is named without sums of words in both.
    /// Throws ShapeError for other rows or chunks, or too few columns.
    std::vector<FaultyChunk> changed_since(const Checksum& before, int first = 0) const;
    /// The only word of a chunk and real number of a row (complex: 2 a column) that has changed
    /// from this chunk's to what `after` has as its chunk `as`.
    struct ChangedWord {
        std::int64_t row_of_chunk = -1;  // none, or more than one
        std::uint64_t difference = 0;    // of the words, modulo 2^64
    };
    ChangedWord changed_word(std::int64_t chunk, int real, const Checksum& after, std::int64_t as,
                             int after_real) const;
    bool has_words() const { return !words_.empty(); }
    /// Whether a chunk has the sums that are all `alone` has, of the same rows and without weights.
    bool same_chunk(std::int64_t chunk, const Checksum& alone) const;

    /// The block's rows of a chunk.
    std::int64_t first_row(std::int64_t chunk) const { return chunk << log_chunk_; }
    std::int64_t chunk_rows(std::int64_t chunk) const;
    int log_chunk() const { return log_chunk_; }

  private:
    template <class U>
    friend class ChecksumUnderWay;
    static constexpr int reals = is_complex_v<T> ? 2 : 1;

    /// Of a shape, before its sums are there.
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

/// The sums of one block at a time on their way to the host, while the device goes on.
template <class T>
class ChecksumUnderWay {
  public:
    using Sum = checksum_t<T>;

    /// Enqueues what Checksum's constructor waits for; X may change once the stream has got here.
    /// Sums still under way are forgotten. Memory grows with the largest block.
    void begin(Context& ctx, BlockView<const T> x, BlockView<const Sum> weights = {},
               int log_chunk = Checksum<T>::default_log_chunk, WordSums words = WordSums::yes);
    bool under_way() const { return under_way_; }
    void forget() { under_way_ = false; }
    /// Waits for the sums, and for nothing that was enqueued later; whether there is any, the
    /// ledger is told.
    Checksum<T> take(bool later_work);

  private:
    bool under_way_ = false;
    Checksum<T> shape_;
    std::size_t words_ = 0;
    Buffer memory_;
    std::optional<HostCopy> copy_;
};

/// How `correct` left a block.
struct Correction {
    /// Chunks of which one row was wrong, and those with more.
    std::int64_t rows = 0;
    std::int64_t chunks = 0;
};

/// Makes Y what its recomputed twin Z is, chunk by chunk where their sums differ. `write`: false
/// finds only. Local; costs a pass over both.
template <class T>
Correction correct(Context& ctx, BlockView<T> y, BlockView<const T> z, int log_chunk, bool write);

/// Makes a chunk of X what it was, bit for bit, from the sums of words that it had; one element of
/// each column may have changed, in rows of their own (fault.row is -1 then). False, and
/// nothing changed, where more than one element of a column has changed (unless both sums of words
/// take two for a third one, and the others do not tell since all three changed by less than their
/// rounding), a double whose halves changed by the same, or there are no sums of words. Local, some
/// passes over the chunk.
template <class T>
bool restore(Context& ctx, BlockView<T> x, const FaultyChunk& fault, const Checksum<T>& before);

/// What the sums of one chunk must be, plain (k = 0) and mixed (1) by column, and how far rounding
/// may take them from that; infinite: not compared.
template <class T>
struct ChunkSums {
    std::int64_t chunk = 0;
    int log_chunk = Checksum<T>::default_log_chunk;
    std::vector<checksum_t<T>> sums[2];
    std::vector<double> bounds[2];
};

/// The same from sums that a chunk of X must have to rounding. The quotient of all columns'
/// differences names the row, where their scatter leaves one only. What is put back is as good as
/// the sums.
template <class T>
bool restore(Context& ctx, BlockView<T> x, const ChunkSums<T>& wanted);

}  // namespace quiver

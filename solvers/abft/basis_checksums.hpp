// SPDX-License-Identifier: BSD-3-Clause
// BasisChecksums: the sums of a basis that grows by blocks, and what they say of a Gram-Schmidt
// step.
#pragma once

#include <optional>
#include <vector>

#include "blockvec/small_matrix.hpp"
#include "solvers/abft/row_check.hpp"

namespace quiver {

/// Plain and mixed sums of the first columns() columns of a basis, this rank's rows, as they were
/// when they were made.
template <class T>
class BasisChecksums {
  public:
    using Sum = checksum_t<T>;

    explicit BasisChecksums(int log_chunk = Checksum<T>::default_log_chunk)
        : log_chunk_(log_chunk) {}

    int log_chunk() const { return log_chunk_; }
    int columns() const { return static_cast<int>(totals_[0].size()); }
    /// Columns `column` and up are no more what they were, nor what came with them.
    void forget_from(int column);
    /// The next columns.
    void append(Checksum<T> sums);
    /// The last block of `columns` columns, which are not known from here on; empty where other
    /// columns came with them or no sums by chunk are known.
    Checksum<T> take_last(int columns);
    /// Encodes the columns of `all` that are not known yet. One read of them.
    void learn(Context& ctx, BlockView<const T> all);
    /// Columns `first` and up were multiplied by S and are S.cols() now: their sums by the same
    /// product, without a look at them. verify() leaves them out then.
    void rotate(int first, const SmallMatrix<T>& s);

    /// Whether w^H Y = (w^H V) h + (w^H Q) r to rounding, V the columns known: what block
    /// Gram-Schmidt of Y in `passes` passes has to satisfy, whatever of Y, V, Q or its own sums was
    /// hit on the way. The bound is 4 eps passes (sqrt(columns of V) + sqrt(columns of Y) + 16)
    /// (||h_j|| + ||r_j||) a column, twice that for complex scalars, and as much again for every
    /// rotate(). Local, no access to blocks.
    bool relation_holds(const Checksum<T>& y, const SmallMatrix<T>& h, const Checksum<T>& q,
                        const SmallMatrix<T>& r, int passes) const;

    struct Verdict {
        int found = 0;
        int restored = 0;
    };
    /// Compares the known columns of `all` with their sums, bit for bit; `write` restores what has
    /// changed, to the same bits. Local, one read of them.
    Verdict verify(Context& ctx, BlockView<T> all, bool write);

    /// What w^H (V S) must be in each chunk, V the columns known from `first` on: (w^H V) S, to
    ///     (eps (sqrt(columns of V) + 4) sqrt(rows) ||V||_F + 16 eps_d ||w^H V||) ||s_j||
    /// of the chunk (sqrt(rows) at least 4), twice the eps for complex scalars: V is gone, and with
    /// it a second look, so rows may also round alike. Nothing where V is not known so. On the
    /// host; cost: 2 columns of V x columns of S multiply-adds a chunk.
    std::optional<WantedSums<T>> rotated(int first, const SmallMatrix<T>& s) const;
    /// Restores a row of each chunk of a block that does not have the sums it must have. `sums`:
    /// those that it has, and then those that it has afterwards. Reads only what differs.
    Verdict restore_rows(Context& ctx, BlockView<T> block, const WantedSums<T>& wanted,
                         Checksum<T>& sums) const;

  private:
    struct Part {
        int first;
        int columns;
        Checksum<T> sums;  // empty after rotate()
    };
    int log_chunk_;
    std::vector<Part> parts_;
    int rotations_ = 0;  // each adds its rounding to what the sums are known to
    std::vector<Sum> totals_[2];
};

}  // namespace quiver

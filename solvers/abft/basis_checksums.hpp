// SPDX-License-Identifier: BSD-3-Clause
// BasisChecksums: the checksums of a basis that grows by blocks, and the check of a Gram-Schmidt
// step by them.
#pragma once

#include <optional>
#include <vector>

#include "blockvec/small_matrix.hpp"
#include "solvers/abft/row_check.hpp"

namespace quiver {

/// Plain and mixed checksums of the first columns() columns of a basis, over this rank's rows. They
/// describe the columns at the time when the checksums were formed.
template <class T>
class BasisChecksums {
  public:
    using Sum = checksum_t<T>;

    explicit BasisChecksums(int log_chunk = Checksum<T>::default_log_chunk)
        : log_chunk_(log_chunk) {}

    int log_chunk() const { return log_chunk_; }
    int columns() const { return static_cast<int>(totals_[0].size()); }
    /// Discards the checksums of columns >= `column` and of every block that contains such a
    /// column.
    void forget_from(int column);
    /// Appends the checksums of the next columns.
    void append(Checksum<T> sums);
    /// Removes the checksums of the last `columns` columns and returns them; returns empty
    /// checksums if these columns were not appended as one block or have no checksums by chunk.
    Checksum<T> take_last(int columns);
    /// Forms the checksums of those columns of `all` that have none yet. One read of these columns.
    void learn(Context& ctx, BlockView<const T> all);
    /// Call this after columns `first` and up were multiplied by S, so that they are S.cols()
    /// columns: multiplies their checksums by S without reading the columns. verify() skips these
    /// columns afterwards.
    void rotate(int first, const SmallMatrix<T>& s);

    /// Checks w^H Y = (w^H V) h + (w^H Q) r up to rounding, where V are the known columns. Block
    /// Gram-Schmidt of Y in `passes` passes satisfies this equation unless a fault has changed Y,
    /// V, Q or the checksums on the way. The bound for column j is 4 eps passes (sqrt(columns of V)
    /// + sqrt(columns of Y) + 16) (||h_j|| + ||r_j||), twice that for complex scalars, and as much
    /// again for every rotate(). Local, no access to blocks.
    bool relation_holds(const Checksum<T>& y, const SmallMatrix<T>& h, const Checksum<T>& q,
                        const SmallMatrix<T>& r, int passes) const;

    struct Verdict {
        int found = 0;
        int restored = 0;
    };
    /// Compares the known columns of `all` with their checksums, bit for bit; with `write` restores
    /// changed elements to the same bits. Local, one read of the columns.
    Verdict verify(Context& ctx, BlockView<T> all, bool write);

    /// Predicts the checksums of V S in each chunk, where V are the known columns from `first` on:
    /// w^H (V S) = (w^H V) S up to
    ///    (eps (sqrt(columns of V) + 4) sqrt(rows) ||V||_F + 16 eps_d ||w^H V||) ||s_j||
    /// with the rows and norms of the chunk. sqrt(rows) counts as at least 4; complex scalars have
    /// twice the eps. V is overwritten by V S, so a second product cannot tell rounding from a
    /// fault; the bound therefore also allows that all rows round in the same direction. Returns
    /// nullopt if the checksums of V are not known by chunk. Runs on the host; cost: 2 columns of V
    /// x columns of S multiply-adds per chunk.
    std::optional<WantedSums<T>> rotated(int first, const SmallMatrix<T>& s) const;
    /// Restores one row in each chunk in which the block's checksums `sums` differ from `wanted`,
    /// and then updates `sums`. Reads only these chunks.
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
    int rotations_ = 0;  // each adds its rounding error to the bound of the checksums
    std::vector<Sum> totals_[2];
};

}  // namespace quiver

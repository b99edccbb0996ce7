// SPDX-License-Identifier: BSD-3-Clause
// SparseLayout: the order in which a rank's rows are computed, and the storage order of their
// entries. Private to kernels/sparse/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "blockvec/view.hpp"
#include "kernels/sparse/chunk_order.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "kernels/sparse/storage_choice.hpp"

namespace quiver {

/// Throws InputError for a chunk that is not a power of two or is too large, and for a sigma that
/// is neither 1 nor a multiple of the chunk.
void check_format(const SparseFormat& format);

/// Largest number of stages in which boundary rows are computed while their halo arrives.
constexpr int most_stages = 6;
/// Number of rows of each stage.
std::vector<std::int64_t> stage_rows(std::int64_t boundary_rows, int stages);

/// Slot s of a part stands for one row. Interior rows come first, then boundary rows (with halo
/// entries), stage by stage; each part has its own chunks. See SpmmvArgs for the position of an
/// entry.
///
/// A device stores the long rows of an irregular matrix apart, because they would pad their chunks
/// and because one thread would compute the whole row. They form parts of compressed rows: those of
/// the interior follow the interior rows, the others follow the boundary rows. Rows of more than
/// LongRows::piece entries are cut into equal pieces. The last parts add the sums of the pieces of
/// each row: they are products with entries of 1, whose columns own + p stand for the pieces p. If
/// a row has more than LongRows::summands pieces, a first sum gives new, fewer pieces. All
/// additions thus have a fixed order.
struct SparseLayout {
    enum class Kind : std::uint8_t { rows, long_rows, sums };
    struct Part {
        Kind kind = Kind::rows;
        int chunk = 1;
        int stage = 0;  // 0: needs no halo; s: needs the halo of the first s stages
        std::int64_t rows = 0;
        std::int64_t first_slot = 0;
        std::int64_t first_chunk = 0;
        std::int64_t entries = 0;  // with padding
        /// Slots 0 .. run - 1, run .. 2 run - 1, ... of the part stand for consecutive rows; `run`
        /// is a power of two. The first row of each run is list()[first_run + number of the run].
        int run = 1;
        std::int64_t first_run = 0;
        /// apart.range[first_range + s] holds the entries of slot s. Not for Kind::rows.
        std::int64_t first_range = 0;
    };
    /// A row, or a piece of it: its first entry (for sums: its first piece), and how many.
    struct Range {
        std::int64_t first = 0;
        std::int64_t count = 0;
    };
    struct Apart {
        std::vector<Range> range;             // of the slots of long rows and sums
        std::vector<std::int64_t> piece_row;  // the rows of the pieces that are not sums
    };
    struct Counts {
        std::int64_t pieces = 0;         // with those that are sums
        std::int64_t long_rows = 0;      // rows that are stored apart
        std::int64_t boundary_rows = 0;  // rows with halo entries
    };
    SparseFormat format;     // as chosen: compressed_rows or sell; chunk and sigma are positive
    std::vector<Part> part;  // the interior, and the stages of the boundary: at least one part each
    std::vector<std::int64_t> row;  // of each slot; empty: slot s is row s; own + p: piece p
    Apart apart;
    Counts count;
    std::vector<std::int64_t> start{0};  // of each chunk, and the end of the last chunk
    std::vector<std::int32_t> full;      // of each chunk: the length of its shortest row
    int tile = 0;                        // slots computed together; 0: no tiles

    std::int64_t stored() const { return start.back(); }
    /// Number of entries of the matrix, with padding but without the entries of the sums.
    std::int64_t matrix_entries() const;
    std::int64_t row_of(std::int64_t slot) const {
        return row.empty() ? slot : row[static_cast<std::size_t>(slot)];
    }
    /// The entries of slot s of a part.
    Range entries_of(const Part& p, std::int64_t s,
                     const std::vector<std::int64_t>& row_start) const {
        if (p.kind != Kind::rows) {
            return apart.range[static_cast<std::size_t>(p.first_range + s)];
        }
        const auto i = static_cast<std::size_t>(row_of(p.first_slot + s));
        return {row_start[i], row_start[i + 1] - row_start[i]};
    }

    /// The first row of each run of all parts; empty if `row` is empty.
    std::vector<std::int64_t> list(int threads = 1) const;

    /// Returns the columns of all entries. The layout calls this function only if the columns
    /// decide about tiles, because columns on a device must be copied to the host.
    using Columns = std::function<EntryColumns()>;

    /// `order`: the rows, with the interior_rows interior ones first; empty if all rows are
    /// interior. `columns`: none for no tiles. first_row: the column of the rank's row 0.
    SparseLayout(const FormatChoice& choice, const std::vector<std::int64_t>& row_start,
                 const std::vector<std::int64_t>& order, std::int64_t interior_rows,
                 const Columns& columns = {}, std::int64_t first_row = 0, int stages = 1);

  private:
    struct Steps;
    void find_runs(int threads);
    /// Sorts the rows of `order`, those of each part for itself, and groups them into chunks.
    void arrange(int chunk, std::int64_t sigma, const std::vector<std::int64_t>& order,
                 const std::vector<std::int64_t>& row_start, int threads);
    /// Stored entries per entry of the chunks.
    double padding(const std::vector<std::int64_t>& row_start) const;
    /// Groups the slots into chunks, in the order of `row`.
    void arrange_chunks(const std::vector<std::int64_t>& row_start, int threads);
    /// Stores rows of more than `longest` entries apart. Returns the rows of all slots, for
    /// arrange(). `order` as for the constructor.
    std::vector<std::int64_t> store_apart(std::int64_t longest,
                                          const std::vector<std::int64_t>& order,
                                          const std::vector<std::int64_t>& row_start);
    /// Arranges groups of rows in tiles, if that saves reads of X.
    void arrange_tiles(const FormatChoice& choice, const std::vector<std::int64_t>& row_start,
                       const EntryColumns& column, std::int64_t first_row);
};

}  // namespace quiver

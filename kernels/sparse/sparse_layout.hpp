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

namespace quiver {

/// Throws InputError for a chunk that is not a power of two or is too large, and for a sigma that
/// is neither 1 nor a multiple of the chunk.
void check_format(const SparseFormat& format);

/// The criteria for the choice of a format.
struct FormatChoice {
    SparseFormat wish;
    Place place = Place::host;
    std::size_t scalar_bytes = 8;
    bool complex = false;
    int threads = 1;
};

/// Largest number of stages in which boundary rows are computed while their halo arrives.
constexpr int most_stages = 6;
/// Number of rows of each stage.
std::vector<std::int64_t> stage_rows(std::int64_t boundary_rows, int stages);

/// Slot s of a part stands for one row. Interior rows come first, then boundary rows (with halo
/// entries), stage by stage; each part has its own chunks. See SpmmvArgs for the position of an
/// entry.
struct SparseLayout {
    struct Part {
        std::int64_t rows = 0;
        std::int64_t first_slot = 0;
        std::int64_t first_chunk = 0;
        std::int64_t entries = 0;  // with padding
        /// Slots 0 .. run - 1, run .. 2 run - 1, ... of the part stand for consecutive rows; `run`
        /// is a power of two. The first row of each run is list()[first_run + number of the run].
        int run = 1;
        std::int64_t first_run = 0;
    };
    SparseFormat format;     // as chosen: compressed_rows or sell; chunk and sigma are positive
    std::vector<Part> part;  // the interior, and the stages of the boundary: at least one part
    std::vector<std::int64_t> row;       // of each slot; empty: slot s is row s
    std::vector<std::int64_t> start{0};  // of each chunk, and the end of the last chunk
    std::vector<std::int32_t> full;      // of each chunk: the length of its shortest row
    int tile = 0;                        // slots computed together; 0: no tiles

    std::int64_t stored() const { return start.back(); }
    std::int64_t row_of(std::int64_t slot) const {
        return row.empty() ? slot : row[static_cast<std::size_t>(slot)];
    }

    /// The first row of each run of all parts; empty if `row` is empty.
    std::vector<std::int64_t> list() const;

    /// Returns the columns of all entries. The layout calls this function only if the columns
    /// decide about tiles, because columns on a device must be copied to the host.
    using Columns = std::function<EntryColumns()>;

    /// `order`: the rows, with the interior_rows interior ones first; empty if all rows are
    /// interior. `columns`: none for no tiles. first_row: the column of the rank's row 0.
    SparseLayout(const FormatChoice& choice, const std::vector<std::int64_t>& row_start,
                 std::vector<std::int64_t> order, std::int64_t interior_rows,
                 const Columns& columns = {}, std::int64_t first_row = 0, int stages = 1);

  private:
    void find_runs();
    /// Groups the slots into chunks, in the order of `row`.
    void arrange_chunks(const std::vector<std::int64_t>& row_start);
    /// Arranges groups of rows in tiles, if that saves reads of X.
    void arrange_tiles(const FormatChoice& choice, const std::vector<std::int64_t>& row_start,
                       const EntryColumns& column, std::int64_t first_row);
};

}  // namespace quiver

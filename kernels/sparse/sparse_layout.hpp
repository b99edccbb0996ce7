// SPDX-License-Identifier: BSD-3-Clause
// SparseLayout: the order in which a rank's rows are computed, and where their entries lie. Private
// to kernels/sparse/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "blockvec/view.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Throws InputError for a chunk that is no power of two or too large, and for a sigma that is
/// neither 1 nor a multiple of the chunk.
void check_format(const SparseFormat& format);

/// What the choice of a format depends on.
struct FormatChoice {
    SparseFormat wish;
    Place place = Place::host;
    std::size_t scalar_bytes = 8;
    bool complex = false;
};

/// Boundary rows are computed in so many stages at most, as their halo arrives.
constexpr int most_stages = 6;
/// Rows of each stage.
std::vector<std::int64_t> stage_rows(std::int64_t boundary_rows, int stages);

/// Slot s of a part stands for one row. Interior rows come first, boundary rows (with halo entries)
/// after them, stage by stage, in chunks of their own. See SpmmvArgs for the place of an entry.
struct SparseLayout {
    struct Part {
        std::int64_t rows = 0;
        std::int64_t first_slot = 0;
        std::int64_t first_chunk = 0;
        std::int64_t entries = 0;  // with padding
        /// Slots 0 .. run - 1, run .. 2 run - 1, ... of the part stand for consecutive rows; a
        /// power of two. The first number of each run is list() from first_run on.
        int run = 1;
        std::int64_t first_run = 0;
    };
    SparseFormat format;            // as chosen: compressed_rows or sell, chunk and sigma positive
    std::vector<Part> part;         // interior, and stages of the boundary: at least one
    std::vector<std::int64_t> row;  // of each slot; empty: slot s is row s
    std::vector<std::int64_t> start{0};  // of each chunk, and the end of the last one
    std::vector<std::int32_t> full;      // of each chunk: its shortest row
    int tile = 0;  // slots computed together, whatever their order; 0: no such

    std::int64_t stored() const { return start.back(); }
    std::int64_t row_of(std::int64_t slot) const {
        return row.empty() ? slot : row[static_cast<std::size_t>(slot)];
    }

    /// The first row of each run of both parts; empty where `row` is.
    std::vector<std::int64_t> list() const;

    /// `order`: the rows, interior_rows interior ones first; empty when all are interior. `column`
    /// of all entries, first_row that of the rank's row 0: what tiles are made by; empty for none.
    SparseLayout(const FormatChoice& choice, const std::vector<std::int64_t>& row_start,
                 std::vector<std::int64_t> order, std::int64_t interior_rows,
                 std::span<const std::int64_t> column = {}, std::int64_t first_row = 0,
                 int stages = 1);

  private:
    void find_runs();
    /// Slots in chunks, in the order of `row`.
    void arrange_chunks(const std::vector<std::int64_t>& row_start);
    /// Groups of rows in tiles, where they save reading X.
    void arrange_tiles(int wish, const std::vector<std::int64_t>& row_start,
                       std::span<const std::int64_t> column, std::int64_t first_row);
};

}  // namespace quiver

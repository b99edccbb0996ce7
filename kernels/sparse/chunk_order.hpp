// SPDX-License-Identifier: BSD-3-Clause
// The order in which a device computes the chunks of a sparse matrix. Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quiver {

/// Some chunks of a matrix and where their entries point to.
struct ChunkRows {
    std::span<const std::int64_t> row_start;  // of the rank's rows
    std::span<const std::int64_t> column;     // of their entries
    std::int64_t first_row = 0;               // the column that is the rank's row 0
    std::span<const std::int64_t> row;        // of each slot; empty: slot s is row s
    std::int64_t first_slot = 0;              // of chunk 0
    std::int64_t chunks = 0;                  // complete ones
    int chunk = 1;                            // slots of each

    std::int64_t row_of(std::int64_t slot) const {
        return row.empty() ? slot : row[static_cast<std::size_t>(slot)];
    }
};

/// Tiles of `tile` chunks that read many rows of X together: each tile starts at the first chunk
/// that is left and grows, one after another, by the chunk with the most entries that point to it
/// from the tile; of equals by the one met first, so that tiles of a grid are squares. Returns the
/// chunks in their new order. Cost: one pass over the entries, some numbers a chunk.
std::vector<std::int64_t> tiled_order(const ChunkRows& rows, int tile);

/// Different own rows of X that a tile reads, on average, for each row it computes; `order` is
/// empty for the chunks as they are. Of some tiles, spread evenly.
double rows_read_per_row(const ChunkRows& rows, std::span<const std::int64_t> order, int tile);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The order in which a device computes the chunks of a sparse matrix, chosen to reuse rows of X.
// Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace quiver {

/// The columns of entries, as the 64-bit or 32-bit integers of the caller.
using EntryColumns = std::variant<std::span<const std::int64_t>, std::span<const std::int32_t>>;

/// A range of chunks of a matrix and the columns of their entries.
struct ChunkRows {
    std::span<const std::int64_t> row_start;  // of this rank's rows
    EntryColumns column;                      // of the entries of these rows
    std::int64_t first_row = 0;               // the global column of this rank's row 0
    std::span<const std::int64_t> row;        // of each slot; empty: slot s is row s
    std::int64_t first_slot = 0;              // of chunk 0
    std::int64_t chunks = 0;                  // number of complete chunks
    int chunk = 1;                            // slots per chunk

    std::int64_t row_of(std::int64_t slot) const {
        return row.empty() ? slot : row[static_cast<std::size_t>(slot)];
    }
};

/// Groups the chunks into tiles of `tile` chunks that read many rows of X in common. Each tile
/// starts at the first remaining chunk and repeatedly takes the chunk to which the most entries of
/// the tile refer. Ties go to the chunk that was found first, which makes the tiles of a grid
/// square. Returns the chunks in their new order. Cost: one pass over the entries. Memory: a few
/// numbers per chunk.
std::vector<std::int64_t> tiled_order(const ChunkRows& rows, int tile, int threads = 1);

/// The average number of distinct own rows of X that a tile reads per computed row. An empty
/// `order` means the given order of the chunks. Estimated from evenly spread sample tiles.
double rows_read_per_row(const ChunkRows& rows, std::span<const std::int64_t> order, int tile);

/// Estimates rows_read_per_row() for the result of tiled_order(), at a fraction of its cost: each
/// of a few sample tiles grows as if there were no other tile.
double rows_read_by_free_tiles(const ChunkRows& rows, int tile);

}  // namespace quiver

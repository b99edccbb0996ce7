// SPDX-License-Identifier: BSD-3-Clause
// The order in which a device computes the chunks of a sparse matrix, chosen to reuse rows of X.
// Private to kernels/sparse/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// The rows of X that this rank owns and to which the entries of some chunks refer, chunk by chunk,
/// entry by entry.
struct ChunkTargets {
    std::vector<std::size_t> start{0};
    std::vector<std::int64_t> row;

    /// The rows to which requested chunks number first .. end - 1 refer.
    std::span<std::int64_t> of(std::size_t first, std::size_t end) {
        return std::span(row).subspan(start[first], start[end] - start[first]);
    }
};

/// Access to the columns of a few chunks, in any place.
struct ChunkSampler {
    std::int64_t chunks = 0;
    int chunk = 1;  // slots per chunk
    int threads = 1;
    std::function<ChunkTargets(std::span<const std::int64_t> chunks)> targets;
    std::function<std::int64_t(std::int64_t row)> chunk_of;  // the chunk of an own row, or -1
};

/// The sampler of rows in host memory; `rows` must outlive it. Memory: 4 bytes per row unless the
/// rows have their natural order.
ChunkSampler sampler_of(const ChunkRows& rows, int threads = 1);

/// The average number of distinct own rows of X that a tile reads per computed row. An empty
/// `order` means the given order of the chunks. Estimated from evenly spread sample tiles.
double rows_read_per_row(const ChunkSampler& sampler, std::span<const std::int64_t> order,
                         int tile);

/// Estimates rows_read_per_row() for the result of tiled_order(), at a fraction of its cost: each
/// of a few sample tiles grows as if there were no other tile.
double rows_read_by_free_tiles(const ChunkSampler& sampler, int tile);

}  // namespace quiver

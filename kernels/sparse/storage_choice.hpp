// SPDX-License-Identifier: BSD-3-Clause
// The choice of a storage format, for rows in host memory (SparseLayout) and on a device
// (DeviceLayout). Private to kernels/sparse/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "blockvec/processor.hpp"
#include "blockvec/view.hpp"
#include "kernels/sparse/chunk_order.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// The criteria for the choice of a format.
struct FormatChoice {
    SparseFormat wish;
    Place place = Place::host;
    std::size_t scalar_bytes = 8;
    bool complex = false;
    int threads = 1;
};

/// The limits of rows that a device stores apart; see SparseLayout.
struct LongRows {
    /// Rows with at most this many entries, or twice the average, stay in chunks.
    static constexpr std::int64_t shortest = 64;
    /// Most entries of a piece, and most pieces that one sum adds.
    static constexpr std::int64_t piece = 512;
    static constexpr std::int64_t summands = 64;
};

/// Lanes that compute the rows of a chunk on a device.
inline constexpr int warp = 32;
/// Consecutive rows that stay together in tiles, and default rows of a tile.
inline constexpr int rows_together = 16;
inline constexpr int usual_tile = 512;
/// Tiles may increase the stored entries by this factor.
inline constexpr double most_growth_by_tiles = 1.02;

struct RowCounts {
    std::int64_t rows = 0;
    std::int64_t entries = 0;
    std::int64_t longest = 0;  // entries of the longest row

    /// Rows with more entries than this may be stored apart; 0 if no row is that long.
    std::int64_t longest_of_chunks() const {
        const std::int64_t most =
            std::max(LongRows::shortest, 2 * entries / std::max<std::int64_t>(rows, 1));
        return longest > most ? most : 0;
    }
    /// True if, in a narrow product, one thread would take about as long for the longest row as all
    /// others together for the rest.
    bool delays_others() const {
        constexpr std::int64_t entries_meanwhile = 8192;
        return longest >
               std::clamp(entries / entries_meanwhile, LongRows::piece, 8 * LongRows::piece);
    }
};

/// Sorts and groups rows into chunks by steps.arrange(chunk, sigma), with the smallest sufficient
/// window if no sigma is wished. steps.padding(): the stored entries per entry of the chunks.
template <class Steps>
void arrange_sorted(Steps& steps, int chunk, const FormatChoice& choice) {
    if (choice.wish.sigma > 0) {
        steps.arrange(chunk, choice.wish.sigma);
        return;
    }
    // Use the smallest sufficient window: the farther rows move, the fewer rows of X their
    // neighbours share.
    for (const std::int64_t windows : {0, 8, 128}) {
        steps.arrange(chunk, std::max<std::int64_t>(1, windows * chunk));
        if (steps.padding() <= 1.05) {
            break;
        }
    }
}

/// Chooses the storage and sets `format`, whose kind is that of the wish. Besides arrange() and
/// padding(), `steps` has store_apart(longest), which stores the rows of more than `longest`
/// entries apart and arranges the others, and arrange_tiles(), which arranges rows in tiles if that
/// saves reads of X.
template <class Steps>
void choose_storage(Steps& steps, SparseFormat& format, const FormatChoice& choice,
                    const RowCounts& counts) {
    const bool device = choice.place == Place::device;
    const bool automatic = choice.wish.kind == SparseFormat::automatic;
    if (automatic) {
        const bool vectors_of_rows = !choice.complex && choice.wish.width == 1;
        format.kind =
            device || vectors_of_rows ? SparseFormat::sell : SparseFormat::compressed_rows;
    }
    if (format.kind == SparseFormat::compressed_rows) {
        steps.arrange(1, 1);
        return;
    }
    const int lanes = vector_bytes() / static_cast<int>(choice.scalar_bytes);
    const int chunk = choice.wish.chunk > 0 ? choice.wish.chunk
                      : device              ? warp
                                            : std::max(lanes, 4);
    arrange_sorted(steps, chunk, choice);
    format.tile = 1;
    const std::int64_t longest = counts.longest_of_chunks();
    if (automatic && device && longest > 0 && (steps.padding() > 1.5 || counts.delays_others())) {
        steps.store_apart(longest);
        return;
    }
    if (automatic && steps.padding() > (device ? 1.5 : 1.1)) {
        format.kind = SparseFormat::compressed_rows;
        steps.arrange(1, 1);
    }
    if (device && format.kind == SparseFormat::sell && format.sigma == 1 && choice.wish.tile != 1 &&
        counts.entries > 0) {
        steps.arrange_tiles();
    }
}

/// The groups of rows in the order of tiles of `tile` groups, by order(). Empty, which means no
/// tiles, if the groups do not fill two tiles, or if the caller has not requested tiles and they
/// would save too little. order() returns all groups; it is called only if the caller has requested
/// tiles or a sample shows that they may save enough.
template <class Order>
std::vector<std::int64_t> useful_tiles(const ChunkSampler& sampler, int tile,
                                       const FormatChoice& choice, Order&& order) {
    // Tiles must reduce the number of rows of X that are read by this fraction.
    constexpr double least_saving = 0.25;
    if (sampler.chunks < 2 * tile) {
        return {};
    }
    if (choice.wish.tile > 0) {
        return order();
    }
    const double most = (1 - least_saving) * rows_read_per_row(sampler, {}, tile);
    if (rows_read_by_free_tiles(sampler, tile) > most) {
        return {};
    }
    std::vector<std::int64_t> tiled = order();
    if (rows_read_per_row(sampler, tiled, tile) > most) {
        tiled.clear();
    }
    return tiled;
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/sparse_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/processor.hpp"

namespace quiver {
namespace {

constexpr int largest_chunk = 256;
constexpr int warp = 32;
constexpr int largest_tile = 4096;
/// Consecutive rows that stay together in tiles, and default rows of a tile.
constexpr int rows_together = 16;
constexpr int usual_tile = 512;
/// Tiles must reduce the rows of X that are read by this fraction.
constexpr double least_saving = 0.25;

std::int64_t chunks_of(std::int64_t rows, std::int64_t chunk) {
    return (rows + chunk - 1) / chunk;
}

/// Sorts the rows of a part by descending length within windows of sigma; rows of equal length keep
/// their order.
void sort_windows(std::span<std::int64_t> rows, std::int64_t sigma,
                  const std::vector<std::int64_t>& row_start, int threads) {
    const auto length = [&](std::int64_t row) {
        const auto i = static_cast<std::size_t>(row);
        return row_start[i + 1] - row_start[i];
    };
    const auto window = static_cast<std::size_t>(sigma);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::size_t begin = 0; begin < rows.size(); begin += window) {
        const auto part = rows.subspan(begin, std::min(window, rows.size() - begin));
        std::stable_sort(part.begin(), part.end(), [&](std::int64_t left, std::int64_t right) {
            return length(left) > length(right);
        });
    }
}

/// The order of the groups in tiles. Empty if the groups do not fill two tiles, or if tiles that
/// the caller has not asked for would save too little.
std::vector<std::int64_t> useful_tiles(const ChunkRows& groups, int tile,
                                       const FormatChoice& choice) {
    if (groups.chunks < 2 * tile) {
        return {};
    }
    if (choice.wish.tile > 0) {
        return tiled_order(groups, tile, choice.threads);
    }
    const double most = (1 - least_saving) * rows_read_per_row(groups, {}, tile);
    if (rows_read_by_free_tiles(groups, tile) > most) {
        return {};
    }
    std::vector<std::int64_t> order = tiled_order(groups, tile, choice.threads);
    if (rows_read_per_row(groups, order, tile) > most) {
        order.clear();
    }
    return order;
}

}  // namespace

std::vector<std::int64_t> stage_rows(std::int64_t boundary_rows, int stages) {
    // Stages are multiples of this unit, so that sorted windows of rows do not straddle stages.
    constexpr std::int64_t unit = 4096;
    const std::int64_t each = (boundary_rows / stages + unit - 1) / unit * unit;
    std::vector<std::int64_t> rows;
    for (int stage = 1; stage < stages; ++stage) {
        rows.push_back(std::min(each, boundary_rows));
        boundary_rows -= rows.back();
    }
    rows.push_back(boundary_rows);
    return rows;
}

void check_format(const SparseFormat& format) {
    const auto fail = [&](const char* rule) {
        throw InputError("sparse format: chunk " + std::to_string(format.chunk) + " and sigma " +
                         std::to_string(format.sigma) + " for blocks of width " +
                         std::to_string(format.width) + ": " + rule);
    };
    const int chunk = format.chunk;
    const std::int64_t sigma = format.sigma;
    if (chunk < 0 || chunk > largest_chunk || (chunk & (chunk - 1)) != 0) {
        fail("the chunk must be a power of two, 1 to 256, or 0 for the library's choice");
    }
    if (sigma < 0 || (sigma > 1 && (chunk == 0 || sigma % chunk != 0))) {
        fail("sigma must be 1 or a multiple of a given chunk, or 0 for the library's choice");
    }
    if (format.kind != SparseFormat::sell && (chunk > 1 || sigma > 1)) {
        fail("both apply to the format sell only");
    }
    if (format.width < 0) {
        fail("the width must be positive, or 0 if it is unknown");
    }
    const int tile = format.tile;
    if (tile != 0 && tile != 1 &&
        (tile < warp || tile > largest_tile || (tile & (tile - 1)) != 0)) {
        throw InputError(
            "sparse format: tiles of " + std::to_string(tile) +
            " rows: a tile must be a power of two, 32 to 4096, 1 for none, or 0 for the "
            "library's choice");
    }
}

SparseLayout::SparseLayout(const FormatChoice& choice, const std::vector<std::int64_t>& row_start,
                           std::vector<std::int64_t> order, std::int64_t interior_rows,
                           const Columns& columns, std::int64_t first_row, int stages)
    : format(choice.wish) {
    const auto rows = static_cast<std::int64_t>(row_start.size()) - 1;
    part.push_back({.rows = order.empty() ? rows : interior_rows});
    for (const std::int64_t count : stage_rows(rows - part[0].rows, stages)) {
        part.push_back({.rows = count, .first_slot = part.back().first_slot + part.back().rows});
    }
    const auto arrange = [&](int chunk, std::int64_t sigma) {
        format.chunk = chunk;
        format.sigma = sigma;
        row = order;
        if (sigma > 1) {
            if (row.empty()) {
                row.resize(static_cast<std::size_t>(rows));
                std::iota(row.begin(), row.end(), std::int64_t{0});
            }
            const std::span<std::int64_t> all(row);
            for (const Part& p : part) {
                sort_windows(all.subspan(static_cast<std::size_t>(p.first_slot),
                                         static_cast<std::size_t>(p.rows)),
                             sigma, row_start, choice.threads);
            }
        }
        arrange_chunks(row_start);
    };
    const auto padding = [&] {
        return row_start.back() == 0
                   ? 1.0
                   : static_cast<double>(stored()) / static_cast<double>(row_start.back());
    };

    const bool device = choice.place == Place::device;
    const bool automatic = choice.wish.kind == SparseFormat::automatic;
    const bool sorting_helps = device || choice.wish.width == 1;
    if (automatic) {
        const bool vectors_of_rows = !choice.complex && choice.wish.width <= 1;
        format.kind =
            device || vectors_of_rows ? SparseFormat::sell : SparseFormat::compressed_rows;
    }
    if (format.kind == SparseFormat::compressed_rows) {
        arrange(1, 1);
        find_runs();
        return;
    }
    const int lanes = vector_bytes() / static_cast<int>(choice.scalar_bytes);
    const int chunk = choice.wish.chunk > 0 ? choice.wish.chunk
                      : device              ? warp
                                            : std::max(lanes, 4);
    if (choice.wish.sigma > 0) {
        arrange(chunk, choice.wish.sigma);
    } else {
        // Use the smallest sufficient window: the farther rows move, the fewer rows of X their
        // neighbours share.
        for (const std::int64_t windows : {0, 8, 128}) {
            arrange(chunk, std::max<std::int64_t>(1, windows * chunk));
            if (padding() <= 1.05 || (automatic && !sorting_helps)) {
                break;
            }
        }
    }
    if (automatic && padding() > (device ? 1.5 : 1.1)) {
        format.kind = SparseFormat::compressed_rows;
        arrange(1, 1);
    }
    format.tile = 1;
    if (device && format.kind == SparseFormat::sell && format.sigma == 1 && choice.wish.tile != 1 &&
        columns && row_start.back() > 0) {
        arrange_tiles(choice, row_start, columns(), first_row);
    }
    find_runs();
}

void SparseLayout::arrange_chunks(const std::vector<std::int64_t>& row_start) {
    const int chunk = format.chunk;
    start.assign(1, 0);
    full.clear();
    for (Part& p : part) {
        p.first_chunk = static_cast<std::int64_t>(full.size());
        const std::int64_t before = start.back();
        for (std::int64_t c = 0; c < chunks_of(p.rows, chunk); ++c) {
            std::int64_t longest = 0;
            std::int64_t shortest = std::int64_t{1} << 30;
            const std::int64_t end = std::min((c + 1) * chunk, p.rows);
            for (std::int64_t s = c * chunk; s < end; ++s) {
                const auto i = static_cast<std::size_t>(row_of(p.first_slot + s));
                longest = std::max(longest, row_start[i + 1] - row_start[i]);
                shortest = std::min(shortest, row_start[i + 1] - row_start[i]);
            }
            start.push_back(start.back() + longest * chunk);
            full.push_back(end == (c + 1) * chunk ? static_cast<std::int32_t>(shortest) : 0);
        }
        p.entries = start.back() - before;
    }
}

void SparseLayout::arrange_tiles(const FormatChoice& choice,
                                 const std::vector<std::int64_t>& row_start,
                                 const EntryColumns& column, std::int64_t first_row) {
    const int wish = choice.wish.tile;
    const int rows_of_tile = wish > 0 ? wish : usual_tile;
    const int groups_of_tile = rows_of_tile / rows_together;
    const std::vector<std::int64_t> former = row;
    std::vector<std::int64_t> tiled;
    for (const Part& p : part) {
        const ChunkRows groups{row_start,    column,       first_row,
                               former,       p.first_slot, p.rows / rows_together,
                               rows_together};
        const std::vector<std::int64_t> order = useful_tiles(groups, groups_of_tile, choice);
        if (order.empty()) {
            continue;
        }
        if (tiled.empty()) {
            tiled = former;
            if (former.empty()) {
                tiled.resize(row_start.size() - 1);
                std::iota(tiled.begin(), tiled.end(), std::int64_t{0});
            }
        }
        for (std::int64_t s = 0; s < std::ssize(order) * rows_together; ++s) {
            const std::int64_t group = order[static_cast<std::size_t>(s / rows_together)];
            tiled[static_cast<std::size_t>(p.first_slot + s)] =
                groups.row_of(p.first_slot + group * rows_together + s % rows_together);
        }
    }
    if (tiled.empty()) {
        return;
    }
    tile = rows_of_tile;
    const std::int64_t before = stored();
    row = std::move(tiled);
    arrange_chunks(row_start);
    if (static_cast<double>(stored()) > 1.02 * static_cast<double>(before)) {
        row = former;
        tile = 0;
        arrange_chunks(row_start);
        return;
    }
    format.tile = tile;
}

void SparseLayout::find_runs() {
    std::int64_t runs = 0;
    for (Part& p : part) {
        std::uint64_t breaks = std::uint64_t{1} << 30;
        for (std::int64_t s = 1; s < p.rows; ++s) {
            const bool goes_on = row_of(p.first_slot + s) == row_of(p.first_slot + s - 1) + 1;
            breaks |= goes_on ? 0 : static_cast<std::uint64_t>(s);
        }
        p.run = 1 << std::countr_zero(breaks);
        p.first_run = runs;
        runs += chunks_of(p.rows, p.run);
    }
}

std::vector<std::int64_t> SparseLayout::list() const {
    std::vector<std::int64_t> first;
    for (const Part& p : part) {
        for (std::int64_t s = 0; s < p.rows && !row.empty(); s += p.run) {
            first.push_back(row_of(p.first_slot + s));
        }
    }
    return first;
}

}  // namespace quiver

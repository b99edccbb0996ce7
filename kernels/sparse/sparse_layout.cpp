// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/sparse_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>

#include "blockvec/error.hpp"
#include "kernels/sparse/storage_choice.hpp"

namespace quiver {
namespace {

constexpr int largest_chunk = 256;
constexpr int largest_tile = 4096;

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

std::int64_t longest_row(const std::vector<std::int64_t>& row_start, int threads) {
    std::int64_t longest = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : longest)
    for (std::size_t i = 1; i < row_start.size(); ++i) {
        longest = std::max(longest, row_start[i] - row_start[i - 1]);
    }
    return longest;
}

/// The slots of long rows, and of the sums of their pieces, level by level.
class LongRowSlots {
  public:
    struct Slots {
        std::vector<std::int64_t> row;
        std::vector<SparseLayout::Range> range;
        void append(std::int64_t to, std::int64_t first, std::int64_t end) {
            row.push_back(to);
            range.push_back({first, end - first});
        }
    };
    std::vector<std::int64_t> piece_row;
    std::int64_t pieces = 0;

    explicit LongRowSlots(const std::vector<std::int64_t>& row_start)
        : own_(std::ssize(row_start) - 1), row_start_(row_start) {}

    /// The slots of some rows: pieces first, because they have about equal lengths, then the rows
    /// that are not cut.
    Slots cut(std::span<const std::int64_t> rows) {
        Slots slots;
        Slots whole;
        for (const std::int64_t row : rows) {
            const std::int64_t begin = row_start_[static_cast<std::size_t>(row)];
            const std::int64_t end = row_start_[static_cast<std::size_t>(row) + 1];
            const std::int64_t first = pieces;
            if (!divide(begin, end, LongRows::piece, slots)) {
                whole.append(row, begin, end);
                continue;
            }
            piece_row.insert(piece_row.end(), static_cast<std::size_t>(pieces - first), row);
            sums_.append(row, first, pieces);
        }
        slots.row.insert(slots.row.end(), whole.row.begin(), whole.row.end());
        slots.range.insert(slots.range.end(), whole.range.begin(), whole.range.end());
        return slots;
    }
    /// Returns the slots of the next sums, until there are none. Call it after all of cut().
    Slots next_sums() {
        Slots slots;
        Slots further;
        for (std::size_t i = 0; i < sums_.row.size(); ++i) {
            const SparseLayout::Range of = sums_.range[i];
            const std::int64_t first = pieces;
            if (divide(of.first, of.first + of.count, LongRows::summands, slots)) {
                further.append(sums_.row[i], first, pieces);
            } else {
                slots.append(sums_.row[i], of.first, of.first + of.count);
            }
        }
        sums_ = std::move(further);
        return slots;
    }

  private:
    /// Appends new pieces of at most `most` numbers each; none, and false, if one would suffice.
    bool divide(std::int64_t begin, std::int64_t end, std::int64_t most, Slots& slots) {
        const std::int64_t length = end - begin;
        const std::int64_t parts = (length + most - 1) / most;
        if (parts <= 1) {
            return false;
        }
        // Equal parts, the first ones longer by one if that does not come out even.
        std::int64_t at = begin;
        for (std::int64_t p = 0; p < parts; ++p) {
            const std::int64_t to = at + length / parts + (p < length % parts ? 1 : 0);
            slots.append(own_ + pieces++, at, to);
            at = to;
        }
        return true;
    }

    std::int64_t own_;
    const std::vector<std::int64_t>& row_start_;
    Slots sums_;
};

}  // namespace

/// The steps of choose_storage for rows in host memory.
struct SparseLayout::Steps {
    SparseLayout& layout;
    const FormatChoice& choice;
    const std::vector<std::int64_t>& row_start;
    const std::vector<std::int64_t>& order;
    const Columns& columns;
    std::int64_t first_row;

    void arrange(int chunk, std::int64_t sigma) {
        layout.arrange(chunk, sigma, order, row_start, choice.threads);
    }
    double padding() const { return layout.padding(row_start); }
    void store_apart(std::int64_t longest) {
        const std::vector<std::int64_t> slots = layout.store_apart(longest, order, row_start);
        Steps others{layout, choice, row_start, slots, columns, first_row};
        arrange_sorted(others, warp, choice);
    }
    void arrange_tiles() {
        if (columns) {
            layout.arrange_tiles(choice, row_start, columns(), first_row);
        }
    }
};

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
                           const std::vector<std::int64_t>& order, std::int64_t interior_rows,
                           const Columns& columns, std::int64_t first_row, int stages)
    : format(choice.wish) {
    const auto rows = static_cast<std::int64_t>(row_start.size()) - 1;
    part.push_back({.rows = order.empty() ? rows : interior_rows});
    count.boundary_rows = rows - part[0].rows;
    int stage = 0;
    for (const std::int64_t many : stage_rows(count.boundary_rows, stages)) {
        part.push_back({.stage = ++stage,
                        .rows = many,
                        .first_slot = part.back().first_slot + part.back().rows});
    }
    Steps steps{*this, choice, row_start, order, columns, first_row};
    choose_storage(steps, format, choice,
                   {rows, row_start.back(), longest_row(row_start, choice.threads)});
    find_runs(choice.threads);
}

std::int64_t SparseLayout::matrix_entries() const {
    std::int64_t entries = 0;
    for (const Part& p : part) {
        entries += p.kind == Kind::sums ? 0 : p.entries;
    }
    return entries;
}

double SparseLayout::padding(const std::vector<std::int64_t>& row_start) const {
    std::int64_t padded = 0;
    std::int64_t entries = row_start.back();
    for (const Part& p : part) {
        padded += p.kind == Kind::rows ? p.entries : 0;
        entries -= p.kind == Kind::long_rows ? p.entries : 0;
    }
    return entries == 0 ? 1.0 : static_cast<double>(padded) / static_cast<double>(entries);
}

void SparseLayout::arrange(int chunk, std::int64_t sigma, const std::vector<std::int64_t>& order,
                           const std::vector<std::int64_t>& row_start, int threads) {
    format.chunk = chunk;
    format.sigma = sigma;
    row = order;
    if (sigma > 1 && row.empty()) {
        row.resize(row_start.size() - 1);
        std::iota(row.begin(), row.end(), std::int64_t{0});
    }
    for (Part& p : part) {
        if (p.kind != Kind::rows) {
            continue;
        }
        p.chunk = chunk;
        if (sigma > 1) {
            sort_windows(std::span(row).subspan(static_cast<std::size_t>(p.first_slot),
                                                static_cast<std::size_t>(p.rows)),
                         sigma, row_start, threads);
        }
    }
    arrange_chunks(row_start, threads);
}

void SparseLayout::arrange_chunks(const std::vector<std::int64_t>& row_start, int threads) {
    std::int64_t all = 0;
    for (Part& p : part) {
        p.first_chunk = all;
        all += chunks_of(p.rows, p.chunk);
    }
    start.resize(static_cast<std::size_t>(all) + 1);
    full.resize(static_cast<std::size_t>(all));
    start[0] = 0;
    for (const Part& p : part) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::int64_t c = 0; c < chunks_of(p.rows, p.chunk); ++c) {
            std::int64_t longest = 0;
            std::int64_t shortest = std::int64_t{1} << 30;
            const std::int64_t end = std::min((c + 1) * p.chunk, p.rows);
            for (std::int64_t s = c * p.chunk; s < end; ++s) {
                const std::int64_t length = entries_of(p, s, row_start).count;
                longest = std::max(longest, length);
                shortest = std::min(shortest, length);
            }
            const auto at = static_cast<std::size_t>(p.first_chunk + c);
            start[at + 1] = longest * p.chunk;
            full[at] = end == (c + 1) * p.chunk ? static_cast<std::int32_t>(shortest) : 0;
        }
    }
    std::partial_sum(start.begin(), start.end(), start.begin());
    for (Part& p : part) {
        const auto first = start.begin() + p.first_chunk;
        p.entries = first[chunks_of(p.rows, p.chunk)] - first[0];
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
        const std::vector<std::int64_t> order =
            useful_tiles(sampler_of(groups, choice.threads), groups_of_tile, choice,
                         [&] { return tiled_order(groups, groups_of_tile, choice.threads); });
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
    arrange_chunks(row_start, choice.threads);
    if (static_cast<double>(stored()) > most_growth_by_tiles * static_cast<double>(before)) {
        row = former;
        tile = 0;
        arrange_chunks(row_start, choice.threads);
        return;
    }
    format.tile = tile;
}

std::vector<std::int64_t> SparseLayout::store_apart(std::int64_t longest,
                                                    const std::vector<std::int64_t>& order,
                                                    const std::vector<std::int64_t>& row_start) {
    const auto is_long = [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        return row_start[at + 1] - row_start[at] > longest;
    };
    const std::vector<Part> former = std::move(part);
    part.clear();
    std::vector<std::int64_t> slots;
    const auto append = [&](Part p, const std::vector<std::int64_t>& rows) {
        p.rows = std::ssize(rows);
        p.first_slot = std::ssize(slots);
        slots.insert(slots.end(), rows.begin(), rows.end());
        part.push_back(p);
    };
    LongRowSlots cutter(row_start);
    const auto append_apart = [&](Kind kind, int stage, const LongRowSlots::Slots& some) {
        if (!some.row.empty()) {
            append({.kind = kind, .stage = stage, .first_range = std::ssize(apart.range)},
                   some.row);
            apart.range.insert(apart.range.end(), some.range.begin(), some.range.end());
        }
    };
    std::vector<std::int64_t> long_ones;
    for (const Part& p : former) {
        std::vector<std::int64_t> others;
        for (std::int64_t s = p.first_slot; s < p.first_slot + p.rows; ++s) {
            const std::int64_t i = order.empty() ? s : order[static_cast<std::size_t>(s)];
            (is_long(i) ? long_ones : others).push_back(i);
        }
        append({.stage = p.stage}, others);
        const bool last = &p == &former.back();
        if (p.stage == 0 || last) {
            count.long_rows += std::ssize(long_ones);
            append_apart(Kind::long_rows, p.stage, cutter.cut(long_ones));
            long_ones.clear();
        }
    }
    apart.piece_row = std::move(cutter.piece_row);
    const int last_stage = former.back().stage;
    for (auto sums = cutter.next_sums(); !sums.row.empty(); sums = cutter.next_sums()) {
        append_apart(Kind::sums, last_stage, sums);
    }
    count.pieces = cutter.pieces;
    return slots;
}

void SparseLayout::find_runs(int threads) {
    std::int64_t runs = 0;
    for (Part& p : part) {
        std::uint64_t breaks = std::uint64_t{1} << 30;
        const std::int64_t slots = row.empty() ? 0 : p.rows;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(| : breaks)
        for (std::int64_t s = 1; s < slots; ++s) {
            const bool goes_on = row_of(p.first_slot + s) == row_of(p.first_slot + s - 1) + 1;
            breaks |= goes_on ? 0 : static_cast<std::uint64_t>(s);
        }
        p.run = 1 << std::countr_zero(breaks);
        p.first_run = runs;
        runs += chunks_of(p.rows, p.run);
    }
}

std::vector<std::int64_t> SparseLayout::list(int threads) const {
    std::vector<std::int64_t> first;
    if (row.empty()) {
        return first;
    }
    const Part& last = part.back();
    first.resize(static_cast<std::size_t>(last.first_run + chunks_of(last.rows, last.run)));
    for (const Part& p : part) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::int64_t run = 0; run < chunks_of(p.rows, p.run); ++run) {
            first[static_cast<std::size_t>(p.first_run + run)] = row_of(p.first_slot + run * p.run);
        }
    }
    return first;
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/chunk_order.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>

namespace quiver {
namespace {

/// Calls use(row) with the own row of X that each entry of a chunk refers to.
template <class Use>
void visit_columns(const ChunkRows& rows, std::int64_t chunk, Use&& use) {
    const std::int64_t own = std::ssize(rows.row_start) - 1;
    const std::int64_t first = rows.first_slot + chunk * rows.chunk;
    std::visit(
        [&](const auto column) {
            for (std::int64_t slot = first; slot < first + rows.chunk; ++slot) {
                const auto row = static_cast<std::size_t>(rows.row_of(slot));
                for (auto k = static_cast<std::size_t>(rows.row_start[row]);
                     k < static_cast<std::size_t>(rows.row_start[row + 1]); ++k) {
                    const std::int64_t target = column[k] - rows.first_row;
                    if (target >= 0 && target < own) {
                        use(static_cast<std::size_t>(target));
                    }
                }
            }
        },
        rows.column);
}

constexpr std::int32_t no_chunk = -1;

/// The chunk of each row, or no_chunk.
std::vector<std::int32_t> chunks_of_rows(const ChunkRows& rows) {
    std::vector<std::int32_t> chunk_of(rows.row_start.size() - 1, no_chunk);
    for (std::int64_t s = 0; s < rows.chunks * rows.chunk; ++s) {
        chunk_of[static_cast<std::size_t>(rows.row_of(rows.first_slot + s))] =
            static_cast<std::int32_t>(s / rows.chunk);
    }
    return chunk_of;
}

/// For each chunk of a range, the chunks that its entries refer to, with the number of such
/// entries.
struct ChunkGraph {
    std::vector<std::size_t> start{0};
    std::vector<std::int32_t> to;
    std::vector<std::int32_t> entries;

    ChunkGraph(const ChunkRows& rows, std::span<const std::int32_t> chunk_of, std::int64_t first,
               std::int64_t last) {
        start.reserve(static_cast<std::size_t>(last - first) + 1);
        // The position of a target chunk in the current chunk's list.
        std::vector<std::size_t> place(static_cast<std::size_t>(rows.chunks), 0);
        for (std::int64_t c = first; c < last; ++c) {
            const std::size_t begin = start.back();
            visit_columns(rows, c, [&](std::size_t row) {
                const std::int32_t target = chunk_of[row];
                if (target == no_chunk || target == c) {
                    return;
                }
                std::size_t& at = place[static_cast<std::size_t>(target)];
                if (at < begin || at >= to.size() || to[at] != target) {
                    at = to.size();
                    to.push_back(target);
                    entries.push_back(0);
                }
                ++entries[at];
            });
            start.push_back(to.size());
        }
    }
};

/// The graph of all chunks, in parts of equally many.
struct ChunkGraphs {
    std::int64_t each;
    std::vector<std::optional<ChunkGraph>> part;

    ChunkGraphs(const ChunkRows& rows, int threads)
        : each(std::max<std::int64_t>((rows.chunks + threads - 1) / threads, 1)),
          part(static_cast<std::size_t>((rows.chunks + each - 1) / each)) {
        const std::vector<std::int32_t> chunk_of = chunks_of_rows(rows);
        std::vector<std::exception_ptr> errors(part.size());
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::size_t p = 0; p < part.size(); ++p) {
            const auto first = static_cast<std::int64_t>(p) * each;
            try {
                part[p].emplace(rows, chunk_of, first, std::min(first + each, rows.chunks));
            } catch (...) {  // memory
                errors[p] = std::current_exception();
            }
        }
        for (const std::exception_ptr& error : errors) {
            if (error) {
                std::rethrow_exception(error);
            }
        }
    }
    /// Calls use(chunk, entries) for the chunks to which entries of chunk c refer.
    template <class Use>
    void visit(std::size_t c, Use&& use) const {
        const auto width = static_cast<std::size_t>(each);
        const ChunkGraph& graph = *part[c / width];
        for (std::size_t e = graph.start[c % width]; e < graph.start[c % width + 1]; ++e) {
            use(static_cast<std::size_t>(graph.to[e]), graph.entries[e]);
        }
    }
};

/// Grows tiles from chunks that belong to no other tile.
class Tiles {
  public:
    explicit Tiles(std::size_t chunks) : taken_(chunks, 0), pull_(chunks, 0) {}

    bool has(std::size_t chunk) const { return taken_[chunk] != 0; }
    /// Appends `seed` to `order` and then, one by one, the free chunk to which the most entries of
    /// this tile refer, until the tile has `most` chunks or refers to no free chunk. visit(c, use)
    /// calls use(chunk, entries) for the chunks to which entries of chunk c refer.
    template <class Visit>
    void grow(std::size_t seed, std::int64_t most, Visit&& visit,
              std::vector<std::int64_t>& order) {
        std::vector<std::size_t> frontier{seed};
        while (most-- > 0 && !frontier.empty()) {
            const auto strongest =
                std::max_element(frontier.begin(), frontier.end(),
                                 [&](std::size_t a, std::size_t b) { return pull_[a] < pull_[b]; });
            const std::size_t next = *strongest;
            frontier.erase(strongest);
            taken_[next] = 1;
            order.push_back(static_cast<std::int64_t>(next));
            visit(next, [&](std::size_t target, std::int32_t entries) {
                if (taken_[target] == 0) {
                    if (pull_[target] == 0) {
                        frontier.push_back(target);
                    }
                    pull_[target] += entries;
                }
            });
        }
        for (const std::size_t chunk : frontier) {
            pull_[chunk] = 0;
        }
    }
    /// Makes the chunks of a tile available to other tiles.
    void free(std::span<const std::int64_t> tile) {
        for (const std::int64_t chunk : tile) {
            taken_[static_cast<std::size_t>(chunk)] = 0;
            pull_[static_cast<std::size_t>(chunk)] = 0;
        }
    }

  private:
    std::vector<char> taken_;
    /// Number of entries of the current tile that refer to a chunk.
    std::vector<std::int32_t> pull_;
};

/// Counts the distinct own rows of X that tiles read.
class RowsRead {
  public:
    explicit RowsRead(const ChunkRows& rows)
        : rows_(rows), seen_by_(rows.row_start.size() - 1, 0) {}

    void begin_tile() { ++tile_; }
    void add(std::int64_t chunk) {
        visit_columns(rows_, chunk, [&](std::size_t row) {
            read_ += seen_by_[row] != tile_ ? 1 : 0;
            seen_by_[row] = tile_;
        });
        computed_ += rows_.chunk;
    }
    double per_row() const {
        return computed_ == 0 ? 0 : static_cast<double>(read_) / static_cast<double>(computed_);
    }

  private:
    const ChunkRows& rows_;
    /// For each row the last tile that has read it; 0 if none has.
    std::vector<std::int32_t> seen_by_;
    std::int32_t tile_ = 0;
    std::int64_t read_ = 0;
    std::int64_t computed_ = 0;
};

/// The distance between sample tiles that gives at most `samples` of them among `tiles` tiles.
std::int64_t step_of_samples(std::int64_t tiles, std::int64_t samples) {
    return std::max<std::int64_t>((tiles + samples - 1) / samples, 1);
}

}  // namespace

std::vector<std::int64_t> tiled_order(const ChunkRows& rows, int tile, int threads) {
    const ChunkGraphs graph(rows, threads);
    const auto chunks = static_cast<std::size_t>(rows.chunks);
    const auto visit = [&](std::size_t chunk, auto&& use) { graph.visit(chunk, use); };
    Tiles tiles(chunks);
    std::vector<std::int64_t> order;
    order.reserve(chunks);
    std::size_t seed = 0;
    while (order.size() < chunks) {
        const std::size_t begin = order.size();
        const std::size_t end = std::min(begin + static_cast<std::size_t>(tile), chunks);
        while (order.size() < end) {
            while (tiles.has(seed)) {
                ++seed;
            }
            tiles.grow(seed, static_cast<std::int64_t>(end - order.size()), visit, order);
        }
        // Within a tile, keep the chunks in memory order.
        std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin), order.end());
    }
    return order;
}

double rows_read_per_row(const ChunkRows& rows, std::span<const std::int64_t> order, int tile) {
    const std::int64_t tiles = rows.chunks / tile;
    RowsRead read(rows);
    for (std::int64_t t = 0; t < tiles; t += step_of_samples(tiles, 256)) {
        read.begin_tile();
        for (std::int64_t c = t * tile; c < (t + 1) * tile; ++c) {
            read.add(order.empty() ? c : order[static_cast<std::size_t>(c)]);
        }
    }
    return read.per_row();
}

double rows_read_by_free_tiles(const ChunkRows& rows, int tile) {
    const std::vector<std::int32_t> chunk_of = chunks_of_rows(rows);
    const auto visit = [&](std::size_t chunk, auto&& use) {
        visit_columns(rows, static_cast<std::int64_t>(chunk), [&](std::size_t row) {
            if (chunk_of[row] != no_chunk) {
                use(static_cast<std::size_t>(chunk_of[row]), 1);
            }
        });
    };
    const std::int64_t tiles = rows.chunks / tile;
    Tiles samples(static_cast<std::size_t>(rows.chunks));
    RowsRead read(rows);
    std::vector<std::int64_t> order;
    for (std::int64_t t = 0; t < tiles; t += step_of_samples(tiles, 32)) {
        order.clear();
        samples.grow(static_cast<std::size_t>(t * tile), tile, visit, order);
        samples.free(order);
        read.begin_tile();
        for (const std::int64_t chunk : order) {
            read.add(chunk);
        }
    }
    return read.per_row();
}

}  // namespace quiver

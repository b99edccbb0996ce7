// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/chunk_order.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <unordered_map>
#include <utility>

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
std::vector<std::int32_t> chunks_of_rows(const ChunkRows& rows, int threads) {
    std::vector<std::int32_t> chunk_of(rows.row_start.size() - 1, no_chunk);
#pragma omp parallel for num_threads(threads) schedule(static)
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
        const std::vector<std::int32_t> chunk_of = chunks_of_rows(rows, threads);
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

  private:
    std::vector<char> taken_;
    /// Number of entries of the current tile that refer to a chunk.
    std::vector<std::int32_t> pull_;
};

/// A tile that grows as those of Tiles, one chunk a step and as if there were no other tile.
class FreeTile {
  public:
    FreeTile(FreeTile&&) noexcept = default;
    FreeTile& operator=(FreeTile&&) noexcept = default;
    explicit FreeTile(std::int64_t seed) { frontier_.push_back(&*found_.emplace(seed, 0).first); }

    /// Takes the next chunk; returns no_chunk if the tile refers to no further chunk.
    std::int64_t step() {
        if (frontier_.empty()) {
            return no_chunk;
        }
        const auto strongest =
            std::max_element(frontier_.begin(), frontier_.end(),
                             [](const auto* a, const auto* b) { return a->second < b->second; });
        const std::int64_t next = (*strongest)->first;
        frontier_.erase(strongest);
        return next;
    }
    /// Adds the entry of a taken chunk that refers to `chunk`.
    void refer_to(std::int64_t chunk) {
        const auto [at, is_new] = found_.emplace(chunk, 0);
        if (is_new) {
            frontier_.push_back(&*at);
        }
        ++at->second;
    }

  private:
    /// The chunks that were found, and the number of entries that refer to each.
    std::unordered_map<std::int64_t, std::int64_t> found_;
    std::vector<std::pair<const std::int64_t, std::int64_t>*> frontier_;
};

/// The number of distinct rows, which may be sorted.
std::int64_t count_distinct(std::span<std::int64_t> rows) {
    std::array<std::uint64_t, 8192> seen{};  // a bit for each row between the first and the last
    const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
    const std::int64_t words = rows.empty() ? 0 : (*most - *least) / 64 + 1;
    if (words <= std::min(std::ssize(seen), std::ssize(rows))) {
        const std::int64_t first = rows.empty() ? 0 : *least;
        std::int64_t count = 0;
        for (const std::int64_t row : rows) {
            std::uint64_t& word = seen[static_cast<std::size_t>((row - first) / 64)];
            const std::uint64_t bit = std::uint64_t{1} << (row - first) % 64;
            count += (word & bit) == 0 ? 1 : 0;
            word |= bit;
        }
        return count;
    }
    std::sort(rows.begin(), rows.end());
    return std::unique(rows.begin(), rows.end()) - rows.begin();
}

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

double rows_read_per_row(const ChunkSampler& sampler, std::span<const std::int64_t> order,
                         int tile) {
    const std::int64_t tiles = sampler.chunks / tile;
    std::vector<std::int64_t> sample;
    for (std::int64_t t = 0; t < tiles; t += step_of_samples(tiles, 256)) {
        for (std::int64_t c = t * tile; c < (t + 1) * tile; ++c) {
            sample.push_back(order.empty() ? c : order[static_cast<std::size_t>(c)]);
        }
    }
    if (sample.empty()) {
        return 0;
    }
    std::int64_t read = 0;
    // A few tiles at a time, because the columns of all of them may take much memory.
    const auto many = static_cast<std::size_t>(16 * tile);
    for (std::size_t c = 0; c < sample.size(); c += many) {
        const std::size_t chunks = std::min(many, sample.size() - c);
        ChunkTargets targets = sampler.targets(std::span(sample).subspan(c, chunks));
#pragma omp parallel for num_threads(sampler.threads) schedule(static) reduction(+ : read)
        for (std::size_t i = 0; i < chunks; i += static_cast<std::size_t>(tile)) {
            read += count_distinct(targets.of(i, i + static_cast<std::size_t>(tile)));
        }
    }
    return static_cast<double>(read) /
           static_cast<double>(std::ssize(sample) * static_cast<std::int64_t>(sampler.chunk));
}

double rows_read_by_free_tiles(const ChunkSampler& sampler, int tile) {
    const std::int64_t tiles = sampler.chunks / tile;
    std::vector<FreeTile> samples;
    for (std::int64_t t = 0; t < tiles; t += step_of_samples(tiles, 32)) {
        samples.emplace_back(t * tile);
    }
    std::vector<std::vector<std::int64_t>> rows(samples.size());
    std::int64_t computed = 0;
    // All samples take a step before their columns are read, because a device is asked for them.
    for (int step = 0; step < tile; ++step) {
        std::vector<std::int64_t> taken;
        std::vector<std::size_t> taken_by;
        for (std::size_t i = 0; i < samples.size(); ++i) {
            const std::int64_t next = samples[i].step();
            if (next != no_chunk) {
                taken.push_back(next);
                taken_by.push_back(i);
            }
        }
        if (taken.empty()) {
            break;
        }
        computed += std::ssize(taken) * sampler.chunk;
        ChunkTargets targets = sampler.targets(taken);
        for (std::size_t c = 0; c < taken.size(); ++c) {
            const std::size_t i = taken_by[c];
            for (const std::int64_t row : targets.of(c, c + 1)) {
                rows[i].push_back(row);
                const std::int64_t chunk = sampler.chunk_of(row);
                if (chunk != no_chunk) {
                    samples[i].refer_to(chunk);
                }
            }
        }
    }
    std::int64_t read = 0;
    for (std::vector<std::int64_t>& of_tile : rows) {
        read += count_distinct(of_tile);
    }
    return computed == 0 ? 0 : static_cast<double>(read) / static_cast<double>(computed);
}

ChunkSampler sampler_of(const ChunkRows& rows, int threads) {
    ChunkSampler sampler;
    sampler.chunks = rows.chunks;
    sampler.chunk = rows.chunk;
    sampler.threads = threads;
    sampler.targets = [&rows](std::span<const std::int64_t> chunks) {
        ChunkTargets targets;
        for (const std::int64_t chunk : chunks) {
            visit_columns(rows, chunk, [&](std::size_t row) {
                targets.row.push_back(static_cast<std::int64_t>(row));
            });
            targets.start.push_back(targets.row.size());
        }
        return targets;
    };
    if (rows.row.empty()) {
        sampler.chunk_of = [&rows](std::int64_t row) {
            const std::int64_t chunk = (row - rows.first_slot) / rows.chunk;
            return row >= rows.first_slot && chunk < rows.chunks ? chunk : no_chunk;
        };
    } else {
        // Most callers need only targets().
        sampler.chunk_of = [&rows, threads,
                            chunk_of = std::vector<std::int32_t>()](std::int64_t row) mutable {
            if (chunk_of.empty()) {
                chunk_of = chunks_of_rows(rows, threads);
            }
            return std::int64_t{chunk_of[static_cast<std::size_t>(row)]};
        };
    }
    return sampler;
}

}  // namespace quiver

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
    for (std::int64_t slot = first; slot < first + rows.chunk; ++slot) {
        const auto row = static_cast<std::size_t>(rows.row_of(slot));
        for (auto k = static_cast<std::size_t>(rows.row_start[row]);
             k < static_cast<std::size_t>(rows.row_start[row + 1]); ++k) {
            const std::int64_t target = rows.column[k] - rows.first_row;
            if (target >= 0 && target < own) {
                use(static_cast<std::size_t>(target));
            }
        }
    }
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
    static constexpr std::int32_t no_chunk = -1;
};

/// The graph of all chunks, in parts of equally many.
struct ChunkGraphs {
    std::int64_t each;
    std::vector<std::optional<ChunkGraph>> part;

    ChunkGraphs(const ChunkRows& rows, int threads)
        : each(std::max<std::int64_t>((rows.chunks + threads - 1) / threads, 1)),
          part(static_cast<std::size_t>((rows.chunks + each - 1) / each)) {
        std::vector<std::int32_t> chunk_of(rows.row_start.size() - 1, ChunkGraph::no_chunk);
        for (std::int64_t s = 0; s < rows.chunks * rows.chunk; ++s) {
            chunk_of[static_cast<std::size_t>(rows.row_of(rows.first_slot + s))] =
                static_cast<std::int32_t>(s / rows.chunk);
        }
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

}  // namespace

std::vector<std::int64_t> tiled_order(const ChunkRows& rows, int tile, int threads) {
    const ChunkGraphs graph(rows, threads);
    const auto chunks = static_cast<std::size_t>(rows.chunks);
    std::vector<std::int64_t> order;
    order.reserve(chunks);
    std::vector<char> taken(chunks, 0);
    /// Number of entries of the current tile that refer to a chunk.
    std::vector<std::int32_t> pull(chunks, 0);
    std::vector<std::size_t> frontier;
    std::size_t seed = 0;
    while (order.size() < chunks) {
        for (int count = 0; count < tile && order.size() < chunks; ++count) {
            const auto strongest =
                std::max_element(frontier.begin(), frontier.end(),
                                 [&](std::size_t a, std::size_t b) { return pull[a] < pull[b]; });
            std::size_t next = seed;
            if (strongest != frontier.end()) {
                next = *strongest;
                frontier.erase(strongest);
            } else {
                while (taken[next] != 0) {
                    next = ++seed;
                }
            }
            taken[next] = 1;
            order.push_back(static_cast<std::int64_t>(next));
            graph.visit(next, [&](std::size_t target, std::int32_t entries) {
                if (taken[target] == 0) {
                    if (pull[target] == 0) {
                        frontier.push_back(target);
                    }
                    pull[target] += entries;
                }
            });
        }
        for (const std::size_t chunk : frontier) {
            pull[chunk] = 0;
        }
        frontier.clear();
        // Within a tile, keep the chunks in memory order.
        std::sort(order.end() - static_cast<std::ptrdiff_t>(
                                    (order.size() - 1) % static_cast<std::size_t>(tile) + 1),
                  order.end());
    }
    return order;
}

double rows_read_per_row(const ChunkRows& rows, std::span<const std::int64_t> order, int tile) {
    constexpr std::int64_t most_samples = 256;
    const std::int64_t tiles = rows.chunks / tile;
    const std::int64_t step = std::max<std::int64_t>(tiles / most_samples, 1);
    std::vector<std::int64_t> seen_by(rows.row_start.size() - 1, -1);
    std::int64_t read = 0;
    std::int64_t computed = 0;
    for (std::int64_t t = 0; t < tiles; t += step) {
        for (std::int64_t c = t * tile; c < (t + 1) * tile; ++c) {
            const std::int64_t chunk = order.empty() ? c : order[static_cast<std::size_t>(c)];
            visit_columns(rows, chunk, [&](std::size_t row) {
                read += seen_by[row] != t ? 1 : 0;
                seen_by[row] = t;
            });
        }
        computed += std::int64_t{tile} * rows.chunk;
    }
    return computed == 0 ? 0 : static_cast<double>(read) / static_cast<double>(computed);
}

}  // namespace quiver

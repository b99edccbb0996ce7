// SPDX-License-Identifier: BSD-3-Clause
#include "apps/halo_table.hpp"

#include <chrono>
#include <complex>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "blockvec/error.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/row_graph.hpp"

namespace quiver::apps {
namespace {

constexpr std::int64_t most_ranks = 1 << 20;

RowPlacement place_given(const RowPattern& pattern, bool by_rows, int ranks) {
    if (!by_rows) {
        return place_by_ranges(pattern, {}, ranks, {});
    }
    RowPlacement placement;
    placement.position.resize(static_cast<std::size_t>(pattern.rows()));
    std::iota(placement.position.begin(), placement.position.end(), std::int64_t{0});
    placement.offsets = RowMap::even_offsets(ranks, pattern.rows());
    return placement;
}

std::vector<HaloLine> count_lines(const RowPattern& pattern, bool by_rows,
                                  const std::vector<int>& ranks) {
    using Clock = std::chrono::steady_clock;
    const auto since = [](Clock::time_point begin) {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    const RowPattern graph = graph_of(pattern);
    auto begin = Clock::now();
    const std::vector<std::int64_t> order = reverse_cuthill_mckee(graph);
    const double order_seconds = since(begin);
    std::vector<HaloLine> lines;
    for (const int count : ranks) {
        lines.push_back(
            {count, "rows", count_halos(pattern, place_given(pattern, by_rows, count)), 0});
        lines.push_back({count, "rcm",
                         count_halos(pattern, place_by_ranges(pattern, order, count, {})),
                         order_seconds});
        if (why_no_partitioner().empty()) {
            begin = Clock::now();
            const std::vector<int> parts = partition_graph(graph, count, {});
            const double seconds = since(begin);
            lines.push_back(
                {count, "graph", count_halos(pattern, place_by_parts(parts, {}, count)), seconds});
        }
    }
    return lines;
}

}  // namespace

std::vector<int> parse_ranks(const std::string& text) {
    std::vector<int> ranks;
    std::istringstream list(text);
    for (std::string word; std::getline(list, word, ',');) {
        std::int64_t count = 0;
        if (parse_whole(word, count) != std::errc() || count < 1 || count > most_ranks) {
            throw InputError(
                fmt::format("--ranks {}: '{}' is not a number from 1 to {}; write --ranks 2,4,8",
                            text, word, most_ranks));
        }
        ranks.push_back(static_cast<int>(count));
    }
    if (ranks.empty()) {
        throw InputError("--ranks '': numbers of ranks are wanted, as in --ranks 2,4,8");
    }
    return ranks;
}

template <class T>
std::vector<HaloLine> count_halo_lines(const Comm& comm, const CsrRows<T>& rows, bool by_rows,
                                       const std::vector<int>& ranks) {
    comm.agree([&] {
        if (rows.map.global_rows() != rows.global_cols) {
            throw ShapeError(fmt::format("--ranks: {} x {} is not square", rows.map.global_rows(),
                                         rows.global_cols));
        }
    });
    const auto nonzeros = static_cast<double>(comm.sum(rows.nonzeros()));
    require_host_memory(comm, comm.rank() == 0 ? graph_bytes * nonzeros : 0,
                        "--ranks: the graph of the rows takes");
    RowPattern pattern;
    comm.agree([&] { pattern = pattern_of(rows); });
    pattern = pattern_on_rank_0(comm, pattern);
    std::vector<HaloLine> lines;
    comm.agree([&] {
        if (comm.rank() == 0) {
            lines = count_lines(pattern, by_rows, ranks);
        }
    });
    return lines;
}

std::string to_table(const std::vector<HaloLine>& lines) {
    std::string text =
        fmt::format("\n{:>6}  {:<6} {:>12} {:>12} {:>14} {:>9} {:>8}\n", "ranks", "rows",
                    "halo, all", "largest", "boundary rows", "nonzeros", "seconds");
    for (const HaloLine& line : lines) {
        text += fmt::format("{:>6}  {:<6} {:>12} {:>12} {:>14} {:>9.3f} {:>8.3f}\n", line.ranks,
                            line.distribution, line.counts.sum, line.counts.most,
                            line.counts.boundary_rows, line.counts.imbalance, line.seconds);
    }
    text += "halo: rows that ranks receive in a product; nonzeros: of the largest rank / average\n";
    if (!why_no_partitioner().empty()) {
        text += fmt::format("no lines graph: {}\n", why_no_partitioner());
    }
    return text;
}

#define QUIVER_INSTANTIATE(T)                                                             \
    template std::vector<HaloLine> count_halo_lines(const Comm&, const CsrRows<T>&, bool, \
                                                    const std::vector<int>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/row_graph.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "blockvec/row_map.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/exchange.hpp"

namespace quiver {
namespace {

std::size_t to_index(std::int64_t index) {
    return static_cast<std::size_t>(index);
}

std::span<const std::int64_t> entries_of(const std::vector<std::int64_t>& start,
                                         const std::vector<std::int64_t>& column,
                                         std::int64_t row) {
    return {column.data() + start[to_index(row)],
            to_index(start[to_index(row) + 1] - start[to_index(row)])};
}

/// Breadth-first levels of one component.
struct Levels {
    /// The rows of the component, level by level.
    std::vector<std::int64_t> rows;
    std::int64_t depth = 0;
    /// Begin of the last level in `rows`.
    std::size_t last = 0;
};

/// `level` is -1 for every row that no earlier component contains; on return it is so again.
Levels levels_from(const RowPattern& graph, std::int64_t root, std::vector<std::int64_t>& level) {
    Levels levels;
    levels.rows.push_back(root);
    level[to_index(root)] = 0;
    for (std::size_t next = 0; next < levels.rows.size(); ++next) {
        const std::int64_t row = levels.rows[next];
        for (const std::int64_t neighbour : graph.columns(row)) {
            if (level[to_index(neighbour)] < 0) {
                level[to_index(neighbour)] = level[to_index(row)] + 1;
                if (level[to_index(neighbour)] > levels.depth) {
                    levels.depth = level[to_index(neighbour)];
                    levels.last = levels.rows.size();
                }
                levels.rows.push_back(neighbour);
            }
        }
    }
    for (const std::int64_t row : levels.rows) {
        level[to_index(row)] = -1;
    }
    return levels;
}

/// A row of small degree at the end of a long path, by the algorithm of George and Liu: from the
/// farthest row of least degree, as long as the depth grows.
std::int64_t far_row(const RowPattern& graph, std::int64_t root, std::vector<std::int64_t>& level) {
    Levels levels = levels_from(graph, root, level);
    for (;;) {
        const auto farthest = std::min_element(
            levels.rows.begin() + static_cast<std::ptrdiff_t>(levels.last), levels.rows.end(),
            [&](std::int64_t x, std::int64_t y) { return graph.length(x) < graph.length(y); });
        const std::int64_t row = *farthest;
        Levels deeper = levels_from(graph, row, level);
        if (deeper.depth <= levels.depth) {
            return row;
        }
        levels = std::move(deeper);
    }
}

/// The number of each row in an order; the identity for an empty order.
std::vector<std::int64_t> numbers_in(std::span<const std::int64_t> order, std::int64_t rows) {
    std::vector<std::int64_t> number(to_index(rows));
    if (order.empty()) {
        std::iota(number.begin(), number.end(), std::int64_t{0});
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        number[to_index(order[i])] = static_cast<std::int64_t>(i);
    }
    return number;
}

}  // namespace

template <class T>
RowPattern pattern_of(const CsrRows<T>& a, const CsrRows<T>* b) {
    RowPattern pattern;
    if (b == nullptr) {
        pattern.row_start = a.row_start;
        pattern.column = a.column;
        return pattern;
    }
    for (std::int64_t row = 0; row < a.map.local_rows(); ++row) {
        const auto of_a = entries_of(a.row_start, a.column, row);
        const auto of_b = entries_of(b->row_start, b->column, row);
        std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                       std::back_inserter(pattern.column));
        pattern.row_start.push_back(pattern.entries());
    }
    return pattern;
}

RowPattern pattern_on_rank_0(const Comm& comm, const RowPattern& pattern) {
    if (comm.size() == 1) {
        return pattern;
    }
    const auto ranks = static_cast<std::size_t>(comm.size());
    std::vector<std::vector<std::int64_t>> lengths(ranks);
    std::vector<std::vector<std::int64_t>> columns(ranks);
    const auto gather = [&](std::int64_t count, auto&& item,
                            std::vector<std::vector<std::int64_t>>& of_ranks) {
        exchange<std::int64_t>(
            comm, count, item, [](std::int64_t) { return 0; },
            [&](int source, std::span<const std::int64_t> items) {
                std::vector<std::int64_t>& all = of_ranks[static_cast<std::size_t>(source)];
                all.insert(all.end(), items.begin(), items.end());
            });
    };
    gather(
        pattern.rows(), [&](std::int64_t row) { return pattern.length(row); }, lengths);
    gather(
        pattern.entries(), [&](std::int64_t i) { return pattern.column[to_index(i)]; }, columns);
    RowPattern all;
    comm.agree([&] {
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            for (const std::int64_t length : lengths[rank]) {
                all.row_start.push_back(all.row_start.back() + length);
            }
            all.column.insert(all.column.end(), columns[rank].begin(), columns[rank].end());
            std::vector<std::int64_t>().swap(columns[rank]);
        }
    });
    return all;
}

RowPattern graph_of(const RowPattern& pattern) {
    const std::int64_t rows = pattern.rows();
    std::vector<std::int64_t> start(to_index(rows) + 1, 0);
    for (std::int64_t row = 0; row < rows; ++row) {
        for (const std::int64_t column : pattern.columns(row)) {
            if (column != row) {
                ++start[to_index(row) + 1];
                ++start[to_index(column) + 1];
            }
        }
    }
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<std::int64_t> both(to_index(start.back()));
    std::vector<std::int64_t> next(start.begin(), start.end() - 1);
    for (std::int64_t row = 0; row < rows; ++row) {
        for (const std::int64_t column : pattern.columns(row)) {
            if (column != row) {
                both[to_index(next[to_index(row)]++)] = column;
                both[to_index(next[to_index(column)]++)] = row;
            }
        }
    }
    RowPattern graph;
    graph.row_start.reserve(to_index(rows) + 1);
    std::int64_t kept = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto begin = both.begin() + start[to_index(row)];
        const auto end = both.begin() + start[to_index(row) + 1];
        std::sort(begin, end);
        // Entries (i, j) and (j, i) have given each neighbour twice.
        const auto last = std::unique(begin, end);
        std::copy(begin, last, both.begin() + kept);
        kept += last - begin;
        graph.row_start.push_back(kept);
    }
    both.resize(to_index(kept));
    graph.column = std::move(both);
    return graph;
}

std::vector<std::int64_t> reverse_cuthill_mckee(const RowPattern& graph) {
    const std::int64_t rows = graph.rows();
    std::vector<std::int64_t> order;
    order.reserve(to_index(rows));
    std::vector<std::int64_t> level(to_index(rows), -1);
    std::vector<char> is_ordered(to_index(rows), 0);
    for (std::int64_t first = 0; first < rows; ++first) {
        if (is_ordered[to_index(first)] != 0) {
            continue;
        }
        const std::int64_t root = far_row(graph, first, level);
        std::size_t next = order.size();
        order.push_back(root);
        is_ordered[to_index(root)] = 1;
        for (; next < order.size(); ++next) {
            const auto begin = std::ssize(order);
            for (const std::int64_t neighbour : graph.columns(order[next])) {
                if (is_ordered[to_index(neighbour)] == 0) {
                    is_ordered[to_index(neighbour)] = 1;
                    order.push_back(neighbour);
                }
            }
            // Equal degrees keep the natural order, so that the result is unique.
            std::stable_sort(
                order.begin() + begin, order.end(),
                [&](std::int64_t x, std::int64_t y) { return graph.length(x) < graph.length(y); });
        }
    }
    std::reverse(order.begin(), order.end());
    return order;
}

RowPlacement place_by_ranges(const RowPattern& pattern, std::span<const std::int64_t> order,
                             int ranks, std::span<const double> weights) {
    RowPlacement placement;
    placement.position = numbers_in(order, pattern.rows());
    std::vector<std::int64_t> lengths(to_index(pattern.rows()));
    for (std::int64_t row = 0; row < pattern.rows(); ++row) {
        lengths[to_index(placement.position[to_index(row)])] = pattern.length(row);
    }
    placement.offsets = RowMap::balanced_offsets(ranks, lengths, weights);
    return placement;
}

RowPlacement place_by_parts(const std::vector<int>& parts, std::span<const std::int64_t> order,
                            int ranks) {
    RowPlacement placement;
    placement.offsets.assign(static_cast<std::size_t>(ranks) + 1, 0);
    for (const int part : parts) {
        ++placement.offsets[static_cast<std::size_t>(part) + 1];
    }
    std::partial_sum(placement.offsets.begin(), placement.offsets.end(), placement.offsets.begin());
    std::vector<std::int64_t> next(placement.offsets.begin(), placement.offsets.end() - 1);
    placement.position.resize(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::size_t row = order.empty() ? i : to_index(order[i]);
        placement.position[row] = next[static_cast<std::size_t>(parts[row])]++;
    }
    return placement;
}

HaloCounts count_halos(const RowPattern& pattern, const RowPlacement& placement) {
    const RowMap map(0, placement.offsets);
    const std::int64_t rows = pattern.rows();
    std::vector<std::int64_t> row_at(to_index(rows));
    for (std::int64_t row = 0; row < rows; ++row) {
        row_at[to_index(placement.position[to_index(row)])] = row;
    }
    HaloCounts counts;
    std::int64_t largest_share = 0;
    std::vector<int> last_reader(to_index(rows), -1);
    for (int rank = 0; rank < map.ranks(); ++rank) {
        const std::int64_t first = map.first_row(rank);
        const std::int64_t last = map.first_row(rank + 1);
        std::int64_t halo = 0;
        std::int64_t boundary = 0;
        std::int64_t share = 0;
        for (std::int64_t place = first; place < last; ++place) {
            bool is_boundary = false;
            for (const std::int64_t column : pattern.columns(row_at[to_index(place)])) {
                const std::int64_t to = placement.position[to_index(column)];
                if (to < first || to >= last) {
                    is_boundary = true;
                    halo += last_reader[to_index(column)] == rank ? 0 : 1;
                    last_reader[to_index(column)] = rank;
                }
            }
            boundary += is_boundary ? 1 : 0;
            share += pattern.length(row_at[to_index(place)]);
        }
        counts.sum += halo;
        counts.most = std::max(counts.most, halo);
        counts.boundary_rows += boundary;
        largest_share = std::max(largest_share, share);
    }
    counts.imbalance = HaloCounts::imbalance_of(largest_share, pattern.entries(), map.ranks());
    return counts;
}

#define QUIVER_INSTANTIATE(T) template RowPattern pattern_of(const CsrRows<T>&, const CsrRows<T>*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// knn: graphs of nearest neighbours. Each cluster is a square of cells with one random point in
// each cell; the cells are numbered row by row. A is the matrix (N + N^T) / 2, where n_ij = 1 if j
// is one of the nearest neighbours of i in its cluster.
#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/matrices/generator_table.hpp"
#include "kernels/random.hpp"

namespace quiver::apps {
namespace {

struct NeighbourGraph {
    std::int64_t nodes, neighbours;
    std::uint64_t seed;
    /// Nodes of a cluster (the last one may have fewer), and cells of a line of a cluster.
    std::int64_t size, side;
    /// The neighbours of a node are in cells up to `reach` away, in x and in y.
    std::int64_t reach;
};

struct Spot {
    std::int64_t node;
    double x, y;
};

double squared_distance(const Spot& a, const Spot& b) {
    return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
}

/// A node has at least one full quadrant of cells. `reach` is so large that enough cells of a
/// quadrant are certainly nearer than `reach`, wherever their points are.
std::int64_t reach_of(std::int64_t neighbours) {
    for (std::int64_t reach = 1;; ++reach) {
        std::int64_t cells = -1;  // without the cell of the node itself
        for (std::int64_t x = 1; x <= reach; ++x) {
            for (std::int64_t y = 1; x * x + y * y <= reach * reach; ++y) {
                ++cells;
            }
        }
        if (cells >= neighbours) {
            return reach;
        }
    }
}

/// The nodes of a cluster in cells up to `distance` away from that of a node.
std::vector<Spot> spots_around(const NeighbourGraph& graph, std::int64_t node,
                               std::int64_t distance) {
    const std::int64_t first = node / graph.size * graph.size;
    const std::int64_t size = std::min(graph.size, graph.nodes - first);
    const std::int64_t x = (node - first) % graph.side, y = (node - first) / graph.side;
    std::vector<Spot> spots;
    for (std::int64_t j = std::max<std::int64_t>(y - distance, 0); j <= y + distance; ++j) {
        for (std::int64_t i = std::max<std::int64_t>(x - distance, 0);
             i <= std::min(x + distance, graph.side - 1) && i + graph.side * j < size; ++i) {
            const std::int64_t other = first + i + graph.side * j;
            spots.push_back({other, static_cast<double>(i) + uniform(graph.seed, other, 0),
                             static_cast<double>(j) + uniform(graph.seed, other, 1)});
        }
    }
    return spots;
}

/// True if fewer than graph.neighbours other nodes are nearer to `spot` than `squared`.
bool is_near(const NeighbourGraph& graph, const std::vector<Spot>& spots, const Spot& spot,
             double squared) {
    const auto nearer = std::count_if(spots.begin(), spots.end(), [&](const Spot& other) {
        return squared_distance(spot, other) < squared;
    });
    return nearer <= graph.neighbours;  // `spot` itself is counted
}

/// The largest squared distance for which is_near() is true.
double farthest_squared(const NeighbourGraph& graph, const std::vector<Spot>& spots,
                        const Spot& spot) {
    const auto last = static_cast<std::size_t>(graph.neighbours);  // 0 is `spot` itself
    if (spots.size() <= last) {
        return std::numeric_limits<double>::infinity();
    }
    std::vector<double> squares(spots.size());
    std::transform(spots.begin(), spots.end(), squares.begin(),
                   [&](const Spot& other) { return squared_distance(spot, other); });
    const auto at = squares.begin() + graph.neighbours;
    std::nth_element(squares.begin(), at, squares.end());
    return *at;
}

void neighbours_of_node(const NeighbourGraph& graph, std::int64_t node,
                        RowEntries<double>& entries) {
    const bool small = graph.side <= 2 * graph.reach + 1;
    const std::int64_t distance = small ? graph.side : 2 * graph.reach;
    const std::vector<Spot> spots = spots_around(graph, node, distance);
    const Spot self = *std::find_if(spots.begin(), spots.end(),
                                    [&](const Spot& spot) { return spot.node == node; });
    const auto most = static_cast<double>(graph.reach * graph.reach);
    const double own_most = farthest_squared(graph, spots, self);
    for (const Spot& other : spots) {
        const double apart = squared_distance(self, other);
        if (other.node == node || (!small && apart > most)) {
            continue;
        }
        const int links =
            (apart <= own_most ? 1 : 0) + (is_near(graph, spots, other, apart) ? 1 : 0);
        if (links > 0) {
            entries.add(other.node, 0.5 * links);
        }
    }
}

GeneratedMatrix neighbour_graph(const Parameters& parameters) {
    NeighbourGraph graph{};
    graph.nodes = parameters.whole("n");
    graph.neighbours = parameters.whole("k");
    graph.seed = static_cast<std::uint64_t>(parameters.whole("seed"));
    const std::int64_t clusters = parameters.whole("clusters");
    if (graph.neighbours > 1000) {
        parameters.refuse("k: at most 1000 neighbours are supported");
    }
    if (clusters > graph.nodes) {
        parameters.refuse("clusters: there are more clusters than nodes");
    }
    graph.size = (graph.nodes - 1) / clusters + 1;
    graph.side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(graph.size))));
    graph.reach = reach_of(graph.neighbours);
    GeneratedMatrix matrix;
    matrix.rows = graph.nodes;
    matrix.make_row = [graph](std::int64_t row, RowEntries<double>& entries) {
        neighbours_of_node(graph, row, entries);
    };
    return matrix;
}

}  // namespace

std::vector<Generator> neighbour_generators() {
    return {{{"knn",
              "graph of nearest neighbours of points in a plane (rows: n)",
              {{"n", "1000", "number of points"},
               {"k", "10", "nearest neighbours of a point"},
               {"clusters", "1", "clusters far from each other"},
               seed_key}},
             neighbour_graph}};
}

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// partition_graph() by SCOTCH. Source: Pellegrini and Roman, HPCN Europe 1996.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

// scotch.h takes FILE and int64_t from these headers, but does not include them.
#include <scotch.h>
#include <stdint.h>
#include <stdio.h>

#include "blockvec/error.hpp"
#include "kernels/sparse/row_graph.hpp"

namespace quiver {
namespace {

/// The largest weight of a rank; SCOTCH takes whole numbers.
constexpr double largest_share = 1000;
/// The imbalance of the nonzeros that SCOTCH may leave.
constexpr double tolerated_imbalance = 0.03;

void require_success(int code, const char* what) {
    if (code != 0) {
        throw Error(ErrorKind::other, std::string("SCOTCH: ") + what + " failed");
    }
}

template <class From>
std::vector<SCOTCH_Num> narrowed(const std::vector<From>& values) {
    std::vector<SCOTCH_Num> result;
    result.reserve(values.size());
    for (const From value : values) {
        result.push_back(static_cast<SCOTCH_Num>(value));
    }
    return result;
}

/// The objects of SCOTCH for one partition. A context of one thread with a seed of its own makes
/// the result the same in every call.
struct Scotch {
    SCOTCH_Context context;
    SCOTCH_Graph graph;
    SCOTCH_Graph bound;
    SCOTCH_Strat strategy;
    SCOTCH_Arch ranks;

    Scotch() {
        SCOTCH_contextInit(&context);
        SCOTCH_graphInit(&graph);
        SCOTCH_graphInit(&bound);
        SCOTCH_stratInit(&strategy);
        SCOTCH_archInit(&ranks);
    }
    Scotch(const Scotch&) = delete;
    Scotch& operator=(const Scotch&) = delete;
    ~Scotch() {
        SCOTCH_archExit(&ranks);
        SCOTCH_stratExit(&strategy);
        SCOTCH_graphExit(&bound);
        SCOTCH_graphExit(&graph);
        SCOTCH_contextExit(&context);
    }
};

/// The ranks with a positive weight, and their shares.
struct Shares {
    std::vector<int> rank;
    std::vector<SCOTCH_Num> share;

    Shares(int ranks, std::span<const double> weights) {
        const double most = weights.empty() ? 1 : *std::max_element(weights.begin(), weights.end());
        for (int r = 0; r < ranks; ++r) {
            const double weight = weights.empty() ? 1 : weights[static_cast<std::size_t>(r)];
            if (weight > 0) {
                const double scaled = weights.empty() ? 1 : largest_share * weight / most;
                rank.push_back(r);
                share.push_back(static_cast<SCOTCH_Num>(std::max(1.0, std::round(scaled))));
            }
        }
    }
};

}  // namespace

const char* scotch_version() {
    static const std::string version = [] {
        int major = 0;
        int minor = 0;
        int patch = 0;
        SCOTCH_version(&major, &minor, &patch);
        return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    }();
    return version.c_str();
}

std::string why_no_partitioner() {
    const char* const chosen = std::getenv("QUIVER_SCOTCH");
    return chosen != nullptr && std::string_view(chosen) == "none"
               ? "QUIVER_SCOTCH=none switches SCOTCH off: unset it to partition the graph of the "
                 "rows, or partition by rows"
               : "";
}

std::vector<int> partition_graph(const RowPattern& graph, int ranks,
                                 std::span<const double> weights) {
    require_graph_partitioner();
    constexpr std::int64_t most = std::numeric_limits<SCOTCH_Num>::max();
    if (graph.entries() + graph.rows() > most) {
        throw UnsupportedError("the graph of " + std::to_string(graph.rows()) + " rows has " +
                               std::to_string(graph.entries()) +
                               " neighbours of rows; SCOTCH takes at most " + std::to_string(most) +
                               " rows and neighbours; partition by rows");
    }
    const Shares shares(ranks, weights);
    std::vector<int> part(static_cast<std::size_t>(graph.rows()), shares.rank.front());
    const auto parts = static_cast<SCOTCH_Num>(shares.rank.size());
    if (parts == 1 || graph.rows() == 0) {
        return part;
    }
    std::vector<SCOTCH_Num> start = narrowed(graph.row_start);
    std::vector<SCOTCH_Num> neighbour = narrowed(graph.column);
    std::vector<SCOTCH_Num> work;
    work.reserve(part.size());
    for (std::int64_t row = 0; row < graph.rows(); ++row) {
        work.push_back(static_cast<SCOTCH_Num>(graph.length(row) + 2));  // the diagonal, the row
    }
    Scotch scotch;
    require_success(SCOTCH_contextOptionSetNum(&scotch.context, SCOTCH_OPTIONNUMDETERMINISTIC, 1),
                    "SCOTCH_contextOptionSetNum");
    require_success(SCOTCH_contextThreadSpawn(&scotch.context, 1, nullptr),
                    "SCOTCH_contextThreadSpawn");
    require_success(SCOTCH_contextRandomClone(&scotch.context), "SCOTCH_contextRandomClone");
    SCOTCH_contextRandomSeed(&scotch.context, 1);
    SCOTCH_contextRandomReset(&scotch.context);
    require_success(
        SCOTCH_graphBuild(&scotch.graph, 0, static_cast<SCOTCH_Num>(graph.rows()), start.data(),
                          nullptr, work.data(), nullptr, static_cast<SCOTCH_Num>(graph.entries()),
                          neighbour.data(), nullptr),
        "SCOTCH_graphBuild");
    require_success(SCOTCH_contextBindGraph(&scotch.context, &scotch.graph, &scotch.bound),
                    "SCOTCH_contextBindGraph");
    require_success(SCOTCH_stratGraphMapBuild(&scotch.strategy, SCOTCH_STRATDEFAULT, parts,
                                              tolerated_imbalance),
                    "SCOTCH_stratGraphMapBuild");
    require_success(SCOTCH_archCmpltw(&scotch.ranks, parts, shares.share.data()),
                    "SCOTCH_archCmpltw");
    std::vector<SCOTCH_Num> domain(part.size());
    require_success(SCOTCH_graphMap(&scotch.bound, &scotch.ranks, &scotch.strategy, domain.data()),
                    "SCOTCH_graphMap");
    for (std::size_t row = 0; row < part.size(); ++row) {
        part[row] = shares.rank[static_cast<std::size_t>(domain[row])];
    }
    return part;
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "apps/row_distribution.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

using nlohmann::ordered_json;

ordered_json json_halo(const std::optional<HaloCounts>& counts) {
    if (!counts) {
        return nullptr;
    }
    return {{"sum", counts->sum},
            {"largest", counts->most},
            {"boundary_rows", counts->boundary_rows},
            {"imbalance", counts->imbalance}};
}

}  // namespace

void resolve_distribution(RowDistribution& rows) {
    ReorderingOptions& options = rows.options;
    for (const RowPartition partition :
         {RowPartition::automatic, RowPartition::rows, RowPartition::graph}) {
        options.partition = rows.partition == to_string(partition) ? partition : options.partition;
    }
    options.order = rows.order == to_string(RowOrder::rcm) ? RowOrder::rcm : RowOrder::natural;
    if (options.partition == RowPartition::graph) {
        try {
            require_graph_partitioner();
        } catch (const UnsupportedError& error) {
            throw UnsupportedError(std::string("--partition graph: ") + error.what());
        }
    }
}

void fit_to(const Execution& execution, ReorderingOptions& options) {
    // `mixed` is the same on all ranks, so that all ranks have the same rate.
    if (execution.device.place == Place::device && !execution.mixed) {
        options.halo_bytes_per_second = halo_rate_of_gpus;
    }
}

std::string distribution_lines(const ReorderingFacts& facts) {
    if (!facts.before) {
        return "";
    }
    const HaloCounts& now = facts.after ? *facts.after : *facts.before;
    std::string text =
        fmt::format("rows        by {}{}: halo of {} rows on the largest rank, {} on all",
                    facts.partition == RowPartition::graph ? "graph" : "ranges",
                    facts.order == RowOrder::rcm ? " in the order rcm" : "", now.most, now.sum);
    if (facts.after) {
        text += fmt::format(" (before: {}, {}); {:.3f} seconds", facts.before->most,
                            facts.before->sum, facts.seconds);
    }
    text += '\n';
    if (!facts.reason.empty()) {
        text += fmt::format("            since {}\n", facts.reason);
    }
    return text;
}

ordered_json json_distribution(const ReorderingFacts& facts) {
    return {{"partition", to_string(facts.partition)},
            {"order", to_string(facts.order)},
            {"reason", facts.reason},
            {"halo_before", json_halo(facts.before)},
            {"halo", json_halo(facts.after ? facts.after : facts.before)},
            {"seconds", facts.seconds}};
}

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// The distribution of rows by the options --partition and --order: options and report.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "apps/execution.hpp"
#include "kernels/sparse/reordering.hpp"

namespace quiver::apps {

struct RowDistribution {
    /// The words of the command line. Only `eigs` has --weights.
    std::string partition = "auto";
    std::string order = "none";
    std::string weights = "auto";
    ReorderingOptions options;
};

/// Sets the options from the words --partition and --order. Throws UnsupportedError, which names
/// --partition, if the graph partitioner is requested and missing.
void resolve_distribution(RowDistribution& rows);

/// Sets the rate of halos: GPUs receive faster than ranks of the host.
void fit_to(const Execution& execution, ReorderingOptions& options);

/// Lines on the distribution; empty if the halos were not counted.
std::string distribution_lines(const ReorderingFacts& facts);
nlohmann::ordered_json json_distribution(const ReorderingFacts& facts);

}  // namespace quiver::apps

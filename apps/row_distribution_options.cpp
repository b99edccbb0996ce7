// SPDX-License-Identifier: BSD-3-Clause
#include "apps/row_distribution_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace quiver::apps {

void add_row_distribution(CLI::App& command, RowDistribution& words) {
    command
        .add_option("--partition", words.partition,
                    "Rows of each rank: a range of rows, or a part of the graph (SCOTCH), so that "
                    "ranks exchange fewer rows; auto: graph where it pays")
        ->check(CLI::IsMember({"auto", "rows", "graph"}))
        ->capture_default_str();
    command
        .add_option("--order", words.order,
                    "Order of the rows in memory; rcm: reverse Cuthill-McKee. Results keep the "
                    "numbering of the matrix")
        ->check(CLI::IsMember({"none", "rcm"}))
        ->capture_default_str();
}

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// The options --partition and --order, which several subcommands have.
#pragma once

#include <CLI/App.hpp>

#include "apps/row_distribution.hpp"

namespace quiver::apps {

void add_row_distribution(CLI::App& command, RowDistribution& words);

}  // namespace quiver::apps

// SPDX-License-Identifier: BSD-3-Clause
// When blocking pays: block Jacobi-Davidson with blocks of 1, 2, 4 and 8 columns.
#pragma once

#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

struct BlockingOptions {
    /// Files and gen:NAME,...
    std::vector<std::string> matrices;
    /// Seconds after which no further solve starts, and one that runs is cut off.
    double budget = 60;
    /// Files to write; empty: none.
    std::string plot;
    std::string markdown;
    /// What to write above the table.
    std::string command;
};

/// The 10 smallest eigenvalues of each matrix, residuals to 1e-8 ||A||, verified, once for each
/// block size that it has the rows for, after a warm-up of 100 block products: seconds and products
/// to a table and charts. Throws InputError for a matrix that cannot be. Returns whether all have
/// converged; how many have not goes to stderr, too. One process.
bool run_blocking(const Comm& comm, const Device& device, const BlockingOptions& options);

}  // namespace quiver::apps::bench

// SPDX-License-Identifier: BSD-3-Clause
// When blocking pays: block Jacobi-Davidson with blocks of 1, 2, 4 and 8 columns.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// No further solve starts once the budget is spent, and one that runs is cut off.
struct BlockingOptions : CommonOptions {
    /// Files and gen:NAME,...
    std::vector<std::string> matrices;
};

/// The 10 smallest eigenvalues of each matrix, residuals to 1e-8 ||A||, verified, once for each
/// block size that it has the rows for, after a warm-up of 100 block products: seconds and products
/// to a table and JSON. Throws InputError for a matrix that cannot be. Returns whether all have
/// converged; how many have not goes to stderr, too. One process.
bool run_blocking(const Comm& comm, const BlockingOptions& options);

}  // namespace quiver::apps::bench

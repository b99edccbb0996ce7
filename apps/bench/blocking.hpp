// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench blocking`: block Jacobi-Davidson with blocks of 1, 2, 4 and 8 columns.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// No further solve starts once the budget is spent, and a running solve is stopped.
struct BlockingOptions : CommonOptions {
    /// Files and gen:NAME,...
    std::vector<std::string> matrices;
};

/// Computes the 10 smallest eigenvalues of each matrix, verified, with residuals of 1e-8 ||A||,
/// once for each block size that the number of rows allows. A warm-up of at most 100 block products
/// precedes each solve. Writes seconds and numbers of products to a table and to JSON. Returns true
/// if all solves have converged; otherwise prints to stderr how many have not. Throws InputError
/// for a matrix that cannot be solved. Runs on one process.
bool run_blocking(const Comm& comm, const BlockingOptions& options);

}  // namespace quiver::apps::bench

// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench abft`: how many injected faults checksums find and repair, and what they cost.
#pragma once

#include <cstdint>
#include <string>

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// The injection of faults takes at most half of the budget. Once the budget is spent, no further
/// operation and no further round of solves starts; the first round and the products always run.
struct AbftBenchOptions : CommonOptions {
    /// A file or gen:NAME,... whose products and solves are timed with and without checks.
    std::string matrix;
    /// The texts of --scalar, --widths and --rows. Defaults if empty: "d", "8,32", and the number
    /// of rows of the matrix.
    std::string scalars;
    std::string widths;
    std::string rows;
    /// Number of faults to inject in all, divided among scalars, places and ranks.
    std::int64_t faults = 10000;
    std::uint64_t seed = 1;
};

/// Prints tables of
/// - faults by scalar and place: products of a 24 x 22 x 20 Laplacian with 8 columns, each with one
/// flipped bit, compared with the same product without it; also false alarms of clean products,
/// - times of the protected operations of solvers/abft,
/// - times of products with `matrix` and of their checks,
/// - times of block Lanczos with blocks of 8.
/// Works on any number of ranks; each rank has its own faults and blocks. Returns true if all of
/// these hold: every fault above the bound was found; every found fault was repaired, or reported
/// as a lost input; no clean product was reported as faulty; no solve raised an alarm; all
/// protected operations gave the expected bits. Throws InputError for invalid options, and for a
/// matrix that is not Hermitian or too small.
bool run_abft(const Comm& comm, const AbftBenchOptions& options);

}  // namespace quiver::apps::bench

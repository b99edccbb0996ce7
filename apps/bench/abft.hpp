// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench abft`: how many injected faults checksums find and repair, and what they cost.
#pragma once

#include <cstdint>
#include <string>

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// Faults are injected for half of the budget; no operation or solve starts once it is spent.
struct AbftBenchOptions : CommonOptions {
    /// A file or gen:NAME,... whose products and solves are timed with and without checks.
    std::string matrix;
    /// The texts of --scalar, --widths and --rows; empty: "d", "8,32", the rows of the matrix.
    std::string scalars;
    std::string widths;
    std::string rows;
    /// Number of faults to inject in all, divided among scalars and places.
    std::int64_t faults = 10000;
    std::uint64_t seed = 1;
};

/// Prints tables of
/// - faults by scalar and place: products of a 24 x 22 x 20 Laplacian with 8 columns, each with one
/// flipped bit, compared with the same product without it; also false alarms of clean products,
/// - times of the protected operations of solvers/abft,
/// - times of block Lanczos with blocks of 8, as a whole and kernel by kernel.
/// Works on any number of ranks; each rank has its own faults and blocks. Returns true if no fault
/// was missed, no alarm was false, and all protected operations gave the same bits as their
/// kernels. Throws InputError for lists that cannot be parsed.
bool run_abft(const Comm& comm, const AbftBenchOptions& options);

}  // namespace quiver::apps::bench

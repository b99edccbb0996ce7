// SPDX-License-Identifier: BSD-3-Clause
// What checksums find and mend of faults that are injected, and what they cost.
#pragma once

#include <cstdint>
#include <string>

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// Operations and solves start as long as the budget lasts, faults are injected for half of it.
struct AbftBenchOptions : CommonOptions {
    /// A file or gen:NAME,... whose products and solves are timed with and without checks.
    std::string matrix;
    /// As --scalar, --widths and --rows have them; empty: d, 8,32, the rows of the matrix.
    std::string scalars;
    std::string widths;
    std::string rows;
    /// Faults to inject in all, shared by scalars and places.
    std::int64_t faults = 10000;
    std::uint64_t seed = 1;
};

/// Tables: of faults by scalar and place, products of a 24 x 22 x 20 Laplacian with 8 columns, each
/// with one flipped bit, against the product without; of products without faults; of times of the
/// protected operations of solvers/abft; and of times of block Lanczos with blocks of 8, as a whole
/// and kernel by kernel. Any number of ranks, each with faults and blocks of its own. Returns
/// whether nothing was missed, nothing false, and all protected operations left the bits of their
/// kernels. Throws InputError for lists that are none.
bool run_abft(const Comm& comm, const AbftBenchOptions& options);

}  // namespace quiver::apps::bench

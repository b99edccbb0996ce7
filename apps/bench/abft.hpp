// SPDX-License-Identifier: BSD-3-Clause
// What checksums find and mend of faults that are injected, and what they cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

struct AbftBenchOptions {
    /// A file or gen:NAME,... whose products and solves are timed with and without checks.
    std::string matrix;
    std::vector<Dtype> scalars;
    /// Faults to inject in all, shared by scalars and places.
    std::int64_t faults = 10000;
    /// Seconds after which no further fault is injected and no further solve starts.
    double budget = 60;
    std::uint64_t seed = 1;
    /// A file to write; empty: none.
    std::string markdown;
    /// What to write above the tables.
    std::string command;
};

/// Tables: of faults by scalar and place, products of a 24 x 22 x 20 Laplacian with 8 columns, each
/// with one flipped bit, against the product without; of products without faults; and of times,
/// block Lanczos with blocks of 8 as a whole and kernel by kernel. Any number of ranks, each with
/// faults of its own. Returns whether nothing was missed, nothing false and all solves converged.
bool run_abft(const Comm& comm, const Device& device, const AbftBenchOptions& options);

}  // namespace quiver::apps::bench

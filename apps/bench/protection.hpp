// SPDX-License-Identifier: BSD-3-Clause
// What the protection against silent faults adds to the time of each method.
#pragma once

#include <cstdint>
#include <string>

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// `repeat`: rounds. A method starts as long as the budget lasts.
struct ProtectionOptions : CommonOptions {
    /// The matrix is gen:laplace3d,nx=...
    std::int64_t nx = 40;
    /// A list; empty: all.
    std::string methods;
};

/// The table of costs of docs/abft.md: each eigensolver, linear solver and `qr` without protection,
/// with `detect` and with `correct`, in turn in every round, after one solve that is not timed.
/// Medians of the rounds. Any number of ranks. Returns whether all solves have converged and raised
/// no alarm. Throws InputError for lists that are none.
bool run_protection(const Comm& comm, const ProtectionOptions& options);

}  // namespace quiver::apps::bench

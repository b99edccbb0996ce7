// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench protection`: the time that protection against silent faults adds to each method.
#pragma once

#include <cstdint>
#include <string>

#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// `repeat` is the number of rounds. No method starts once the budget is spent.
struct ProtectionOptions : CommonOptions {
    /// The matrix is gen:laplace3d,nx=...
    std::int64_t nx = 40;
    /// A list of method names; empty: all methods.
    std::string methods;
};

/// Prints the table of costs of docs/abft.md. After one solve that is not timed, every round times
/// each eigensolver, each linear solver and `qr` without protection, with `detect` and with
/// `correct`; the table has the medians of all rounds. Works on any number of ranks. Returns
/// true if all solves have converged and raised no alarm. Throws InputError for invalid options.
bool run_protection(const Comm& comm, const ProtectionOptions& options);

}  // namespace quiver::apps::bench

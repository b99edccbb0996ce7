// SPDX-License-Identifier: BSD-3-Clause
// Modes, options and counts of the protection against silent faults.
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/comm.hpp"
#include "solvers/abft/fault_injector.hpp"

namespace quiver {

enum class AbftMode : std::uint8_t {
    off,
    /// Faults are detected and counted; no data is changed.
    detect,
    /// Faults are detected and repaired.
    correct,
};
/// "off", "detect", "correct".
const char* to_string(AbftMode mode);

struct AbftOptions {
    AbftMode mode = AbftMode::off;
    InjectOptions inject = {};
    /// Checksums are formed over chunks of 2^log_chunk rows; 12 to 16.
    int log_chunk = 14;
    /// Also checks the block products and block updates of solvers other than block Lanczos, one by
    /// one (GuardedKernels). A solve then takes 1.7 to 3.7 times as long on a host, and 2.6 to 15
    /// times on an H200.
    bool updates = false;
};

/// Counts of one rank, or of all ranks after summed().
struct AbftCounts {
    /// Products of the operator, and those of them that were checked. A product is not checked if
    /// its operands are not finite or have squares that overflow.
    std::int64_t products = 0;
    std::int64_t checked = 0;
    /// Additional checks made by a solver: steps of a basis, restarts.
    std::int64_t basis_checks = 0;
    /// Checks whose first comparison failed, and those of them that rounding explains: a second
    /// product has the same bits, and all memory that the product reads is unchanged.
    std::int64_t alarms = 0;
    std::int64_t rounding = 0;
    /// Faults detected. With `correct` each fault is also counted in one of the next three counts;
    /// with `detect` it is counted in none of them.
    std::int64_t faults = 0;
    /// One wrong row or memory word was repaired.
    std::int64_t mended = 0;
    /// More than one row was wrong: chunks or solver steps were computed again.
    std::int64_t redone = 0;
    /// The fault could not be repaired.
    std::int64_t failed = 0;
    /// Bits flipped by the injector.
    std::int64_t injected = 0;
    /// Block products and block updates (GuardedKernels), and how many of them were compared in
    /// every chunk and column.
    std::int64_t updates = 0;
    std::int64_t updates_checked = 0;

    /// Adds the counts of a solve's guarded kernels; their calls count as updates.
    void add_updates(const AbftCounts& kernels);
    /// Sums the counts over all ranks. One all-reduce.
    AbftCounts summed(const Comm& comm) const;
};

}  // namespace quiver

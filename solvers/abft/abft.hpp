// SPDX-License-Identifier: BSD-3-Clause
// What is done about silent faults, and what came of it.
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/comm.hpp"
#include "solvers/abft/fault_injector.hpp"

namespace quiver {

enum class AbftMode : std::uint8_t {
    off,
    /// Faults are found and counted; nothing is changed.
    detect,
    /// And mended.
    correct,
};
/// "off", "detect", "correct".
const char* to_string(AbftMode mode);

struct AbftOptions {
    AbftMode mode = AbftMode::off;
    InjectOptions inject = {};
    /// Rows of a chunk of sums: 2^log_chunk, 12 to 16.
    int log_chunk = 14;
    /// Also the products and updates of blocks of solvers other than block Lanczos, one by one
    /// (GuardedKernels), at 1.7 to 3.7 times the cost of the solve.
    bool updates = false;
};

/// Counts of one rank, or of all after summed().
struct AbftCounts {
    /// Products of the operator, and how many of them were checked: all, unless their X was not
    /// finite.
    std::int64_t products = 0;
    std::int64_t checked = 0;
    /// Further checks of a solver's own: steps of a basis, restarts.
    std::int64_t basis_checks = 0;
    /// Checks that failed at first sight, and those of them that rounding explains: a second
    /// product has the same bits, and all memory that it reads is as it was.
    std::int64_t alarms = 0;
    std::int64_t rounding = 0;
    /// Faults found, each of them in one of the following counts (none of them with `detect`).
    std::int64_t faults = 0;
    /// One row was wrong, or one word of memory, and is right again.
    std::int64_t mended = 0;
    /// More was wrong; chunks, or steps of a solver, were computed again.
    std::int64_t redone = 0;
    /// Could not be mended.
    std::int64_t failed = 0;
    /// Bits that were flipped on purpose.
    std::int64_t injected = 0;
    /// Products and updates of blocks (GuardedKernels), and how many of them were compared in every
    /// chunk and column.
    std::int64_t updates = 0;
    std::int64_t updates_checked = 0;

    /// Those of a solve's guarded kernels, whose calls count as updates.
    void add_updates(const AbftCounts& kernels);
    /// Over all ranks. One all-reduce.
    AbftCounts summed(const Comm& comm) const;
};

}  // namespace quiver

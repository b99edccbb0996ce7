// SPDX-License-Identifier: BSD-3-Clause
// What the machine can do at best, measured in the same run as the cases held against it.
#pragma once

#include "apps/bench/case.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

struct Ceilings {
    /// Bytes per second of kernels that only read, and of those that read and write.
    double read = 0;
    double scale = 0;
    /// Real operations per second in single and double; 0 where not measured.
    double single_flops = 0;
    double double_flops = 0;
};

/// Bytes of the last-level caches that the Context's place has: of all processors, or of the GPU.
double cache_bytes(const Context& ctx);

/// Bytes that operands take by default: well above the caches (4 times, and at least 64 MB on the
/// host and 2 GB on a device), at most a quarter of the memory.
double default_operand_bytes(const Context& ctx);

/// read: the fastest of a plain loop (host only), dots(X, X) and tsmttsm; scale: the fastest of a
/// plain loop (host only), scale() and copy(). Flops: multiply-adds in registers on all threads,
/// host only. Takes about a second.
Ceilings measure_ceilings(Context& ctx);

/// Fills in the rates of a result: the ceiling that binds it and how near it comes.
void hold_against(const Ceilings& ceilings, Result& result);

}  // namespace quiver::apps::bench

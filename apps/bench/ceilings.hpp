// SPDX-License-Identifier: BSD-3-Clause
// The highest speeds of the machine, measured in the same run as the cases compared with them.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/case.hpp"
#include "blockvec/context.hpp"
#include "kernels/ceilings.hpp"

namespace quiver::apps::bench {

struct Ceilings {
    struct Peak {
        std::string name;
        /// Real operations per second.
        double flops = 0;
        bool single = false;
    };
    /// Bytes per second of three streams: read only; copy from one array to another; scale an array
    /// in place. 0 if not measured.
    double read = 0;
    double copy = 0;
    double scale = 0;
    std::vector<Peak> peaks;

    double of(Traffic traffic) const;
    /// The highest peak for a scalar: that of multiply-adds, for d and z also that of the tensor
    /// cores. 0 if none was measured, and for h and b, since no kernel of these types comes near
    /// the peak.
    double flops(Dtype scalar) const;
};

const char* to_string(Traffic traffic);

/// "4540 GB/s", or "not measured" for 0.
std::string bandwidth_text(double bytes_per_second);
/// Bytes of the last-level caches at the Context's place: of all processors, or of the GPU.
double cache_bytes(const Context& ctx);

/// Operands of this many times the size of the caches are read from memory in every call.
inline constexpr double cold_caches = 4;
/// If the free memory is too small for that, operands of this many times the caches still count as
/// cold.
inline constexpr double least_cold_caches = 2;

/// Default size of the operands in bytes: well above the caches (cold_caches times their size
/// `caches`, and at least 64 MB on the host and 2 GB on a device), at most a quarter of the memory.
double default_operand_bytes(const Context& ctx, double caches);

/// Bytes that the operands of one measurement may take: three quarters of the free memory at the
/// Context's place. On the host the address space that is left under the limit of the process also
/// counts, if it is less.
double affordable_bytes(const Context& ctx);

/// Measures the fastest form of each stream and the peaks of all arithmetic at the Context's place
/// (kernels/ceilings.hpp). A stream passes over `bytes` of operands, or affordable_bytes() if that
/// is less. It is not measured with less than `least_bytes`, because a cache might hold so few.
/// Takes a second or two, longer with caches of gigabytes.
Ceilings measure_ceilings(Context& ctx, double bytes, double least_bytes);

/// Fills in bytes and flops of a result, the ceiling that limits it, and the percentage of that
/// ceiling that it reaches. Without a measured stream, or with operands in a cache, the result has
/// no ceiling. For `short_rows` also fills in the limit of a call: the roofline's time over 0.9,
/// plus 5 microseconds.
void hold_against(const Ceilings& ceilings, bool short_rows, Result& result);

}  // namespace quiver::apps::bench

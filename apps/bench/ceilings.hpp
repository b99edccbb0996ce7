// SPDX-License-Identifier: BSD-3-Clause
// What the machine can do at best, measured in the same run as the cases held against it.
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
    /// Bytes per second of streams that only read; that read one array and write another; that
    /// write what they have read. 0 where they were not measured.
    double read = 0;
    double copy = 0;
    double scale = 0;
    std::vector<Peak> peaks;

    double of(Traffic traffic) const;
    /// The highest peak for a scalar: of multiply-adds, for d and z also of the tensor cores. 0
    /// where none was measured, and for h and b, of which no kernel comes near it.
    double flops(Dtype scalar) const;
};

const char* to_string(Traffic traffic);

/// "4540 GB/s", or "not measured" for 0.
std::string bandwidth_text(double bytes_per_second);
/// Bytes of the last-level caches that the Context's place has: of all processors, or of the GPU.
double cache_bytes(const Context& ctx);

/// Operands of this many times the caches come from memory, call after call.
inline constexpr double cold_caches = 4;
/// Where the memory left is short, operands of this many times the caches still count as cold.
inline constexpr double least_cold_caches = 2;

/// Bytes that operands take by default: well above the caches (cold_caches, and at least 64 MB on
/// the host and 2 GB on a device), at most a quarter of the memory.
double default_operand_bytes(const Context& ctx);

/// Bytes that the operands of one measurement may take: three quarters of the memory that the
/// Context's place has left, on the host also of the address space that a limit leaves to this
/// process.
double affordable_bytes(const Context& ctx);

/// The fastest form of each stream and the peaks of all arithmetic that the Context's place has
/// (kernels/ceilings.hpp). Every stream passes over `bytes` of operands, or over what is affordable
/// if that is less; it is not measured on less than `least_bytes`, which a cache might hold. Takes
/// a second or two, longer with caches of gigabytes.
Ceilings measure_ceilings(Context& ctx, double bytes, double least_bytes);

/// Fills in the rates of a result: the ceiling that binds it and how near it comes. Without a
/// measured stream, or with operands in a cache, the result has no ceiling. For `short_rows` also
/// what a call may take: the roofline's time over 0.9, and 5 microseconds.
void hold_against(const Ceilings& ceilings, bool short_rows, Result& result);

}  // namespace quiver::apps::bench

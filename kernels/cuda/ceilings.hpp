// SPDX-License-Identifier: BSD-3-Clause
// The device forms of kernels/ceilings.hpp.
#pragma once

#include <string>

#include "kernels/ceilings.hpp"

namespace quiver::cuda {

/// One form of a stream: the number of 16-byte loads in flight per thread, and the number of blocks
/// per multiprocessor (0: one block per tile).
struct TrafficForm {
    int unroll;
    int blocks;
    /// If true, loads and stores carry the hint not to stay in the caches.
    bool streaming;
};

inline constexpr TrafficForm all_traffic_forms[] = {{4, 0, false}, {8, 0, false}, {8, 0, true},
                                                    {4, 8, false}, {8, 4, false}, {8, 8, true},
                                                    {16, 4, false}};

/// Name expressions of the kernels in ceilings.cuh.
std::string expression(Traffic traffic, const TrafficForm& form);
std::string expression(Arithmetic arithmetic);

int traffic_forms(Traffic traffic);
void run_traffic(Context& ctx, Traffic traffic, int form, double factor, double* x, double* y,
                 std::int64_t count);
std::int64_t arithmetic_results(const Context& ctx, Arithmetic arithmetic);
double run_arithmetic(Context& ctx, Arithmetic arithmetic, std::int64_t steps, double* results);

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
// The host forms of kernels/ceilings.hpp.
#pragma once

#include "kernels/ceilings.hpp"

namespace quiver::host {

int traffic_forms(Traffic traffic);
void run_traffic(int threads, Traffic traffic, int form, double factor, double* x, double* y,
                 std::int64_t count);
double run_arithmetic(int threads, Arithmetic arithmetic, std::int64_t steps, double* results);

}  // namespace quiver::host

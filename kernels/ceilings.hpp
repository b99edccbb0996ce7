// SPDX-License-Identifier: BSD-3-Clause
// Kernels that do one thing as fast as the machine can: what all others are held against.
#pragma once

#include <cstdint>

namespace quiver {

class Context;

/// read: y, of count / 16 elements, receives partial sums of x, a small part of the traffic; their
/// total is the sum of x when y is zero before. copy: y = factor x. scale: x = factor x, y is not
/// touched.
enum class Traffic : std::uint8_t { read, copy, scale };

/// How many forms of a stream the Context's place has; the ceiling is the fastest of them.
int traffic_forms(const Context& ctx, Traffic traffic);

/// Passes once over x and y, `count` elements each in the Context's place, aligned to 64 bytes;
/// count is a multiple of 2^16, else UnsupportedError. Host forms divide among the Context's
/// threads; copy has a form with non-temporal stores, which spare reading what is overwritten. On
/// a device it is enqueued. Bytes: 8 count, twice that for copy and scale.
/// Source: McCalpin, STREAM; Ernst, Hager, Thies, Wellein, IJHPCA 2020, section 1.6.2.
void run_traffic(Context& ctx, Traffic traffic, int form, double factor, double* x, double* y,
                 std::int64_t count);

/// Multiply-adds in registers: on vectors of single or double, or of the tensor cores, whose shape
/// m x n x k the name tells.
enum class Arithmetic : std::uint8_t {
    single_fma,
    double_fma,
    double_mma_8x8x4,
    double_mma_16x8x4,
    double_mma_16x8x8,
    double_mma_16x8x16
};
inline constexpr Arithmetic all_arithmetic[] = {
    Arithmetic::single_fma,        Arithmetic::double_fma,        Arithmetic::double_mma_8x8x4,
    Arithmetic::double_mma_16x8x4, Arithmetic::double_mma_16x8x8, Arithmetic::double_mma_16x8x16};

/// "FMA single", "tensor double 8x8x4", ...
const char* to_string(Arithmetic arithmetic);

/// Whether the Context's place has the instructions.
bool can_run(const Context& ctx, Arithmetic arithmetic);

/// Elements that run_arithmetic writes.
std::int64_t arithmetic_results(const Context& ctx, Arithmetic arithmetic);

/// `steps` rounds of independent multiply-adds on all threads; returns the real operations that
/// this takes. Enqueued on a device. `results` (arithmetic_results elements in the Context's place)
/// receives what the chains end with: with FMA the fixed point 2 of x/2 + 1 after enough steps,
/// with a matrix product steps k a b, where a = 0.7310585786300049 and b = 0.2689414213699951.
double run_arithmetic(Context& ctx, Arithmetic arithmetic, std::int64_t steps, double* results);

}  // namespace quiver

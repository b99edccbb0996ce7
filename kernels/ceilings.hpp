// SPDX-License-Identifier: BSD-3-Clause
// Micro-benchmark kernels that measure the machine's ceilings, against which all other kernels are
// compared.
#pragma once

#include <cstdint>

namespace quiver {

class Context;

/// The memory streams. read: y, of count / 16 elements, receives partial sums of x; if y is zero
/// before the call, the sum of y is then the sum of x. copy: y = factor x. scale: x = factor x, and
/// y is not touched.
enum class Traffic : std::uint8_t { read, copy, scale };

/// Number of implementations of a stream in the Context's place; the fastest gives the ceiling.
int traffic_forms(const Context& ctx, Traffic traffic);

/// One pass over x, of `count` elements, and y, of as many (for `read` see Traffic); both in the
/// Context's place, aligned to 64 bytes. Throws UnsupportedError unless count is a multiple of
/// 2^16. On the host the Context's threads share the work; one form of copy uses non-temporal
/// stores, which avoid reading the lines they overwrite. On a device the work is enqueued. Bytes: 8
/// count, twice that for copy and scale.
/// Source: McCalpin, STREAM; Ernst, Hager, Thies, Wellein, IJHPCA 2020, section 1.6.2.
void run_traffic(Context& ctx, Traffic traffic, int form, double factor, double* x, double* y,
                 std::int64_t count);

/// Multiply-adds in registers: vector FMA in single or double precision, or tensor-core products in
/// double precision with the shape m x n x k of the name.
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

/// True if the Context's place has the instructions.
bool can_run(const Context& ctx, Arithmetic arithmetic);

/// Number of elements that run_arithmetic writes.
std::int64_t arithmetic_results(const Context& ctx, Arithmetic arithmetic);

/// Runs `steps` rounds of independent multiply-adds on all threads; returns the number of real
/// operations. Enqueued on a device. `results` (arithmetic_results elements in the Context's place)
/// receives the final values: for FMA, after enough steps, the fixed point 2 of x -> x/2 + 1; for a
/// matrix product steps k a b, where a = 0.7310585786300049 and b = 0.2689414213699951.
double run_arithmetic(Context& ctx, Arithmetic arithmetic, std::int64_t steps, double* results);

}  // namespace quiver

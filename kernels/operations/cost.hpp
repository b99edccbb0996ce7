// SPDX-License-Identifier: BSD-3-Clause
// Cost: the minimum work of one call. Each header of this folder describes one operation: the plain
// arguments that its reference, host and CUDA forms share, and their cost. Device code includes
// these headers, so that they may include nothing but <cstdint>.
#pragma once

#include <cstdint>

namespace quiver {

/// The sizes under which the ledger records a call, and the minimum work of the call.
struct Cost {
    std::int64_t rows;
    int m, n;
    /// Every input read once, every output written once.
    double bytes;
    /// Real additions and multiplications.
    double flops;
};

/// Real operations of one multiply-add: 8 for complex, 2 for real scalars.
template <class T>
inline constexpr double flops_per_multiply_add = requires(const T& value) {
    value.imag();
}
? 8.0 : 2.0;

}  // namespace quiver

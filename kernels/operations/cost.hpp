// SPDX-License-Identifier: BSD-3-Clause
// What a call of an operation costs at the least. The headers of this folder describe one operation
// each: the plain arguments that its reference, host and CUDA forms share, and their cost. Device
// code includes them too, so that they need nothing but <cstdint>.
#pragma once

#include <cstdint>

namespace quiver {

/// The sizes that the ledger files a call under, and the least work of the call.
struct Cost {
    std::int64_t rows;
    int m, n;
    /// Every input read once, every output written once.
    double bytes;
    /// Real additions and multiplications.
    double flops;
};

/// Real operations of a complex multiplication and addition, or of real ones.
template <class T>
inline constexpr double flops_per_multiply_add = requires(const T& value) {
    value.imag();
}
? 8.0 : 2.0;

}  // namespace quiver

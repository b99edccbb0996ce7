// SPDX-License-Identifier: BSD-3-Clause
// The least cost of a call of an operation. Each header of this folder describes one operation: the
// plain arguments that its reference, host and CUDA forms share, their cost, and its leaves, which
// are the functions of the same name in the namespaces host and cuda. Device code includes these
// headers too, without the leaves, so they need nothing but <cstdint>.
//
// Leaves do not check their arguments: the public operations do. A host leaf takes the number of
// threads and pointers to host memory; its workspace is aligned to cache lines. A CUDA leaf takes
// the Context and pointers to device memory, enqueues its work on the Context's stream, returns,
// and throws DeviceError if a launch fails; its workspace may be reused by later work on the
// stream. A workspace has workspace_bytes(...) bytes.
#pragma once

#include <cstdint>
#ifndef __CUDACC_RTC__
#include <cstddef>
#endif

namespace quiver {

class Context;

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

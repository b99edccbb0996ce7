// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of Y = X, also from one precision to another.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// Y = X with a change of precision.
template <class U, class T>
struct ConvertArgs {
    std::int64_t rows;
    int cols;
    const U* x;
    std::int64_t ldx;
    T* y;
    std::int64_t ldy;
};

/// bytes rows cols (sizeof(U) + sizeof(T)); no flops.
template <class U, class T>
constexpr Cost cost(const ConvertArgs<U, T>& args) {
    const double elements = static_cast<double>(args.rows) * args.cols;
    return {args.rows, args.cols, 0, elements * (sizeof(U) + sizeof(T)), 0};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class U, class T>
void convert(int threads, const ConvertArgs<U, T>& args);
}  // namespace host
namespace cuda {
template <class U, class T>
void convert(Context& ctx, const ConvertArgs<U, T>& args);
}  // namespace cuda
#endif

}  // namespace quiver

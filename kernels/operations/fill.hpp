// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of setting all elements of a block to one value.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// X(i, j) = value.
template <class T>
struct FillArgs {
    std::int64_t rows;
    int cols;
    T value;
    T* x;
    std::int64_t ldx;
};

/// bytes sizeof(T) rows cols; no flops.
template <class T>
constexpr Cost cost(const FillArgs<T>& args) {
    return {args.rows, args.cols, 0, sizeof(T) * static_cast<double>(args.rows) * args.cols, 0};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void fill(int threads, const FillArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
void fill(Context& ctx, const FillArgs<T>& args);
}  // namespace cuda
#endif

}  // namespace quiver

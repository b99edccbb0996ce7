// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of the inner products of the columns of two blocks.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// result_j = x_j^H y_j over the given rows.
template <class T>
struct DotsArgs {
    std::int64_t rows;
    int cols;
    const T* x;
    std::int64_t ldx;
    const T* y;
    std::int64_t ldy;
    T* result;  // cols
};

/// bytes 2 sizeof(T) rows cols, half of that if X is Y; flops 2 rows cols (8 for complex).
template <class T>
constexpr Cost cost(const DotsArgs<T>& args) {
    const double elements = static_cast<double>(args.rows) * args.cols;
    const bool same = args.x == args.y && args.ldx == args.ldy;
    return {args.rows, args.cols, 0, sizeof(T) * elements * (same ? 1 : 2),
            flops_per_multiply_add<T> * elements};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void dots(int threads, const DotsArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
std::size_t workspace_bytes(const Context& ctx, const DotsArgs<T>& args);
template <class T>
void dots(Context& ctx, const DotsArgs<T>& args, void* workspace);
}  // namespace cuda
#endif

}  // namespace quiver

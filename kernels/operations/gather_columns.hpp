// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of selecting and permuting the columns of a block.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// Y(:, j) = X(:, source_j). x == y with ldx == ldy: in place, any source.
template <class T>
struct GatherColumnsArgs {
    std::int64_t rows;
    int x_cols, y_cols;
    const T* x;
    std::int64_t ldx;
    const int* source;  // y_cols, in the place of the blocks
    T* y;
    std::int64_t ldy;
};

/// bytes 2 sizeof(T) rows y_cols; no flops.
template <class T>
constexpr Cost cost(const GatherColumnsArgs<T>& args) {
    return {args.rows, args.x_cols, args.y_cols,
            2 * sizeof(T) * static_cast<double>(args.rows) * args.y_cols, 0};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void gather_columns(int threads, const GatherColumnsArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
void gather_columns(Context& ctx, const GatherColumnsArgs<T>& args);
}  // namespace cuda
#endif

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Arguments and cost of setting all elements of a block to one value.
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

}  // namespace quiver

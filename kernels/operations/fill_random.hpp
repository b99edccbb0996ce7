// SPDX-License-Identifier: BSD-3-Clause
// Arguments and cost of filling a block with random numbers.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// See fill_random in kernels/random.hpp.
template <class T>
struct RandomArgs {
    std::int64_t rows;
    int cols;
    std::uint64_t seed;
    std::int64_t first_row;
    int first_column;
    T* x;
    std::int64_t ldx;
};

/// bytes sizeof(T) rows cols; the integer operations of the generator are not counted.
template <class T>
constexpr Cost cost(const RandomArgs<T>& args) {
    return {args.rows, args.cols, 0, sizeof(T) * static_cast<double>(args.rows) * args.cols, 0};
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of filling a block with random numbers.
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

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void fill_random(int threads, const RandomArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
void fill_random(Context& ctx, const RandomArgs<T>& args);
}  // namespace cuda
#endif

}  // namespace quiver

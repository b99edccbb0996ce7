// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of the Gram matrix with sums of two doubles.
#pragma once

#include <cstdint>

#include "kernels/operations/tsmttsm.hpp"

namespace quiver {

/// high + low = X^T X over the rows given.
struct GramTwofoldArgs {
    std::int64_t rows;
    int n;
    const double* x;  // rows x n
    std::int64_t ldx;
    double* sums;  // n x n high parts, then n x n low parts
};

/// The Gram matrix as a product of two blocks that are the same.
constexpr TwofoldTsmttsmArgs product_of(const GramTwofoldArgs& args) {
    return {args.rows, args.n, args.n, args.x, args.ldx, args.x, args.ldx, args.sums};
}

/// The cost of that product; the additional operations of the longer sums are not counted.
constexpr Cost cost(const GramTwofoldArgs& args) {
    return cost(product_of(args));
}

#ifndef __CUDACC_RTC__
namespace host {
std::size_t workspace_bytes(int threads, const GramTwofoldArgs& args);
void gram_twofold(int threads, const GramTwofoldArgs& args, void* workspace);
}  // namespace host
namespace cuda {
std::size_t workspace_bytes(Context& ctx, const GramTwofoldArgs& args);
void gram_twofold(Context& ctx, const GramTwofoldArgs& args, void* workspace);
}  // namespace cuda
#endif

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of the Gram matrix of shifted rows, with the sums of their columns.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// Z^T Z and the sums of the columns of Z = factor (X - 1 shift^T) over the rows given, in double.
template <class In>
struct ShiftedGramArgs {
    std::int64_t rows;
    int n;
    const In* x;  // rows x n
    std::int64_t ldx;
    const double* shift;  // n
    double factor;
    double* sums;  // (n + 1) x n without gaps: Z^T Z, and below it the sums of the columns of Z
};

/// bytes sizeof(In) rows n; flops 2 rows n (n + 1): the multiply-adds of the products, and for each
/// element a subtraction and an addition. The arrays `shift` and `sums` are small and not counted.
template <class In>
constexpr Cost cost(const ShiftedGramArgs<In>& args) {
    const double elements = static_cast<double>(args.rows) * args.n;
    return {args.rows, args.n, args.n, sizeof(In) * elements, 2 * elements * (args.n + 1.0)};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class In>
std::size_t workspace_bytes(int threads, const ShiftedGramArgs<In>& args);
template <class In>
void shifted_gram(int threads, const ShiftedGramArgs<In>& args, void* workspace);
}  // namespace host
namespace cuda {
template <class In>
std::size_t workspace_bytes(Context& ctx, const ShiftedGramArgs<In>& args);
template <class In>
void shifted_gram(Context& ctx, const ShiftedGramArgs<In>& args, void* workspace);
}  // namespace cuda
#endif

}  // namespace quiver

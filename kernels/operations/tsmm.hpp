// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of Y = X C, in one precision and in mixed precision.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// Y = alpha X C + beta Y; beta = 0 does not read Y. If x == y and ldx == ldy, the product is in
/// place, and m and n may differ. With d: Y = alpha X C + beta Y D, where m and beta are not 0 and
/// x is not y.
template <class T>
struct TsmmArgs {
    std::int64_t rows;
    int m, n;
    T alpha;
    const T* x;  // rows x m
    std::int64_t ldx;
    const T* c;  // m x n
    std::int64_t ldc;
    T beta;
    T* y;  // rows x n
    std::int64_t ldy;
    const T* d = nullptr;  // n x n, or null
    std::int64_t ldd = 0;
};

/// bytes sizeof(T) rows (m + n), plus sizeof(T) rows n if beta is not 0; flops 2 rows m n (8 for
/// complex), with D 2 rows (m + n) n. C and D are small and not counted.
template <class T>
constexpr Cost cost(const TsmmArgs<T>& args) {
    const double rows = static_cast<double>(args.rows);
    const double columns = args.m + args.n * (args.beta == T(0) ? 1.0 : 2.0);
    const double depth = static_cast<double>(args.m) + (args.d == nullptr ? 0 : args.n);
    return {args.rows, args.m, args.n, sizeof(T) * rows * columns,
            flops_per_multiply_add<T> * rows * depth * args.n};
}

/// Y = alpha X C + beta Y, computed in float; beta = 0 does not read Y. X and Y do not overlap.
template <class In, class Small, class Out>
struct MixedTsmmArgs {
    std::int64_t rows;
    int m, n;
    float alpha;
    const In* x;  // rows x m
    std::int64_t ldx;
    const Small* c;  // m x n
    std::int64_t ldc;
    float beta;
    Out* y;  // rows x n
    std::int64_t ldy;
};

/// bytes rows (sizeof(In) m + sizeof(Out) n), plus sizeof(Out) rows n if beta is not 0; flops 2
/// rows m n. C is small and not counted.
template <class In, class Small, class Out>
constexpr Cost cost(const MixedTsmmArgs<In, Small, Out>& args) {
    const double rows = static_cast<double>(args.rows);
    const double y_columns = args.n * (args.beta == 0 ? 1.0 : 2.0);
    return {args.rows, args.m, args.n,
            rows * (static_cast<double>(sizeof(In)) * args.m + sizeof(Out) * y_columns),
            flops_per_multiply_add<In> * rows * args.m * args.n};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
std::size_t workspace_bytes(int threads, const TsmmArgs<T>& args);
template <class T>
void tsmm(int threads, const TsmmArgs<T>& args, void* workspace);
template <class In, class Small, class Out>
std::size_t workspace_bytes(int threads, const MixedTsmmArgs<In, Small, Out>& args);
template <class In, class Small, class Out>
void tsmm_mixed(int threads, const MixedTsmmArgs<In, Small, Out>& args, void* workspace);
}  // namespace host
namespace cuda {
/// An in-place product of more than one panel of columns needs a workspace.
template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmArgs<T>& args);
template <class T>
void tsmm(Context& ctx, const TsmmArgs<T>& args, void* workspace);
template <class In, class Small, class Out>
void tsmm_mixed(Context& ctx, const MixedTsmmArgs<In, Small, Out>& args);
}  // namespace cuda
#endif

}  // namespace quiver

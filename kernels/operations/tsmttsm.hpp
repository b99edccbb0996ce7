// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of C = A^H B: in one precision, in mixed precision, and with sums of
// two doubles each.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// C = alpha A^H B + beta C over the rows given; beta = 0 does not read C.
template <class T>
struct TsmttsmArgs {
    std::int64_t rows;
    int m, n;
    T alpha;
    const T* a;  // rows x m
    std::int64_t lda;
    const T* b;  // rows x n
    std::int64_t ldb;
    T beta;
    T* c;  // m x n
    std::int64_t ldc;
};

/// bytes sizeof(T) rows (m + n), or sizeof(T) rows m if A is B; flops 2 rows m n (8 for complex). C
/// is small and not counted.
template <class T>
constexpr Cost cost(const TsmttsmArgs<T>& args) {
    const double rows = static_cast<double>(args.rows);
    const bool same = args.a == args.b && args.lda == args.ldb && args.m == args.n;
    const double columns = same ? args.m : static_cast<double>(args.m) + args.n;
    return {args.rows, args.m, args.n, sizeof(T) * rows * columns,
            flops_per_multiply_add<T> * rows * args.m * args.n};
}

/// C = alpha A^H diag(w) B + beta C over the rows given, with real weights w.
template <class T, class R>
struct WeightedTsmttsmArgs {
    TsmttsmArgs<T> product;
    const R* w;  // rows, `ldw` elements apart
    std::int64_t ldw;
};

/// The cost of A^H B, plus bytes sizeof(R) rows and flops rows min(m, n) (2 for complex).
template <class T, class R>
constexpr Cost cost(const WeightedTsmttsmArgs<T, R>& args) {
    Cost cost = quiver::cost(args.product);
    const double rows = static_cast<double>(cost.rows);
    cost.bytes += sizeof(R) * rows;
    constexpr int reals = static_cast<int>(sizeof(T) / sizeof(R));
    cost.flops += rows * reals * (cost.m < cost.n ? cost.m : cost.n);
    return cost;
}

/// C = alpha A^T B + beta C over the rows given, accumulated in Sum; beta = 0 does not read C.
template <class In, class Sum>
struct MixedTsmttsmArgs {
    std::int64_t rows;
    int m, n;
    Sum alpha;
    const In* a;  // rows x m
    std::int64_t lda;
    const In* b;  // rows x n
    std::int64_t ldb;
    Sum beta;
    Sum* c;  // m x n
    std::int64_t ldc;
};

/// The cost is that of TsmttsmArgs with the elements of A and B.
template <class In, class Sum>
constexpr Cost cost(const MixedTsmttsmArgs<In, Sum>& args) {
    return cost(TsmttsmArgs<In>{
        args.rows, args.m, args.n, {}, args.a, args.lda, args.b, args.ldb, {}, nullptr, 0});
}

/// high + low = A^T B over the rows given, with sums of two doubles each.
struct TwofoldTsmttsmArgs {
    std::int64_t rows;
    int m, n;
    const double* a;  // rows x m
    std::int64_t lda;
    const double* b;  // rows x n
    std::int64_t ldb;
    double* sums;  // m x n high parts, then m x n low parts
};

/// The cost is that of TsmttsmArgs; the additional operations of the longer sums are not counted.
constexpr Cost cost(const TwofoldTsmttsmArgs& args) {
    return cost(TsmttsmArgs<double>{
        args.rows, args.m, args.n, {}, args.a, args.lda, args.b, args.ldb, {}, nullptr, 0});
}

/// Adds the sums of several parts. Each high result is the double nearest to the total.
struct TwofoldSumArgs {
    int parts;
    std::int64_t size;
    const double* parts_of_sums;  // parts x 2 x size
    double* sums;                 // 2 x size
};

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
std::size_t workspace_bytes(int threads, const TsmttsmArgs<T>& args);
template <class T>
void tsmttsm(int threads, const TsmttsmArgs<T>& args, void* workspace);
template <class T, class R>
std::size_t workspace_bytes(int threads, const WeightedTsmttsmArgs<T, R>& args);
template <class T, class R>
void weighted_tsmttsm(int threads, const WeightedTsmttsmArgs<T, R>& args, void* workspace);
template <class In, class Sum>
std::size_t workspace_bytes(int threads, const MixedTsmttsmArgs<In, Sum>& args);
template <class In, class Sum>
void tsmttsm_mixed(int threads, const MixedTsmttsmArgs<In, Sum>& args, void* workspace);
std::size_t workspace_bytes(int threads, const TwofoldTsmttsmArgs& args);
void tsmttsm_twofold(int threads, const TwofoldTsmttsmArgs& args, void* workspace);
void sum_twofold(const TwofoldSumArgs& args);
}  // namespace host
namespace cuda {
template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmttsmArgs<T>& args);
template <class T>
void tsmttsm(Context& ctx, const TsmttsmArgs<T>& args, void* workspace);
template <class T, class R>
std::size_t workspace_bytes(Context& ctx, const WeightedTsmttsmArgs<T, R>& args);
template <class T, class R>
void weighted_tsmttsm(Context& ctx, const WeightedTsmttsmArgs<T, R>& args, void* workspace);
template <class In, class Sum>
std::size_t workspace_bytes(Context& ctx, const MixedTsmttsmArgs<In, Sum>& args);
template <class In, class Sum>
void tsmttsm_mixed(Context& ctx, const MixedTsmttsmArgs<In, Sum>& args, void* workspace);
std::size_t workspace_bytes(Context& ctx, const TwofoldTsmttsmArgs& args);
void tsmttsm_twofold(Context& ctx, const TwofoldTsmttsmArgs& args, void* workspace);
}  // namespace cuda
#endif

}  // namespace quiver

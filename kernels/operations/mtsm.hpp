// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of Y = A X for a large A and a tall & skinny X.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// Y = alpha B X + beta Y; beta = 0 does not read Y. B(i, j) is a[i lda + j] if `along_sum`, else
/// a[j lda + i]; its conjugate if `conjugated`.
template <class A, class T>
struct MtsmArgs {
    std::int64_t m, k;
    int n;
    T alpha;
    const A* a;  // B: m x k
    std::int64_t lda;
    bool along_sum, conjugated;
    const T* x;  // k x n
    std::int64_t x_row, x_col;
    T beta;
    T* y;  // m x n
    std::int64_t y_row, y_col;
};

/// bytes sizeof(A) m k + sizeof(T) n (k + m), plus sizeof(T) n m if beta is not 0; flops 2 m k n (8
/// for complex).
template <class A, class T>
constexpr Cost cost(const MtsmArgs<A, T>& args) {
    const auto m = static_cast<double>(args.m);
    const auto k = static_cast<double>(args.k);
    const std::int64_t most = 0x7fffffff;
    return {args.m, static_cast<int>(args.k < most ? args.k : most), args.n,
            sizeof(A) * m * k +
                static_cast<double>(sizeof(T)) * args.n * (k + (args.beta == T(0) ? 1 : 2) * m),
            flops_per_multiply_add<T> * m * k * args.n};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class A, class T>
std::size_t workspace_bytes(int threads, const MtsmArgs<A, T>& args);
template <class A, class T>
void mtsm(int threads, const MtsmArgs<A, T>& args, void* workspace);
}  // namespace host
namespace cuda {
template <class A, class T>
std::size_t workspace_bytes(Context& ctx, const MtsmArgs<A, T>& args);
template <class A, class T>
void mtsm(Context& ctx, const MtsmArgs<A, T>& args, void* workspace);
}  // namespace cuda
#endif

}  // namespace quiver

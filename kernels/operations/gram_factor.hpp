// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of the Cholesky factor of a Gram matrix and its inverse.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// G = R^H R and S = R^-1, upper triangular with zeros below; all n x n.
template <class T>
struct GramFactorArgs {
    int n;
    const T* g;
    std::int64_t ldg;
    T* r;
    std::int64_t ldr;
    T* s;
    std::int64_t lds;
};

/// bytes 3 sizeof(T) n^2; flops 2/3 n^3 (8/3 for complex).
template <class T>
constexpr Cost cost(const GramFactorArgs<T>& args) {
    const double n = args.n;
    return {args.n, args.n, args.n, 3 * sizeof(T) * n * n,
            flops_per_multiply_add<T> * n * n * n / 3};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void gram_factor(int threads, const GramFactorArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
void gram_factor(Context& ctx, const GramFactorArgs<T>& args);
}  // namespace cuda
#endif

}  // namespace quiver

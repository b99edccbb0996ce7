// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factor of one small Gram matrix and its inverse, by one thread block, without the
// host.
#pragma once

#include "batched.cuh"
#include "kernels/operations/gram_factor.hpp"

namespace quiver {

/// Runs in one thread block, whose threads exchange R and S through global memory; barriers make
/// the stores visible.
template <class T>
__global__ void __launch_bounds__(256) gram_factor(GramFactorArgs<T> args) {
    using Real = RealOf<T>;
    const int n = args.n;
    const int threads = static_cast<int>(blockDim.x);
    const int thread = static_cast<int>(threadIdx.x);
    const auto r = [&](int i, int j) -> T& { return args.r[i * args.ldr + j]; };
    const auto s = [&](int i, int j) -> T& { return args.s[i * args.lds + j]; };
    for (int at = thread; at < n * n; at += threads) {
        const int i = at / n;
        const int j = at % n;
        r(i, j) = i <= j ? args.g[i * args.ldg + j] : T{};
    }
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        const Real root = sqrt(real_of(r(k, k)));
        const Real inverse = Real(1) / root;
        __syncthreads();  // all threads have read the pivot
        for (int j = k + thread; j < n; j += threads) {
            r(k, j) = j == k ? from_real<T>(root) : scaled(r(k, j), inverse);
        }
        __syncthreads();
        const int left = n - k - 1;
        for (int at = thread; at < left * left; at += threads) {
            const int i = k + 1 + at / left;
            const int j = k + 1 + at % left;
            if (i <= j) {
                r(i, j) = multiply_add(-conjugate(r(k, i)), r(k, j), r(i, j));
            }
        }
        __syncthreads();
    }
    // Each thread computes one column, from its diagonal element upwards.
    for (int j = thread; j < n; j += threads) {
        for (int i = n - 1; i > j; --i) {
            s(i, j) = T{};
        }
        s(j, j) = from_real<T>(Real(1) / real_of(r(j, j)));
        for (int i = j - 1; i >= 0; --i) {
            T sum{};
            for (int l = i + 1; l <= j; ++l) {
                sum = multiply_add(r(i, l), s(l, j), sum);
            }
            s(i, j) = scaled(-sum, Real(1) / real_of(r(i, i)));
        }
    }
}

}  // namespace quiver

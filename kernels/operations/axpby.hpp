// SPDX-License-Identifier: BSD-3-Clause
// Arguments and cost of Y = alpha X + beta Y and X = alpha X, with one scalar for the block or one
// per column.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// Y(:, j) = alpha_j X(:, j) + beta_j Y(:, j). If `alphas` or `betas` is null, the scalar applies
/// to all columns. A zero beta does not read Y, a zero alpha does not read X. x may equal y.
template <class T>
struct AxpbyArgs {
    std::int64_t rows;
    int cols;
    T alpha;
    const T* alphas;  // cols, in the place of the blocks, or null
    const T* x;
    std::int64_t ldx;
    T beta;
    const T* betas;  // cols, in the place of the blocks, or null
    T* y;
    std::int64_t ldy;
};

/// `reads` is the number of scalars that are not 0 (scalars per column count as nonzero). bytes
/// sizeof(T) rows cols (reads + 1); flops rows cols (2 reads - 1) (4 times that for complex), 0 if
/// reads is 0.
template <class T>
constexpr Cost cost(const AxpbyArgs<T>& args) {
    const int reads = (args.alphas != nullptr || args.alpha != T(0) ? 1 : 0) +
                      (args.betas != nullptr || args.beta != T(0) ? 1 : 0);
    const double elements = static_cast<double>(args.rows) * args.cols;
    const int operations = reads == 0 ? 0 : 2 * reads - 1;
    return {args.rows, args.cols, 0, sizeof(T) * elements * (reads + 1),
            flops_per_multiply_add<T> / 2 * elements * operations};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void axpby(int threads, const AxpbyArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
void axpby(Context& ctx, const AxpbyArgs<T>& args);
}  // namespace cuda
#endif

}  // namespace quiver

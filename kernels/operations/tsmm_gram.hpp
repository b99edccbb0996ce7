// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of Y = X C with the Gram matrix of Y in one pass.
#pragma once

#include <cstdint>

#include "kernels/operations/tsmm.hpp"

namespace quiver {

/// The update, without d, and G = Y^H Y of its result.
template <class T>
struct TsmmGramArgs {
    TsmmArgs<T> update;
    T* g;  // n x n
    std::int64_t ldg;
};

/// bytes as for the update alone; flops 2 rows n (m + n) (8 for complex). G is small and not
/// counted.
template <class T>
constexpr Cost cost(const TsmmGramArgs<T>& args) {
    const TsmmArgs<T>& update = args.update;
    Cost total = cost(update);
    total.flops +=
        flops_per_multiply_add<T> * static_cast<double>(update.rows) * update.n * update.n;
    return total;
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
std::size_t workspace_bytes(int threads, const TsmmGramArgs<T>& args);
template <class T>
void tsmm_gram(int threads, const TsmmGramArgs<T>& args, void* workspace);
}  // namespace host
namespace cuda {
template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmGramArgs<T>& args);
template <class T>
void tsmm_gram(Context& ctx, const TsmmGramArgs<T>& args, void* workspace);
}  // namespace cuda
#endif

}  // namespace quiver

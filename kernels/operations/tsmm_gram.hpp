// SPDX-License-Identifier: BSD-3-Clause
// Arguments and cost of Y = X C with the Gram matrix of Y in one pass.
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

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The division of work of kmeans_step on a device; see src/kmeans_step.cuh. Pure arithmetic, so
// that a launch and the tests without a GPU compute the same numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/cuda/expressions.hpp"
#include "kernels/operations/kmeans_layout.hpp"

namespace quiver::cuda {

struct KmeansTiling {
    /// Rows that a thread keeps in registers, and threads of a block.
    int rows;
    int threads;
    std::size_t shared_bytes;

    /// Blocks have as many threads as `shared_limit` bytes of shared memory allow; rows of 64
    /// doubles and 64 centres need 85 KB for the smallest block.
    constexpr KmeansTiling(std::size_t scalar_bytes, int d, int k, std::size_t shared_limit)
        : rows(std::clamp(256 / (d * static_cast<int>(scalar_bytes)), 1, 4)),
          threads(256),
          shared_bytes(0) {
        do {
            threads /= 2;
            shared_bytes =
                KmeansLayout(static_cast<int>(scalar_bytes), d, k, rows, threads).bytes();
        } while (threads > 32 && shared_bytes > shared_limit);
    }
};

template <class In, class T>
std::string expression(const KmeansTiling& tiling, int d) {
    return instance("kmeans_step", device_name<In>(), device_name<T>(), d, tiling.rows,
                    tiling.threads);
}

}  // namespace quiver::cuda

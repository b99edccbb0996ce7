// SPDX-License-Identifier: BSD-3-Clause
// The division of work of kmeans_step on a device; see src/kmeans_step.cuh and
// src/kmeans_products.cuh. Pure arithmetic, so that a launch and the tests without a GPU compute
// the same numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/tiling.hpp"
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

/// True if kmeans_products is faster than kmeans_step; measured on an H200 (docs/notes/kernels.md).
/// `capability` is ten times the compute capability. Other GPUs have not been measured, and most of
/// them multiply slowly in double.
constexpr bool prefers_kmeans_products(int capability, std::size_t scalar_bytes, int d, int k) {
    return capability == 90 && (d >= 8 || (scalar_bytes == 8 && d * k >= 128));
}

/// The launch of kmeans_products. Its shared memory holds the rows of every warp and the sums of
/// every team of warps.
struct KmeansProductsTiling {
    KmeansConfig config;
    std::size_t shared_bytes = 0;

    int threads() const { return 32 * config.warps; }

    /// x: the layout of the points.
    KmeansProductsTiling(std::size_t element_bytes, std::size_t scalar_bytes, int d, int k,
                         const Layout& x, std::size_t shared_limit) {
        config.d = d;
        config.tiles = ceil_div(k, 8);
        config.contiguous = x.contiguous;
        config.bytes = x.unit;
        // As many warps as registers and shared memory allow. Sums of more than one warp save
        // memory, but their warps wait for each other; four warps are the last resort.
        const int most = d <= 16 ? 16 : d <= 32 ? 12 : 8;
        for (const int team : {1, 2, 4, 8}) {
            for (int warps = most; warps >= 8; warps -= 4) {
                if (try_warps(warps, team, element_bytes, scalar_bytes, shared_limit)) {
                    return;
                }
            }
        }
        try_warps(4, 4, element_bytes, scalar_bytes, shared_limit);
    }

  private:
    /// More than the static shared memory of the reduction over blocks.
    static constexpr std::size_t reduction_bytes = 64;

    bool try_warps(int warps, int team, std::size_t element_bytes, std::size_t scalar_bytes,
                   std::size_t limit) {
        const int free_of_conflicts = KmeansProductsLayout::conflict_free_pitch(config.d);
        // Without padding, pairs of lanes wait for each other's bank when they read a fragment.
        const bool may_be_dense = config.d % 8 == 0;
        for (const int pitch : {free_of_conflicts, may_be_dense ? config.d : free_of_conflicts}) {
            for (const int stages : {2, 1}) {
                const KmeansProductsLayout layout(config.d, config.tiles, pitch, warps, team,
                                                  stages, static_cast<int>(element_bytes),
                                                  static_cast<int>(scalar_bytes));
                shared_bytes = static_cast<std::size_t>(layout.bytes());
                if (warps % team == 0 && shared_bytes + reduction_bytes <= limit) {
                    config.pitch = pitch;
                    config.warps = warps;
                    config.team = team;
                    config.stages = stages;
                    // Turns were faster in single precision for 16 columns and 64 centres only.
                    const bool turns =
                        scalar_bytes < 8 && warps == 16 && config.d * 8 * config.tiles >= 1024;
                    config.groups = turns ? 2 : 1;
                    // Copies of less than 16 bytes need the registers of a second iteration.
                    const bool twice = config.d <= 16 && config.bytes == 16 && !turns;
                    config.unroll = twice ? 2 : 1;
                    return true;
                }
            }
        }
        return false;
    }
};

template <class In, class T>
std::string expression(const KmeansProductsTiling& tiling) {
    return instance("kmeans_products", device_name<In>(), device_name<T>(), tiling.config);
}

}  // namespace quiver::cuda

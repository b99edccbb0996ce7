// SPDX-License-Identifier: BSD-3-Clause
// The division of work of gram_twofold on a device; see src/gram_twofold.cuh. Pure arithmetic, so
// that a launch and the tests without a GPU compute the same numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

struct GramTwofoldTiling {
    GramTwofoldConfig config;
    std::size_t shared_bytes = 0;

    GramTwofoldTiling(int n, std::size_t shared_limit) {
        config.n = n;
        // With this pitch the eight columns of four rows lie in different banks.
        config.pitch = n <= 4 ? 4 : ceil_div(n - 4, 8) * 8 + 4;
        config.team = groups() <= 2 ? 1 : groups() <= 4 ? 2 : 8;
        config.threads = block_threads;
        config.stages = 2;
        config.blocks = groups() == 1 ? 2 : 1;
        // A step of each team, as often as shared memory and `most_rows` allow.
        const int step = 32 * (config.threads / 32 / config.team);
        constexpr int most_bytes = 32 * 1024;
        config.rows = step;
        while (config.rows * 2 * 8 * groups() * 8 <= most_bytes &&
               bytes(config.rows * 2) * static_cast<std::size_t>(config.blocks) <= shared_limit) {
            config.rows *= 2;
        }
        shared_bytes = bytes(config.rows);
    }

  private:
    int groups() const { return ceil_div(config.n, 8); }
    /// Digits of two stages, copies of rows, and a sum of two doubles for each entry of a thread.
    std::size_t bytes(int rows) const {
        const int tiles = groups() / 2 * (groups() - groups() / 2);
        const int entries = 4 * ceil_div(tiles, config.team) + 2;
        return static_cast<std::size_t>(2 * rows * groups() * 8 * 8) +
               static_cast<std::size_t>(config.stages * (rows * config.pitch + 8)) *
                   sizeof(double) +
               static_cast<std::size_t>(entries * config.threads) * 2 * sizeof(double);
    }
};

inline std::string expression(const GramTwofoldTiling& tiling) {
    return instance("gram_twofold", tiling.config);
}

}  // namespace quiver::cuda

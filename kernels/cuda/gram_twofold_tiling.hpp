// SPDX-License-Identifier: BSD-3-Clause
// The division of work of gram_twofold on a device; see src/gram_twofold.cuh. Pure arithmetic, so
// that a launch and the tests without a GPU compute the same numbers.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

struct GramTwofoldTiling {
    GramTwofoldConfig config;
    /// 0: the device has too little shared memory for so many columns.
    std::size_t shared_bytes = 0;

    GramTwofoldTiling(int n, const Layout& x, std::size_t shared_limit) {
        config.n = n;
        // With this pitch the eight columns of four rows lie in different banks.
        config.pitch = n <= 4 ? 4 : ceil_div(n - 4, 8) * 8 + 4;
        config.bytes = x.unit;
        config.stages = 2;
        config.threads = block_threads;
        config.blocks = 1;
        // Measured on an H200 (docs/notes/kernels.md).
        if (groups() <= 2) {
            config.team = 1;
            config.blocks = 2;
            config.threads = groups() == 1 ? 256 : 128;
            config.rows = n <= 4 ? 512 : groups() == 1 ? 256 : 128;
        } else if (groups() <= 4) {
            config.team = 2;
            config.rows = 128;
        } else {
            config.team = 8;
            config.rows = groups() <= 6 ? 96 : 64;
        }
        fit(shared_limit);
    }

  private:
    /// Shared memory besides dynamic_shared(): the factors of the columns, and what a block needs.
    static constexpr std::size_t other_bytes = 2048;

    int groups() const { return ceil_div(config.n, 8); }
    /// Fewer blocks, rows or threads if the device has less shared memory.
    void fit(std::size_t shared_limit) {
        const auto is_too_large = [&] {
            shared_bytes = bytes();
            return (shared_bytes + other_bytes) * static_cast<std::size_t>(config.blocks) >
                   shared_limit;
        };
        while (is_too_large()) {
            const int step = 32 * (config.threads / 32 / config.team);
            if (config.blocks > 1) {
                config.blocks = 1;
            } else if (config.rows > step) {
                config.rows -= step;
            } else if (config.threads > 32 * config.team) {
                config.threads /= 2;
                config.rows = step / 2;
            } else {
                shared_bytes = 0;
                return;
            }
        }
    }
    /// Digits of two stages, copies of rows, and a sum of two doubles for each entry of a thread.
    std::size_t bytes() const {
        const int tiles = groups() / 2 * (groups() - groups() / 2);
        const int entries = 4 * ceil_div(tiles, config.team) + 2;
        return sizeof(double) *
               static_cast<std::size_t>(2 * config.rows * groups() * 8 +
                                        config.stages * (config.rows * config.pitch + 8) +
                                        2 * entries * config.threads);
    }
};

inline std::string expression(const GramTwofoldTiling& tiling) {
    return instance("gram_twofold", tiling.config);
}

}  // namespace quiver::cuda

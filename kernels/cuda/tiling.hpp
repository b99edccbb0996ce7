// SPDX-License-Identifier: BSD-3-Clause
// The division of work of kernels whose widths are run-time arguments.
#pragma once

namespace quiver::cuda {

inline constexpr int block_threads = 256;
/// Wider blocks are computed panel by panel.
inline constexpr int widest_panel = 64;
/// Columns of A or X in the widest kernels that serve several widths.
inline constexpr int widest_shared_panel = 128;

constexpr int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

/// Divides `columns` into as few panels of at most `limit` as possible, all of the same width but
/// the last.
struct Panels {
    int count;
    int width;

    constexpr Panels(int columns, int limit = widest_panel)
        : count(ceil_div(columns, limit)), width(count > 0 ? ceil_div(columns, count) : 0) {}
    constexpr int begin(int panel) const { return panel * width; }
    constexpr int size(int panel, int columns) const {
        return columns - begin(panel) < width ? columns - begin(panel) : width;
    }
};

}  // namespace quiver::cuda

// SPDX-License-Identifier: BSD-3-Clause
// The mapping of threads to blocks whose width is a run-time argument: a thread keeps one column
// and walks down the rows, neighbouring threads have neighbouring columns, and a thread block holds
// as many rows as fit.
#pragma once

#include "scalar.cuh"

namespace quiver {

/// The column and rows of one thread. blockIdx.x counts panels of `panel` columns, of which there
/// may be many; blockIdx.y counts groups of rows.
struct ColumnWalk {
    int column;
    bool active;
    std::int64_t row;
    std::int64_t stride;

    ColumnWalk(int columns, int panel)
        : ColumnWalk(columns, panel, blockIdx.x, blockIdx.y, gridDim.y) {}
    /// One panel only; blockIdx.x counts groups of rows.
    explicit ColumnWalk(int columns) : ColumnWalk(columns, columns, 0, blockIdx.x, gridDim.x) {}

  private:
    ColumnWalk(int columns, int panel, int panel_number, unsigned block, unsigned blocks) {
        const int lanes = blockDim.x / panel;
        const int lane = threadIdx.x / panel;
        column = panel_number * panel + threadIdx.x % panel;
        active = lane < lanes && column < columns;
        row = static_cast<std::int64_t>(block) * lanes + lane;
        stride = static_cast<std::int64_t>(blocks) * lanes;
    }
};

/// Calls store(row, load(row)) for the thread's rows. Four loads precede their stores, so that they
/// overlap. A store may therefore change data that a load of the same row reads, but not of other
/// rows.
template <class Load, class Store>
void stream_rows(const ColumnWalk& walk, std::int64_t rows, Load load, Store store) {
    if (!walk.active) {
        return;
    }
    std::int64_t row = walk.row;
    for (; row + 3 * walk.stride < rows; row += 4 * walk.stride) {
        const decltype(load(row)) value[4] = {load(row), load(row + walk.stride),
                                              load(row + 2 * walk.stride),
                                              load(row + 3 * walk.stride)};
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            store(row + u * walk.stride, value[u]);
        }
    }
    for (; row < rows; row += walk.stride) {
        store(row, load(row));
    }
}

}  // namespace quiver

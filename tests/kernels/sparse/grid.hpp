// SPDX-License-Identifier: BSD-3-Clause
// The sparsity pattern of a grid, for tests of the order of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quiver::test {

/// Compressed rows of the seven-point stencil on a grid of nx^3 points.
struct Grid {
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;

    explicit Grid(std::int64_t nx) {
        for (std::int64_t row = 0; row < nx * nx * nx; ++row) {
            const std::int64_t strides[] = {nx * nx, nx, 1};
            for (const std::int64_t stride : strides) {
                if (row / stride % nx > 0) {
                    column.push_back(row - stride);
                }
            }
            column.push_back(row);
            for (const std::int64_t stride : {strides[2], strides[1], strides[0]}) {
                if (row / stride % nx + 1 < nx) {
                    column.push_back(row + stride);
                }
            }
            row_start.push_back(std::ssize(column));
        }
    }
    std::int64_t rows() const { return std::ssize(row_start) - 1; }
    /// The argument `columns` of SparseLayout.
    auto columns() const {
        return [this] { return std::span<const std::int64_t>(column); };
    }
};

}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// The grid of the seven-point Laplacian (gen:laplace3d) that spmmv multiplies by.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace quiver::apps::bench {

/// nx x nx x nz points, close to a cube.
struct Stencil {
    std::int64_t nx = 1;
    std::int64_t nz = 1;

    /// The grid with nx = floor(cbrt(points)), and the largest nz for which it has at most `points`
    /// points.
    explicit Stencil(std::int64_t points) {
        nx = std::max(static_cast<std::int64_t>(std::cbrt(static_cast<double>(points)) + 1e-6),
                      std::int64_t{1});
        nz = std::max(points / (nx * nx), std::int64_t{1});
    }
    std::int64_t rows() const { return nx * nx * nz; }
    std::int64_t nonzeros() const { return 7 * rows() - 4 * nx * nz - 2 * nx * nx; }

    /// Calls visit(column, value) for the entries of one row.
    template <class Visit>
    void row_entries(std::int64_t row, Visit&& visit) const {
        const std::array<std::int64_t, 3> size{nx, nx, nz};
        const std::array<std::int64_t, 3> stride{1, nx, nx * nx};
        visit(row, 6.0);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const std::int64_t place = row / stride[axis] % size[axis];
            if (place > 0) {
                visit(row - stride[axis], -1.0);
            }
            if (place + 1 < size[axis]) {
                visit(row + stride[axis], -1.0);
            }
        }
    }
};

}  // namespace quiver::apps::bench

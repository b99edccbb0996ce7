// SPDX-License-Identifier: BSD-3-Clause
// Shared parts of factorisations by panels of 8 columns. The matrix stays in shared memory; its
// first warp factors a panel in registers, and all its warps update the columns right of it.
#pragma once

#include "batched.cuh"
#include "mma.cuh"

namespace quiver {

/// Synchronises the WARPS warps of a matrix; if there are several, the block has one matrix.
template <int WARPS>
void sync_matrix() {
    if constexpr (WARPS == 1) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

/// A matrix of order N in shared memory, see MatrixTile. In a panel, lane l holds rows l, l + 32,
/// ...
template <class T, int N, int PITCH, bool BY_ROWS>
struct PanelMatrix {
    static constexpr int width = 8;
    static constexpr int slots = ceil_div(N, 32);  // rows of a lane
    static constexpr bool whole = N % width == 0;
    static constexpr int V = 16 / sizeof(T);
    static constexpr bool is_double = sizeof(T) == 8 && sizeof(RealOf<T>) == 8;

    T* data;

    T& operator()(int i, int j) const { return data[BY_ROWS ? i * PITCH + j : j * PITCH + i]; }

    /// The elements of row i in the panel from column `first` on; row[j] is unchanged if the matrix
    /// has no such column.
    void load(int i, int first, T (&row)[width]) const {
        if constexpr (BY_ROWS && whole) {
            load_run<vector_of<T>(PITCH)>(&(*this)(i, first), row);
        } else {
#pragma unroll
            for (int j = 0; j < width; ++j) {
                if (whole || first + j < N) {
                    row[j] = (*this)(i, first + j);
                }
            }
        }
    }
    void store(int i, int first, const T (&row)[width]) const {
        if constexpr (BY_ROWS && whole) {
            store_run<vector_of<T>(PITCH)>(row, &(*this)(i, first));
        } else {
#pragma unroll
            for (int j = 0; j < width; ++j) {
                if (whole || first + j < N) {
                    (*this)(i, first + j) = row[j];
                }
            }
        }
    }

    /// Column number `g` of a product of tensor cores is this column of the matrix, counted from
    /// the first, so that the lanes of a warp use different banks.
    static constexpr int product_column(int g) {
        return BY_ROWS ? g / 2 + g % 2 * 4 : g;
    }
    /// The inverse of product_column.
    static constexpr int product_place(int column) {
        return BY_ROWS ? column % 4 * 2 + column / 4 : column;
    }

    /// Adds the product of mma to rows top, ..., top + 15 and columns left, ..., left + 7, as far
    /// as wanted(i, j); i and j are a row and a column of the matrix.
    template <class F>
    void add_product(int top, int left, const double (&a)[4], const double (&b)[2],
                     F wanted) const {
        const int i = top + threadIdx.x % 32 / 4;
        const int j = threadIdx.x % 4 * 2;
        double d[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int column = left + product_column(j + q % 2);
            const int row = i + q / 2 * 8;
            d[q] = wanted(row, column) ? (*this)(row, column) : 0;
        }
        mma<2>(d, a, b);
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int column = left + product_column(j + q % 2);
            const int row = i + q / 2 * 8;
            if (wanted(row, column)) {
                (*this)(row, column) = d[q];
            }
        }
    }
};

}  // namespace quiver

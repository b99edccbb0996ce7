// SPDX-License-Identifier: BSD-3-Clause
// The division of Y = X C among a team of threads, for rows of X in shared memory and C in shared
// memory or registers. A tile is the part of the results that a thread computes.
#pragma once

#include "tsmttsm_tiles.cuh"

namespace quiver {

/// tile_rows x tile_n entries by plain multiply-adds; columns of X are loaded `vector` at a time,
/// columns of Y in vectors of vector_n, interleaved with those of neighbouring threads.
/// in_registers: every thread keeps its columns of C in registers. pitch: row stride of X.
template <class T, RowTileConfig CFG>
class FmaRows {
    static constexpr int threads_n = ceil_div(CFG.n, CFG.tile_n);
    static constexpr int row_threads = CFG.team / threads_n;

  public:
    static constexpr int depth = ceil_div(CFG.m, CFG.vector) * CFG.vector;
    static constexpr int pitch_c = ceil_div(threads_n * CFG.tile_n, CFG.vector_n) * CFG.vector_n;
    static constexpr int size_c = depth * pitch_c;
    static constexpr int rows = row_threads * CFG.tile_rows;
    static constexpr int entries = CFG.tile_rows * CFG.tile_n;
    /// Adjacent entries in a row, whose first column is a multiple of their number.
    static constexpr int vector = CFG.vector_n;
    static_assert(CFG.tile_n % CFG.vector_n == 0 && row_threads >= 1);

    __device__ FmaRows(int thread, const T* c)
        : thread_n_(thread % threads_n), thread_row_(thread / threads_n), c_(c) {}

    /// Call it when C is in shared memory.
    void begin() {
        if (CFG.in_registers) {
#pragma unroll
            for (int k = 0; k < depth; ++k) {
                load_c(k, kept_[k]);
            }
        }
    }

    /// Stores C(k, j) where the tile reads it, among size_c elements.
    static void put(T* c, int k, int j, T value) {
        c[k * pitch_c + j] = value;
    }

    /// Uses the first `columns` columns of X: m, or fewer if zeros follow.
    void multiply_rows(const T* x, int columns) {
#pragma unroll
        for (int e = 0; e < entries; ++e) {
            sum_[e] = T{};
        }
        if (CFG.team % threads_n != 0 && thread_row_ >= row_threads) {
            return;
        }
#pragma unroll(CFG.in_registers ? depth : 2)
        for (int k = 0; k < (CFG.in_registers ? depth : columns); k += CFG.vector) {
            Pack<T, CFG.vector> left[CFG.tile_rows];
#pragma unroll
            for (int i = 0; i < CFG.tile_rows; ++i) {
                left[i] = *reinterpret_cast<const Pack<T, CFG.vector>*>(
                    x + (thread_row_ + i * row_threads) * CFG.pitch + k);
            }
#pragma unroll
            for (int v = 0; v < CFG.vector; ++v) {
                T right[CFG.tile_n];
                if constexpr (CFG.in_registers) {
#pragma unroll
                    for (int j = 0; j < CFG.tile_n; ++j) {
                        right[j] = kept_[k + v][j];
                    }
                } else {
                    load_c(k + v, right);
                }
#pragma unroll
                for (int i = 0; i < CFG.tile_rows; ++i) {
#pragma unroll
                    for (int j = 0; j < CFG.tile_n; ++j) {
                        T& sum = sum_[i * CFG.tile_n + j];
                        sum = multiply_add(left[i].value[v], right[j], sum);
                    }
                }
            }
        }
    }

    T sum(int entry) const {
        return sum_[entry];
    }
    int row(int entry) const {
        return thread_row_ < row_threads ? thread_row_ + entry / CFG.tile_n * row_threads : rows;
    }
    int col(int entry) const {
        return column(entry % CFG.tile_n);
    }

  private:
    int column(int entry) const {
        return (entry / CFG.vector_n * threads_n + thread_n_) * CFG.vector_n + entry % CFG.vector_n;
    }
    void load_c(int k, T (&to)[CFG.tile_n]) const {
#pragma unroll
        for (int j = 0; j < CFG.tile_n; j += CFG.vector_n) {
            const auto pack =
                *reinterpret_cast<const Pack<T, CFG.vector_n>*>(c_ + k * pitch_c + column(j));
#pragma unroll
            for (int v = 0; v < CFG.vector_n; ++v) {
                to[j + v] = pack.value[v];
            }
        }
    }

    const int thread_n_;
    const int thread_row_;
    const T* const c_;
    T kept_[CFG.in_registers ? depth : 1][CFG.tile_n];
    T sum_[entries];
};

/// Tiles of 16 x 8 on the tensor cores: tile_rows tiles per warp, one below the other; tile_n warps
/// side by side; 4 `vector` columns of X at a time. Complex blocks are treated as real ones of
/// twice the width, and C(k, j) as the real matrix (re, im; -im, re); each thread reads one part of
/// it from C, with one sign.
template <class T, RowTileConfig CFG>
class MmaRows {
    static constexpr int parts = sizeof(T) / sizeof(double);
    static constexpr int all_n = ceil_div(parts * CFG.n, 8);
    static constexpr int tiles_n = ceil_div(all_n, CFG.tile_n);
    static constexpr int warps_m = CFG.team / 32 / CFG.tile_n;
    static constexpr int step = 4 * CFG.vector;
    static constexpr int real_depth = ceil_div(parts * CFG.m, step) * step;
    static constexpr int real_pitch_x = parts * CFG.pitch;
    // This pitch puts the fragments of four rows (complex: of two) in different banks.
    static constexpr int real_pitch_c = ceil_div(all_n * 8 - 4, 8) * 8 + 4;

  public:
    static constexpr int depth = real_depth / parts;
    static constexpr int size_c = depth * real_pitch_c / parts;
    static constexpr int rows = warps_m * CFG.tile_rows * 16;
    static constexpr int entries = CFG.tile_rows * tiles_n * 4 / parts;
    static constexpr int vector = 1;
    static_assert(CFG.team % (32 * CFG.tile_n) == 0);

    __device__ MmaRows(int thread, const T* c)
        : warp_n_(thread / 32 % CFG.tile_n),
          warp_m_(thread / 32 / CFG.tile_n),
          g_(thread % 32 / 4),
          t_(thread % 4),
          c_(reinterpret_cast<const double*>(c) + t_ / parts * real_pitch_c +
             (parts == 1 ? g_ : g_ ^ t_ % 2)) {}

    void begin() {}

    /// Stores C(k, j) where the tile reads it, among size_c elements. Thread t of four holds
    /// columns 2 t and 2 t + 1 of a tile's eight: for real blocks these are permuted to columns t
    /// and 4 + t of Y, so that neighbouring threads store adjacent elements.
    static void put(T* c, int k, int j, T value) {
        double* const real_c = reinterpret_cast<double*>(c);
        if constexpr (parts == 1) {
            real_c[k * real_pitch_c + j / 8 * 8 + j % 4 * 2 + j / 4 % 2] = value;
        } else {
            real_c[k * real_pitch_c + 2 * j] = value.re;
            real_c[k * real_pitch_c + 2 * j + 1] = value.im;
        }
    }

    void multiply_rows(const T* x, int columns) {
        const double* const real_x = reinterpret_cast<const double*>(x) +
                                     (warp_m_ * CFG.tile_rows * 16 + g_) * real_pitch_x + t_;
        const unsigned negative = sign_mask(t_ % 2 == 1 && g_ % 2 == 0);
        clear_sums(sum_);
#pragma unroll 2
        for (int k = 0; k < parts * columns; k += step) {
            double left[CFG.tile_rows][2 * CFG.vector];
#pragma unroll
            for (int i = 0; i < CFG.tile_rows; ++i) {
#pragma unroll
                for (int s = 0; s < 2 * CFG.vector; ++s) {
                    left[i][s] = real_x[(i * 16 + s % 2 * 8) * real_pitch_x + k + s / 2 * 4];
                }
            }
#pragma unroll
            for (int j = 0; j < tiles_n; ++j) {
                const int tile = minimum(j * CFG.tile_n + warp_n_, all_n - 1);
                double right[CFG.vector];
#pragma unroll
                for (int s = 0; s < CFG.vector; ++s) {
                    right[s] = c_[(k + 4 * s) / parts * real_pitch_c + tile * 8];
                    if (parts == 2) {
                        right[s] = flip_sign(right[s], negative);
                    }
                }
#pragma unroll
                for (int i = 0; i < CFG.tile_rows; ++i) {
                    mma<CFG.vector>(sum_[i * tiles_n + j], left[i], right);
                }
            }
        }
    }

    T sum(int entry) const {
        return sum_of<T>(sum_, entry);
    }
    int row(int entry) const {
        const int e = entry * parts;
        return (warp_m_ * CFG.tile_rows + e / 4 / tiles_n) * 16 + g_ + e % 4 / 2 * 8;
    }
    int col(int entry) const {
        const int e = entry * parts;
        const int tile = e / 4 % tiles_n * CFG.tile_n + warp_n_;
        const int col = parts == 1 ? e % 2 * 4 + t_ : t_;
        return tile < all_n ? tile * (8 / parts) + col : CFG.n;
    }

  private:
    const int warp_n_;
    const int warp_m_;
    const int g_;
    const int t_;
    const double* const c_;
    double sum_[CFG.tile_rows * tiles_n][4];
};

template <class T, RowTileConfig CFG>
using RowTile = typename Choice<CFG.tensor, MmaRows<T, CFG>, FmaRows<T, CFG>>::type;

}  // namespace quiver

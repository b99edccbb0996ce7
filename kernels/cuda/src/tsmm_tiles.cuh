// SPDX-License-Identifier: BSD-3-Clause
// How a team of threads shares Y = X C for the rows of X in shared memory, C there, too (or in
// registers). A tile is a thread's part of the rows' results.
#pragma once

#include "tsmttsm_tiles.cuh"

namespace quiver {

/// TILE_ROWS x TILE_N entries by plain multiply-adds; columns of X are taken V at a time, columns
/// of Y in vectors of VN, interleaved with those of the neighbours. IN_REGISTERS: every thread
/// keeps its columns of C. PITCH: how far apart rows of X lie.
template <class T, int M, int N, int TILE_ROWS, int TILE_N, int V, int VN, bool IN_REGISTERS,
          int PITCH, int TEAM>
class FmaRows {
    static constexpr int threads_n = ceil_div(N, TILE_N);
    static constexpr int row_threads = TEAM / threads_n;

  public:
    static constexpr int depth = ceil_div(M, V) * V;
    static constexpr int pitch_x = PITCH;
    static constexpr int pitch_c = ceil_div(threads_n * TILE_N, VN) * VN;
    static constexpr int size_c = depth * pitch_c;
    static constexpr int rows = row_threads * TILE_ROWS;
    static constexpr int entries = TILE_ROWS * TILE_N;
    /// Entries that are neighbours in a row, from a multiple of their number on.
    static constexpr int vector = VN;
    static_assert(TILE_N % VN == 0 && row_threads >= 1);

    __device__ FmaRows(int thread, const T* c)
        : thread_n_(thread % threads_n), thread_row_(thread / threads_n), c_(c) {}

    /// When C is there.
    void begin() {
        if (IN_REGISTERS) {
#pragma unroll
            for (int k = 0; k < depth; ++k) {
                load_c(k, kept_[k]);
            }
        }
    }

    /// Puts C(k, j) where the tile looks for it among size_c elements.
    static void put(T* c, int k, int j, T value) {
        c[k * pitch_c + j] = value;
    }

    /// Of X's columns the first `columns`, M or, where zeros follow, fewer.
    void multiply_rows(const T* x, int columns) {
#pragma unroll
        for (int e = 0; e < entries; ++e) {
            sum_[e] = T{};
        }
        if (TEAM % threads_n != 0 && thread_row_ >= row_threads) {
            return;
        }
#pragma unroll(IN_REGISTERS ? depth : 2)
        for (int k = 0; k < (IN_REGISTERS ? depth : columns); k += V) {
            Pack<T, V> left[TILE_ROWS];
#pragma unroll
            for (int i = 0; i < TILE_ROWS; ++i) {
                left[i] = *reinterpret_cast<const Pack<T, V>*>(
                    x + (thread_row_ + i * row_threads) * pitch_x + k);
            }
#pragma unroll
            for (int v = 0; v < V; ++v) {
                T right[TILE_N];
                if constexpr (IN_REGISTERS) {
#pragma unroll
                    for (int j = 0; j < TILE_N; ++j) {
                        right[j] = kept_[k + v][j];
                    }
                } else {
                    load_c(k + v, right);
                }
#pragma unroll
                for (int i = 0; i < TILE_ROWS; ++i) {
#pragma unroll
                    for (int j = 0; j < TILE_N; ++j) {
                        T& sum = sum_[i * TILE_N + j];
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
        return thread_row_ < row_threads ? thread_row_ + entry / TILE_N * row_threads : rows;
    }
    int col(int entry) const {
        return column(entry % TILE_N);
    }

  private:
    int column(int entry) const {
        return (entry / VN * threads_n + thread_n_) * VN + entry % VN;
    }
    void load_c(int k, T (&to)[TILE_N]) const {
#pragma unroll
        for (int j = 0; j < TILE_N; j += VN) {
            const auto pack = *reinterpret_cast<const Pack<T, VN>*>(c_ + k * pitch_c + column(j));
#pragma unroll
            for (int v = 0; v < VN; ++v) {
                to[j + v] = pack.value[v];
            }
        }
    }

    const int thread_n_;
    const int thread_row_;
    const T* const c_;
    T kept_[IN_REGISTERS ? depth : 1][TILE_N];
    T sum_[entries];
};

/// Tiles of 16 x 8 by the tensor cores, TILES_M below each other in a warp, WARPS_N warps beside
/// each other. Complex blocks count as real ones of twice the width, and C(k, j) as the real matrix
/// (re, im; -im, re), which each thread reads off C: one part of it, with one sign.
template <class T, int M, int N, int TILES_M, int WARPS_N, int STEPS, int PITCH, int TEAM>
class MmaRows {
    static constexpr int parts = sizeof(T) / sizeof(double);
    static constexpr int all_n = ceil_div(parts * N, 8);
    static constexpr int tiles_n = ceil_div(all_n, WARPS_N);
    static constexpr int warps_m = TEAM / 32 / WARPS_N;
    static constexpr int step = 4 * STEPS;
    static constexpr int real_depth = ceil_div(parts * M, step) * step;
    static constexpr int real_pitch_x = parts * PITCH;
    // The fragments of four rows (complex: of two) in different banks.
    static constexpr int real_pitch_c = ceil_div(all_n * 8 - 4, 8) * 8 + 4;

  public:
    static constexpr int depth = real_depth / parts;
    static constexpr int pitch_x = PITCH;
    static constexpr int size_c = depth * real_pitch_c / parts;
    static constexpr int rows = warps_m * TILES_M * 16;
    static constexpr int entries = TILES_M * tiles_n * 4 / parts;
    static constexpr int vector = 1;
    static_assert(TEAM % (32 * WARPS_N) == 0);

    __device__ MmaRows(int thread, const T* c)
        : warp_n_(thread / 32 % WARPS_N),
          warp_m_(thread / 32 / WARPS_N),
          g_(thread % 32 / 4),
          t_(thread % 4),
          c_(reinterpret_cast<const double*>(c) + t_ / parts * real_pitch_c +
             (parts == 1 ? g_ : g_ ^ t_ % 2)) {}

    void begin() {}

    /// Puts C(k, j) where the tile looks for it among size_c elements. Thread t of four holds
    /// columns 2 t and 2 t + 1 of a tile's eight: in real these are made columns t and 4 + t of Y,
    /// so that neighbours store neighbours.
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
        const double* const real_x =
            reinterpret_cast<const double*>(x) + (warp_m_ * TILES_M * 16 + g_) * real_pitch_x + t_;
        const bool negative = t_ % 2 == 1 && g_ % 2 == 0;
#pragma unroll
        for (int e = 0; e < TILES_M * tiles_n; ++e) {
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                sum_[e][q] = 0;
            }
        }
#pragma unroll 2
        for (int k = 0; k < parts * columns; k += step) {
            double left[TILES_M][2 * STEPS];
#pragma unroll
            for (int i = 0; i < TILES_M; ++i) {
#pragma unroll
                for (int s = 0; s < 2 * STEPS; ++s) {
                    left[i][s] = real_x[(i * 16 + s % 2 * 8) * real_pitch_x + k + s / 2 * 4];
                }
            }
#pragma unroll
            for (int j = 0; j < tiles_n; ++j) {
                const int tile = minimum(j * WARPS_N + warp_n_, all_n - 1);
                double right[STEPS];
#pragma unroll
                for (int s = 0; s < STEPS; ++s) {
                    right[s] = c_[(k + 4 * s) / parts * real_pitch_c + tile * 8];
                    if (parts == 2) {
                        right[s] = flip_sign(right[s], negative);
                    }
                }
#pragma unroll
                for (int i = 0; i < TILES_M; ++i) {
                    mma<STEPS>(sum_[i * tiles_n + j], left[i], right);
                }
            }
        }
    }

    T sum(int entry) const {
        const int e = entry * parts;
        if constexpr (parts == 1) {
            return sum_[e / 4][e % 4];
        } else {
            return {sum_[e / 4][e % 4], sum_[e / 4][e % 4 + 1]};
        }
    }
    int row(int entry) const {
        const int e = entry * parts;
        return (warp_m_ * TILES_M + e / 4 / tiles_n) * 16 + g_ + e % 4 / 2 * 8;
    }
    int col(int entry) const {
        const int e = entry * parts;
        const int tile = e / 4 % tiles_n * WARPS_N + warp_n_;
        const int col = parts == 1 ? e % 2 * 4 + t_ : t_;
        return tile < all_n ? tile * (8 / parts) + col : N;
    }

  private:
    const int warp_n_;
    const int warp_m_;
    const int g_;
    const int t_;
    const double* const c_;
    double sum_[TILES_M * tiles_n][4];
};

}  // namespace quiver

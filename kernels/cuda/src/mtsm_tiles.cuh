// SPDX-License-Identifier: BSD-3-Clause
// The sums of mtsm that a thread keeps in registers, and how it adds a stage of B and X to them. A
// block of THREADS makes ROWS rows of Y; its warps share them, the columns, and the terms of a
// stage: WARPS_M x WARPS_N of them in each of GROUPS groups, whose sums are added in the end.
// B(i, k) lies in shared memory at [i PITCH_A + k] where it is stored along the sum, else at
// [k PITCH_A + i]; X(k, j) at [k PITCH_X + j].
#pragma once

#include "convert.cuh"
#include "mma.cuh"

namespace quiver {

template <bool CONJUGATE, class T>
T conjugate_if(T value) {
    if constexpr (CONJUGATE) {
        return conjugate(value);
    } else {
        return value;
    }
}

/// Multiply-adds: VR rows of a thread times its warp's columns. A lane has neighbouring rows of a
/// vector, or rows 32 apart where B is stored along the sum.
template <class A, class T, bool ALONG, bool CONJUGATE, int N, int DEPTH, int VR, int WARPS_M,
          int WARPS_N, int GROUPS, int PITCH_A, int PITCH_X>
class FmaSums {
    static constexpr int vector_a = 16 / sizeof(A);
    static constexpr int vector_x = 16 / sizeof(T);
    static constexpr int columns =
        WARPS_N == 1 ? N : ceil_div(ceil_div(N, WARPS_N), vector_x) * vector_x;
    static constexpr int terms = DEPTH / GROUPS;
    static constexpr int step = ALONG ? vector_a : 1;
    /// Steps at once: few where sums leave few registers for what they load.
    static constexpr int unroll = ALONG ? 1 : VR * columns * sizeof(T) > 256 ? 2 : 4;
    static_assert(DEPTH % GROUPS == 0 && terms % step == 0 && (ALONG || VR % vector_a == 0));
    static_assert(PITCH_X % vector_x == 0 && PITCH_A % vector_a == 0);

  public:
    static constexpr int classes = 1;
    static constexpr int lanes = GROUPS;
    static constexpr int slots = 32 * WARPS_M * WARPS_N;
    static constexpr int entries = VR * columns;
    static constexpr int row_class = 0;

    const int lane;
    const int slot;

    FmaSums() : lane(threadIdx.x / slots), slot(threadIdx.x % slots) { clear(); }

    void clear() {
#pragma unroll
        for (int e = 0; e < entries; ++e) {
            sum_[e] = T{};
        }
    }

    void multiply(const A* a, const T* x) {
        const T* const right = x + lane * terms * PITCH_X + first_column();
        const A* const left = a + lane * terms * (ALONG ? 1 : PITCH_A);
#pragma unroll(unroll)
        for (int k = 0; k < terms; k += step) {
            Pack<A, vector_a> piece[ALONG ? VR : VR / vector_a];
            if constexpr (ALONG) {
#pragma unroll
                for (int r = 0; r < VR; ++r) {
                    piece[r] = load(left + row_of(r) * PITCH_A + k);
                }
            } else {
#pragma unroll
                for (int r = 0; r < VR; r += vector_a) {
                    piece[r / vector_a] = load(left + k * PITCH_A + row_of(r));
                }
            }
#pragma unroll
            for (int v = 0; v < step; ++v) {
                T factor[columns];
                load_row(right + (k + v) * PITCH_X, factor);
#pragma unroll
                for (int r = 0; r < VR; ++r) {
                    const A value =
                        ALONG ? piece[r].value[v] : piece[r / vector_a].value[r % vector_a];
                    const T element = conjugate_if<CONJUGATE>(Converter<T>::from(value));
#pragma unroll
                    for (int j = 0; j < columns; ++j) {
                        T& sum = sum_[r * columns + j];
                        sum = multiply_add(element, factor[j], sum);
                    }
                }
            }
        }
    }

    /// Makes the sums those of Y.
    void finish() {}

    T sum(int entry) const {
        return sum_[entry];
    }
    int row(int entry) const {
        return row_of(entry / columns);
    }
    int col(int entry) const {
        return first_column() + entry % columns;
    }

  private:
    int row_of(int r) const {
        const int warp = slot / 32 / WARPS_N;
        const int thread = threadIdx.x % 32;
        if constexpr (ALONG) {
            return (warp * VR + r) * 32 + thread;
        } else {
            return ((warp * (VR / vector_a) + r / vector_a) * 32 + thread) * vector_a +
                   r % vector_a;
        }
    }
    int first_column() const {
        return WARPS_N == 1 ? 0 : slot / 32 % WARPS_N * columns;
    }
    static Pack<A, vector_a> load(const A* from) {
        return *reinterpret_cast<const Pack<A, vector_a>*>(from);
    }
    /// The same for all lanes of a warp, so one word of shared memory each time.
    static void load_row(const T* from, T (&to)[columns]) {
#pragma unroll
        for (int j = 0; j < columns; j += vector_x) {
            const auto pack = *reinterpret_cast<const Pack<T, vector_x>*>(from + j);
#pragma unroll
            for (int v = 0; v < vector_x; ++v) {
                if (j + v < columns) {
                    to[j + v] = pack.value[v];
                }
            }
        }
    }

    T sum_[entries];
};

/// Double precision on the tensor cores: TILES_M tiles of 16 rows below each other in a warp.
/// Complex matrices count as real ones. Stored along the sum, B has twice the terms and X(k, j) is
/// the real matrix (re, im; -im, re), which each thread reads off X: one part of it, with one sign.
/// Stored across it, B has twice the rows, those of the real and of the imaginary parts in turn,
/// and their products are put together in the end.
template <class T, bool ALONG, bool CONJUGATE, int N, int DEPTH, int TILES_M, int WARPS_M,
          int WARPS_N, int GROUPS, int PITCH_A, int PITCH_X>
class MmaSums {
    static constexpr int parts = sizeof(T) / sizeof(double);
    static constexpr int all_n = ceil_div(parts * N, 8);
    static constexpr int tiles_n = ceil_div(all_n, WARPS_N);
    static constexpr int pitch_a = parts * PITCH_A;
    static constexpr int pitch_x = parts * PITCH_X;
    /// Terms of the sum that one real term stands for.
    static constexpr int split = ALONG ? parts : 1;
    static constexpr int terms = DEPTH * split / GROUPS;
    static constexpr int rows = WARPS_M * TILES_M * 16 / (parts / split);
    static_assert(DEPTH * split % (4 * GROUPS) == 0);

  public:
    static constexpr int classes = 1;
    static constexpr int lanes = GROUPS;
    static constexpr int slots = 32 * WARPS_M * WARPS_N;
    static constexpr int entries = TILES_M * tiles_n * 4 / parts;
    static constexpr int row_class = 0;

    const int lane;
    const int slot;

    MmaSums()
        : lane(threadIdx.x / slots),
          slot(threadIdx.x % slots),
          warp_m_(slot / 32 / WARPS_N),
          warp_n_(slot / 32 % WARPS_N),
          g_(threadIdx.x % 32 / 4),
          t_(threadIdx.x % 4) {
        clear();
    }

    void clear() {
#pragma unroll
        for (int i = 0; i < TILES_M * tiles_n; ++i) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                sum_[i][e] = 0;
            }
        }
    }

    void multiply(const T* a, const T* x) {
        const double* const real_a = reinterpret_cast<const double*>(a);
        const double* const real_x = reinterpret_cast<const double*>(x);
        const bool odd = split == 2 && t_ % 2 != 0;
        const bool flip = odd && (CONJUGATE ? g_ % 2 != 0 : g_ % 2 == 0);
        const int column = odd ? g_ ^ 1 : g_;
#pragma unroll 2
        for (int first = 0; first < terms; first += 4) {
            const int k = lane * terms + first + t_;
            double left[TILES_M][2];
#pragma unroll
            for (int i = 0; i < TILES_M; ++i) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int row = (warp_m_ * TILES_M + i) * 16 + g_ + 8 * h;
                    left[i][h] = real_a[ALONG ? row * pitch_a + k : k * pitch_a + row];
                }
            }
#pragma unroll
            for (int j = 0; j < tiles_n; ++j) {
                const int tile = minimum(j * WARPS_N + warp_n_, all_n - 1);
                double right[1] = {real_x[k / split * pitch_x + tile * 8 + column]};
                if (split == 2) {
                    right[0] = flip_sign(right[0], flip);
                }
#pragma unroll
                for (int i = 0; i < TILES_M; ++i) {
                    mma<1>(sum_[i * tiles_n + j], left[i], right);
                }
            }
        }
    }

    void finish() {
        if constexpr (parts == 2 && split == 1) {
            // Rows of real parts are in lanes with even g, of imaginary parts in their neighbours.
            constexpr double sign = CONJUGATE ? -1 : 1;
#pragma unroll
            for (int i = 0; i < TILES_M * tiles_n; ++i) {
#pragma unroll
                for (int e = 0; e < 4; e += 2) {
                    const double real = shuffle_xor(sum_[i][e], 4);
                    const double imaginary = shuffle_xor(sum_[i][e + 1], 4);
                    sum_[i][e] -= sign * imaginary;
                    sum_[i][e + 1] += sign * real;
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
    /// ROWS where the entry is none of Y's.
    int row(int entry) const {
        const int e = entry * parts;
        const int row = (warp_m_ * TILES_M + e / 4 / tiles_n) * 16 + g_ + e % 4 / 2 * 8;
        if constexpr (parts == 2 && split == 1) {
            return row % 2 == 0 ? row / 2 : rows;
        } else {
            return row;
        }
    }
    int col(int entry) const {
        const int e = entry * parts;
        const int tile = e / 4 % tiles_n * WARPS_N + warp_n_;
        const int col = parts == 1 ? tile * 8 + 2 * t_ + e % 2 : tile * 4 + t_;
        return tile < all_n ? col : N;
    }

  private:
    const int warp_m_;
    const int warp_n_;
    const int g_;
    const int t_;
    double sum_[TILES_M * tiles_n][4];
};

}  // namespace quiver

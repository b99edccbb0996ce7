// SPDX-License-Identifier: BSD-3-Clause
// The sums of mtsm that a thread keeps in registers, and the addition of a stage of B and X to
// them. A thread block computes `rows` rows of Y. Its warps are divided among rows, columns, and
// the terms of a stage: warps_m x warps_n warps in each of `groups` groups, whose sums are added at
// the end. In shared memory, B(i, k) is at [i pitch_a + k] if B is stored along the sum, else at [k
// pitch_a + i]; X(k, j) is at [k pitch_x + j].
#pragma once

#include "convert.cuh"
#include "kernels/cuda/kernel_configs.hpp"
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

/// Plain multiply-adds: the rows of a thread times the columns of its warp. The rows of a lane are
/// adjacent and form vectors, or are 32 apart if B is stored along the sum.
template <class A, class T, MtsmConfig CFG>
class FmaSums {
    static constexpr int vector_a = 16 / sizeof(A);
    static constexpr int vector_x = 16 / sizeof(T);
    static constexpr int columns =
        CFG.warps_n == 1 ? CFG.n : ceil_div(ceil_div(CFG.n, CFG.warps_n), vector_x) * vector_x;
    static constexpr int terms = CFG.depth / CFG.groups;
    static constexpr int step = CFG.along_sum ? vector_a : 1;
    /// Unrolled steps: few if the sums leave few registers for the operands.
    static constexpr int unroll = CFG.along_sum                                   ? 1
                                  : CFG.rows_a_thread * columns * sizeof(T) > 256 ? 2
                                                                                  : 4;
    static_assert(CFG.depth % CFG.groups == 0 && terms % step == 0 &&
                  (CFG.along_sum || CFG.rows_a_thread % vector_a == 0));
    static_assert(CFG.pitch_x % vector_x == 0 && CFG.pitch_a % vector_a == 0);

  public:
    static constexpr int classes = 1;
    static constexpr int lanes = CFG.groups;
    static constexpr int slots = 32 * CFG.warps_m * CFG.warps_n;
    static constexpr int entries = CFG.rows_a_thread * columns;
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
        const T* const right = x + lane * terms * CFG.pitch_x + first_column();
        const A* const left = a + lane * terms * (CFG.along_sum ? 1 : CFG.pitch_a);
#pragma unroll(unroll)
        for (int k = 0; k < terms; k += step) {
            Pack<A, vector_a>
                piece[CFG.along_sum ? CFG.rows_a_thread : CFG.rows_a_thread / vector_a];
            if constexpr (CFG.along_sum) {
#pragma unroll
                for (int r = 0; r < CFG.rows_a_thread; ++r) {
                    piece[r] = load(left + row_of(r) * CFG.pitch_a + k);
                }
            } else {
#pragma unroll
                for (int r = 0; r < CFG.rows_a_thread; r += vector_a) {
                    piece[r / vector_a] = load(left + k * CFG.pitch_a + row_of(r));
                }
            }
#pragma unroll
            for (int v = 0; v < step; ++v) {
                T factor[columns];
                load_row(right + (k + v) * CFG.pitch_x, factor);
#pragma unroll
                for (int r = 0; r < CFG.rows_a_thread; ++r) {
                    const A value =
                        CFG.along_sum ? piece[r].value[v] : piece[r / vector_a].value[r % vector_a];
                    const T element = conjugate_if<CFG.conjugated>(Converter<T>::from(value));
#pragma unroll
                    for (int j = 0; j < columns; ++j) {
                        T& sum = sum_[r * columns + j];
                        sum = multiply_add(element, factor[j], sum);
                    }
                }
            }
        }
    }

    /// Completes the sums to those of Y.
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
        const int warp = slot / 32 / CFG.warps_n;
        const int thread = threadIdx.x % 32;
        if constexpr (CFG.along_sum) {
            return (warp * CFG.rows_a_thread + r) * 32 + thread;
        } else {
            return ((warp * (CFG.rows_a_thread / vector_a) + r / vector_a) * 32 + thread) *
                       vector_a +
                   r % vector_a;
        }
    }
    int first_column() const {
        return CFG.warps_n == 1 ? 0 : slot / 32 % CFG.warps_n * columns;
    }
    static Pack<A, vector_a> load(const A* from) {
        return *reinterpret_cast<const Pack<A, vector_a>*>(from);
    }
    /// All lanes of a warp load the same row, so that each load is one broadcast word of shared
    /// memory.
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

/// Double precision on the tensor cores: a warp has rows_a_thread tiles of 16 rows, one below the
/// other. Complex matrices are treated as real ones. If B is stored along the sum, it has twice the
/// terms, and X(k, j) is the real matrix (re, im; -im, re); each thread reads one part of it from
/// X, with one sign. If B is stored across the sum, it has twice the rows, alternating real and
/// imaginary parts, whose products are combined at the end.
template <class T, MtsmConfig CFG>
class MmaSums {
    static constexpr int parts = sizeof(T) / sizeof(double);
    static constexpr int all_n = ceil_div(parts * CFG.n, 8);
    static constexpr int tiles_n = ceil_div(all_n, CFG.warps_n);
    static constexpr int pitch_a = parts * CFG.pitch_a;
    static constexpr int pitch_x = parts * CFG.pitch_x;
    /// Number of real terms per term of the sum.
    static constexpr int split = CFG.along_sum ? parts : 1;
    static constexpr int terms = CFG.depth * split / CFG.groups;
    static constexpr int rows = CFG.warps_m * CFG.rows_a_thread * 16 / (parts / split);
    static_assert(CFG.depth * split % (4 * CFG.groups) == 0);

  public:
    static constexpr int classes = 1;
    static constexpr int lanes = CFG.groups;
    static constexpr int slots = 32 * CFG.warps_m * CFG.warps_n;
    static constexpr int entries = CFG.rows_a_thread * tiles_n * 4 / parts;
    static constexpr int row_class = 0;

    const int lane;
    const int slot;

    MmaSums()
        : lane(threadIdx.x / slots),
          slot(threadIdx.x % slots),
          warp_m_(slot / 32 / CFG.warps_n),
          warp_n_(slot / 32 % CFG.warps_n),
          g_(threadIdx.x % 32 / 4),
          t_(threadIdx.x % 4) {
        clear();
    }

    void clear() {
#pragma unroll
        for (int i = 0; i < CFG.rows_a_thread * tiles_n; ++i) {
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
        const unsigned flip = sign_mask(odd && (CFG.conjugated ? g_ % 2 != 0 : g_ % 2 == 0));
        const int column = odd ? g_ ^ 1 : g_;
#pragma unroll 2
        for (int first = 0; first < terms; first += 4) {
            const int k = lane * terms + first + t_;
            double left[CFG.rows_a_thread][2];
#pragma unroll
            for (int i = 0; i < CFG.rows_a_thread; ++i) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int row = (warp_m_ * CFG.rows_a_thread + i) * 16 + g_ + 8 * h;
                    left[i][h] = real_a[CFG.along_sum ? row * pitch_a + k : k * pitch_a + row];
                }
            }
#pragma unroll
            for (int j = 0; j < tiles_n; ++j) {
                const int tile = minimum(j * CFG.warps_n + warp_n_, all_n - 1);
                double right[1] = {real_x[k / split * pitch_x + tile * 8 + column]};
                if (split == 2) {
                    right[0] = flip_sign(right[0], flip);
                }
#pragma unroll
                for (int i = 0; i < CFG.rows_a_thread; ++i) {
                    mma<1>(sum_[i * tiles_n + j], left[i], right);
                }
            }
        }
    }

    void finish() {
        if constexpr (parts == 2 && split == 1) {
            // The rows of real parts are in lanes with even g, the rows of imaginary parts in the
            // adjacent lanes.
            constexpr double sign = CFG.conjugated ? -1 : 1;
#pragma unroll
            for (int i = 0; i < CFG.rows_a_thread * tiles_n; ++i) {
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
        return sum_of<T>(sum_, entry);
    }
    /// Row of an entry; `rows` if the entry does not belong to Y.
    int row(int entry) const {
        const int e = entry * parts;
        const int row = (warp_m_ * CFG.rows_a_thread + e / 4 / tiles_n) * 16 + g_ + e % 4 / 2 * 8;
        if constexpr (parts == 2 && split == 1) {
            return row % 2 == 0 ? row / 2 : rows;
        } else {
            return row;
        }
    }
    int col(int entry) const {
        const int e = entry * parts;
        const int tile = e / 4 % tiles_n * CFG.warps_n + warp_n_;
        const int col = parts == 1 ? tile * 8 + 2 * t_ + e % 2 : tile * 4 + t_;
        return tile < all_n ? col : CFG.n;
    }

  private:
    const int warp_m_;
    const int warp_n_;
    const int g_;
    const int t_;
    double sum_[CFG.rows_a_thread * tiles_n][4];
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// The sums of mtsm for half precision or bfloat16 times float on the tensor cores; otherwise as in
// mtsm_tiles.cuh.
#pragma once

#include "kernels/cuda/kernel_configs.hpp"
#include "short_mma.cuh"

namespace quiver {

/// D += A B for A 16 x 8, B 8 x 8 in tf32 (float whose last 13 bits are zero), D 16 x 8 in float.
/// With g = lane / 4 and t = lane % 4: a[2 s + h] = A(g + 8 h, t + 4 s), b[s] = B(t + 4 s, g), d[2
/// h + e] = D(g + 8 h, 2 t + e). PTX ISA, mma.m16n8k8 for .tf32.
inline void tf32_mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Converts the two elements of a word to tf32, which represents all their values exactly.
template <class A>
void widen(unsigned word, unsigned& low, unsigned& high) {
    if constexpr (is_bfloat<A>) {
        low = word << 16;
        high = word & 0xffff0000u;
    } else {
        low = __float_as_uint(to_float(half_t{static_cast<unsigned short>(word)}));
        high = __float_as_uint(to_float(half_t{static_cast<unsigned short>(word >> 16)}));
    }
}

/// A warp has rows_a_thread tiles of 16 rows, one below the other. X is represented as the sum of
/// two tf32 numbers: its first 11 bits, and the rest rounded to 11 bits. Tensor cores truncate when
/// they add; after `run` terms their sums are therefore added, with correct rounding, to separate
/// accumulators.
///
/// A lane loads two adjacent elements of B with one word. If B is stored along the sum, these are
/// terms. Of eight terms, lane t then has terms 2 t and 2 t + 1 in the operand positions of t and t
/// + 4, and X is loaded in the same order. If B is stored across the sum, they are rows 2 g and 2 g
/// + 1, in the positions of rows g and g + 8.
template <class A, MtsmConfig CFG>
class ShortSums {
    static constexpr int all_n = ceil_div(CFG.n, 8);
    static constexpr int tiles_n = ceil_div(all_n, CFG.warps_n);
    static constexpr int tiles = CFG.rows_a_thread * tiles_n;
    static constexpr int terms = CFG.depth / CFG.groups;
    static constexpr int run = minimum(terms, 64);
    static_assert(CFG.depth % (8 * CFG.groups) == 0 && terms % run == 0 && CFG.pitch_a % 2 == 0);

  public:
    static constexpr int classes = 1;
    static constexpr int lanes = CFG.groups;
    static constexpr int slots = 32 * CFG.warps_m * CFG.warps_n;
    static constexpr int entries = tiles * 4;
    static constexpr int row_class = 0;

    const int lane;
    const int slot;

    ShortSums(const A*, std::int64_t)
        : lane(threadIdx.x / slots),
          slot(threadIdx.x % slots),
          warp_m_(slot / 32 / CFG.warps_n),
          warp_n_(slot / 32 % CFG.warps_n),
          g_(threadIdx.x % 32 / 4),
          t_(threadIdx.x % 4) {
        clear();
    }

    void clear() { set_zero(sum_); }

    void multiply(const A* a, const float* x) {
#pragma unroll 1
        for (int begin = 0; begin < terms; begin += run) {
            float part[tiles][4];
            set_zero(part);
#pragma unroll 2
            for (int first = begin; first < begin + run; first += 8) {
                add_terms(lane * terms + first, a, x, part);
            }
#pragma unroll
            for (int i = 0; i < tiles; ++i) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    sum_[i][e] += part[i][e];
                }
            }
        }
    }

    void finish() {}

    float sum(int entry) const {
        return sum_[entry / 4][entry % 4];
    }
    int row(int entry) const {
        const int half = entry % 4 / 2;
        return (warp_m_ * CFG.rows_a_thread + entry / 4 / tiles_n) * 16 +
               (CFG.along_sum ? g_ + 8 * half : 2 * g_ + half);
    }
    int col(int entry) const {
        const int tile = entry / 4 % tiles_n * CFG.warps_n + warp_n_;
        return tile < all_n ? tile * 8 + 2 * t_ + entry % 2 : CFG.n;
    }

  private:
    static void set_zero(float (&sums)[tiles][4]) {
#pragma unroll
        for (int i = 0; i < tiles; ++i) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                sums[i][e] = 0;
            }
        }
    }

    /// Adds the eight terms from k on.
    void add_terms(int k, const A* a, const float* x, float (&sums)[tiles][4]) const {
        unsigned left[CFG.rows_a_thread][4];
#pragma unroll
        for (int i = 0; i < CFG.rows_a_thread; ++i) {
            const int row = (warp_m_ * CFG.rows_a_thread + i) * 16;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const A* const from =
                    a + (CFG.along_sum ? (row + g_ + 8 * h) * CFG.pitch_a + k + 2 * t_
                                       : (k + t_ + 4 * h) * CFG.pitch_a + row + 2 * g_);
                const unsigned word = *reinterpret_cast<const unsigned*>(from);
                widen<A>(word, left[i][CFG.along_sum ? h : 2 * h],
                         left[i][CFG.along_sum ? 2 + h : 2 * h + 1]);
            }
        }
#pragma unroll
        for (int j = 0; j < tiles_n; ++j) {
            const int tile = minimum(j * CFG.warps_n + warp_n_, all_n - 1);
            constexpr unsigned kept = 0xffffe000u;
            unsigned high[2];
            unsigned low[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int term = k + (CFG.along_sum ? 2 * t_ + h : t_ + 4 * h);
                const float value = x[term * CFG.pitch_x + tile * 8 + g_];
                high[h] = __float_as_uint(value) & kept;
                const float rest = value - __uint_as_float(high[h]);
                low[h] = (__float_as_uint(rest) + 0x1000u) & kept;
            }
#pragma unroll
            for (int i = 0; i < CFG.rows_a_thread; ++i) {
                tf32_mma(sums[i * tiles_n + j], left[i], low);
            }
#pragma unroll
            for (int i = 0; i < CFG.rows_a_thread; ++i) {
                tf32_mma(sums[i * tiles_n + j], left[i], high);
            }
        }
    }

    const int warp_m_;
    const int warp_n_;
    const int g_;
    const int t_;
    float sum_[tiles][4];
};

}  // namespace quiver

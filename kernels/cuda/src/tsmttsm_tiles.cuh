// SPDX-License-Identifier: BSD-3-Clause
// The division of the sums of C = A^H B among a team of threads, over rows in shared memory. A tile
// is the part of C that one thread sums. Threads with the same `lane` cover C once, each in its own
// `slot`, and the lanes process the rows in turn. Lanes of different `row_class` number their
// entries differently.
#pragma once

#include "kernels/cuda/kernel_configs.hpp"
#include "mma.cuh"
#include "scalar.cuh"

namespace quiver {

constexpr int greatest_common_divisor(int a, int b) {
    return b == 0 ? a : greatest_common_divisor(b, a % b);
}

/// The weights of an unweighted product. For any weights, at(row)(b) is an element b of this row of
/// B times the weight of the row.
struct NoWeights {
    NoWeights from(std::int64_t) const { return {}; }
    NoWeights every(int, int) const { return {}; }
    NoWeights at(int) const { return {}; }
    template <class T>
    T operator()(T value) const {
        return value;
    }
};

/// Sums of tile_m x tile_n entries by plain multiply-adds. Columns are loaded in vectors,
/// interleaved with those of neighbouring threads or, with `blocked`, next to each other. With
/// `same` (A is B, tile_m = tile_n) only thread pairs on and above the diagonal exist; they cover
/// every entry or its mirror image. If the pitches are not multiples of the vector, a row starts
/// within a vector, at the same offset in every row of a class. A lane processes the rows of one
/// class only, and its columns are shifted by this offset.
template <class T, SumTileConfig CFG>
class FmaTile {
    static constexpr int divisor_a = greatest_common_divisor(CFG.vector, CFG.pitch_a);
    static constexpr int divisor_b = greatest_common_divisor(CFG.vector, CFG.pitch_b);

  public:
    static constexpr int classes = CFG.vector / minimum(divisor_a, divisor_b);
    static constexpr int threads_m = ceil_div(CFG.m + CFG.vector - divisor_a, CFG.tile_m);
    static constexpr int threads_n = ceil_div(CFG.n + CFG.vector - divisor_b, CFG.tile_n);
    static constexpr int slots = CFG.same ? threads_m * (threads_m + 1) / 2 : threads_m * threads_n;
    static constexpr int lanes = CFG.team / slots / classes * classes;
    static constexpr int entries = CFG.tile_m * CFG.tile_n;
    static constexpr int row_multiple = lanes;
    static_assert(CFG.tile_m % CFG.vector == 0 && CFG.tile_n % CFG.vector == 0 && lanes >= 1);
    static_assert(!CFG.same || (CFG.m == CFG.n && CFG.tile_m == CFG.tile_n));

    __device__ explicit FmaTile(int thread)
        : lane(thread / slots),
          slot(thread % slots),
          row_class(lane % classes),
          shift_a_(row_class * CFG.pitch_a % CFG.vector),
          shift_b_(row_class * CFG.pitch_b % CFG.vector) {
        if (CFG.same) {
            thread_m_ = 0;
            int rest = slot;
            for (int length = threads_m; rest >= length; --length) {
                rest -= length;
                ++thread_m_;
            }
            thread_n_ = thread_m_ + rest;
        } else {
            thread_m_ = slot % threads_m;
            thread_n_ = slot / threads_m;
        }
    }

    template <int ROWS, class Weights = NoWeights>
    void add(const T* a, const T* b, const Weights& weights = {}) {
        static_assert(ROWS % lanes == 0);
        if (CFG.team > slots * lanes && lane >= lanes) {  // its rows are beyond the stage
            return;
        }
        a += lane * CFG.pitch_a - shift_a_;
        b += lane * CFG.pitch_b - shift_b_;
#pragma unroll(CFG.unroll > 0 ? CFG.unroll : 4)
        for (int step = 0; step < ROWS / lanes; ++step) {
            T left[CFG.tile_m];
            T right[CFG.tile_n];
            load<CFG.tile_m, threads_m>(a + step * (lanes * CFG.pitch_a), thread_m_, left);
            load<CFG.tile_n, threads_n>(b + step * (lanes * CFG.pitch_b), thread_n_, right);
            const auto weight = weights.at(lane + step * lanes);
#pragma unroll
            for (int j = 0; j < CFG.tile_n; ++j) {
                right[j] = weight(right[j]);
            }
#pragma unroll
            for (int i = 0; i < CFG.tile_m; ++i) {
#pragma unroll
                for (int j = 0; j < CFG.tile_n; ++j) {
                    sum_[i * CFG.tile_n + j] =
                        multiply_add(conjugate(left[i]), right[j], sum_[i * CFG.tile_n + j]);
                }
            }
        }
    }

    T sum(int entry) const {
        return sum_[entry];
    }
    /// With `same`: true if entries below the diagonal represent their mirror images; otherwise
    /// these are duplicates or were not computed, and the caller must omit them.
    bool mirrors() const {
        return thread_m_ != thread_n_;
    }
    /// The row of an entry; negative or beyond the last row if the entry does not exist.
    int row(int entry) const {
        return column<CFG.tile_m, threads_m>(thread_m_, entry / CFG.tile_n) - shift_a_;
    }
    int col(int entry) const {
        return column<CFG.tile_n, threads_n>(thread_n_, entry % CFG.tile_n) - shift_b_;
    }

    const int lane;
    const int slot;
    const int row_class;

  private:
    const int shift_a_;
    const int shift_b_;
    template <int TILE, int COUNT>
    static int column(int thread, int entry) {
        return CFG.blocked
                   ? thread * TILE + entry
                   : (entry / CFG.vector * COUNT + thread) * CFG.vector + entry % CFG.vector;
    }
    template <int TILE, int COUNT>
    static void load(const T* shared, int thread, T (&to)[TILE]) {
#pragma unroll
        for (int i = 0; i < TILE; i += CFG.vector) {
            const Pack<T, CFG.vector> pack = *reinterpret_cast<const Pack<T, CFG.vector>*>(
                shared + column<TILE, COUNT>(thread, i));
#pragma unroll
            for (int v = 0; v < CFG.vector; ++v) {
                to[i + v] = pack.value[v];
            }
        }
    }

    int thread_m_;
    int thread_n_;
    T sum_[entries] = {};
};

/// Sums on the tensor cores: tile_m x tile_n warps of the team cover C once in tiles of 16 x 8, 4
/// `vector` rows deep. Complex blocks are treated as real ones of twice the width: with S = A^T B,
/// C(i, j) = S(2i, 2j) + S(2i + 1, 2j + 1) + i (S(2i, 2j + 1) - S(2i + 1, 2j)). With `same`, tiles
/// below the diagonal are omitted.
template <class T, SumTileConfig CFG>
class MmaTile {
    static constexpr int parts = sizeof(T) / sizeof(double);
    static constexpr int all_m = ceil_div(parts * CFG.m, 16);
    static constexpr int all_n = ceil_div(parts * CFG.n, 8);
    static constexpr int tiles_m = ceil_div(all_m, CFG.tile_m);
    static constexpr int tiles_n = ceil_div(all_n, CFG.tile_n);
    static constexpr int real_pitch_a = parts * CFG.pitch_a;
    static constexpr int real_pitch_b = parts * CFG.pitch_b;

  public:
    static constexpr int classes = 1;
    static constexpr int slots = 32 * CFG.tile_m * CFG.tile_n;
    static constexpr int lanes = CFG.team / slots;
    static constexpr int entries = tiles_m * tiles_n * 4 / (parts * parts);
    static constexpr int row_multiple = lanes * 4 * CFG.vector;
    static_assert(CFG.team % slots == 0);
    static_assert(!CFG.same || CFG.m == CFG.n);

    __device__ explicit MmaTile(int thread)
        : lane(thread / slots),
          slot(thread % slots),
          warp_m_(slot / 32 % CFG.tile_m),
          warp_n_(slot / 32 / CFG.tile_m),
          g_(thread % 32 / 4),
          t_(thread % 4) {}

    template <int ROWS, class Weights = NoWeights>
    void add(const T* a, const T* b, const Weights& weights = {}) {
        static_assert(ROWS % row_multiple == 0);
        const double* const real_a = reinterpret_cast<const double*>(a) + t_ * real_pitch_a + g_;
        const double* const real_b = reinterpret_cast<const double*>(b) + t_ * real_pitch_b + g_;
#pragma unroll(CFG.unroll > 0 ? CFG.unroll : 2)
        for (int first = lane * (4 * CFG.vector); first < ROWS; first += row_multiple) {
            double left[tiles_m][2 * CFG.vector];
            decltype(weights.at(0)) weight[CFG.vector];
#pragma unroll
            for (int s = 0; s < CFG.vector; ++s) {
                weight[s] = weights.at(t_ + first + 4 * s);
            }
#pragma unroll
            for (int i = 0; i < tiles_m; ++i) {
#pragma unroll
                for (int s = 0; s < 2 * CFG.vector; ++s) {
                    left[i][s] =
                        real_a[(first + s / 2 * 4) * real_pitch_a + tile_m(i) * 16 + s % 2 * 8];
                }
            }
#pragma unroll
            for (int j = 0; j < tiles_n; ++j) {
                double right[CFG.vector];
#pragma unroll
                for (int s = 0; s < CFG.vector; ++s) {
                    right[s] = weight[s](real_b[(first + 4 * s) * real_pitch_b + tile_n(j) * 8]);
                }
#pragma unroll
                for (int i = 0; i < tiles_m; ++i) {
                    if (!CFG.same || tile_n(j) * 8 + 7 >= tile_m(i) * 16) {
                        mma<CFG.vector>(sum_[i * tiles_n + j], left[i], right);
                    }
                }
            }
        }
    }

    static bool mirrors() {
        return false;
    }
    /// All lanes of a warp must call this together.
    T sum(int entry) const {
        if constexpr (parts == 1) {
            return sum_[entry / 4][entry % 4];
        } else {
            // Lanes with neighbouring g have rows 2i and 2i + 1 of S: the even lane finishes the
            // upper eight rows of the tile, the odd lane the lower eight.
            const double(&own)[4] = sum_[entry];
            const bool odd = g_ % 2 == 1;
            const double first = shuffle_xor(odd ? own[0] : own[2], 4);
            const double second = shuffle_xor(odd ? own[1] : own[3], 4);
            return odd ? T{first + own[3], second - own[2]} : T{own[0] + second, own[1] - first};
        }
    }
    int row(int entry) const {
        const int i = entry * (parts * parts) / 4 / tiles_n;
        const int row = parts == 1 ? g_ + entry % 4 / 2 * 8 : g_ / 2 + g_ % 2 * 4;
        return own_m(i) < all_m ? own_m(i) * (16 / parts) + row : CFG.m;
    }
    int col(int entry) const {
        const int j = entry * (parts * parts) / 4 % tiles_n;
        const int col = parts == 1 ? 2 * t_ + entry % 2 : t_;
        return own_n(j) < all_n ? own_n(j) * (8 / parts) + col : CFG.n;
    }

    const int lane;
    const int slot;
    static constexpr int row_class = 0;

  private:
    // The direction alternates, so that with `same` all warps have equally many tiles above the
    // diagonal.
    int own_m(int i) const {
        return i * CFG.tile_m + (i % 2 == 0 ? warp_m_ : CFG.tile_m - 1 - warp_m_);
    }
    int own_n(int j) const {
        return j * CFG.tile_n + warp_n_;
    }
    int tile_m(int i) const {
        return minimum(own_m(i), all_m - 1);
    }
    int tile_n(int j) const {
        return minimum(own_n(j), all_n - 1);
    }

    const int warp_m_;
    const int warp_n_;
    const int g_;
    const int t_;
    double sum_[tiles_m * tiles_n][4] = {};
};

template <class T, SumTileConfig CFG>
using SumTile = typename Choice<CFG.tensor, MmaTile<T, CFG>, FmaTile<T, CFG>>::type;

}  // namespace quiver

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

template <class T>
struct RealOf {
    using type = T;
};
template <class R>
struct RealOf<Complex<R>> {
    using type = R;
};

/// CFG.shifted: where a stage has the elements of B, if lines of B start at multiples of bytes_a
/// bytes only. A line in shared memory begins with the 16 bytes that contain its first element.
template <class A, MtsmConfig CFG>
class ShiftedLines {
    using R = typename RealOf<A>::type;
    static constexpr int unit = 16 / sizeof(R);

  public:
    static constexpr int parts = sizeof(A) / sizeof(R);
    /// Number of different positions of lines within 16 bytes. Lines that are this far apart have
    /// the same one.
    static constexpr int positions = 16 / CFG.bytes_a;
    /// If every lane reads a line of its own, these extra 16 bytes after `positions` lines put the
    /// lines of a warp in different banks.
    static constexpr bool skewed = CFG.along_sum && !CFG.tensor;
    static constexpr int extra_bytes(int lines) { return skewed ? lines / positions * 16 : 0; }

    ShiftedLines(const A* a, std::int64_t lda)
        : first_(static_cast<int>(reinterpret_cast<std::uint64_t>(a) / sizeof(R) % unit)),
          step_(static_cast<int>(lda * parts % unit)) {}

    /// Distance of a line from the beginning of the stage, in real parts.
    static constexpr int begin(int line) {
        return line * (CFG.pitch_a * parts) + (skewed ? line / positions * unit : 0);
    }
    /// Position of the first element of a line, counted from its begin. Stages begin with a line
    /// whose number is a multiple of `positions`.
    int shift(int line) const { return (first_ + line * step_) % unit; }

  private:
    const int first_, step_;
};

/// Plain multiply-adds: the rows of a thread times the columns of its warp. The rows of a lane are
/// adjacent and form vectors, or are 32 apart if B is stored along the sum, and if `spread`. With
/// `spread` a lane reads single elements of B.
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
                  (CFG.along_sum || CFG.spread || CFG.rows_a_thread % vector_a == 0));
    static_assert(!CFG.shifted || CFG.spread);
    static_assert(CFG.pitch_x % vector_x == 0 && CFG.pitch_a % vector_a == 0);

  public:
    static constexpr int classes = 1;
    static constexpr int lanes = CFG.groups;
    static constexpr int slots = 32 * CFG.warps_m * CFG.warps_n;
    static constexpr int entries = CFG.rows_a_thread * columns;
    static constexpr int row_class = 0;

    const int lane;
    const int slot;

    FmaSums(const A* a, std::int64_t lda)
        : lane(threadIdx.x / slots), slot(threadIdx.x % slots), lines_(a, lda) {
        clear();
    }

    void clear() {
#pragma unroll
        for (int e = 0; e < entries; ++e) {
            sum_[e] = T{};
        }
    }

    void multiply(const A* a, const T* x) {
        if constexpr (CFG.spread) {
            multiply_elements(a, x);
        } else {
            multiply_vectors(a, x);
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
    using Lines = ShiftedLines<A, CFG>;
    using R = typename RealOf<A>::type;

    void multiply_vectors(const A* a, const T* x) {
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

    void multiply_elements(const A* a, const T* x) {
        constexpr int together = terms % 4 == 0 ? 4 : 1;
        static_assert(!CFG.shifted || together % Lines::positions == 0);
        const T* const right = x + lane * terms * CFG.pitch_x + first_column();
        // The shifts of the lines of this lane, which are those of its rows (all the same) or those
        // of the terms.
        int shift[together] = {};
        if constexpr (CFG.shifted) {
#pragma unroll
            for (int v = 0; v < together; ++v) {
                shift[v] = lines_.shift(CFG.along_sum ? row_of(0) : v);
            }
        }
        const R* const left =
            reinterpret_cast<const R*>(a) +
            (CFG.along_sum ? Lines::begin(row_of(0)) + lane * terms * Lines::parts
                           : Lines::begin(lane * terms) + row_of(0) * Lines::parts);
#pragma unroll 1
        for (int k = 0; k < terms; k += together) {
#pragma unroll
            for (int v = 0; v < together; ++v) {
                T element[CFG.rows_a_thread];
#pragma unroll
                for (int r = 0; r < CFG.rows_a_thread; ++r) {
                    const R* const from =
                        left + shift[v] +
                        (CFG.along_sum
                             ? r * Lines::begin(32) + (k + v) * Lines::parts
                             : (k + v) * (CFG.pitch_a * Lines::parts) + r * (32 * Lines::parts));
                    element[r] = conjugate_if<CFG.conjugated>(Converter<T>::from(load_one(from)));
                }
                T factor[columns];
                load_row(right + (k + v) * CFG.pitch_x, factor);
#pragma unroll
                for (int r = 0; r < CFG.rows_a_thread; ++r) {
#pragma unroll
                    for (int j = 0; j < columns; ++j) {
                        T& sum = sum_[r * columns + j];
                        sum = multiply_add(element[r], factor[j], sum);
                    }
                }
            }
        }
    }
    /// An element that starts at a multiple of bytes_a bytes.
    static A load_one(const R* from) {
        if constexpr (CFG.bytes_a >= sizeof(A)) {
            return reinterpret_cast<const Pack<A, 1>*>(from)->value[0];
        } else {
            return *reinterpret_cast<const A*>(from);
        }
    }

    int row_of(int r) const {
        const int warp = slot / 32 / CFG.warps_n;
        const int thread = threadIdx.x % 32;
        if constexpr (CFG.along_sum || CFG.spread) {
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

    const Lines lines_;
    T sum_[entries];
};

/// Double precision on the tensor cores: a warp has rows_a_thread tiles of 16 rows, one below the
/// other. Complex matrices are treated as real ones. If B is stored along the sum, it has twice the
/// terms, and X(k, j) is the real matrix (re, im; -im, re); each thread reads one part of it from
/// X, with one sign. If B is stored across the sum, it has twice the rows, alternating real and
/// imaginary parts, whose products are combined at the end. If lines are `shifted`, a product has
/// rows or terms of one parity, which all have the same shift.
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
    static constexpr int together = CFG.shifted ? 2 : 1;
    static_assert(CFG.depth * split % (4 * together * CFG.groups) == 0);

  public:
    static constexpr int classes = 1;
    static constexpr int lanes = CFG.groups;
    static constexpr int slots = 32 * CFG.warps_m * CFG.warps_n;
    static constexpr int entries = CFG.rows_a_thread * tiles_n * 4 / parts;
    static constexpr int row_class = 0;

    const int lane;
    const int slot;

    MmaSums(const T* a, std::int64_t lda)
        : lane(threadIdx.x / slots),
          slot(threadIdx.x % slots),
          warp_m_(slot / 32 / CFG.warps_n),
          warp_n_(slot / 32 % CFG.warps_n),
          g_(threadIdx.x % 32 / 4),
          t_(threadIdx.x % 4) {
        if constexpr (CFG.shifted) {
            const ShiftedLines<T, CFG> lines(a, lda);
            shift_[0] = lines.shift(0);
            shift_[1] = lines.shift(1);
        }
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
#pragma unroll(2 / together)
        for (int begin = 0; begin < terms; begin += 4 * together) {
#pragma unroll
            for (int p = 0; p < together; ++p) {
                add_terms(lane * terms + begin, p, real_a, real_x, flip, column);
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
        const int row = row_of(e / 4 / tiles_n, e % 4 / 2);
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
    /// Row of the lane in the upper (half = 0) or lower part of a tile.
    int row_of(int i, int half) const {
        const int within = CFG.shifted && CFG.along_sum ? 2 * g_ + half : g_ + 8 * half;
        return (warp_m_ * CFG.rows_a_thread + i) * 16 + within;
    }

    /// Adds the p-th four of the terms from `begin` on; with `shifted`, those of parity p across
    /// the sum.
    void add_terms(int begin, int p, const double* real_a, const double* real_x, unsigned flip,
                   int column) {
        const int k = begin + (CFG.shifted && !CFG.along_sum ? 2 * t_ + p : 4 * p + t_);
        double left[CFG.rows_a_thread][2];
#pragma unroll
        for (int i = 0; i < CFG.rows_a_thread; ++i) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = row_of(i, h);
                const int shift = CFG.shifted ? shift_[CFG.along_sum ? h : p] : 0;
                left[i][h] =
                    real_a[(CFG.along_sum ? row * pitch_a + k : k * pitch_a + row) + shift];
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

    const int warp_m_;
    const int warp_n_;
    const int g_;
    const int t_;
    int shift_[2] = {};
    double sum_[CFG.rows_a_thread * tiles_n][4];
};

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Shared parts of the batched factorisations: copies of a block's matrices to shared memory and
// back, and scalar arithmetic.
#pragma once

#include "kernels/operations/batched.hpp"
#include "stage.cuh"

namespace quiver {

/// The memory layout of a batch. packed: contiguous matrices of equal order, aligned to 16 bytes.
/// interleaved: equal elements of all matrices are adjacent. general: anything else.
enum class Packing { packed, general, interleaved };

template <class R>
R one_norm(R a) {
    return a < R(0) ? -a : a;
}
template <class R>
R one_norm(Complex<R> a) {
    return one_norm(a.re) + one_norm(a.im);
}

template <class R>
R real_of(R a) {
    return a;
}
template <class R>
R real_of(Complex<R> a) {
    return a.re;
}

/// Converts a real number to T.
template <class T>
struct FromReal {
    using Real = T;
    static T make(T a) { return a; }
};
template <class R>
struct FromReal<Complex<R>> {
    using Real = R;
    static Complex<R> make(R a) { return {a, R(0)}; }
};
template <class T>
using RealOf = typename FromReal<T>::Real;
template <class T>
T from_real(RealOf<T> a) {
    return FromReal<T>::make(a);
}

template <class R>
R scaled(R a, R factor) {
    return a * factor;
}
template <class R>
Complex<R> scaled(Complex<R> a, R factor) {
    return {a.re * factor, a.im * factor};
}

template <class R>
R quotient(R a, R b) {
    return a / b;
}
/// The quotient of complex numbers without overflow of the squares. Source: Smith, CACM 5(8), 1962.
template <class R>
Complex<R> quotient(Complex<R> a, Complex<R> b) {
    const bool wide = one_norm(b.re) >= one_norm(b.im);
    const R large = wide ? b.re : b.im;
    const R small = wide ? b.im : b.re;
    const R ratio = small / large;
    const R inverse = R(1) / multiply_add(small, ratio, large);
    const R aligned = inverse * ratio;
    return multiply(a, wide ? Complex<R>{inverse, -aligned} : Complex<R>{aligned, -inverse});
}

/// MATRICES matrices of order N in shared memory, line by line; a line is a row (BY_ROWS) or a
/// column. PITCH: elements from line to line. GAP: additional elements between matrices. LOWER:
/// only the lower triangle is copied; packed matrices whose lines are multiples of 32 bytes are
/// copied in granules of 32 bytes, and other packed matrices as a whole. WORD: bytes that a thread
/// copies at once from packed matrices; WORD divides the length of every run without a gap in the
/// tile.
template <class T, int N, int MATRICES, int THREADS, int PITCH, int GAP, int WORD, bool BY_ROWS,
          bool LOWER, Packing PACKING>
struct MatrixTile {
    static constexpr int matrix_pitch = N * PITCH + GAP;
    static constexpr int size = sizeof(T);
    static constexpr int elements = MATRICES * matrix_pitch;

    static constexpr int index(int i, int j) { return BY_ROWS ? i * PITCH + j : j * PITCH + i; }

    /// Fills the tile with the matrices from `first` on. Elements beyond the order of a matrix
    /// become those of the identity, whose factors are the identity and which supplies no pivot.
    static void load(const BatchOf<T>& batch, std::int64_t first, T* tile) {
        if (PACKING == Packing::packed && first + MATRICES <= batch.count) {
            const char* const from = reinterpret_cast<const char*>(batch.data + first * (N * N));
            for_units([&](int unit, int to) {
                copy_async<WORD>(shared_address(tile) + to, from + unit * WORD, true);
            });
            commit_copies();
            wait_for_copies<0>();
        } else {
            for_elements(batch, first, [&](T* matrix, int order, int i, int j, int to) {
                const T outside = from_real<T>(i == j ? 1 : 0);
                tile[to] = i < order && j < order && (!LOWER || j <= i)
                               ? matrix[i * batch.row_step + j * batch.col_step]
                               : outside;
            });
        }
    }

    static void store(const BatchOf<T>& batch, std::int64_t first, const T* tile) {
        if (PACKING == Packing::packed && first + MATRICES <= batch.count) {
            char* const to = reinterpret_cast<char*>(batch.data + first * (N * N));
            for_units([&](int unit, int from) {
                using Word = Pack<int, WORD / 4>;
                *reinterpret_cast<Word*>(to + unit * WORD) =
                    *reinterpret_cast<const Word*>(reinterpret_cast<const char*>(tile) + from);
            });
        } else {
            for_elements(batch, first, [&](T* matrix, int order, int i, int j, int from) {
                if (i < order && j < order && (!LOWER || j <= i)) {
                    matrix[i * batch.row_step + j * batch.col_step] = tile[from];
                }
            });
        }
    }

  private:
    /// Calls f(unit, byte offset in the tile) for this thread's units of WORD bytes.
    template <class F>
    static void for_units(F f) {
        constexpr int line_bytes = N * size;
        constexpr bool by_lines = line_bytes % WORD == 0;
        constexpr int units = MATRICES * N * line_bytes / WORD;
        static_assert(MATRICES * N * line_bytes % WORD == 0);
        static_assert(by_lines || PITCH == N, "pieces of lines must not leave gaps");
        static_assert(GAP == 0 || N * line_bytes % WORD == 0);
#pragma unroll 8
        for (int unit = threadIdx.x; unit < units; unit += THREADS) {
            const int byte = unit * WORD;
            const int matrix = GAP == 0 ? 0 : byte / (N * line_bytes);
            int to = byte + matrix * (GAP * size);
            if constexpr (PITCH != N) {
                to += byte / line_bytes * ((PITCH - N) * size);
            }
            if constexpr (LOWER && line_bytes % 32 == 0) {
                // Granules of 32 bytes, the sectors of global memory.
                const int line = byte / line_bytes % N;
                const int granule = byte % line_bytes / 32 * 32;
                const bool wanted = BY_ROWS ? granule <= line * size : granule + 32 > line * size;
                if (!wanted) {
                    continue;
                }
            }
            f(unit, to);
        }
    }

    /// Calls f(matrix, its order, i, j, index in the tile) for this thread's elements; matrices
    /// beyond the batch have order 0.
    template <class F>
    static void for_elements(const BatchOf<T>& batch, std::int64_t first, F f) {
#pragma unroll 1
        for (int e = threadIdx.x; e < MATRICES * N * N; e += THREADS) {
            const bool across = PACKING == Packing::interleaved;
            const int m = across ? e % MATRICES : e / (N * N);
            const int at = across ? e / MATRICES : e % (N * N);
            const int i = BY_ROWS ? at / N : at % N;
            const int j = BY_ROWS ? at % N : at / N;
            const std::int64_t b = first + m;
            const bool inside = b < batch.count;
            f(inside ? batch.matrix(b) : nullptr, inside ? batch.size(b) : 0, i, j,
              m * matrix_pitch + index(i, j));
        }
    }
};

/// The number of elements of one vector access: the largest power of two that fits 16 bytes and
/// divides `distance`. Accesses `distance` elements apart are then all aligned.
template <class T>
constexpr int vector_of(int distance) {
    int elements = 16 / static_cast<int>(sizeof(T));
    while (distance % elements != 0) {
        elements /= 2;
    }
    return elements;
}

/// Loads COUNT adjacent elements from shared memory to registers, V at a time as far as possible.
template <int V, int COUNT, class T>
void load_run(const T* from, T (&to)[COUNT]) {
#pragma unroll
    for (int q = 0; q + V <= COUNT; q += V) {
        const auto pack = *reinterpret_cast<const Pack<T, V>*>(from + q);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            to[q + v] = pack.value[v];
        }
    }
#pragma unroll
    for (int q = COUNT / V * V; q < COUNT; ++q) {
        to[q] = from[q];
    }
}
template <int V, int COUNT, class T>
void store_run(const T (&from)[COUNT], T* to) {
#pragma unroll
    for (int q = 0; q + V <= COUNT; q += V) {
        Pack<T, V> pack;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            pack.value[v] = from[q + v];
        }
        *reinterpret_cast<Pack<T, V>*>(to + q) = pack;
    }
#pragma unroll
    for (int q = COUNT / V * V; q < COUNT; ++q) {
        to[q] = from[q];
    }
}

/// All elements of a thread's own matrix; interleaved matrices are loaded from global memory
/// directly.
template <class T, int N, class Tile, bool BY_ROWS, Packing PACKING>
struct OwnMatrix {
    static constexpr int V = vector_of<T>(Tile::matrix_pitch);

    static void load(const BatchOf<T>& batch, std::int64_t b, const T* tile, T (&a)[N][N]) {
        T flat[N * N];
        if constexpr (PACKING == Packing::interleaved) {
            const bool inside = b < batch.count;
            const T* const from = batch.data + (inside ? b : 0);
            const int order = inside ? batch.size(b) : 0;
#pragma unroll
            for (int e = 0; e < N * N; ++e) {
                const int i = BY_ROWS ? e / N : e % N;
                const int j = BY_ROWS ? e % N : e / N;
                flat[e] = i < order && j < order ? from[i * batch.row_step + j * batch.col_step]
                                                 : from_real<T>(i == j ? 1 : 0);
            }
        } else {
            load_run<V>(tile + threadIdx.x * Tile::matrix_pitch, flat);
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
#pragma unroll
            for (int j = 0; j < N; ++j) {
                a[i][j] = flat[BY_ROWS ? i * N + j : j * N + i];
            }
        }
    }

    /// LOWER: only the lower triangle of interleaved matrices is stored.
    template <bool LOWER>
    static void store(const BatchOf<T>& batch, std::int64_t b, const T (&a)[N][N], T* tile) {
        if constexpr (PACKING == Packing::interleaved) {
            if (b < batch.count) {
                T* const to = batch.data + b;
                const int order = batch.size(b);
#pragma unroll
                for (int e = 0; e < N * N; ++e) {
                    const int i = BY_ROWS ? e / N : e % N;
                    const int j = BY_ROWS ? e % N : e / N;
                    if (i < order && j < order && (!LOWER || j <= i)) {
                        to[i * batch.row_step + j * batch.col_step] = a[i][j];
                    }
                }
            }
        } else {
            T flat[N * N];
#pragma unroll
            for (int i = 0; i < N; ++i) {
#pragma unroll
                for (int j = 0; j < N; ++j) {
                    flat[BY_ROWS ? i * N + j : j * N + i] = a[i][j];
                }
            }
            store_run<V>(flat, tile + threadIdx.x * Tile::matrix_pitch);
        }
    }
};

}  // namespace quiver

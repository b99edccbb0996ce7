// SPDX-License-Identifier: BSD-3-Clause
// Y = H X, the entries of H computed from the bits of the states. `lanes` neighbouring threads
// share a row of Y: all compute the same entries, and each adds its columns, so that a row of X is
// read as one piece.
#pragma once

#include "kernels/operations/hamiltonian.hpp"
#include "scalar.cuh"

namespace quiver {

struct EntryMath {
    template <class T>
    static T plus(T a, T b) {
        return a + b;
    }
    template <class T>
    static T times(T a, T b) {
        return multiply(a, b);
    }
    static float times(float a, double b) { return a * static_cast<float>(b); }
    template <class R>
    static Complex<R> times(Complex<R> a, double b) {
        return {a.re * static_cast<R>(b), a.im * static_cast<R>(b)};
    }
};

/// Row i of this rank; its word is `state`.
template <class T, int LANES, int COLUMNS>
QUIVER_STATE_INLINE void hamiltonian_row(const HamiltonianArgs<T>& args, std::int64_t i,
                                         std::uint64_t state) {
    const int lane = threadIdx.x % LANES;
    const std::int64_t row = args.first + i;
    const T diagonal = diagonal_entry<EntryMath>(args, state);
    T sum[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        const int j = lane + c * LANES;
        sum[c] = T{};
        if (j < args.width) {
            const T shift = args.shifts != nullptr ? args.shifts[j] : args.shift;
            sum[c] = multiply(EntryMath::plus(diagonal, -shift), args.x[i * args.ldx + j]);
        }
    }
    for_each_entry(args, state, [&](std::uint64_t other, T value) {
        const StateEntry<T> entry = entry_of<EntryMath>(args, row, other, value);
        const T* const x = args.row_of_x(args.place_of(entry.column));
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int j = lane + c * LANES;
            if (j < args.width) {
                sum[c] = multiply_add(entry.value, x[j], sum[c]);
            }
        }
    });
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        const int j = lane + c * LANES;
        if (j < args.width) {
            T* const y = args.y + i * args.ldy + j;
            const T scaled = multiply(args.alpha, sum[c]);
            *y = is_zero(args.beta) ? scaled : multiply_add(args.beta, *y, scaled);
        }
    }
}

/// Each group of LANES threads takes ROWS consecutive rows at a time, because the word of the next
/// row costs less than that of any row. SYMMETRIC: the space has symmetries. LANES COLUMNS >=
/// width.
template <class T, int LANES, int COLUMNS, int ROWS, bool SYMMETRIC>
__global__ void __launch_bounds__(256, 2) hamiltonian(HamiltonianArgs<T> args) {
    if constexpr (!SYMMETRIC) {
        args.space.representatives = nullptr;
    }
    const std::int64_t group =
        static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / LANES) + threadIdx.x / LANES;
    const std::int64_t groups = static_cast<std::int64_t>(gridDim.x) * (blockDim.x / LANES);
    for (std::int64_t begin = group * ROWS; begin < args.rows; begin += groups * ROWS) {
        std::uint64_t state = args.space.word(args.first + begin);
        for (int r = 0; r < ROWS && begin + r < args.rows; ++r) {
            const std::int64_t row = args.first + begin + r;
            if (r > 0) {
                state = SYMMETRIC ? args.space.word(row) : args.space.next(row - 1, state);
            }
            hamiltonian_row<T, LANES, COLUMNS>(args, begin + r, state);
        }
    }
}

}  // namespace quiver

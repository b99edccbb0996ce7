// SPDX-License-Identifier: BSD-3-Clause
// Solutions, inverses and determinants from batched factors.
#pragma once

#include "batched.cuh"

namespace quiver {

/// LANES neighbouring threads (a power of two up to 32) hold COLUMNS right-hand sides of a matrix
/// of order up to LANES ROWS; a thread's q-th row is q LANES + lane. A pass solves for COLUMNS of
/// the right-hand sides of a matrix. Successive groups of LANES threads make the passes of one
/// matrix, then those of the next matrix. A thread that owns a single short row of the factor reads
/// the whole row first, so that no step waits for memory. For Cholesky this row consists of the row
/// of L up to the diagonal and the row of L^H after it.
template <class T, int LANES, int ROWS, int COLUMNS, bool CHOLESKY>
__global__ void __launch_bounds__(128) batched_solve(BatchedSolveArgs<T> args) {
    const auto& factor = args.factor;
    const int passes = ceil_div(args.b.cols, COLUMNS);
    const std::int64_t group =
        (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    const int lane = threadIdx.x % LANES;
    const bool inside = group / passes < factor.count;
    // Groups beyond the last one repeat its work without storing, because all lanes of a warp must
    // take part in shuffles.
    const std::int64_t b = inside ? group / passes : factor.count - 1;
    const int first = static_cast<int>(group % passes) * COLUMNS;
    const int n = factor.size(b);
    const int columns = args.from_identity ? n : args.b.cols;
    const T* const a = factor.matrix(b);
    T* const right = args.b.matrix(b);
    const auto at = [&](int i, int j) {
        const bool adjoint = CHOLESKY && j > i;
        const T value =
            a[(adjoint ? j : i) * factor.row_step + (adjoint ? i : j) * factor.col_step];
        return adjoint ? conjugate(value) : value;
    };
    constexpr bool keeps = ROWS == 1 && LANES <= 16;
    T kept[keeps ? LANES : 1];
    if constexpr (keeps) {
#pragma unroll
        for (int k = 0; k < LANES; ++k) {
            kept[k] = lane < n && k < n ? at(lane, k) : T{};
        }
    }
    const auto entry_of = [&](int i, int k, int kl) {
        if constexpr (keeps) {
            return kept[kl];
        } else {
            return at(i, k);
        }
    };

    T x[ROWS][COLUMNS];
#pragma unroll
    for (int q = 0; q < ROWS; ++q) {
        const int i = q * LANES + lane;
        int source = i;
        if (!CHOLESKY) {
            const int* const pivots = args.pivots + b * factor.rows;
            for (int k = n - 1; k >= 0; --k) {
                const int p = pivots[k];
                source = source == k ? p : source == p ? k : source;
            }
        }
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int j = first + c;
            x[q][c] = from_real<T>(source == j ? 1 : 0);
            if (!args.from_identity) {
                x[q][c] = i < n && j < columns
                              ? right[source * args.b.row_step + j * args.b.col_step]
                              : T{};
            }
        }
    }

    // The groups of a warp may have different orders: all of them loop to the largest.
    const auto forward = [&](int kq, int kl) {
        const int k = kq * LANES + kl;
        const bool active = k < n;
        if (CHOLESKY && active && lane == kl) {
            const RealOf<T> inverse = RealOf<T>(1) / real_of(entry_of(k, k, kl));
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                x[kq][c] = scaled(x[kq][c], inverse);
            }
        }
        T known[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            known[c] = shuffle(x[kq][c], kl, LANES);
        }
#pragma unroll
        for (int q = kq; q < ROWS; ++q) {
            const int i = q * LANES + lane;
            if (active && i > k && i < n) {
                const T entry = -entry_of(i, k, kl);
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    x[q][c] = multiply_add(entry, known[c], x[q][c]);
                }
            }
        }
    };
    const auto backward = [&](int kq, int kl) {
        const int k = kq * LANES + kl;
        const bool active = k < n;
        if (active && lane == kl) {
            const T pivot = entry_of(k, k, kl);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                x[kq][c] = CHOLESKY ? scaled(x[kq][c], RealOf<T>(1) / real_of(pivot))
                                    : quotient(x[kq][c], pivot);
            }
        }
        T known[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            known[c] = shuffle(x[kq][c], kl, LANES);
        }
#pragma unroll
        for (int q = 0; q <= kq; ++q) {
            const int i = q * LANES + lane;
            if (active && i < k) {
                const T entry = -entry_of(i, k, kl);
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    x[q][c] = multiply_add(entry, known[c], x[q][c]);
                }
            }
        }
    };
    if constexpr (keeps) {
#pragma unroll
        for (int k = 0; k < LANES; ++k) {
            forward(0, k);
        }
#pragma unroll
        for (int k = LANES - 1; k >= 0; --k) {
            backward(0, k);
        }
    } else {
#pragma unroll
        for (int kq = 0; kq < ROWS; ++kq) {
            for (int kl = 0; kl < LANES && kq * LANES + kl < factor.rows; ++kl) {
                forward(kq, kl);
            }
        }
#pragma unroll
        for (int kq = ROWS - 1; kq >= 0; --kq) {
            for (int kl = LANES - 1; kl >= 0; --kl) {
                backward(kq, kl);
            }
        }
    }

#pragma unroll
    for (int q = 0; q < ROWS; ++q) {
        const int i = q * LANES + lane;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int j = first + c;
            if (inside && i < n && j < columns) {
                right[i * args.b.row_step + j * args.b.col_step] = x[q][c];
            }
        }
    }
}

template <class R>
R modulus(R a) {
    return one_norm(a);
}
inline float modulus(Complex<float> a) {
    return hypotf(a.re, a.im);
}
inline double modulus(Complex<double> a) {
    return hypot(a.re, a.im);
}
inline float logarithm(float a) {
    return logf(a);
}
inline double logarithm(double a) {
    return log(a);
}

/// One thread per matrix.
template <class T, class R>
__global__ void __launch_bounds__(128) batched_determinant(DeterminantArgs<T, R> args) {
    const auto& factor = args.factor;
    const std::int64_t b = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (b >= factor.count) {
        return;
    }
    const int n = factor.size(b);
    const T* const a = factor.matrix(b);
    T sign = from_real<T>(1);
    R log_abs = 0;
    for (int k = 0; k < n; ++k) {
        const T value = a[k * (factor.row_step + factor.col_step)];
        const R size = modulus(value);
        log_abs += logarithm(size);
        if (args.pivots != nullptr) {
            sign = multiply(sign, size == R(0) ? T{} : scaled(value, R(1) / size));
            sign = args.pivots[b * factor.rows + k] != k ? -sign : sign;
        }
    }
    if (args.sign != nullptr) {
        args.sign[b] = sign;
    }
    args.log_abs[b] = args.pivots != nullptr ? log_abs : 2 * log_abs;
}

}  // namespace quiver

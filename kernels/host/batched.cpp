// SPDX-License-Identifier: BSD-3-Clause
// Batched factorisations on the host. The threads share the matrices; each matrix is factored in a
// row-major copy without gaps. For the smallest orders, the loop lengths are known at compile time.
#include <cmath>
#include <limits>

#include "blockvec/scalar_list.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::host {
namespace {

/// The largest order whose loop lengths are compile-time constants.
constexpr int largest_fixed = 8;

/// Calls f.operator()<N>() with N = n if n <= largest_fixed, otherwise with N = 0.
template <int N = 1, class F>
[[gnu::always_inline]] inline void with_order(int n, const F& f) {
    if constexpr (N > largest_fixed) {
        f.template operator()<0>();
    } else if (n == N) {
        f.template operator()<N>();
    } else {
        with_order<N + 1>(n, f);
    }
}

template <class T>
[[gnu::always_inline]] inline real_t<T> one_norm(T value) {
    if constexpr (is_complex_v<T>) {
        return std::abs(value.real()) + std::abs(value.imag());
    } else {
        return std::abs(value);
    }
}

/// 1 / value; for complex values without overflow of the squares (Smith, CACM 5(8), 1962).
template <class T>
[[gnu::always_inline]] inline T reciprocal(T value) {
    if constexpr (is_complex_v<T>) {
        const auto re = value.real();
        const auto im = value.imag();
        if (std::abs(re) >= std::abs(im)) {
            const auto ratio = im / re;
            const auto d = 1 / (re + im * ratio);
            return T(d, -ratio * d);
        }
        const auto ratio = re / im;
        const auto d = 1 / (im + re * ratio);
        return T(ratio * d, -d);
    } else {
        return 1 / value;
    }
}

template <class T>
[[gnu::always_inline]] inline T quotient(T a, T b) {
    if constexpr (is_complex_v<T>) {
        return multiply(a, reciprocal(b));
    } else {
        return a / b;
    }
}

/// Subtracts factor * row `from` from row `to`, in columns first .. n - 1.
template <class T>
[[gnu::always_inline]] inline void subtract(T factor, const T* from, T* to, int first, int n) {
    for (int j = first; j < n; ++j) {
        to[j] -= multiply(factor, from[j]);
    }
}

/// Right-looking LU with row exchanges at each step. Returns the status.
template <int N, class T>
[[gnu::always_inline]] inline int factor_lu(T* a, int size, int* pivots) {
    const int n = N > 0 ? N : size;
    int status = 0;
    for (int k = 0; k < n; ++k) {
        int p = k;
        auto largest = one_norm(a[k * n + k]);
        for (int i = k + 1; i < n; ++i) {
            const auto value = one_norm(a[i * n + k]);
            if (value > largest || (std::isnan(value) && !std::isnan(largest))) {
                largest = value;
                p = i;
            }
        }
        pivots[k] = p;
        if (p != k) {
            for (int j = 0; j < n; ++j) {
                std::swap(a[k * n + j], a[p * n + j]);
            }
        }
        const T pivot = a[k * n + k];
        const bool zero = pivot == T(0);
        if ((zero || !is_finite(pivot)) && status == 0) {
            status = k + 1;
        }
        if (zero) {
            continue;
        }
        for (int i = k + 1; i < n; ++i) {
            const T factor = quotient(a[i * n + k], pivot);
            a[i * n + k] = factor;
            subtract(factor, a + k * n, a + i * n, k + 1, n);
        }
    }
    return status;
}

/// A = U^H U from the upper triangle, one panel of rows at a time: first subtracts the contribution
/// of the rows above the panel, four rows per pass, then factors the panel right-looking. Returns
/// the status.
template <int N, class T>
[[gnu::always_inline]] inline int factor_cholesky(T* a, int size) {
    constexpr int panel = N > 0 ? N : 32;
    const int n = N > 0 ? N : size;
    for (int first = 0; first < n; first += panel) {
        const int last = std::min(first + panel, n);
        for (int i = first; i < last; ++i) {
            for (int k = 0; k < first; k += 4) {
                const T* const u = a + k * n;
                const T f0 = conjugate(u[i]);
                const T f1 = conjugate(u[n + i]);
                const T f2 = conjugate(u[2 * n + i]);
                const T f3 = conjugate(u[3 * n + i]);
                for (int j = i; j < n; ++j) {
                    a[i * n + j] -= (multiply(f0, u[j]) + multiply(f1, u[n + j])) +
                                    (multiply(f2, u[2 * n + j]) + multiply(f3, u[3 * n + j]));
                }
            }
        }
        for (int k = first; k < last; ++k) {
            const auto pivot = real_part(a[k * n + k]);
            if (!(pivot > 0) || !std::isfinite(pivot)) {
                return k + 1;
            }
            const auto root = std::sqrt(pivot);
            a[k * n + k] = T(root);
            const auto inverse = 1 / root;
            for (int j = k + 1; j < n; ++j) {
                a[k * n + j] *= inverse;
            }
            for (int i = k + 1; i < last; ++i) {
                subtract(conjugate(a[k * n + i]), a + k * n, a + i * n, i, n);
            }
        }
    }
    return 0;
}

template <class T>
struct LuKernel {
    LuArgs<T> args;
    T* workspace;  // per chunk: rows^2

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const int largest = args.a.rows;
        T* const local = workspace + std::int64_t{chunk.index} * largest * largest;
        for (std::int64_t b = chunk.first; b < chunk.last; ++b) {
            const int n = args.a.size(b);
            T* const a = args.a.matrix(b);
            int* const pivots = args.pivots + b * largest;
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < n; ++j) {
                    local[i * n + j] = a[i * args.a.row_step + j * args.a.col_step];
                }
            }
            with_order(
                n, [&]<int N>() __attribute__((always_inline)) {
                    args.status[b] = factor_lu<N>(local, n, pivots);
                });
            for (int k = n; k < largest; ++k) {
                pivots[k] = k;
            }
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < n; ++j) {
                    a[i * args.a.row_step + j * args.a.col_step] = local[i * n + j];
                }
            }
        }
    }
};

template <class T>
struct CholeskyKernel {
    CholeskyArgs<T> args;
    T* workspace;  // per chunk: rows^2

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const int largest = args.a.rows;
        T* const local = workspace + std::int64_t{chunk.index} * largest * largest;
        for (std::int64_t b = chunk.first; b < chunk.last; ++b) {
            const int n = args.a.size(b);
            T* const a = args.a.matrix(b);
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j <= i; ++j) {
                    local[j * n + i] = conjugate(a[i * args.a.row_step + j * args.a.col_step]);
                }
            }
            with_order(
                n, [&]<int N>() __attribute__((always_inline)) {
                    args.status[b] = factor_cholesky<N>(local, n);
                });
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j <= i; ++j) {
                    a[i * args.a.row_step + j * args.a.col_step] = conjugate(local[j * n + i]);
                }
            }
        }
    }
};

template <class T>
struct SolveKernel {
    BatchedSolveArgs<T> args;
    T* workspace;  // per chunk: factor.rows x b.cols

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const int m = args.b.cols;
        T* const x = workspace + std::int64_t{chunk.index} * args.factor.rows * m;
        for (std::int64_t b = chunk.first; b < chunk.last; ++b) {
            const int n = args.factor.size(b);
            const T* const factor = args.factor.matrix(b);
            T* const out = args.b.matrix(b);
            const int columns = args.from_identity ? n : m;
            const auto at = [&](int i, int j) {
                return factor[i * args.factor.row_step + j * args.factor.col_step];
            };
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < columns; ++j) {
                    x[i * m + j] = args.from_identity
                                       ? T(i == j ? 1 : 0)
                                       : out[i * args.b.row_step + j * args.b.col_step];
                }
            }
            if (args.pivots != nullptr) {
                const int* const pivots = args.pivots + b * args.factor.rows;
                for (int k = 0; k < n; ++k) {
                    for (int j = 0; pivots[k] != k && j < columns; ++j) {
                        std::swap(x[k * m + j], x[pivots[k] * m + j]);
                    }
                }
            }
            const bool unit = args.pivots != nullptr;
            for (int i = 0; i < n; ++i) {
                for (int k = 0; k < i; ++k) {
                    subtract(at(i, k), x + k * m, x + i * m, 0, columns);
                }
                for (int j = 0; !unit && j < columns; ++j) {
                    x[i * m + j] /= real_part(at(i, i));
                }
            }
            for (int i = n - 1; i >= 0; --i) {
                for (int k = i + 1; k < n; ++k) {
                    subtract(unit ? at(i, k) : conjugate(at(k, i)), x + k * m, x + i * m, 0,
                             columns);
                }
                for (int j = 0; j < columns; ++j) {
                    x[i * m + j] = unit ? quotient(x[i * m + j], at(i, i))
                                        : T(x[i * m + j] / real_part(at(i, i)));
                }
            }
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < columns; ++j) {
                    out[i * args.b.row_step + j * args.b.col_step] = x[i * m + j];
                }
            }
        }
    }
};

template <class T, class R>
struct DeterminantKernel {
    DeterminantArgs<T, R> args;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const auto& factor = args.factor;
        for (std::int64_t b = chunk.first; b < chunk.last; ++b) {
            const int n = factor.size(b);
            const T* const a = factor.matrix(b);
            T sign(1);
            R log_abs = 0;
            for (int k = 0; k < n; ++k) {
                const T value = a[k * (factor.row_step + factor.col_step)];
                const R size = std::abs(value);
                log_abs += std::log(size);
                if (args.pivots != nullptr) {
                    sign = multiply(sign, size == 0 ? T(0) : T(value / size));
                    sign = args.pivots[b * factor.rows + k] != k ? -sign : sign;
                }
            }
            if (args.sign != nullptr) {
                args.sign[b] = sign;
            }
            args.log_abs[b] = args.pivots != nullptr ? log_abs : 2 * log_abs;
        }
    }
};

template <class T>
int chunks_of(int threads, const BatchOf<T>& batch) {
    return chunk_count(threads, batch.count,
                       2 * sizeof(T) * static_cast<std::size_t>(batch.rows) *
                           static_cast<std::size_t>(batch.cols));
}

/// Bytes of a rows x cols matrix for every chunk of a batch.
template <class T>
std::size_t local_bytes(int threads, const BatchOf<T>& batch, int rows, int cols) {
    return static_cast<std::size_t>(chunks_of(threads, batch)) * static_cast<std::size_t>(rows) *
           static_cast<std::size_t>(cols) * sizeof(T);
}

}  // namespace

template <class T>
std::size_t workspace_bytes(int threads, const LuArgs<T>& args) {
    return local_bytes(threads, args.a, args.a.rows, args.a.rows);
}

template <class T>
void lu_factor(int threads, const LuArgs<T>& args, void* workspace) {
    run_chunks(chunks_of(threads, args.a), args.a.count,
               LuKernel<T>{args, static_cast<T*>(workspace)});
}

template <class T>
std::size_t workspace_bytes(int threads, const CholeskyArgs<T>& args) {
    return local_bytes(threads, args.a, args.a.rows, args.a.rows);
}

template <class T>
void cholesky_factor(int threads, const CholeskyArgs<T>& args, void* workspace) {
    run_chunks(chunks_of(threads, args.a), args.a.count,
               CholeskyKernel<T>{args, static_cast<T*>(workspace)});
}

template <class T>
std::size_t workspace_bytes(int threads, const BatchedSolveArgs<T>& args) {
    return local_bytes(threads, args.b, args.factor.rows, args.b.cols);
}

template <class T>
void batched_solve(int threads, const BatchedSolveArgs<T>& args, void* workspace) {
    run_chunks(chunks_of(threads, args.b), args.b.count,
               SolveKernel<T>{args, static_cast<T*>(workspace)});
}

template <class T, class R>
void batched_determinant(int threads, const DeterminantArgs<T, R>& args) {
    const int chunks = chunk_count(threads, args.factor.count,
                                   sizeof(T) * static_cast<std::size_t>(args.factor.rows));
    run_chunks(chunks, args.factor.count, DeterminantKernel<T, R>{args});
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define QUIVER_INSTANTIATE(T)                                              \
    template std::size_t workspace_bytes(int, const LuArgs<T>&);           \
    template void lu_factor(int, const LuArgs<T>&, void*);                 \
    template std::size_t workspace_bytes(int, const CholeskyArgs<T>&);     \
    template void cholesky_factor(int, const CholeskyArgs<T>&, void*);     \
    template std::size_t workspace_bytes(int, const BatchedSolveArgs<T>&); \
    template void batched_solve(int, const BatchedSolveArgs<T>&, void*);   \
    template void batched_determinant(int, const DeterminantArgs<T, real_t<T>>&);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host

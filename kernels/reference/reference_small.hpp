// SPDX-License-Identifier: BSD-3-Clause
// Reference kernels for small matrices: factors, solutions and determinants. Sums are accumulated
// in Acc and rounded to T at the end of an operation.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/reference/reference_kernels.hpp"

namespace quiver::reference {

/// A matrix in Acc, read from and written to strided memory.
template <class Acc>
struct SmallCopy {
    int rows, cols;
    std::vector<Acc> values =
        std::vector<Acc>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));

    Acc& operator()(int i, int j) { return values[static_cast<std::size_t>(i * cols + j)]; }
    template <class T>
    static SmallCopy read(int rows, int cols, const T* data, std::int64_t row_step,
                          std::int64_t col_step) {
        SmallCopy copy{rows, cols};
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < cols; ++j) {
                copy(i, j) = Acc(data[i * row_step + j * col_step]);
            }
        }
        return copy;
    }
    /// Writes the elements for which keep(i, j) is true.
    template <class T, class Keep>
    void write(T* data, std::int64_t row_step, std::int64_t col_step, const Keep& keep) {
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < cols; ++j) {
                if (keep(i, j)) {
                    data[i * row_step + j * col_step] = static_cast<T>((*this)(i, j));
                }
            }
        }
    }
};

/// G = R^H R, computed row by row of R; then the columns of S = R^-1 by back substitution.
template <class Acc, class T>
void gram_factor(const GramFactorArgs<T>& args) {
    const int n = args.n;
    const auto everywhere = [](int, int) { return true; };
    auto g = SmallCopy<Acc>::read(n, n, args.g, args.ldg, 1);
    SmallCopy<Acc> r{n, n}, s{n, n};
    for (int i = 0; i < n; ++i) {
        for (int j = i; j < n; ++j) {
            Acc rest = i == j ? Acc(std::real(g(i, i))) : g(i, j);
            for (int k = 0; k < i; ++k) {
                rest -= product(conjugate(r(k, i)), r(k, j));
            }
            r(i, j) = i == j ? Acc(std::sqrt(std::real(rest))) : rest / r(i, i);
        }
    }
    for (int j = 0; j < n; ++j) {
        for (int i = j; i >= 0; --i) {
            Acc sum(i == j ? 1 : 0);
            for (int k = i + 1; k <= j; ++k) {
                sum -= product(r(i, k), s(k, j));
            }
            s(i, j) = sum / r(i, i);
        }
    }
    r.write(args.r, args.ldr, 1, everywhere);
    s.write(args.s, args.lds, 1, everywhere);
}

/// |re| + |im|, the criterion for pivots.
template <class Acc>
auto pivot_size(const Acc& value) {
    if constexpr (std::is_floating_point_v<Acc>) {
        return std::abs(value);
    } else {
        return std::abs(value.real()) + std::abs(value.imag());
    }
}

/// For finite matrices only.
template <class Acc, class T>
void lu_factor(const LuArgs<T>& args) {
    for (std::int64_t b = 0; b < args.a.count; ++b) {
        const int n = args.a.size(b);
        T* const data = args.a.matrix(b);
        auto a = SmallCopy<Acc>::read(n, n, data, args.a.row_step, args.a.col_step);
        args.status[b] = 0;
        for (int k = 0; k < n; ++k) {
            int pivot = k;
            for (int i = k + 1; i < n; ++i) {
                pivot = pivot_size(a(i, k)) > pivot_size(a(pivot, k)) ? i : pivot;
            }
            args.pivots[b * args.a.rows + k] = pivot;
            for (int j = 0; j < n; ++j) {
                std::swap(a(k, j), a(pivot, j));
            }
            if (a(k, k) == Acc(0)) {
                args.status[b] = args.status[b] == 0 ? k + 1 : args.status[b];
                continue;
            }
            for (int i = k + 1; i < n; ++i) {
                a(i, k) /= a(k, k);
                for (int j = k + 1; j < n; ++j) {
                    a(i, j) -= product(a(i, k), a(k, j));
                }
            }
        }
        a.write(data, args.a.row_step, args.a.col_step, [](int, int) { return true; });
    }
}

template <class Acc, class T>
void cholesky_factor(const CholeskyArgs<T>& args) {
    for (std::int64_t b = 0; b < args.a.count; ++b) {
        const int n = args.a.size(b);
        T* const data = args.a.matrix(b);
        auto a = SmallCopy<Acc>::read(n, n, data, args.a.row_step, args.a.col_step);
        args.status[b] = 0;
        for (int j = 0; j < n && args.status[b] == 0; ++j) {
            for (int i = j; i < n; ++i) {
                Acc rest = i == j ? Acc(std::real(a(j, j))) : a(i, j);
                for (int k = 0; k < j; ++k) {
                    rest -= product(a(i, k), conjugate(a(j, k)));
                }
                if (i == j && !(std::real(rest) > 0 && std::isfinite(std::real(rest)))) {
                    args.status[b] = j + 1;
                    break;
                }
                a(i, j) = i == j ? Acc(std::sqrt(std::real(rest))) : rest / a(j, j);
            }
        }
        a.write(data, args.a.row_step, args.a.col_step, [](int i, int j) { return i >= j; });
    }
}

/// Forward substitution with L, whose diagonal is 1 if there are pivots, then back substitution
/// with U or L^H.
template <class Acc, class T>
void batched_solve(const BatchedSolveArgs<T>& args) {
    for (std::int64_t m = 0; m < args.b.count; ++m) {
        const int n = args.factor.size(m);
        T* const data = args.b.matrix(m);
        auto f = SmallCopy<Acc>::read(n, n, args.factor.matrix(m), args.factor.row_step,
                                      args.factor.col_step);
        // An inverse has the order of its own matrix.
        const int cols = args.from_identity ? n : args.b.cols;
        SmallCopy<Acc> x{n, cols};
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < cols; ++j) {
                x(i, j) = args.from_identity ? Acc(i == j ? 1 : 0)
                                             : Acc(data[i * args.b.row_step + j * args.b.col_step]);
            }
        }
        const bool lu = args.pivots != nullptr;
        for (int k = 0; lu && k < n; ++k) {
            for (int j = 0; j < cols; ++j) {
                std::swap(x(k, j), x(args.pivots[m * args.factor.rows + k], j));
            }
        }
        for (int j = 0; j < cols; ++j) {
            for (int i = 0; i < n; ++i) {
                for (int k = 0; k < i; ++k) {
                    x(i, j) -= product(f(i, k), x(k, j));
                }
                x(i, j) = lu ? x(i, j) : x(i, j) / f(i, i);
            }
            for (int i = n - 1; i >= 0; --i) {
                for (int k = i + 1; k < n; ++k) {
                    x(i, j) -= product(lu ? f(i, k) : conjugate(f(k, i)), x(k, j));
                }
                x(i, j) /= f(i, i);
            }
        }
        x.write(data, args.b.row_step, args.b.col_step, [](int, int) { return true; });
    }
}

/// The product of the diagonal elements, squared for Cholesky, with the sign of the row exchanges.
template <class Acc, class T, class R>
void batched_determinant(const DeterminantArgs<T, R>& args) {
    for (std::int64_t b = 0; b < args.factor.count; ++b) {
        const T* const data = args.factor.matrix(b);
        Acc sign(1);
        long double log_abs = 0;
        for (int k = 0; k < args.factor.size(b); ++k) {
            const Acc pivot(data[k * (args.factor.row_step + args.factor.col_step)]);
            const long double size = std::abs(pivot);
            log_abs += (args.pivots == nullptr ? 2 : 1) * std::log(size);
            const bool exchanged =
                args.pivots != nullptr && args.pivots[b * args.factor.rows + k] != k;
            sign = size == 0 ? Acc(0) : sign * pivot / size * (exchanged ? -1.0L : 1.0L);
        }
        if (args.sign != nullptr) {
            args.sign[b] = static_cast<T>(sign);
        }
        args.log_abs[b] = static_cast<R>(log_abs);
    }
}

}  // namespace quiver::reference

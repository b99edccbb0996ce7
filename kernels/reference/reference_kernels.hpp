// SPDX-License-Identifier: BSD-3-Clause
// Reference kernels: one naive, readable loop nest per operation, against which every fast form is
// tested. Header-only templates; Acc is the accumulation type, such as long double or
// std::complex<long double>. No code is shared with the fast forms.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "blockvec/scalar.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::reference {

template <class Acc>
Acc conjugate(Acc value) {
    if constexpr (std::is_floating_point_v<Acc>) {
        return value;
    } else {
        return std::conj(value);
    }
}

/// The product by its definition; the product of std::complex also handles infinities, which is
/// slow.
template <class Acc>
Acc product(Acc a, Acc b) {
    if constexpr (std::is_floating_point_v<Acc>) {
        return a * b;
    } else {
        return Acc(a.real() * b.real() - a.imag() * b.imag(),
                   a.real() * b.imag() + a.imag() * b.real());
    }
}

template <class Acc, class T>
void tsmttsm(const TsmttsmArgs<T>& args) {
    for (int i = 0; i < args.m; ++i) {
        for (int j = 0; j < args.n; ++j) {
            Acc sum(0);
            for (std::int64_t r = 0; r < args.rows; ++r) {
                sum += product(conjugate(Acc(args.a[r * args.lda + i])),
                               Acc(args.b[r * args.ldb + j]));
            }
            T& c = args.c[i * args.ldc + j];
            const Acc old = args.beta == T(0) ? Acc(0) : product(Acc(args.beta), Acc(c));
            c = static_cast<T>(product(Acc(args.alpha), sum) + old);
        }
    }
}

template <class Acc, class T, class R>
void weighted_tsmttsm(const WeightedTsmttsmArgs<T, R>& args) {
    const TsmttsmArgs<T>& product_args = args.product;
    for (int i = 0; i < product_args.m; ++i) {
        for (int j = 0; j < product_args.n; ++j) {
            Acc sum(0);
            for (std::int64_t r = 0; r < product_args.rows; ++r) {
                const Acc a = conjugate(Acc(product_args.a[r * product_args.lda + i]));
                sum += product(product(a, Acc(args.w[r * args.ldw])),
                               Acc(product_args.b[r * product_args.ldb + j]));
            }
            T& c = product_args.c[i * product_args.ldc + j];
            const Acc old =
                product_args.beta == T(0) ? Acc(0) : product(Acc(product_args.beta), Acc(c));
            c = static_cast<T>(product(Acc(product_args.alpha), sum) + old);
        }
    }
}

template <class Acc, class T>
void tsmm(const TsmmArgs<T>& args) {
    std::vector<Acc> x_row(static_cast<std::size_t>(args.m));
    std::vector<Acc> y_row(static_cast<std::size_t>(args.n));
    for (std::int64_t r = 0; r < args.rows; ++r) {
        std::copy_n(args.x + r * args.ldx, args.m, x_row.begin());
        std::copy_n(args.y + r * args.ldy, args.n, y_row.begin());
        for (int j = 0; j < args.n; ++j) {
            Acc sum(0);
            for (int i = 0; i < args.m; ++i) {
                sum += product(x_row[static_cast<std::size_t>(i)], Acc(args.c[i * args.ldc + j]));
            }
            Acc old(0);
            if (args.beta != T(0) && args.d == nullptr) {
                old = y_row[static_cast<std::size_t>(j)];
            } else if (args.beta != T(0)) {
                for (int i = 0; i < args.n; ++i) {
                    old +=
                        product(y_row[static_cast<std::size_t>(i)], Acc(args.d[i * args.ldd + j]));
                }
            }
            args.y[r * args.ldy + j] =
                static_cast<T>(product(Acc(args.alpha), sum) + product(Acc(args.beta), old));
        }
    }
}

template <class Acc, class T>
void tsmm_gram(const TsmmGramArgs<T>& args) {
    const TsmmArgs<T>& update = args.update;
    tsmm<Acc>(update);
    tsmttsm<Acc>(TsmttsmArgs<T>{update.rows, update.n, update.n, T(1), update.y, update.ldy,
                                update.y, update.ldy, T(0), args.g, args.ldg});
}

template <class Acc, class T>
void axpby(const AxpbyArgs<T>& args) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
        for (int j = 0; j < args.cols; ++j) {
            const T alpha = args.alphas != nullptr ? args.alphas[j] : args.alpha;
            const T beta = args.betas != nullptr ? args.betas[j] : args.beta;
            Acc sum(0);
            if (alpha != T(0)) {
                sum += product(Acc(alpha), Acc(args.x[r * args.ldx + j]));
            }
            if (beta != T(0)) {
                sum += product(Acc(beta), Acc(args.y[r * args.ldy + j]));
            }
            args.y[r * args.ldy + j] = static_cast<T>(sum);
        }
    }
}

template <class Acc, class T>
void dots(const DotsArgs<T>& args) {
    for (int j = 0; j < args.cols; ++j) {
        Acc sum(0);
        for (std::int64_t r = 0; r < args.rows; ++r) {
            sum += product(conjugate(Acc(args.x[r * args.ldx + j])), Acc(args.y[r * args.ldy + j]));
        }
        args.result[j] = static_cast<T>(sum);
    }
}

template <class Acc, class T>
void spmmv(const SpmmvArgs<T>& args) {
    for (int j = 0; j < args.width; ++j) {
        Acc yy(0);
        Acc xy(0);
        Acc xx(0);
        const Acc shift(args.shifts != nullptr ? args.shifts[j] : args.shift);
        for (std::int64_t s = 0; s < args.rows; ++s) {
            const std::int64_t i = args.row_of(s);
            if (args.columns > 0 && !args.is_row_or_piece(i)) {
                continue;
            }
            Acc sum(0);
            const std::int64_t chunk = s / args.chunk;
            const std::int64_t end = args.checked_offset(args.start[chunk + 1]);
            for (std::int64_t e = args.checked_offset(args.start[chunk]) + s % args.chunk; e < end;
                 e += args.chunk) {
                const std::int64_t column = args.checked_column(
                    args.column64 != nullptr ? args.column64[e] : args.column32[e]);
                if (column < 0) {
                    continue;
                }
                const T entry = column < args.x_rows
                                    ? args.x[column * args.ldx + j]
                                    : args.halo[(column - args.x_rows) * args.width + j];
                sum += product(Acc(args.value[e]), Acc(entry));
            }
            if (i >= args.y_rows) {
                args.pieces[(i - args.y_rows) * args.width + j] = static_cast<T>(sum);
                continue;
            }
            // Without a shift and dots with X, X may have fewer rows than Y.
            const Acc x(i < args.x_rows ? args.x[i * args.ldx + j] : T(0));
            if (shift != Acc(0)) {
                sum -= product(shift, x);
            }
            T& y = args.y[i * args.ldy + j];
            const Acc old = args.beta == T(0) ? Acc(0) : product(Acc(args.beta), Acc(y));
            y = static_cast<T>(product(Acc(args.alpha), sum) + old);
            yy += product(conjugate(Acc(y)), Acc(y));
            xy += product(conjugate(x), Acc(y));
            xx += product(conjugate(x), x);
        }
        if (args.dot_yy != nullptr) {
            args.dot_yy[j] = static_cast<T>(yy);
        }
        if (args.dot_xy != nullptr) {
            args.dot_xy[j] = static_cast<T>(xy);
        }
        if (args.dot_xx != nullptr) {
            args.dot_xx[j] = static_cast<T>(xx);
        }
    }
}

/// The nearest half_t to a real number, ties to even.
inline half_t nearest_half(long double value) {
    if (!std::isfinite(value) || value == 0) {
        return to_half(static_cast<float>(value));
    }
    const int exponent = std::max(std::ilogb(value), -14);
    const long double rounded =
        std::ldexp(std::nearbyint(std::ldexp(value, 10 - exponent)), exponent - 10);
    return to_half(static_cast<float>(rounded));
}

/// The nearest bfloat16_t to a real number, ties to even.
inline bfloat16_t nearest_bfloat16(long double value) {
    if (!std::isfinite(value) || value == 0) {
        return to_bfloat16(static_cast<float>(value));
    }
    const int exponent = std::max(std::ilogb(value), -126);
    const long double rounded =
        std::ldexp(std::nearbyint(std::ldexp(value, 7 - exponent)), exponent - 7);
    return to_bfloat16(static_cast<float>(rounded));
}

/// One element converted to another precision, rounded once.
template <class T, class U>
T converted(U value) {
    if constexpr (std::is_same_v<T, U>) {
        return value;
    } else if constexpr (std::is_same_v<U, half_t> || std::is_same_v<U, bfloat16_t>) {
        return converted<T>(to_float(value));
    } else if constexpr (std::is_same_v<T, half_t>) {
        return nearest_half(value);
    } else if constexpr (std::is_same_v<T, bfloat16_t>) {
        return nearest_bfloat16(value);
    } else {
        return static_cast<T>(value);
    }
}

template <class Acc, class A, class T>
void mtsm(const MtsmArgs<A, T>& args) {
    for (std::int64_t i = 0; i < args.m; ++i) {
        for (int j = 0; j < args.n; ++j) {
            Acc sum(0);
            for (std::int64_t k = 0; k < args.k; ++k) {
                const A element = args.a[args.along_sum ? i * args.lda + k : k * args.lda + i];
                const Acc left(converted<T>(element));
                sum += product(args.conjugated ? conjugate(left) : left,
                               Acc(args.x[k * args.x_row + j * args.x_col]));
            }
            T& y = args.y[i * args.y_row + j * args.y_col];
            const Acc old = args.beta == T(0) ? Acc(0) : product(Acc(args.beta), Acc(y));
            y = static_cast<T>(product(Acc(args.alpha), sum) + old);
        }
    }
}

template <class U, class T>
void convert(const ConvertArgs<U, T>& args) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
        for (int j = 0; j < args.cols; ++j) {
            args.y[r * args.ldy + j] = converted<T>(args.x[r * args.ldx + j]);
        }
    }
}

template <class T>
void gather_columns(const GatherColumnsArgs<T>& args) {
    std::vector<T> x_row(static_cast<std::size_t>(args.x_cols));
    for (std::int64_t r = 0; r < args.rows; ++r) {
        std::copy_n(args.x + r * args.ldx, args.x_cols, x_row.begin());
        for (int j = 0; j < args.y_cols; ++j) {
            args.y[r * args.ldy + j] = x_row[static_cast<std::size_t>(args.source[j])];
        }
    }
}

template <class T>
void fill(const FillArgs<T>& args) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
        std::fill_n(args.x + r * args.ldx, args.cols, args.value);
    }
}

/// Distances by their definition; the first of several nearest centres counts.
template <class Acc, class In, class T>
void kmeans_step(const KmeansStepArgs<In, T>& args) {
    std::fill_n(args.sums, args.k * (args.d + 2), 0.0);
    std::vector<Acc> sums(static_cast<std::size_t>(args.k * (args.d + 2)));
    for (std::int64_t r = 0; r < args.rows; ++r) {
        const auto point = [&](int p) {
            return Acc(converted<double>(args.x[r * args.ldx + p])) - Acc(args.origin[p]);
        };
        int label = 0;
        Acc least(0);
        for (int j = 0; j < args.k; ++j) {
            Acc distance(0);
            for (int p = 0; p < args.d; ++p) {
                const Acc difference = point(p) - Acc(args.centres[j * args.d + p]);
                distance += difference * difference;
            }
            if (j == 0 || distance < least) {
                least = distance;
                label = j;
            }
        }
        Acc* const sum = sums.data() + label * (args.d + 2);
        for (int p = 0; p < args.d; ++p) {
            sum[p] += point(p);
        }
        sum[args.d] += Acc(1);
        sum[args.d + 1] += least;
        if (args.labels != nullptr) {
            args.labels[r] = label;
        }
        if (args.distances != nullptr) {
            args.distances[r] = static_cast<T>(least);
        }
    }
    std::transform(sums.begin(), sums.end(), args.sums,
                   [](Acc sum) { return static_cast<double>(sum); });
}

template <class Acc, class In>
void shifted_gram(const ShiftedGramArgs<In>& args) {
    const auto z = [&](std::int64_t r, int j) {
        const Acc element(converted<double>(args.x[r * args.ldx + j]));
        return Acc(args.factor) * (element - Acc(args.shift[j]));
    };
    for (int i = 0; i <= args.n; ++i) {
        for (int j = 0; j < args.n; ++j) {
            Acc sum(0);
            for (std::int64_t r = 0; r < args.rows; ++r) {
                sum += (i < args.n ? z(r, i) : Acc(1)) * z(r, j);
            }
            args.sums[i * args.n + j] = static_cast<double>(sum);
        }
    }
}

template <class T>
void gather_rows(const GatherRowsArgs<T>& args) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
        std::copy_n(args.x + args.row_of(r) * args.ldx, args.cols, args.y + r * args.cols);
    }
}

/// Philox4x32-10. Source: Salmon, Moraes, Dror, Shaw, SC 2011, section 3.2.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
    const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
    const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
        counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
                   high(product0) ^ counter[3] ^ key[1], low(product0)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return counter;
}

/// A number in [-1, 1) from two words; `high` is the more significant word.
template <class R>
R signed_unit(std::uint32_t high, std::uint32_t low) {
    if constexpr (std::is_same_v<R, float>) {
        return static_cast<float>(high >> 8) * 0x1p-23f - 1.0f;
    } else {
        const std::uint64_t bits = ((std::uint64_t{high} << 32) | low) >> 11;
        return static_cast<double>(bits) * 0x1p-52 - 1.0;
    }
}

template <class T>
void fill_random(const RandomArgs<T>& args) {
    using R = real_t<T>;
    for (std::int64_t r = 0; r < args.rows; ++r) {
        for (int j = 0; j < args.cols; ++j) {
            const auto row = static_cast<std::uint64_t>(args.first_row + r);
            const auto words =
                philox({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32),
                        static_cast<std::uint32_t>(args.first_column + j), 0},
                       {static_cast<std::uint32_t>(args.seed),
                        static_cast<std::uint32_t>(args.seed >> 32)});
            const R real = signed_unit<R>(words[0], words[1]);
            if constexpr (is_complex_v<T>) {
                args.x[r * args.ldx + j] = T(real, signed_unit<R>(words[2], words[3]));
            } else {
                args.x[r * args.ldx + j] = real;
            }
        }
    }
}

template <class Acc, class In, class Sum>
void tsmttsm_mixed(const MixedTsmttsmArgs<In, Sum>& args) {
    for (int i = 0; i < args.m; ++i) {
        for (int j = 0; j < args.n; ++j) {
            Acc sum(0);
            for (std::int64_t r = 0; r < args.rows; ++r) {
                sum += Acc(converted<double>(args.a[r * args.lda + i])) *
                       Acc(converted<double>(args.b[r * args.ldb + j]));
            }
            Sum& c = args.c[i * args.ldc + j];
            const Acc old = args.beta == Sum(0) ? Acc(0) : Acc(args.beta) * Acc(c);
            c = static_cast<Sum>(Acc(args.alpha) * sum + old);
        }
    }
}

/// Stores the result before it is rounded to Out in `wide` (rows x n).
template <class Acc, class In, class Small, class Out>
void tsmm_mixed(const MixedTsmmArgs<In, Small, Out>& args, Acc* wide) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
        for (int j = 0; j < args.n; ++j) {
            Acc sum(0);
            for (int i = 0; i < args.m; ++i) {
                sum += Acc(converted<double>(args.x[r * args.ldx + i])) *
                       Acc(converted<double>(args.c[i * args.ldc + j]));
            }
            const Acc old = args.beta == 0
                                ? Acc(0)
                                : Acc(args.beta) * Acc(converted<double>(args.y[r * args.ldy + j]));
            wide[r * args.n + j] = Acc(args.alpha) * sum + old;
        }
    }
}

}  // namespace quiver::reference

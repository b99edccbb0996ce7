// SPDX-License-Identifier: BSD-3-Clause
// Copies with a change of precision, rounded to nearest, ties to even.
#pragma once

#include "columns.cuh"
#include "kernels/operations/copy.hpp"

namespace quiver {

inline float to_float(half_t value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}
inline float to_float(bfloat16_t value) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
inline half_t to_half(float value) {
    half_t result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}
/// By integer arithmetic, because the instruction needs sm_80 and because the host treats NaN in
/// this way.
inline bfloat16_t to_bfloat16(float value) {
    const unsigned word = __float_as_uint(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
        return {static_cast<unsigned short>((word >> 16) | 0x40u)};
    }
    return {static_cast<unsigned short>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16)};
}

/// Rounds a double to float, to odd if inexact, so that a further rounding to a shorter format
/// gives the correctly rounded result. Boldo, Melquiond, IEEE TC 57(4), 2008.
inline float round_to_odd(double value) {
    const float toward_zero = __double2float_rz(value);
    const bool exact = static_cast<double>(toward_zero) == value;
    return exact ? toward_zero : __uint_as_float(__float_as_uint(toward_zero) | 1u);
}

/// Converter<T>::from(value): the value converted to T.
template <class T>
struct Converter {
    static T from(float value) { return static_cast<T>(value); }
    static T from(double value) { return static_cast<T>(value); }
    static T from(half_t value) { return static_cast<T>(to_float(value)); }
    static T from(bfloat16_t value) { return static_cast<T>(to_float(value)); }
};
template <>
struct Converter<half_t> {
    template <class U>
    static half_t from(U value) {
        return to_half(Converter<float>::from(value));
    }
    static half_t from(half_t value) { return value; }
    static half_t from(double value) { return to_half(round_to_odd(value)); }
};
template <>
struct Converter<bfloat16_t> {
    template <class U>
    static bfloat16_t from(U value) {
        return to_bfloat16(Converter<float>::from(value));
    }
    static bfloat16_t from(bfloat16_t value) { return value; }
    static bfloat16_t from(double value) { return to_bfloat16(round_to_odd(value)); }
};
template <class R>
struct Converter<Complex<R>> {
    template <class U>
    static Complex<R> from(Complex<U> value) {
        return {static_cast<R>(value.re), static_cast<R>(value.im)};
    }
};

template <class U, class T>
__global__ void __launch_bounds__(256) convert(ConvertArgs<U, T> args, int panel) {
    const ColumnWalk walk(args.cols, panel);
    stream_rows(
        walk, args.rows,
        [&](std::int64_t row) { return Converter<T>::from(args.x[row * args.ldx + walk.column]); },
        [&](std::int64_t row, T value) { args.y[row * args.ldy + walk.column] = value; });
}

}  // namespace quiver

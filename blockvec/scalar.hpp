// SPDX-License-Identifier: BSD-3-Clause
// Scalar types: the four public scalars s, d, c, z, and two 2-byte storage types.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "blockvec/scalar_list.hpp"

namespace quiver {

/// IEEE binary16 storage, bit-compatible with CUDA's __half. Arithmetic happens in float.
struct half_t {
    std::uint16_t bits = 0;
};

/// bfloat16 storage (the upper half of a float), bit-compatible with CUDA's __nv_bfloat16.
struct bfloat16_t {
    std::uint16_t bits = 0;
};

/// Conversions round to nearest, ties to even; overflow gives infinity; NaN stays NaN.
half_t to_half(float value);
bfloat16_t to_bfloat16(float value);
float to_float(half_t value);
float to_float(bfloat16_t value);

/// Run-time tag of a scalar type: BLAS's letter, and h and b for the storage types.
enum class Dtype : std::uint8_t { s, d, c, z, h, b };

char letter(Dtype dtype);

/// The real type, the run-time tag and the name in device code of a scalar type.
template <class T>
struct ScalarTraits;
template <>
struct ScalarTraits<float> {
    using real = float;
    static constexpr Dtype dtype = Dtype::s;
    static constexpr const char* device_name = "float";
};
template <>
struct ScalarTraits<double> {
    using real = double;
    static constexpr Dtype dtype = Dtype::d;
    static constexpr const char* device_name = "double";
};
template <>
struct ScalarTraits<std::complex<float>> {
    using real = float;
    static constexpr Dtype dtype = Dtype::c;
    static constexpr const char* device_name = "quiver::Complex<float>";
};
template <>
struct ScalarTraits<std::complex<double>> {
    using real = double;
    static constexpr Dtype dtype = Dtype::z;
    static constexpr const char* device_name = "quiver::Complex<double>";
};
template <>
struct ScalarTraits<half_t> {
    using real = half_t;
    static constexpr Dtype dtype = Dtype::h;
    static constexpr const char* device_name = "quiver::half_t";
};
template <>
struct ScalarTraits<bfloat16_t> {
    using real = bfloat16_t;
    static constexpr Dtype dtype = Dtype::b;
    static constexpr const char* device_name = "quiver::bfloat16_t";
};

template <class T>
using real_t = typename ScalarTraits<std::remove_const_t<T>>::real;
template <class T>
inline constexpr Dtype dtype_v = ScalarTraits<std::remove_const_t<T>>::dtype;
template <class T>
inline constexpr bool is_complex_v = !std::is_same_v<real_t<T>, std::remove_const_t<T>>;
/// Distance from 1 to the next larger real number: 2^-23 for s and c, 2^-52 for d and z.
template <class T>
inline constexpr real_t<T> epsilon_v = std::numeric_limits<real_t<T>>::epsilon();
/// Flops of one multiply-add: 2 for real, 8 for complex scalars.
template <class T>
inline constexpr double multiply_add_flops_v = is_complex_v<T> ? 8.0 : 2.0;

#define QUIVER_OR_SAME(S) || std::is_same_v<T, S>
template <class T>
concept Scalar = false QUIVER_FOR_EACH_SCALAR(QUIVER_OR_SAME);  // NOLINT: a list, not a literal
#undef QUIVER_OR_SAME

template <Scalar T>
constexpr T conjugate(T value) {
    if constexpr (is_complex_v<T>) {
        return T(value.real(), -value.imag());
    } else {
        return value;
    }
}

template <Scalar T>
constexpr real_t<T> real_part(T value) {
    if constexpr (is_complex_v<T>) {
        return value.real();
    } else {
        return value;
    }
}

/// |value|^2 without the square root.
template <Scalar T>
constexpr real_t<T> abs_squared(T value) {
    if constexpr (is_complex_v<T>) {
        return value.real() * value.real() + value.imag() * value.imag();
    } else {
        return value * value;
    }
}

template <Scalar T>
bool is_finite(T value) {
    if constexpr (is_complex_v<T>) {
        return std::isfinite(value.real()) && std::isfinite(value.imag());
    } else {
        return std::isfinite(value);
    }
}

/// Product without the recovery of infinities of C Annex G, which costs a function call per complex
/// product.
template <Scalar T>
constexpr T multiply(T a, T b) {
    if constexpr (is_complex_v<T>) {
        return T(a.real() * b.real() - a.imag() * b.imag(),
                 a.real() * b.imag() + a.imag() * b.real());
    } else {
        return a * b;
    }
}

/// Calls `f.template operator()<T>()` for the public scalar T of `dtype` (for h and b: double);
/// returns what f returns.
template <class F>
decltype(auto) visit_dtype(Dtype dtype, F&& f) {
    switch (dtype) {
#define QUIVER_CASE(T) \
    case dtype_v<T>:   \
        return f.template operator()<T>();
        QUIVER_FOR_EACH_SCALAR(QUIVER_CASE)
#undef QUIVER_CASE
        default:
            return f.template operator()<double>();
    }
}

}  // namespace quiver

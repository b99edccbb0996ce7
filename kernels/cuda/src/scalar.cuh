// SPDX-License-Identifier: BSD-3-Clause
// The scalar types of device code, bit-compatible with those of the host, and their arithmetic.
#pragma once

#include <cstdint>

namespace quiver {

/// Same bits and alignment as std::complex<R>.
template <class R>
struct Complex {
    R re, im;
};
static_assert(sizeof(Complex<double>) == 16 && alignof(Complex<double>) == 8);

struct half_t {
    unsigned short bits;
};
struct bfloat16_t {
    unsigned short bits;
};

/// A number as a type, for arguments of generic lambdas.
template <int VALUE>
struct Constant {
    static constexpr int value = VALUE;
};

/// The first of two types if FIRST, otherwise the second.
template <bool FIRST, class A, class B>
struct Choice {
    using type = A;
};
template <class A, class B>
struct Choice<false, A, B> {
    using type = B;
};

constexpr int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}
template <class I>
constexpr I minimum(I a, I b) {
    return b < a ? b : a;
}

template <class R>
Complex<R> operator+(Complex<R> a, Complex<R> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class R>
Complex<R> operator-(Complex<R> a) {
    return {-a.re, -a.im};
}

inline float conjugate(float a) {
    return a;
}
inline double conjugate(double a) {
    return a;
}
template <class R>
Complex<R> conjugate(Complex<R> a) {
    return {a.re, -a.im};
}

/// a b + c, rounded once per real multiply-add.
inline float multiply_add(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
inline double multiply_add(double a, double b, double c) {
    return __fma_rn(a, b, c);
}
template <class R>
Complex<R> multiply_add(Complex<R> a, Complex<R> b, Complex<R> c) {
    return {multiply_add(-a.im, b.im, multiply_add(a.re, b.re, c.re)),
            multiply_add(a.im, b.re, multiply_add(a.re, b.im, c.im))};
}

template <class R>
R multiply(R a, R b) {
    return a * b;
}
template <class R>
Complex<R> multiply(Complex<R> a, Complex<R> b) {
    return multiply_add(a, b, Complex<R>{});
}

template <class R>
bool is_zero(R a) {
    return a == R(0);
}
template <class R>
bool is_zero(Complex<R> a) {
    return a.re == R(0) && a.im == R(0);
}

/// A load that bypasses the L1 cache and sees values that other blocks of this launch have written.
template <class R>
R load_coherent(const R* from) {
    return __ldcg(from);
}
template <class R>
Complex<R> load_coherent(const Complex<R>* from) {
    return {__ldcg(&from->re), __ldcg(&from->im)};
}

/// A load of data that no thread writes during the launch.
template <class R>
R load_constant(const R* from) {
    return __ldg(from);
}
template <class R>
Complex<R> load_constant(const Complex<R>* from) {
    return {__ldg(&from->re), __ldg(&from->im)};
}

template <class R>
R shuffle_xor(R value, int mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <class R>
Complex<R> shuffle_xor(Complex<R> value, int mask) {
    return {shuffle_xor(value.re, mask), shuffle_xor(value.im, mask)};
}

/// The value of another lane; the lane number counts within groups of `width` neighbouring lanes.
template <class R>
R shuffle(R value, int lane, int width = 32) {
    return __shfl_sync(0xffffffffu, value, lane, width);
}
template <class R>
Complex<R> shuffle(Complex<R> value, int lane, int width = 32) {
    return {shuffle(value.re, lane, width), shuffle(value.im, lane, width)};
}

template <class R>
R real_part(R value) {
    return value;
}
template <class R>
Complex<R> real_part(Complex<R> value) {
    return {value.re, R(0)};
}

/// `condition ? a : b`, without a branch and without addresses of a and b.
template <class R>
R choose(bool condition, R a, R b) {
    return condition ? a : b;
}
template <class R>
Complex<R> choose(bool condition, Complex<R> a, Complex<R> b) {
    return {condition ? a.re : b.re, condition ? a.im : b.im};
}

template <class R>
bool is_finite(R value) {
    return value - value == R(0);
}
template <class R>
bool is_finite(Complex<R> value) {
    return is_finite(value.re) && is_finite(value.im);
}

/// The mask of flip_sign. The compiler must not see the condition: it would make two loops, one for
/// the lanes that flip and one for the others, and a product by all lanes of a warp would wait
/// forever in each of them.
inline unsigned sign_mask(bool flip) {
    unsigned mask;
    asm("mov.b32 %0, %1;" : "=r"(mask) : "r"(flip ? 0x80000000U : 0U));
    return mask;
}

inline double flip_sign(double value, unsigned mask) {
    return __hiloint2double(__double2hiint(value) ^ static_cast<int>(mask), __double2loint(value));
}

/// V adjacent elements that are loaded and stored together.
template <class T, int V>
struct alignas(V * sizeof(T)) Pack {
    T value[V];
};

/// The block's dynamic shared memory.
template <class T>
T* dynamic_shared() {
    extern __shared__ __align__(16) unsigned char bytes[];
    return reinterpret_cast<T*>(bytes);
}

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
// Sums with their rounding errors, for checksums.
#pragma once

#include "scalar.cuh"

namespace quiver {

/// A sum of two doubles; operator + keeps the rounding error (Knuth's two-sum).
struct Twofold {
    double high, low;
};
/// The rounding error of the sum of a and b, where `sum` is a + b rounded.
inline double lost(double a, double b, double sum) {
    const double part = __dsub_rn(sum, a);
    return __dadd_rn(__dsub_rn(a, __dsub_rn(sum, part)), __dsub_rn(b, part));
}
inline Twofold operator+(Twofold a, Twofold b) {
    const double sum = __dadd_rn(a.high, b.high);
    return {sum, __dadd_rn(__dadd_rn(a.low, b.low), lost(a.high, b.high, sum))};
}

/// Loads a sum that another block has written; see load_coherent in scalar.cuh.
inline Twofold load_coherent(const Twofold* from) {
    return {__ldcg(&from->high), __ldcg(&from->low)};
}

template <class T>
struct RealOf {
    using type = T;
};
template <class R>
struct RealOf<Complex<R>> {
    using type = R;
};

/// The accumulator type for the columns of a type.
template <class T>
struct SumOf;
template <>
struct SumOf<float> {
    using type = double;
};
template <>
struct SumOf<double> {
    using type = Twofold;
};
template <class R>
struct SumOf<Complex<R>> {
    using type = Complex<typename SumOf<R>::type>;
};

inline void add_to(double& sum, double value) {
    sum = __dadd_rn(sum, value);
}
inline void add_to(Twofold& sum, double value) {
    const double high = __dadd_rn(sum.high, value);
    sum.low = __dadd_rn(sum.low, lost(sum.high, value, high));
    sum.high = high;
}
template <class A>
void add_to(Complex<A>& sum, Complex<double> value) {
    add_to(sum.re, value.re);
    add_to(sum.im, value.im);
}
/// The part of a sum to which squares are added: squares have one sign and need no compensation.
inline double& leading(double& sum) {
    return sum;
}
inline double& leading(Twofold& sum) {
    return sum.high;
}
template <class A>
double& leading(Complex<A>& sum) {
    return leading(sum.re);
}

template <class R>
double widened(R value) {
    return static_cast<double>(value);
}
template <class R>
Complex<double> widened(Complex<R> value) {
    return {static_cast<double>(value.re), static_cast<double>(value.im)};
}

// Products are rounded before they are summed, because a contraction would break the two-sum.
inline double times(double w, double x) {
    return __dmul_rn(w, x);
}
inline Complex<double> times(double w, Complex<double> x) {
    return {__dmul_rn(w, x.re), __dmul_rn(w, x.im)};
}
inline double conjugate_times(double w, double x) {
    return __dmul_rn(w, x);
}
inline Complex<double> conjugate_times(Complex<double> w, Complex<double> x) {
    return {__fma_rn(w.re, x.re, __dmul_rn(w.im, x.im)),
            __fma_rn(w.re, x.im, __dmul_rn(-w.im, x.re))};
}
inline void add_square(double& sum, double x) {
    sum = __fma_rn(x, x, sum);
}
inline void add_square(double& sum, Complex<double> x) {
    add_square(sum, x.re);
    add_square(sum, x.im);
}

inline Twofold twofold(double sum) {
    return {sum, 0};
}
inline Twofold twofold(Twofold sum) {
    return sum;
}

inline double total(double sum) {
    return sum;
}
inline double total(Twofold sum) {
    return __dadd_rn(sum.high, sum.low);
}
template <class A>
Complex<double> total(Complex<A> sum) {
    return {total(sum.re), total(sum.im)};
}

}  // namespace quiver

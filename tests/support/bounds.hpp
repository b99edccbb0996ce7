// SPDX-License-Identifier: BSD-3-Clause
// Bounds for the error of computed numbers. Source of the form: LAPACK Working Note 41, and Higham,
// Accuracy and Stability of Numerical Algorithms, sections 3.1 and 3.6.
#pragma once

#include <cmath>
#include <complex>

#include "blockvec/scalar.hpp"

namespace quiver::test {

template <class T>
struct WideOf {
    using type = long double;
};
template <class R>
struct WideOf<std::complex<R>> {
    using type = std::complex<long double>;
};
/// The type in which references accumulate.
template <class T>
using wide_t = typename WideOf<std::remove_const_t<T>>::type;

/// |computed - exact| of alpha sum_k a_k b_k + beta c: c eps ((sqrt(k) + 2) |alpha| ||a|| ||b|| +
/// 2 |beta| |c|), with c = 2 for real and 4 for complex scalars. `products` is ||a|| ||b||.
template <class T>
long double sum_bound(std::int64_t k, T alpha, long double products, T beta, long double old) {
    const long double constant = is_complex_v<T> ? 4 : 2;
    const long double length = std::sqrt(static_cast<long double>(k)) + 2;
    return constant * static_cast<long double>(epsilon_v<T>) *
           (length * std::abs(alpha) * products + 2 * std::abs(beta) * old);
}

}  // namespace quiver::test

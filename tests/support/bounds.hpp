// SPDX-License-Identifier: BSD-3-Clause
// Bounds for the error of computed sums. Source: LAPACK Working Note 41, and Higham, Accuracy and
// Stability of Numerical Algorithms, sections 3.1 and 3.6.
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

/// A bound for the error of alpha sum a_i b_i + beta c with k terms: C eps ((sqrt(k) + 2) |alpha|
/// ||a|| ||b|| + 2 |beta| |c|), where C is 2 for real and 4 for complex scalars. `products` is
/// ||a|| ||b||, `old` is |c|.
template <class T>
long double sum_bound(std::int64_t k, T alpha, long double products, T beta, long double old) {
    const long double constant = is_complex_v<T> ? 4 : 2;
    const long double length = std::sqrt(static_cast<long double>(k)) + 2;
    return constant * static_cast<long double>(epsilon_v<T>) *
           (length * std::abs(alpha) * products + 2 * std::abs(beta) * old);
}

}  // namespace quiver::test

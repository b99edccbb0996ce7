// SPDX-License-Identifier: BSD-3-Clause
// Factors of the Gram matrix of a block of unit columns that make the block orthonormal.
#pragma once

#include <cmath>

#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

/// The length that rounding noise leaves of a missing direction of unit length, after projections
/// against `basis` columns and steps within `width` columns.
template <class T>
real_t<T> missing_noise(int basis, int width) {
    return real_t<T>(8) * std::sqrt(static_cast<real_t<T>>(basis + width)) * epsilon_v<T>;
}

/// The largest distance from orthonormal at which one more pass makes the block orthonormal up to
/// rounding.
template <class T>
constexpr real_t<T> nearly_orthonormal = real_t<T>(0.1);

/// One orthonormalisation within the block: W <- W s; a matrix W t becomes (W s) (s^-1 t).
template <class T>
struct GramStep {
    SmallMatrix<T> s;
    SmallMatrix<T> s_inverse;
    bool used_svqb = false;
    /// The column at which the Cholesky factorisation found a pivot that is not positive or is
    /// rounding noise (2 n eps); -1: none.
    int breakdown = -1;
};

/// s = R^-1 with gram = R^H R.
template <class T>
GramStep<T> cholesky_step(const SmallMatrix<T>& gram);

/// s = Y L^(-1/2) with gram = Y L Y^H; eigenvalues below 10 n eps times the largest are raised to
/// that value. Source: Stathopoulos and Wu, SIAM J. Sci. Comput. 23 (2002) 2165.
template <class T>
GramStep<T> svqb_step(const SmallMatrix<T>& gram);

/// True if the Cholesky factor R of a Gram matrix of unit columns is safe: all pivots are above 10
/// n eps, and |R^-1| |R| is below 100.
template <class T>
bool is_safe_factor(const SmallMatrix<T>& r);

/// cholesky_step if its factor is safe, else svqb_step. With s = R^-1 the errors of W s are eps |W|
/// |R^-1|, so that those of W - (W s) R are eps |W| |R^-1| |R|; with SVQB they are eps |W|.
template <class T>
GramStep<T> safe_step(const SmallMatrix<T>& gram);

/// cholesky_step if all pivots are above 10 n eps and `shift_first` is not set; else the same with
/// gram + sigma I. Each step reduces the condition number of W by about sqrt(sigma). sigma starts
/// at 11 n eps and grows tenfold until the pivots are above half of it. The bound of the source, 11
/// (rows n + n (n + 1)) u, is far above the rounding errors of sums formed in pieces, and a larger
/// shift needs more steps. Source: Fukaya, Kannan, Nakatsukasa, Yamamoto, Yanagisawa, SIAM J. Sci.
/// Comput. 42 (2020) A477.
template <class T>
GramStep<T> shifted_step(const SmallMatrix<T>& gram, bool shift_first);

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/gram_factors.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// The largest error growth of Cholesky-QR in W - Q R that is accepted; above it SVQB, which has no
/// such growth, is better.
constexpr int max_growth = 100;

template <class T>
real_t<T> smallest_safe_pivot(int n) {
    return static_cast<real_t<T>>(10 * std::max(1, n)) * epsilon_v<T>;
}

template <class T>
bool pivots_above(const SmallMatrix<T>& r, real_t<T> bound) {
    bool above = true;
    for (int i = 0; i < r.rows() && above; ++i) {
        above = abs_squared(r(i, i)) > bound;
    }
    return above;
}
template <class T>
bool pivots_above(const Cholesky<T>& factor, real_t<T> bound) {
    return factor.positive && pivots_above(factor.r, bound);
}

/// The column at which the Cholesky factorisation fails; the matrix must be known not to be
/// positive definite.
template <class T>
int failing_column(const SmallMatrix<T>& gram) {
    int good = 0;
    int bad = gram.rows();
    while (bad - good > 1) {
        const int middle = (good + bad) / 2;
        SmallMatrix<T> leading(middle, middle);
        for (int i = 0; i < middle; ++i) {
            std::copy_n(&gram(i, 0), middle, &leading(i, 0));
        }
        (cholesky(leading).positive ? good : bad) = middle;
    }
    return bad - 1;
}

/// The largest element of |s| |s^-1|: the factor by which rounding errors of W s grow in (W s)
/// s^-1.
template <class T>
real_t<T> growth(const GramStep<T>& step) {
    real_t<T> most = 0;
    for (int i = 0; i < step.s.rows(); ++i) {
        for (int j = i; j < step.s.cols(); ++j) {
            real_t<T> sum = 0;
            for (int k = i; k <= j; ++k) {
                sum += std::abs(step.s(i, k)) * std::abs(step.s_inverse(k, j));
            }
            most = std::max(most, sum);
        }
    }
    return most;
}

template <class T>
GramStep<T> step_of(Cholesky<T> factor) {
    return {inverse_of_upper(factor.r), std::move(factor.r)};
}

}  // namespace

template <class T>
GramStep<T> cholesky_step(const SmallMatrix<T>& gram) {
    Cholesky<T> factor = cholesky(gram);
    const real_t<T> noise = smallest_safe_pivot<T>(gram.rows()) / 5;
    GramStep<T> failed;
    if (!factor.positive) {
        failed.breakdown = failing_column(gram);
        return failed;
    }
    for (int i = 0; i < gram.rows(); ++i) {
        if (!(abs_squared(factor.r(i, i)) > noise)) {
            failed.breakdown = i;
            return failed;
        }
    }
    return step_of(std::move(factor));
}

template <class T>
GramStep<T> svqb_step(const SmallMatrix<T>& gram) {
    using Real = real_t<T>;
    const int n = gram.rows();
    const HermitianEigen<T> eigen = hermitian_eigen(gram);
    const Real floor = smallest_safe_pivot<T>(n) *
                       std::max(eigen.values.empty() ? Real(0) : eigen.values.back(), epsilon_v<T>);
    GramStep<T> step{SmallMatrix<T>(n, n), SmallMatrix<T>(n, n), true};
    for (int j = 0; j < n; ++j) {
        const Real root = std::sqrt(std::max(eigen.values[static_cast<std::size_t>(j)], floor));
        for (int i = 0; i < n; ++i) {
            step.s(i, j) = eigen.vectors(i, j) / root;
            step.s_inverse(j, i) = conjugate(eigen.vectors(i, j)) * root;
        }
    }
    return step;
}

template <class T>
bool is_safe_factor(const SmallMatrix<T>& r) {
    return pivots_above(r, smallest_safe_pivot<T>(r.rows())) &&
           (pivots_above(r, real_t<T>(0.01)) ||
            growth(GramStep<T>{inverse_of_upper(r), r}) <= max_growth);
}

template <class T>
GramStep<T> safe_step(const SmallMatrix<T>& gram) {
    Cholesky<T> factor = cholesky(gram);
    return factor.positive && is_safe_factor(factor.r) ? step_of(std::move(factor))
                                                       : svqb_step(gram);
}

template <class T>
GramStep<T> shifted_step(const SmallMatrix<T>& gram, bool shift_first) {
    const int n = gram.rows();
    Cholesky<T> factor = cholesky(gram);
    if (!shift_first && pivots_above(factor, smallest_safe_pivot<T>(n))) {
        return step_of(std::move(factor));
    }
    real_t<T> shift = static_cast<real_t<T>>(11 * std::max(1, n)) * epsilon_v<T>;
    for (; shift < real_t<T>(n); shift *= 10) {
        SmallMatrix<T> shifted = gram;
        for (int i = 0; i < n; ++i) {
            shifted(i, i) += shift;
        }
        factor = cholesky(shifted);
        if (pivots_above(factor, shift / 2)) {
            return step_of(std::move(factor));
        }
    }
    return cholesky_step(gram);
}

#define QUIVER_INSTANTIATE(T)                                  \
    template bool is_safe_factor(const SmallMatrix<T>&);       \
    template GramStep<T> cholesky_step(const SmallMatrix<T>&); \
    template GramStep<T> svqb_step(const SmallMatrix<T>&);     \
    template GramStep<T> safe_step(const SmallMatrix<T>&);     \
    template GramStep<T> shifted_step(const SmallMatrix<T>&, bool);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/wide_gram.hpp"

#include <cmath>

#include "blockvec/scalar_list.hpp"
#include "kernels/mixed.hpp"

namespace quiver {
namespace {

/// a + b without rounding error, if |a| >= |b| or a = 0.
Twofold quick_sum(double a, double b) {
    const double sum = a + b;
    return {sum, b - (sum - a)};
}
/// a + b without rounding error.
Twofold two_sum(double a, double b) {
    const double sum = a + b;
    const double part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

// Dekker, Numer. Math. 18 (1971) 224; products by a fused multiply-add.
Twofold operator+(const Twofold& a, const Twofold& b) {
    const Twofold high = two_sum(a.high, b.high);
    const Twofold low = two_sum(a.low, b.low);
    const Twofold sum = quick_sum(high.high, high.low + low.high);
    return quick_sum(sum.high, sum.low + low.low);
}
Twofold operator-(const Twofold& a) {
    return {-a.high, -a.low};
}
Twofold operator-(const Twofold& a, const Twofold& b) {
    return a + -b;
}
Twofold operator*(const Twofold& a, const Twofold& b) {
    const double product = a.high * b.high;
    const double error = std::fma(a.high, b.high, -product);
    return quick_sum(product, error + (a.high * b.low + a.low * b.high));
}
Twofold operator/(const Twofold& a, const Twofold& b) {
    const double first = a.high / b.high;
    const Twofold rest = a - b * Twofold{first};
    return quick_sum(first, rest.high / b.high);
}
Twofold square_root(const Twofold& a) {
    const double first = std::sqrt(a.high);
    const Twofold rest = a - Twofold{first} * Twofold{first};
    return quick_sum(first, rest.high / (2 * first));
}
double square_root(double a) {
    return std::sqrt(a);
}
double nearest(double a) {
    return a;
}
double nearest(const Twofold& a) {
    return a.high;
}

/// A real n x n matrix, row by row.
template <class W>
struct WideMatrix {
    int n;
    std::vector<W> values;

    explicit WideMatrix(int n_)
        : n(n_), values(static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_)) {}
    W& operator()(int i, int j) { return values[static_cast<std::size_t>(i * n + j)]; }
    const W& operator()(int i, int j) const { return values[static_cast<std::size_t>(i * n + j)]; }
};

/// A <- R with A = R^T R; reads and writes only the upper triangle. Returns the row of the first
/// pivot that is not positive, or -1.
template <class W>
int cholesky_in_place(WideMatrix<W>& a) {
    for (int k = 0; k < a.n; ++k) {
        if (!(nearest(a(k, k)) > 0)) {
            return k;
        }
        const W pivot = square_root(a(k, k));
        a(k, k) = pivot;
        for (int j = k + 1; j < a.n; ++j) {
            a(k, j) = a(k, j) / pivot;
        }
        for (int i = k + 1; i < a.n; ++i) {
            for (int j = i; j < a.n; ++j) {
                a(i, j) = a(i, j) - a(k, i) * a(k, j);
            }
        }
    }
    return -1;
}

template <class W>
WideMatrix<W> inverse_of_upper(const WideMatrix<W>& r) {
    WideMatrix<W> x(r.n);
    for (int j = 0; j < r.n; ++j) {
        for (int i = j; i >= 0; --i) {
            W sum = i == j ? W{1} : W{0};
            for (int k = i + 1; k <= j; ++k) {
                sum = sum - r(i, k) * x(k, j);
            }
            x(i, j) = sum / r(i, i);
        }
    }
    return x;
}

/// The upper triangle rounded to the precision of T.
template <class T, class W>
SmallMatrix<T> rounded_upper(const WideMatrix<W>& a) {
    using Real = real_t<T>;
    constexpr int parts = is_complex_v<T> ? 2 : 1;
    SmallMatrix<T> result(a.n / parts, a.n / parts);
    for (int i = 0; i < result.rows(); ++i) {
        for (int j = i; j < result.cols(); ++j) {
            const auto real = static_cast<Real>(nearest(a(parts * i, parts * j)));
            if constexpr (is_complex_v<T>) {
                result(i, j) = T(real, static_cast<Real>(nearest(a(2 * i + 1, 2 * j))));
            } else {
                result(i, j) = real;
            }
        }
    }
    return result;
}

/// X^T X of a real block.
std::vector<double> real_gram(Context& ctx, BlockView<const float> x) {
    std::vector<double> sums(static_cast<std::size_t>(x.cols) * static_cast<std::size_t>(x.cols));
    tsmttsm(ctx, 1.0, x, x, 0.0, BlockView<double>(sums.data(), x.cols, x.cols, x.cols));
    return sums;
}
std::vector<Twofold> real_gram(Context& ctx, BlockView<const double> x) {
    SmallMatrix<double> high(x.cols, x.cols);
    SmallMatrix<double> low(x.cols, x.cols);
    gram_twofold(ctx, x, high.view(), low.view());
    std::vector<Twofold> sums;
    for (int i = 0; i < x.cols; ++i) {
        for (int j = 0; j < x.cols; ++j) {
            sums.push_back({high(i, j), low(i, j)});
        }
    }
    return sums;
}

}  // namespace

template <class T>
WideGram<T>::WideGram(Context& ctx, BlockView<const T> w) : n_(w.cols) {
    using Real = real_t<T>;
    if constexpr (!is_complex_v<T>) {
        values_ = real_gram(ctx, w);
    } else {
        // Real and imaginary parts side by side form a real block of twice the width. With P its
        // Gram matrix, the real part of W^H W is P(2i, 2j) + P(2i + 1, 2j + 1), the imaginary part
        // P(2i, 2j + 1) - P(2i + 1, 2j).
        const std::vector<Wide> p =
            real_gram(ctx, BlockView<const Real>(reinterpret_cast<const Real*>(w.data), w.rows,
                                                 2 * w.cols, 2 * w.ld, w.place));
        const auto at = [&](int i, int j) {
            return static_cast<std::size_t>(i) * static_cast<std::size_t>(2 * n_) +
                   static_cast<std::size_t>(j);
        };
        values_.resize(p.size());
        for (int i = 0; i < 2 * n_; i += 2) {
            for (int j = 0; j < 2 * n_; j += 2) {
                const Wide real = p[at(i, j)] + p[at(i + 1, j + 1)];
                const Wide imag = p[at(i, j + 1)] - p[at(i + 1, j)];
                values_[at(i, j)] = values_[at(i + 1, j + 1)] = real;
                values_[at(i + 1, j)] = imag;
                values_[at(i, j + 1)] = -imag;
            }
        }
    }
}

template <class T>
SmallMatrix<T> WideGram<T>::rounded() const {
    constexpr int parts = is_complex_v<T> ? 2 : 1;
    WideMatrix<Wide> all(parts * n_);
    all.values = values_;
    SmallMatrix<T> result = rounded_upper<T>(all);
    for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < i; ++j) {
            result(i, j) = conjugate(result(j, i));
        }
    }
    return result;
}

template <class T>
GramStep<T> WideGram<T>::factor(const std::vector<real_t<T>>& length) const {
    constexpr int parts = is_complex_v<T> ? 2 : 1;
    WideMatrix<Wide> r(parts * n_);
    r.values = values_;
    const auto scale = [&](int i) {
        return Wide{static_cast<double>(length[static_cast<std::size_t>(i / parts)])};
    };
    for (int i = 0; i < r.n; ++i) {
        for (int j = i; j < r.n; ++j) {
            r(i, j) = r(i, j) / (scale(i) * scale(j));
        }
    }
    GramStep<T> step;
    const int failed = cholesky_in_place(r);
    if (failed >= 0) {
        step.breakdown = failed / parts;
        return step;
    }
    step.s = rounded_upper<T>(inverse_of_upper(r));
    step.s_inverse = rounded_upper<T>(r);
    return step;
}

#define QUIVER_INSTANTIATE(T) template class WideGram<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

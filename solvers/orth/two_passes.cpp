// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/two_passes.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/gram_factor.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/orth/gram_factors.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

template <class T>
real_t<T> column_norm(const BlockView<const T>& a, int j) {
    real_t<T> sum = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
        sum += abs_squared(a.data[i * a.ld + j]);
    }
    return std::sqrt(sum);
}

template <class T>
bool column_is_finite(const BlockView<const T>& a, int j) {
    bool finite = true;
    for (std::int64_t i = 0; i < a.rows; ++i) {
        finite = finite && is_finite(a.data[i * a.ld + j]);
    }
    return finite;
}

/// Number of elements of a matrix, rounded up so that the next matrix is aligned for all kernels.
std::size_t padded(int rows, int cols) {
    constexpr std::size_t unit = 32;
    return (static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) + unit - 1) / unit *
           unit;
}

template <class T>
SmallMatrix<T> matrix_of(const BlockView<const T>& a) {
    SmallMatrix<T> result(static_cast<int>(a.rows), a.cols);
    std::copy_n(a.data, static_cast<std::size_t>(a.rows) * static_cast<std::size_t>(a.cols),
                result.data());
    return result;
}

}  // namespace

template <class T>
template <class U>
TwoPasses<T>::Parts<U>::Parts(U* data, const Shape& shape, Place place) {
    const auto next = [&](int rows) {
        const BlockView<U> view(data, rows, shape.n, shape.n, place);
        data += padded(rows, shape.n);
        return view;
    };
    c[0] = next(shape.p - shape.skipped);
    c[1] = next(shape.p);
    for (int i = 0; i < 2; ++i) {
        g[i] = next(shape.n);
        r[i] = next(shape.n);
    }
}

template <class T>
std::size_t TwoPasses<T>::elements(const Shape& shape) {
    return padded(shape.p - shape.skipped, shape.n) + padded(shape.p, shape.n) +
           4 * padded(shape.n, shape.n);
}

template <class T>
TwoPasses<T>::TwoPasses(Context& ctx, int max_basis, int max_width)
    : ctx_(ctx),
      memory_(ctx.allocate(memory_kind(ctx.place()), elements({max_basis, max_width}) * sizeof(T),
                           "projections")),
      inverse_(ctx.allocate(
          memory_kind(ctx.place()),
          static_cast<std::size_t>(max_width) * static_cast<std::size_t>(max_width) * sizeof(T),
          "a triangular inverse")),
      first_(ctx, memory_.bytes()),
      second_(ctx, memory_.bytes()) {}

template <class T>
void TwoPasses<T>::project(BlockView<const T> v, BlockView<const T> w, int skipped) {
    if (v.cols > skipped) {
        tsmttsm(ctx_, T(1), v.columns(skipped, v.cols - skipped), w, T(0),
                parts_of({v.cols, w.cols, skipped}).c[0]);
    }
}

template <class T>
void TwoPasses<T>::begin_projected(BlockView<const T> v, BlockView<T> w, int skipped) {
    const int slot = (oldest_ + under_way_) % 2;
    const Shape shape{v.cols, w.cols, skipped};
    const Parts<T> parts = parts_of(shape);
    const BlockView<T> s(inverse_.as<T>(), w.cols, w.cols, w.cols, ctx_.place());
    for (int i = 0; i < 2; ++i) {
        if (v.cols > skipped) {
            if (i > 0) {
                tsmttsm(ctx_, T(1), v, w, T(0), parts.c[i]);
            }
            const BlockView<const T> part = i > 0 ? v : v.columns(skipped, v.cols - skipped);
            tsmm_gram(ctx_, T(-1), part, parts.c[i], T(1), w, parts.g[i]);
        } else if (i == 0) {
            tsmttsm(ctx_, T(1), w, w, T(0), parts.g[i]);
        }
        gram_factor(ctx_, parts.g[i], parts.r[i], s);
        if (v.cols == 0 && i == 0) {
            tsmm_gram(ctx_, T(1), w, s, T(0), w, parts.g[1]);
        } else {
            tsmm(ctx_, T(1), w, s, T(0), w);
        }
    }
    (slot == 0 ? first_ : second_).begin(memory_.as<void>(), elements(shape) * sizeof(T));
    shape_[static_cast<std::size_t>(slot)] = shape;
    ++under_way_;
}

template <class T>
typename TwoPasses<T>::Outcome TwoPasses<T>::finish(bool later_work) {
    const Shape shape = shape_[static_cast<std::size_t>(oldest_)];
    const Parts<const T> parts(
        static_cast<const T*>((oldest_ == 0 ? first_ : second_).wait(later_work || under_way_ > 1)),
        shape, Place::host);
    oldest_ = 1 - oldest_;
    --under_way_;
    Outcome outcome;
    outcome.verdict = judge(parts, shape);
    OrthResult<T>& result = outcome.result;
    result.passes = 2;
    if (outcome.verdict != Verdict::sound) {
        return outcome;
    }
    const SmallMatrix<T> r = matrix_of(parts.r[0]);
    result.columns = result.rank = shape.n;
    result.h = product(matrix_of(parts.c[1]), r);
    for (int i = shape.skipped; i < shape.p; ++i) {
        for (int j = 0; j < shape.n; ++j) {
            result.h(i, j) += parts.c[0].data[(i - shape.skipped) * shape.n + j];
        }
    }
    result.r = product(matrix_of(parts.r[1]), r);
    return outcome;
}

/// Applies the rules of Orthonormaliser's passes to the results of both passes.
template <class T>
typename TwoPasses<T>::Verdict TwoPasses<T>::judge(const Parts<const T>& parts,
                                                   const Shape& shape) const {
    const int n = shape.n;
    const auto g = [&](int pass, int i, int j) { return parts.g[pass].data[i * n + j]; };
    const auto r = [&](int i, int j) { return parts.r[0].data[i * n + j]; };
    const Real noise = missing_noise<T>(shape.p, n);
    std::vector<Real> input(static_cast<std::size_t>(n));
    SmallMatrix<T> unit(n, n);  // Cholesky factor of the Gram matrix for unit columns
    for (int j = 0; j < n; ++j) {
        if (!is_finite(g(0, j, j)) || !column_is_finite(parts.c[0], j)) {
            return Verdict::not_finite;
        }
    }
    for (int j = 0; j < n; ++j) {
        const Real left = std::sqrt(std::max(real_part(g(0, j, j)), Real(0)));
        input[static_cast<std::size_t>(j)] = std::hypot(left, column_norm(parts.c[0], j));
        if (!(left > noise * input[static_cast<std::size_t>(j)])) {
            return Verdict::unsound;
        }
        for (int i = 0; i <= j; ++i) {
            unit(i, j) = r(i, j) / left;
        }
    }
    if (!is_safe_factor(unit)) {
        return Verdict::unsound;
    }
    for (int j = 0; j < n; ++j) {
        const Real left = std::sqrt(std::max(real_part(g(1, j, j)), Real(0)));
        Real share = 0;
        for (int k = j; k < n; ++k) {
            share = std::max(share, std::abs(r(j, k)) / input[static_cast<std::size_t>(k)]);
        }
        bool good =
            left * share > noise && column_norm(parts.c[1], j) <= nearly_orthonormal<T> * left;
        for (int i = 0; i < j; ++i) {
            const Real scale = left * std::sqrt(std::max(real_part(g(1, i, i)), Real(0)));
            good = good &&
                   std::abs(g(1, i, j)) * static_cast<Real>(n) <= nearly_orthonormal<T> * scale;
        }
        if (!good) {
            return Verdict::unsound;
        }
    }
    return Verdict::sound;
}

#define QUIVER_INSTANTIATE(T) template class TwoPasses<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

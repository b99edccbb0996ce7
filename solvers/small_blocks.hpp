// SPDX-License-Identifier: BSD-3-Clause
// Operations on small matrices (parts, sums, adjoints), for projected problems in block form.
// Private to solvers/.
#pragma once

#include <cmath>
#include <vector>

#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

/// Columns are orthonormalised by their coefficients alone if the inverse of their Gram matrix,
/// scaled to unit columns, has a trace of at most this per column. The coefficients then lose up to
/// this many units of round-off.
constexpr double implicit_limit = 100;

template <class T>
SmallMatrix<T> part(const SmallMatrix<T>& a, int row, int rows, int col, int cols) {
    SmallMatrix<T> result(rows, cols);
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) {
            result(i, j) = a(row + i, col + j);
        }
    }
    return result;
}

template <class T>
void put(const SmallMatrix<T>& a, int row, int col, SmallMatrix<T>& into) {
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            into(row + i, col + j) = a(i, j);
        }
    }
}

template <class T>
SmallMatrix<T> adjoint(const SmallMatrix<T>& a) {
    SmallMatrix<T> result(a.cols(), a.rows());
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            result(j, i) = conjugate(a(i, j));
        }
    }
    return result;
}

/// A + factor B.
template <class T>
SmallMatrix<T> sum(SmallMatrix<T> a, real_t<T> factor, const SmallMatrix<T>& b) {
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            a(i, j) += factor * b(i, j);
        }
    }
    return a;
}

template <class T>
SmallMatrix<T> hermitian_part(const SmallMatrix<T>& a) {
    SmallMatrix<T> result(a.rows(), a.cols());
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            result(i, j) = (a(i, j) + conjugate(a(j, i))) / real_t<T>(2);
        }
    }
    return result;
}

template <class T>
bool is_diagonal(const SmallMatrix<T>& a) {
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            if (i != j && a(i, j) != T{}) {
                return false;
            }
        }
    }
    return true;
}

/// Multiplies row i of `a` by factor(i).
template <class T, class Factor>
void scale_rows(SmallMatrix<T>& a, Factor&& factor) {
    for (int i = 0; i < a.rows(); ++i) {
        const auto scale = factor(static_cast<std::size_t>(i));
        for (int j = 0; j < a.cols(); ++j) {
            a(i, j) *= scale;
        }
    }
}

/// The rows and columns of `a` with these indices.
template <class T>
SmallMatrix<T> submatrix(const SmallMatrix<T>& a, const std::vector<int>& index) {
    const int n = static_cast<int>(index.size());
    SmallMatrix<T> result(n, n);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            result(i, j) =
                a(index[static_cast<std::size_t>(i)], index[static_cast<std::size_t>(j)]);
        }
    }
    return result;
}

/// Columns columns[from] .. columns[to - 1] of `a`.
template <class T>
SmallMatrix<T> select_columns(const SmallMatrix<T>& a, const std::vector<int>& columns, int from,
                              int to) {
    SmallMatrix<T> result(a.rows(), to - from);
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = from; j < to; ++j) {
            result(i, j - from) = a(i, columns[static_cast<std::size_t>(j)]);
        }
    }
    return result;
}

/// The Hermitian part of S^H A S.
template <class T>
SmallMatrix<T> congruence(const SmallMatrix<T>& s, const SmallMatrix<T>& a) {
    return hermitian_part(product(adjoint(s), product(a, s)));
}

/// `a` in the upper left corner of a larger matrix of zeros.
template <class T>
SmallMatrix<T> enlarged(const SmallMatrix<T>& a, int size) {
    SmallMatrix<T> result(size, size);
    put(a, 0, 0, result);
    return result;
}

/// S with S^H G S = I for a positive definite G; `good` is true if S loses at most `implicit_limit`
/// units of round-off per column.
template <class T>
struct Normaliser {
    SmallMatrix<T> s;
    bool good = false;
};

template <class T>
Normaliser<T> normaliser(const SmallMatrix<T>& gram) {
    using Real = real_t<T>;
    const int n = gram.rows();
    Normaliser<T> result{SmallMatrix<T>(n, n), false};
    std::vector<Real> scale;
    for (int i = 0; i < n; ++i) {
        scale.push_back(Real(1) / std::sqrt(real_part(gram(i, i))));
        if (!std::isfinite(scale.back())) {
            return result;
        }
    }
    SmallMatrix<T> unit(n, n);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            unit(i, j) = gram(i, j) *
                         (scale[static_cast<std::size_t>(i)] * scale[static_cast<std::size_t>(j)]);
        }
    }
    const Cholesky<T> factor = cholesky(unit);
    if (!factor.positive) {
        return result;
    }
    result.s = inverse_of_upper(factor.r);
    double squares = 0;
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            squares += static_cast<double>(abs_squared(result.s(i, j)));
            result.s(i, j) *= scale[static_cast<std::size_t>(i)];
        }
    }
    result.good = squares <= implicit_limit * n;
    return result;
}

}  // namespace quiver

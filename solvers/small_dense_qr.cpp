// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/small_dense_qr.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <limits>
#include <new>
#include <vector>

#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t{256} << 10;
/// With at least this many rows of a piece for each column, the stacked R of all pieces have at
/// most a quarter of the rows of X.
constexpr std::int64_t least_rows_per_column = 4;

/// Columns of T in SIMD vectors of the compiler, padded with zeros. A column v may represent the
/// reflector I - v v^H (then v^H v = 2). Each complex v is followed by i v: the dot products of v
/// and i v with a, taken over real numbers, are the real and imaginary part of v^H a.
template <class T>
class Columns {
    using R = real_t<T>;
    static constexpr int reals = is_complex_v<T> ? 2 : 1;
    static constexpr int lanes = 32 / reals / static_cast<int>(sizeof(R));
    struct Lanes {
        typedef R Vector __attribute__((vector_size(lanes * sizeof(R))));
        Vector of;
    };

  public:
    /// `rows` rows; X is copied into the first of them.
    Columns(BlockView<const T> x, std::int64_t rows)
        : rows_(rows),
          length_((rows * reals + lanes - 1) / lanes),
          data_(static_cast<std::size_t>(x.cols * reals * length_), Lanes{}) {
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int j = 0; j < x.cols; ++j) {
                set(i, j, x(i, j));
            }
        }
    }

    void store(BlockView<T> x) const {
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int j = 0; j < x.cols; ++j) {
                x(i, j) = get(i, j);
            }
        }
    }

    T get(std::int64_t i, int j) const {
        const auto real = [&](std::int64_t e) { return column(j)[e / lanes].of[e % lanes]; };
        if constexpr (is_complex_v<T>) {
            return {real(2 * i), real(2 * i + 1)};
        } else {
            return real(i);
        }
    }
    void set(std::int64_t i, int j, T value) {
        const auto put = [&](Lanes* to, std::int64_t e, R real) {
            to[e / lanes].of[e % lanes] = real;
        };
        if constexpr (is_complex_v<T>) {
            put(column(j), 2 * i, value.real());
            put(column(j), 2 * i + 1, value.imag());
            put(column(j) + length_, 2 * i, -value.imag());
            put(column(j) + length_, 2 * i + 1, value.real());
        } else {
            put(column(j), i, value);
        }
    }

    /// Reflects columns first .. last - 1 of A by column j, whose rows above j are zero.
    void reflect(int j, Columns& a, int first, int last) const {
        for (; first + 4 <= last; first += 4) {
            reflect_together<4>(j, a, first);
        }
        for (; first < last; ++first) {
            reflect_together<1>(j, a, first);
        }
    }

    /// Replaces rows j .. rows - 1 of column j by a reflector that maps them to a multiple of e_j,
    /// and the rows above by zeros. Returns this multiple.
    T make_reflector(int j) {
        R scale(1);
        R squares = sum_of_squares(j);
        // Outside these bounds, squares underflow or overflow.
        constexpr R least = std::numeric_limits<R>::min() / (epsilon_v<T> * epsilon_v<T>);
        if (!(squares >= least && squares <= R(1) / least)) {
            scale = R(0);
            for (std::int64_t i = j; i < rows_; ++i) {
                scale = std::max(scale, std::abs(get(i, j)));
            }
            if (scale == R(0) && squares == R(0)) {
                return T(0);
            }
            divide(j, scale);
            squares = sum_of_squares(j);
        }
        const R norm = std::sqrt(squares);
        const T top = get(j, j);
        const R size = std::abs(top);
        const T phase = size > R(0) ? top / size : T(1);
        set(j, j, top + phase * norm);
        divide(j, std::sqrt(norm * (norm + size)));
        return -phase * (norm * scale);
    }

  private:
    Lanes* column(int j) { return data_.data() + j * reals * length_; }
    const Lanes* column(int j) const { return data_.data() + j * reals * length_; }

    template <int columns>
    void reflect_together(int j, Columns& a, int first) const {
        const Lanes* const v = column(j);
        const std::int64_t begin = j * reals / lanes;
        Lanes product[columns][reals] = {};
        for (std::int64_t t = begin; t < length_; ++t) {
#pragma GCC unroll 4
            for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 2
                for (int p = 0; p < reals; ++p) {
                    product[c][p].of += v[p * length_ + t].of * a.column(first + c)[t].of;
                }
            }
        }
        R sum[columns][reals] = {};
        for (int c = 0; c < columns; ++c) {
            for (int p = 0; p < reals; ++p) {
                for (int l = 0; l < lanes; ++l) {
                    sum[c][p] += product[c][p].of[l];
                }
            }
        }
        for (std::int64_t t = begin; t < length_; ++t) {
#pragma GCC unroll 4
            for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 2
                for (int p = 0; p < reals; ++p) {
                    a.column(first + c)[t].of -= sum[c][p] * v[p * length_ + t].of;
                }
            }
        }
    }
    R sum_of_squares(int j) const {
        Lanes squares{};
        for (std::int64_t t = 0; t < length_; ++t) {
            squares.of += column(j)[t].of * column(j)[t].of;
        }
        R sum(0);
        for (int l = 0; l < lanes; ++l) {
            sum += squares.of[l];
        }
        return sum;
    }
    /// For complex scalars also updates i v behind column v.
    void divide(int j, R by) {
        for (std::int64_t t = 0; t < length_; ++t) {
            column(j)[t].of /= by;
        }
        for (std::int64_t i = 0; is_complex_v<T> && i < rows_; ++i) {
            set(i, j, get(i, j));
        }
    }

    std::int64_t rows_;
    std::int64_t length_;  // vectors in a column
    std::vector<Lanes> data_;
};

/// Number of columns that are reflected together, so few that they stay in the first-level cache.
constexpr int strip = 4;

/// Returns R, min(rows, n) x n; overwrites the first min(rows, n) columns of X by reflectors.
template <class T>
SmallMatrix<T> factor_piece(BlockView<T> x) {
    const auto k = static_cast<int>(std::min<std::int64_t>(x.rows, x.cols));
    SmallMatrix<T> r(k, x.cols);
    Columns<T> columns(x, x.rows);
    for (int first = 0; first < x.cols; first += strip) {
        const int last = std::min(first + strip, x.cols);
        for (int j = 0; j < std::min(first, k); ++j) {
            columns.reflect(j, columns, first, last);
        }
        for (int c = first; c < last; ++c) {
            for (int i = 0; i < std::min(c, k); ++i) {
                r(i, c) = columns.get(i, c);
                columns.set(i, c, T(0));
            }
            if (c < k) {
                r(c, c) = columns.make_reflector(c);
                columns.reflect(c, columns, c + 1, last);
            }
        }
    }
    columns.store(x);
    return r;
}

/// X <- Q M, where the first m.rows columns of X contain the reflectors of Q.
template <class T>
void multiply_piece(BlockView<T> x, BlockView<const T> m) {
    const Columns<T> reflectors(x.columns(0, static_cast<int>(m.rows)), x.rows);
    Columns<T> q(m, x.rows);
    for (int first = 0; first < m.cols; first += strip) {
        for (auto j = static_cast<int>(m.rows) - 1; j >= 0; --j) {
            reflectors.reflect(j, q, first, std::min(first + strip, m.cols));
        }
    }
    q.store(x);
}

/// Calls run(i) for all pieces on several threads; throws std::bad_alloc after all calls if one
/// failed.
template <class F>
void for_pieces(std::int64_t count, int threads, F&& run) {
    std::atomic<bool> failed = false;
    const int team = static_cast<int>(std::min<std::int64_t>(threads, count));
#pragma omp parallel for num_threads(team) schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
        try {
            run(i);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    }
    if (failed) {
        throw std::bad_alloc();
    }
}

}  // namespace

template <Scalar T>
void householder_qr(BlockView<T> x, int threads,
                    const std::function<SmallMatrix<T>(SmallMatrix<T>)>& middle) {
    const int n = x.cols;
    const std::int64_t least = least_rows_per_column * std::max(1, n);
    const std::int64_t wanted =
        std::max(least, piece_bytes / (static_cast<std::int64_t>(sizeof(T)) * std::max(1, n)));
    const std::int64_t pieces = std::max<std::int64_t>(1, x.rows / wanted);
    if (pieces == 1) {
        const SmallMatrix<T> m = middle(factor_piece(x));
        multiply_piece(x, BlockView<const T>(m.view()));
        return;
    }
    const auto piece = [&](std::int64_t i) {
        const std::int64_t first = x.rows * i / pieces;
        return x.row_range(first, x.rows * (i + 1) / pieces - first);
    };
    std::vector<T> stack(static_cast<std::size_t>(pieces * n * n));
    const BlockView<T> all(stack.data(), pieces * n, n, n);
    for_pieces(pieces, threads, [&](std::int64_t i) {
        const SmallMatrix<T> r = factor_piece(piece(i));
        std::copy_n(r.data(), n * n, all.data + i * n * n);
    });
    householder_qr<T>(all, threads, middle);
    for_pieces(pieces, threads, [&](std::int64_t i) {
        multiply_piece(piece(i), BlockView<const T>(all.row_range(i * n, n)));
    });
}

#define QUIVER_INSTANTIATE(T)                       \
    template void householder_qr(BlockView<T>, int, \
                                 const std::function<SmallMatrix<T>(SmallMatrix<T>)>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

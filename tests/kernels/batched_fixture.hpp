// SPDX-License-Identifier: BSD-3-Clause
// Batches in poisoned memory of the place under test, in every layout, and checks of their factors
// in long double: P A = L U, A = L L^H, A X = B. Bounds: Higham, Accuracy and Stability of
// Numerical Algorithms, theorems 9.3, 9.4, 10.3, 10.4.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/batched.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {

/// The memory layout of a batch.
struct BatchLayout {
    MatrixOrder order = MatrixOrder::row_major;
    int ld_extra = 0;
    int stride_extra = 0;
    bool pointers = false;
    bool interleaved = false;
};

inline std::vector<BatchLayout> batch_layouts(int n) {
    constexpr auto rows = MatrixOrder::row_major;
    constexpr auto columns = MatrixOrder::column_major;
    std::vector<BatchLayout> all{{rows, 0, 0, false, false},  {columns, 0, 0, false, false},
                                 {rows, 3, 5, false, false},  {columns, 1, 0, false, false},
                                 {rows, 0, 7, false, false},  {rows, 1, 3, true, false},
                                 {columns, 0, 0, true, false}};
    if (n <= largest_interleaved) {
        all.push_back({rows, 0, 0, false, true});
        all.push_back({columns, 1, 5, false, true});
    }
    return all;
}

/// A batch of matrices of at most rows x cols. `mirror_` is the initial content of the memory.
template <class T>
class TestBatch {
  public:
    TestBatch(Context& ctx, const std::vector<Global<T>>& matrices, int rows, int cols,
              BatchLayout layout, bool with_sizes = false)
        : layout_(layout),
          batch_(MatrixBatch<T>::packed(nullptr, static_cast<std::int64_t>(matrices.size()), rows,
                                        cols, ctx.place(), layout.order)),
          mirror_(fill(matrices)),
          memory_(ctx, mirror_),
          pointers_(ctx, pointers()),
          sizes_(ctx, orders_) {
        if (layout.pointers) {
            batch_.pointers = pointers_.span().data();
        } else {
            batch_.data = memory_.span().data();
        }
        if (with_sizes) {
            batch_.sizes = sizes_.span().data();
        }
    }

    MatrixBatch<T> view() const { return batch_; }

    /// The current matrices; checks that only elements with within(i, j) have changed.
    template <class Within>
    std::vector<Global<T>> result(Within&& within) {
        const std::vector<T> now = memory_.values();
        std::vector<T> outside = now;
        std::vector<Global<T>> matrices;
        for (std::size_t b = 0; b < orders_.size(); ++b) {
            Global<T> matrix(orders_[b], widths_[b]);
            for (int i = 0; i < matrix.rows; ++i) {
                for (int j = 0; j < matrix.cols; ++j) {
                    const std::size_t place = at(b, i, j);
                    matrix(i, j) = now[place];
                    outside[place] = within(i, j) ? mirror_[place] : outside[place];
                }
            }
            matrices.push_back(matrix);
        }
        EXPECT_EQ(std::memcmp(outside.data(), mirror_.data(), outside.size() * sizeof(T)), 0)
            << "an element outside the result has changed";
        return matrices;
    }
    std::vector<Global<T>> result() {
        return result([](int, int) { return true; });
    }
    void expect_unchanged() {
        result([](int, int) { return false; });
    }

  private:
    bool by_rows() const { return layout_.order == MatrixOrder::row_major; }
    /// The position of matrix b in memory; pointers address the matrices in reverse order.
    std::int64_t slot(std::size_t b) const {
        const auto index = static_cast<std::int64_t>(b);
        return layout_.pointers ? batch_.count - 1 - index : index;
    }
    std::size_t at(std::size_t b, int i, int j) const {
        const std::int64_t element =
            by_rows() ? std::int64_t{i} * batch_.ld + j : std::int64_t{j} * batch_.ld + i;
        return static_cast<std::size_t>(batch_.interleaved ? element * batch_.stride + slot(b)
                                                           : slot(b) * batch_.stride + element);
    }
    std::vector<T> fill(const std::vector<Global<T>>& matrices) {
        batch_.ld += layout_.ld_extra;
        batch_.interleaved = layout_.interleaved;
        const std::int64_t each = std::int64_t{by_rows() ? batch_.rows : batch_.cols} * batch_.ld;
        batch_.stride = (layout_.interleaved ? batch_.count : each) + layout_.stride_extra;
        std::vector<T> memory(
            static_cast<std::size_t>((layout_.interleaved ? each : batch_.count) * batch_.stride),
            poison<T>());
        for (std::size_t b = 0; b < matrices.size(); ++b) {
            orders_.push_back(static_cast<int>(matrices[b].rows));
            widths_.push_back(matrices[b].cols);
            for (int i = 0; i < orders_[b]; ++i) {
                for (int j = 0; j < widths_[b]; ++j) {
                    memory[at(b, i, j)] = matrices[b](i, j);
                }
            }
        }
        return memory;
    }
    std::vector<T*> pointers() {
        std::vector<T*> all;
        for (std::size_t b = 0; b < orders_.size(); ++b) {
            all.push_back(memory_.span().data() + slot(b) * batch_.stride);
        }
        return all;
    }

    BatchLayout layout_;
    MatrixBatch<T> batch_;
    std::vector<int> orders_, widths_;
    std::vector<T> mirror_;
    PlacedArray<T> memory_;
    PlacedArray<T*> pointers_;
    PlacedArray<int> sizes_;
};

template <class T>
using Matrices = std::vector<Global<T>>;
template <class T>
using Wide = Global<wide_t<T>>;

template <class T>
long double unit_error(int operations) {
    return (is_complex_v<T> ? 8.0L : 2.0L) * operations * static_cast<long double>(epsilon_v<T>);
}

/// The elements for which keep(i, j) is true, in long double, else zeros; with ones on the diagonal
/// if `unit`.
template <class T, class Keep>
Wide<T> part(const Global<T>& a, bool unit, Keep&& keep) {
    Wide<T> result(a.rows, a.cols);
    for (int i = 0; i < a.rows; ++i) {
        for (int j = 0; j < a.cols; ++j) {
            result(i, j) = keep(i, j) ? wide_t<T>(a(i, j)) : wide_t<T>(0);
        }
        if (unit) {
            result(i, i) = wide_t<T>(1);
        }
    }
    return result;
}

template <class W>
Global<W> product(const Global<W>& a, const Global<W>& b) {
    Global<W> c(a.rows, b.cols);
    for (int i = 0; i < a.rows; ++i) {
        for (int k = 0; k < a.cols; ++k) {
            for (int j = 0; a(i, k) != W(0) && j < b.cols; ++j) {
                c(i, j) += a(i, k) * b(k, j);
            }
        }
    }
    return c;
}

template <class W>
Global<W> adjoint(const Global<W>& a) {
    Global<W> result(a.cols, static_cast<int>(a.rows));
    for (int i = 0; i < a.rows; ++i) {
        for (int j = 0; j < a.cols; ++j) {
            result(j, i) = reference::conjugate(a(i, j));
        }
    }
    return result;
}

template <class W>
Global<long double> magnitudes(const Global<W>& a) {
    Global<long double> result(a.rows, a.cols);
    std::transform(a.values.begin(), a.values.end(), result.values.begin(),
                   [](const W& value) { return std::abs(value); });
    return result;
}

template <class V>
void exchange_rows(Global<V>& a, const std::vector<int>& pivots, std::size_t first, bool back) {
    const int n = static_cast<int>(a.rows);
    for (int step = 0; step < n; ++step) {
        const int k = back ? n - 1 - step : step;
        const int p = pivots[first + static_cast<std::size_t>(k)];
        for (int j = 0; j < a.cols && p != k; ++j) {
            std::swap(a(k, j), a(p, j));
        }
    }
}

template <class W>
void expect_near(const Global<W>& computed, const Global<W>& exact,
                 const Global<long double>& scale, long double error, bool lower_only = false) {
    for (int i = 0; i < exact.rows; ++i) {
        for (int j = 0; j < (lower_only ? i + 1 : exact.cols); ++j) {
            ASSERT_TRUE(std::abs(computed(i, j) - exact(i, j)) <= error * scale(i, j))
                << "(" << i << ", " << j << "): off by " << std::abs(computed(i, j) - exact(i, j))
                << ", bound " << error * scale(i, j) << ", n = " << exact.rows;
        }
    }
}

inline const auto below = [](int i, int j) { return j < i; };
inline const auto lower = [](int i, int j) { return j <= i; };
inline const auto upper = [](int i, int j) { return j >= i; };
inline const auto all_elements = [](int, int) { return true; };

/// Factors batches of random matrices and compares the results with their definitions.
template <class T>
class Batched : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();

    /// The orders to test: all of `on_host` on the host. On a device a few for each kernel design,
    /// because every order and packing is a kernel to compile.
    std::vector<int> orders(std::vector<int> on_host, int least = 1) const {
        if (ctx.place() == Place::host) {
            return on_host;
        }
        const Dtype scalar = dtype_v<T>;
        std::vector<int> few = scalar == Dtype::s   ? std::vector<int>{4, 12, 33}
                               : scalar == Dtype::d ? std::vector<int>{3, 8, 16, 24, 64}
                               : scalar == Dtype::c ? std::vector<int>{5, 9, 40}
                                                    : std::vector<int>{2, 5, 8, 20, 48};
        if (on_host.back() > largest_batched_lu) {
            few.insert(few.end(), {100, 200});
        }
        std::erase_if(few, [&](int n) { return n < least; });
        return few;
    }

    Matrices<T> random_matrices(int count, int n) {
        Matrices<T> all;
        for (int b = 0; b < count; ++b) {
            all.push_back(random_global<T>(generator, n, n));
        }
        return all;
    }

    /// Matrices of random orders from 1 to n; the second has order n.
    Matrices<T> mixed_matrices(int count, int n, bool positive) {
        Matrices<T> all;
        for (int b = 0; b < count; ++b) {
            const int size =
                b == 1 ? n : 1 + static_cast<int>(generator() % static_cast<unsigned>(n));
            all.push_back(positive ? positive_matrices(1, size)[0] : random_matrices(1, size)[0]);
        }
        return all;
    }

    /// Hermitian, positive definite.
    Matrices<T> positive_matrices(int count, int n) {
        Matrices<T> all;
        for (int b = 0; b < count; ++b) {
            Global<T> a = random_global<T>(generator, n, n);
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < i; ++j) {
                    a(j, i) = conjugate(a(i, j));
                }
                a(i, i) = T(real_part(a(i, i)) + static_cast<real_t<T>>(2 * n));
            }
            all.push_back(a);
        }
        return all;
    }

    struct Lu {
        Matrices<T> factors;
        std::vector<int> pivots, status;
    };

    Lu factor_lu(const Matrices<T>& matrices, int n, BatchLayout layout, bool sizes = false) {
        TestBatch<T> batch(ctx, matrices, n, n, layout, sizes);
        PlacedArray<int> pivots(
            ctx, std::vector<int>(matrices.size() * static_cast<std::size_t>(n), -7));
        PlacedArray<int> status(ctx, std::vector<int>(matrices.size(), -7));
        lu_factor(ctx, batch.view(), pivots.span(), status.span());
        ctx.synchronize();
        return {batch.result(), pivots.values(), status.values()};
    }

    struct Cholesky {
        Matrices<T> factors;
        std::vector<int> status;
    };

    Cholesky factor_cholesky(const Matrices<T>& matrices, int n, BatchLayout layout,
                             bool sizes = false) {
        TestBatch<T> batch(ctx, matrices, n, n, layout, sizes);
        PlacedArray<int> status(ctx, std::vector<int>(matrices.size(), -7));
        cholesky_factor(ctx, batch.view(), status.span());
        ctx.synchronize();
        return {batch.result(lower), status.values()};
    }

    void expect_lu(const Matrices<T>& matrices, const Lu& lu, int n) {
        for (std::size_t b = 0; b < matrices.size(); ++b) {
            ASSERT_EQ(lu.status[b], 0) << "matrix " << b;
            const auto& factors = lu.factors[b];
            const int order = static_cast<int>(factors.rows);
            const std::size_t first = b * static_cast<std::size_t>(n);
            for (int k = 0; k < n; ++k) {
                const int p = lu.pivots[first + static_cast<std::size_t>(k)];
                ASSERT_TRUE(k < order ? p >= k && p < order : p == k) << p << " at " << k;
            }
            const auto l = part(factors, true, below);
            const auto u = part(factors, false, upper);
            for (const auto& value : l.values) {
                ASSERT_LE(std::abs(value), is_complex_v<T> ? 1.4143L : 1.0L);
            }
            auto exact = part(matrices[b], false, all_elements);
            exchange_rows(exact, lu.pivots, first, false);
            expect_near(product(l, u), exact, product(magnitudes(l), magnitudes(u)),
                        unit_error<T>(order));
        }
    }

    void expect_cholesky(const Matrices<T>& matrices, const Cholesky& cholesky) {
        for (std::size_t b = 0; b < matrices.size(); ++b) {
            ASSERT_EQ(cholesky.status[b], 0) << "matrix " << b;
            const auto l = part(cholesky.factors[b], false, lower);
            for (int i = 0; i < l.rows; ++i) {
                ASSERT_GT(real_part(cholesky.factors[b](i, i)), 0);
            }
            expect_near(product(l, adjoint(l)), part(matrices[b], false, lower),
                        product(magnitudes(l), magnitudes(adjoint(l))),
                        2 * unit_error<T>(static_cast<int>(l.rows) + 1), true);
        }
    }
};

inline std::vector<int> orders_up_to(int largest) {
    std::vector<int> all(18);
    std::iota(all.begin(), all.end(), 1);
    for (const int n : {20, 24, 25, 31, 32, 33, 40, 47, 48, 63, 64, 65, 100, 128, 200}) {
        if (n <= largest) {
            all.push_back(n);
        }
    }
    return all;
}

}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
// Compares the operator of the correction equation with dense products: a missing projection would
// only cost a solve additional products, and the result of the solve would not show it.
#include "solvers/eigen/jacobi_davidson/projected_operator.hpp"

#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/random.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {
namespace {

constexpr int rows = 60;
constexpr int known = 4;
constexpr int width = 3;

/// Entry (i, j) of a Hermitian band matrix with `least` added on the diagonal: b_least makes it
/// positive definite.
template <class T>
T entry(std::int64_t i, std::int64_t j, double least, std::uint64_t seed) {
    const std::int64_t distance = std::abs(i - j);
    if (distance == 0) {
        return T(static_cast<real_t<T>>(least + uniform(seed, i, 0)));
    }
    if (distance != 1 && distance != 7) {
        return T(0);
    }
    const double real = uniform(seed, std::min(i, j), static_cast<int>(distance)) - 0.5;
    if constexpr (is_complex_v<T>) {
        return T(static_cast<real_t<T>>(real), static_cast<real_t<T>>(i < j ? 0.3 : -0.3));
    } else {
        return T(static_cast<real_t<T>>(real));
    }
}

/// The scalar of the oracle.
template <class T>
using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;
template <class T>
using WideBlock = Global<Wide<T>>;

template <class T>
WideBlock<T> widened(const Global<T>& x) {
    WideBlock<T> result(x.rows, x.cols);
    for (std::size_t at = 0; at < x.values.size(); ++at) {
        result.values[at] = static_cast<Wide<T>>(x.values[at]);
    }
    return result;
}

template <class T>
Global<T> rounded(const WideBlock<T>& x) {
    Global<T> result(x.rows, x.cols);
    for (std::size_t at = 0; at < x.values.size(); ++at) {
        result.values[at] = static_cast<T>(x.values[at]);
    }
    return result;
}

template <class T>
WideBlock<T> times(const WideBlock<T>& x, double least, std::uint64_t seed) {
    WideBlock<T> y(rows, x.cols);
    for (int i = 0; i < rows; ++i) {
        for (int l = 0; l < rows; ++l) {
            for (int j = 0; j < x.cols; ++j) {
                y(i, j) += static_cast<Wide<T>>(entry<T>(i, l, least, seed)) * x(l, j);
            }
        }
    }
    return y;
}

template <class W>
W inner(const Global<W>& x, int i, const Global<W>& y, int j) {
    W sum{};
    for (int row = 0; row < rows; ++row) {
        sum += conjugate(x(row, i)) * y(row, j);
    }
    return sum;
}

/// Y <- Y - U (V^H Y).
template <class W>
void remove_from(Global<W>& y, const Global<W>& u, const Global<W>& v) {
    for (int j = 0; j < y.cols; ++j) {
        std::vector<W> share;
        share.reserve(static_cast<std::size_t>(v.cols));
        for (int i = 0; i < v.cols; ++i) {
            share.push_back(inner(v, i, y, j));
        }
        for (int row = 0; row < rows; ++row) {
            for (int i = 0; i < u.cols; ++i) {
                y(row, j) -= u(row, i) * share[static_cast<std::size_t>(i)];
            }
        }
    }
}

template <class T>
class ProjectedOperatorTest : public ::testing::Test {
  protected:
    using W = Wide<T>;
    static constexpr double a_least = 0;
    static constexpr double b_least = 2.5;
    static constexpr std::uint64_t a_seed = 3;
    static constexpr std::uint64_t b_seed = 4;

    SparseMatrix<T> sparse(double least, std::uint64_t seed) {
        return matrix_from_rows<T>(ctx, rows, [=](std::int64_t row, RowEntries<T>& entries) {
            for (std::int64_t j = 0; j < rows; ++j) {
                if (const T value = entry<T>(row, j, least, seed); value != T(0)) {
                    entries.add(j, value);
                }
            }
        });
    }
    static W shift_of(int j) { return W(static_cast<real_t<T>>(0.25 + 0.5 * j)); }

    /// P with P^H B P = I, by Gram-Schmidt in double precision; B P in `bp`.
    void make_projection(bool with_b) {
        p = WideBlock<T>(rows, 0);
        bp = p;
        WideBlock<T> all = widened(random_global<T>(generator, rows, known));
        for (int j = 0; j < known; ++j) {
            WideBlock<T> x(rows, 1);
            for (int row = 0; row < rows; ++row) {
                x(row, 0) = all(row, j);
            }
            for (int pass = 0; pass < 2; ++pass) {
                remove_from(x, p, bp);
            }
            const WideBlock<T> bx = with_b ? times<T>(x, b_least, b_seed) : x;
            const auto length = std::sqrt(real_part(inner(x, 0, bx, 0)));
            const WideBlock<T> old = p;
            const WideBlock<T> old_b = bp;
            p = WideBlock<T>(rows, j + 1);
            bp = p;
            for (int row = 0; row < rows; ++row) {
                for (int i = 0; i < j; ++i) {
                    p(row, i) = old(row, i);
                    bp(row, i) = old_b(row, i);
                }
                p(row, j) = x(row, 0) / length;
                bp(row, j) = bx(row, 0) / length;
            }
        }
    }

    /// (I - BP P^H) (A - shift B) (I - P BP^H) X; all shifts are 0 unless `shifted`.
    WideBlock<T> exact(const WideBlock<T>& x, bool with_b, bool shifted) {
        WideBlock<T> from = x;
        remove_from(from, p, bp);
        WideBlock<T> y = times<T>(from, a_least, a_seed);
        const WideBlock<T> b_from = with_b ? times<T>(from, b_least, b_seed) : from;
        for (int row = 0; row < rows; ++row) {
            for (int j = 0; j < width && shifted; ++j) {
                y(row, j) -= shift_of(j) * b_from(row, j);
            }
        }
        remove_from(y, bp, p);
        return y;
    }

    /// The rounding of three projections and two products with at most 5 entries a row, for ||A||
    /// and ||B|| of about 5, |shift| at most 1.25, and ||P|| ||BP|| at most the condition of B,
    /// about 5.
    static double allowed(const WideBlock<T>& x, int j) {
        const double most = (5 + 1.25 * 5) * (1 + 5) * (1 + 5);
        return 4 * (rows + known + 8) * static_cast<double>(epsilon_v<T>) * most *
               static_cast<double>(x.column_norm(j));
    }

    void check(bool with_b, bool project_right, bool shifted, bool scaled) {
        SCOPED_TRACE(std::string(with_b ? "with B" : "standard") +
                     (project_right ? ", from the right" : "") + (shifted ? ", shifted" : "") +
                     (scaled ? ", alpha and beta" : ""));
        make_projection(with_b);
        WideBlock<T> x = widened(random_global<T>(generator, rows, width));
        if (!project_right) {
            remove_from(x, p, bp);
        }
        const Global<T> given = rounded<T>(x);
        const Global<T> old = random_global<T>(generator, rows, width);
        SparseMatrix<T> a = sparse(a_least, a_seed);
        SparseMatrix<T> b = sparse(b_least, b_seed);
        GuardedOperator<T> guarded_a(a);
        GuardedOperator<T> guarded_b(b);
        ProjectedOperator<T> projected(guarded_a, with_b ? &guarded_b : nullptr, project_right);
        TestBlock<T> of_p(ctx, rounded<T>(p), a.row_map(), {});
        TestBlock<T> of_bp(ctx, rounded<T>(bp), a.row_map(), {});
        TestBlock<T> of_x(ctx, given, a.row_map(), {});
        TestBlock<T> of_y(ctx, old, a.row_map(), {});
        projected.set_projection(of_p.view(), of_bp.view());
        std::vector<T> shifts;
        shifts.reserve(width);
        for (int j = 0; j < width; ++j) {
            shifts.push_back(static_cast<T>(shift_of(j)));
        }
        std::vector<T> xy(width);
        std::vector<T> yy(width);
        std::vector<T> xx(width);
        ApplyOptions<T> options;
        options.alpha = scaled ? other_coefficient<T>() : T(1);
        options.beta = scaled ? T(real_t<T>(0.5)) : T(0);
        options.shift = shifted ? std::span<const T>(shifts) : std::span<const T>();
        options.dot_xy = xy;
        options.dot_yy = yy;
        options.dot_xx = xx;
        projected.apply_fused(ctx, of_x.view(), of_y.view(), options);

        WideBlock<T> wanted = exact(widened(given), with_b, shifted);
        for (std::size_t at = 0; at < wanted.values.size(); ++at) {
            wanted.values[at] = static_cast<W>(options.alpha) * wanted.values[at] +
                                static_cast<W>(options.beta) * static_cast<W>(old.values[at]);
        }
        const Global<T> y = of_y.result();
        const std::int64_t first = a.row_map().first_row();
        for (int j = 0; j < width; ++j) {
            // The oracle is not more accurate than the operator in double precision.
            const double bound = 2 * allowed(x, j) + 8 * static_cast<double>(epsilon_v<T>);
            for (std::int64_t row = 0; row < y.rows; ++row) {
                const W error = static_cast<W>(y(row, j)) - wanted(first + row, j);
                ASSERT_LE(static_cast<double>(std::abs(error)), bound)
                    << "row " << first + row << ", column " << j;
            }
            const auto at = static_cast<std::size_t>(j);
            const double size = static_cast<double>(x.column_norm(j) + wanted.column_norm(j));
            // The dots use rounded blocks: each factor has the error of a column.
            const double dot_bound = 2 * std::sqrt(double{rows}) * bound * size;
            EXPECT_LE(static_cast<double>(
                          std::abs(static_cast<W>(xy[at]) - inner(widened(given), j, wanted, j))),
                      dot_bound);
            EXPECT_LE(
                static_cast<double>(std::abs(static_cast<W>(yy[at]) - inner(wanted, j, wanted, j))),
                dot_bound);
            EXPECT_LE(static_cast<double>(std::abs(static_cast<W>(xx[at]) -
                                                   inner(widened(given), j, widened(given), j))),
                      dot_bound);
        }
    }

    /// Compares with K X - Z G^-1 BP^H K X, where Z = K BP and G = BP^H Z, for K = B.
    void check_preconditioner() {
        make_projection(true);
        const WideBlock<T> x = widened(random_global<T>(generator, rows, width));
        const WideBlock<T> z = times<T>(bp, b_least, b_seed);
        const WideBlock<T> kx = times<T>(x, b_least, b_seed);
        SmallMatrix<W> g(known, known);
        for (int i = 0; i < known; ++i) {
            for (int j = 0; j < known; ++j) {
                g(i, j) = inner(bp, i, z, j);
            }
        }
        const SmallMatrix<W> inverse = inverse_of(g);
        SmallMatrix<T> g_inverse(known, known);
        WideBlock<T> share(rows, width);
        WideBlock<T> wanted = kx;
        for (int i = 0; i < known; ++i) {
            for (int l = 0; l < known; ++l) {
                g_inverse(i, l) = static_cast<T>(inverse(i, l));
                for (int j = 0; j < width; ++j) {
                    const W factor = inverse(i, l) * inner(bp, l, kx, j);
                    for (int row = 0; row < rows; ++row) {
                        wanted(row, j) -= z(row, i) * factor;
                    }
                }
            }
        }
        SparseMatrix<T> k = sparse(b_least, b_seed);
        GuardedOperator<T> guarded(k);
        ProjectedPreconditioner<T> projected(guarded);
        TestBlock<T> of_bp(ctx, rounded<T>(bp), k.row_map(), {});
        TestBlock<T> of_z(ctx, rounded<T>(z), k.row_map(), {});
        TestBlock<T> of_x(ctx, rounded<T>(x), k.row_map(), {});
        TestBlock<T> of_y(ctx, poisoned_global<T>(rows, width), k.row_map(), {});
        projected.set_projection(of_bp.view(), of_z.view(), g_inverse);
        projected.apply(ctx, of_x.view(), of_y.view());
        const Global<T> y = of_y.result();
        for (int j = 0; j < width; ++j) {
            for (std::int64_t row = 0; row < y.rows; ++row) {
                const W error =
                    static_cast<W>(y(row, j)) - wanted(k.row_map().first_row() + row, j);
                ASSERT_LE(static_cast<double>(std::abs(error)), 2 * allowed(x, j))
                    << "row " << k.row_map().first_row() + row << ", column " << j;
            }
        }
    }

    /// The inverse of a positive definite matrix by Gauss-Jordan elimination.
    static SmallMatrix<W> inverse_of(SmallMatrix<W> a) {
        const int n = a.rows();
        SmallMatrix<W> result = SmallMatrix<W>::identity(n);
        for (int l = 0; l < n; ++l) {
            const W pivot = a(l, l);
            for (int j = 0; j < n; ++j) {
                a(l, j) /= pivot;
                result(l, j) /= pivot;
            }
            for (int i = 0; i < n; ++i) {
                const W factor = i == l ? W(0) : a(i, l);
                for (int j = 0; j < n; ++j) {
                    a(i, j) -= factor * a(l, j);
                    result(i, j) -= factor * result(l, j);
                }
            }
        }
        return result;
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    WideBlock<T> p{0, 0};
    WideBlock<T> bp{0, 0};
};
TYPED_TEST_SUITE(ProjectedOperatorTest, Scalars, ScalarName);

TYPED_TEST(ProjectedOperatorTest, IsTheProductOfItsFactors) {
    for (const bool shifted : {false, true}) {
        for (const bool scaled : {false, true}) {
            this->check(false, false, shifted, scaled);
            this->check(true, false, shifted, scaled);
            this->check(true, true, shifted, scaled);
        }
    }
}

TYPED_TEST(ProjectedOperatorTest, PreconditionersStayInTheComplement) {
    this->check_preconditioner();
}

}  // namespace
}  // namespace quiver::test

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/dense/shifted_spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "solvers/dense/dense_pencil.hpp"
#include "solvers/dense/lapack.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// A bound of the errors of the eigenvalues of C, and of A - sigma B, in units of n eps times the
/// largest one.
constexpr double units_of_shifted_values = 8;

template <class W>
struct HermitianPairs {
    std::vector<double> values;
    SmallMatrix<W> vectors;
};

template <class W>
HermitianPairs<W> all_pairs(Context& ctx, SmallMatrix<W> a) {
    DensePencil<W> eigen(ctx, std::move(a), {});
    eigen.solve_definite({});
    std::vector<int> all(eigen.values().size());
    std::iota(all.begin(), all.end(), 0);
    return {eigen.values(), eigen.vectors(all)};
}

double rounding_of(const std::vector<double>& ascending) {
    const double largest = std::max(std::abs(ascending.front()), std::abs(ascending.back()));
    return units_of_shifted_values * static_cast<double>(ascending.size()) *
           std::numeric_limits<double>::epsilon() * largest;
}

}  // namespace

template <class W>
SmallMatrix<W> semidefinite_root(Context& ctx, const SmallMatrix<W>& b, double rounding) {
    if (is_diagonal(b)) {
        SmallMatrix<W> root(b.rows(), b.rows());
        double largest = 0;
        for (int i = 0; i < b.rows(); ++i) {
            largest = std::max(largest, std::real(b(i, i)));
        }
        for (int i = 0; i < b.rows(); ++i) {
            const double mass = std::real(b(i, i));
            root(i, i) = mass > rounding * largest ? std::sqrt(mass) : 0.0;
        }
        return root;
    }
    const Lapack::Threads threads(ctx.service<Lapack>(),
                                  DensePencil<W>::threads_for(ctx, b.rows()));
    const HermitianPairs<W> of_b = all_pairs(ctx, b);
    // The root of rounding noise would be large: sqrt(1e-16) = 1e-8.
    const double noise =
        std::max(rounding, 4 * std::sqrt(b.rows()) * std::numeric_limits<double>::epsilon());
    const double null = noise * std::max(of_b.values.back(), 0.0);
    SmallMatrix<W> root = adjoint(of_b.vectors);
    scale_rows(root, [&](std::size_t i) {
        return of_b.values[i] > null ? std::sqrt(of_b.values[i]) : 0.0;
    });
    return root;
}

template <class W>
std::optional<ShiftedSpectrum<W>> shifted_spectrum(Context& ctx, const SmallMatrix<W>& a,
                                                   const SmallMatrix<W>& b,
                                                   const SmallMatrix<W>& root, double sigma) {
    const int n = a.rows();
    const Lapack& lapack = ctx.service<Lapack>();
    const Lapack::Threads threads(lapack, DensePencil<W>::threads_for(ctx, n));
    const LapackRoutines<W>* const blas = lapack.template routines<W>();
    // A - sigma B = U T U^H, M = R U, and C = M T^-1 M^H.
    const HermitianPairs<W> of_shifted = all_pairs(ctx, sum(a, -sigma, b));
    const std::vector<double>& t = of_shifted.values;
    const auto side = std::lower_bound(t.begin(), t.end(), 0.0);
    const auto below = static_cast<int>(side - t.begin());
    const double noise = rounding_of(t);
    if ((side != t.begin() && side[-1] >= -noise) || (side != t.end() && *side <= noise)) {
        return std::nullopt;
    }
    const SmallMatrix<W> m = blas_product(blas, root, of_shifted.vectors);
    SmallMatrix<W> solved = adjoint(m);
    scale_rows(solved, [&](std::size_t i) { return 1 / t[i]; });
    const SmallMatrix<W> c = blas_product(blas, m, solved);
    const HermitianPairs<W> of_c = all_pairs(ctx, hermitian_part(c));
    const double error = rounding_of(of_c.values);
    std::vector<int> columns;
    ShiftedSpectrum<W> found;
    const auto add = [&](int column, int index) {
        const double mu = of_c.values[static_cast<std::size_t>(column)];
        found.pairs.push_back({index, sigma + 1 / mu, error / (mu * mu)});
        columns.push_back(column);
    };
    for (int i = 0; i < n && of_c.values[static_cast<std::size_t>(i)] < -error; ++i) {
        add(i, below - 1 - i);
    }
    for (int i = n; i-- > 0 && of_c.values[static_cast<std::size_t>(i)] > error;) {
        add(i, below + n - 1 - i);
    }
    SmallMatrix<W> y(n, static_cast<int>(columns.size()));
    for (int j = 0; j < y.cols(); ++j) {
        const int column = columns[static_cast<std::size_t>(j)];
        const double factor = 1 / std::abs(of_c.values[static_cast<std::size_t>(column)]);
        for (int i = 0; i < n; ++i) {
            y(i, j) = factor * of_c.vectors(i, column);
        }
    }
    found.vectors = blas_product(blas, of_shifted.vectors, blas_product(blas, solved, y));
    return found;
}

template SmallMatrix<double> semidefinite_root(Context&, const SmallMatrix<double>&, double);
template SmallMatrix<std::complex<double>> semidefinite_root(
    Context&, const SmallMatrix<std::complex<double>>&, double);
template std::optional<ShiftedSpectrum<double>> shifted_spectrum(Context&,
                                                                 const SmallMatrix<double>&,
                                                                 const SmallMatrix<double>&,
                                                                 const SmallMatrix<double>&,
                                                                 double);
template std::optional<ShiftedSpectrum<std::complex<double>>> shifted_spectrum(
    Context&, const SmallMatrix<std::complex<double>>&, const SmallMatrix<std::complex<double>>&,
    const SmallMatrix<std::complex<double>>&, double);

}  // namespace quiver

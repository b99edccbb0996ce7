// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/dense/dense_spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "solvers/dense/lapack.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// A bound of the errors of a pencil's eigenvalues, in units of n eps times the largest one.
constexpr double units_of_pencil_values = 8;

/// cholesky(G) by LAPACK if there is one; only the upper triangle of its R is valid.
template <class W>
Cholesky<W> lapack_cholesky(const LapackRoutines<W>* lapack, SmallMatrix<W> g) {
    if (lapack == nullptr) {
        return cholesky(g);
    }
    // LAPACK reads the row-major G as conj(G), whose lower factor is R^T.
    const int n = g.rows();
    int info = 0;
    lapack->factorise("L", &n, g.data(), &n, &info, 1);
    return {std::move(g), info == 0};
}

/// X R^-1 for an upper triangular R; does not read its lower triangle.
template <class W>
SmallMatrix<W> divide_by_upper(const LapackRoutines<W>* lapack, SmallMatrix<W> x,
                               const SmallMatrix<W>& r) {
    if (lapack == nullptr) {
        return product(x, inverse_of_upper(r));
    }
    const int order = r.rows();
    const int rows = x.rows();
    int info = 0;
    lapack->solve_triangular("L", "N", "N", &order, &rows, r.data(), &order, x.data(), &order,
                             &info, 1, 1, 1);
    return x;
}

}  // namespace

template <class W>
DenseSpectrum<W>::DenseSpectrum(Context& ctx, SmallMatrix<W> a, SmallMatrix<W> b)
    : ctx_(ctx), n_(a.rows()), pencil_(ctx, std::move(a), std::move(b)) {}

template <class W>
PencilKind DenseSpectrum<W>::solve(const SmallMatrix<W>& constraints, double rounding) {
    kind_ = pencil_.solve(constraints, rounding);
    const InfiniteEigenvalues& infinite = pencil_.infinite();
    const bool definite = infinite.negative + infinite.positive + infinite.unsigned_pairs == 0;
    rounding_ = definite ? 0 : rounding;
    collect();
    return kind_;
}

template <class W>
void DenseSpectrum<W>::set_matrices(SmallMatrix<W> a, SmallMatrix<W> b,
                                    std::vector<int> exponents) {
    a_ = std::move(a);
    b_ = std::move(b);
    exponents_ = std::move(exponents);
    root_of_b_ = {};
}

template <class W>
SmallMatrix<W> DenseSpectrum<W>::in_units(SmallMatrix<W> x, int sign) const {
    scale_rows(x, [&](std::size_t i) { return std::ldexp(1.0, sign * exponents_[i]); });
    return x;
}

template <class W>
bool DenseSpectrum<W>::add_shift(double sigma) {
    if (root_of_b_.rows() == 0) {
        root_of_b_ = semidefinite_root(ctx_, b_, rounding_);
    }
    std::optional<ShiftedSpectrum<W>> found = shifted_spectrum(ctx_, a_, b_, root_of_b_, sigma);
    if (!found) {
        return false;
    }
    found->vectors = in_units(std::move(found->vectors), 1);
    shifts_.push_back(std::move(*found));
    collect();
    return true;
}

/// For each index of the ascending order, takes the value with the smallest error bound: by Weyl's
/// theorem the bounds of a solve hold for values of equal index.
template <class W>
void DenseSpectrum<W>::collect() {
    struct Candidate {
        double value = 0;
        double error = std::numeric_limits<double>::infinity();
        Origin origin;
    };
    const InfiniteEigenvalues& infinite = pencil_.infinite();
    const int below = infinite.negative + infinite.unsigned_pairs;
    const int count = kind_ == PencilKind::regular
                          ? static_cast<int>(pencil_.values().size())
                          : n_ - below - infinite.positive - infinite.unsigned_pairs;
    std::vector<Candidate> best(static_cast<std::size_t>(std::max(count, 0)));
    const auto offer = [&](int index, double value, double error, Origin origin) {
        if (index >= 0 && index < count && error < best[static_cast<std::size_t>(index)].error) {
            best[static_cast<std::size_t>(index)] = {value, error, origin};
        }
    };
    if (kind_ == PencilKind::regular && count > 0) {
        const std::vector<double>& values = pencil_.values();
        const double error = units_of_pencil_values * n_ * std::numeric_limits<double>::epsilon() *
                             std::max(std::abs(values.front()), std::abs(values.back()));
        for (int i = 0; i < count; ++i) {
            offer(i, values[static_cast<std::size_t>(i)], error, {-1, i});
        }
    }
    for (int shift = 0; shift < static_cast<int>(shifts_.size()); ++shift) {
        const auto& pairs = shifts_[static_cast<std::size_t>(shift)].pairs;
        for (int j = 0; j < static_cast<int>(pairs.size()); ++j) {
            const auto& pair = pairs[static_cast<std::size_t>(j)];
            offer(pair.index - below, pair.value, pair.error, {shift, j});
        }
    }
    has_smallest_ = !best.empty() && std::isfinite(best.front().error);
    has_largest_ = !best.empty() && std::isfinite(best.back().error);
    is_complete_ = std::none_of(best.begin(), best.end(), [](const Candidate& candidate) {
        return std::isinf(candidate.error);
    });
    std::erase_if(best, [](const Candidate& candidate) { return std::isinf(candidate.error); });
    // Values of different solves may be out of order by their errors.
    std::stable_sort(best.begin(), best.end(),
                     [](const Candidate& x, const Candidate& y) { return x.value < y.value; });
    values_.clear();
    errors_.clear();
    origins_.clear();
    for (const Candidate& candidate : best) {
        values_.push_back(candidate.value);
        errors_.push_back(candidate.error);
        origins_.push_back(candidate.origin);
    }
}

template <class W>
SmallMatrix<W> DenseSpectrum<W>::vectors(std::span<const int> order) {
    std::vector<int> of_pencil;
    for (const int i : order) {
        const Origin origin = origins_[static_cast<std::size_t>(i)];
        if (origin.shift < 0) {
            of_pencil.push_back(origin.column);
        }
    }
    SmallMatrix<W> x = of_pencil.empty() ? SmallMatrix<W>(n_, 0) : pencil_.vectors(of_pencil);
    if (of_pencil.size() == order.size()) {
        return x;
    }
    SmallMatrix<W> all(n_, static_cast<int>(order.size()));
    for (int j = 0, next = 0; j < all.cols(); ++j) {
        const Origin origin =
            origins_[static_cast<std::size_t>(order[static_cast<std::size_t>(j)])];
        const SmallMatrix<W>& from =
            origin.shift < 0 ? x : shifts_[static_cast<std::size_t>(origin.shift)].vectors;
        const int column = origin.shift < 0 ? next++ : origin.column;
        for (int i = 0; i < n_; ++i) {
            all(i, j) = from(i, column);
        }
    }
    return all;
}

template <class W>
int DenseSpectrum<W>::orthonormalise(std::span<const int> order, SmallMatrix<W>& x) const {
    const bool of_pencil = std::all_of(order.begin(), order.end(), [&](int i) {
        return origins_[static_cast<std::size_t>(i)].shift < 0;
    });
    if (of_pencil) {
        return -1;
    }
    constexpr double least_pivot = 0.5;  // unit vectors with smaller ones are dependent
    const SmallMatrix<W> y = in_units(x, -1);
    const LapackRoutines<W>* const lapack = ctx_.service<Lapack>().template routines<W>();
    SmallMatrix<W> gram =
        hermitian_part(blas_product(lapack, adjoint(y), blas_product(lapack, b_, y)));
    // A vector is made orthogonal to those before it. The long ones, of huge eigenvalues, are the
    // last, so that no other vector changes by a part of them.
    std::vector<int> places(order.size());
    std::iota(places.begin(), places.end(), 0);
    const auto size_of = [&](int place) {
        return std::abs(values_[static_cast<std::size_t>(order[static_cast<std::size_t>(place)])]);
    };
    std::stable_sort(places.begin(), places.end(),
                     [&](int i, int j) { return size_of(i) < size_of(j); });
    gram = submatrix(gram, places);
    const Cholesky<W> factor = lapack_cholesky(lapack, gram);
    bool independent = factor.positive;
    int column = 0;
    double largest = 0;
    for (int j = 0; j < x.cols(); ++j) {
        independent = independent && std::abs(factor.r(j, j)) >= least_pivot;
        for (int i = 0; i < j; ++i) {
            if (std::abs(gram(i, j)) > largest) {
                largest = std::abs(gram(i, j));
                column = j;
            }
        }
    }
    if (!independent) {
        const int place = places[static_cast<std::size_t>(column)];
        return order[static_cast<std::size_t>(place)];
    }
    const SmallMatrix<W> sorted =
        divide_by_upper(lapack, select_columns(x, places, 0, x.cols()), factor.r);
    for (int j = 0; j < x.cols(); ++j) {
        put(part(sorted, 0, x.rows(), j, 1), 0, places[static_cast<std::size_t>(j)], x);
    }
    return -1;
}

template <class W>
std::vector<double> DenseSpectrum<W>::quotients(const SmallMatrix<W>& x) const {
    const SmallMatrix<W> y = in_units(x, -1);
    const LapackRoutines<W>* const lapack = ctx_.service<Lapack>().template routines<W>();
    const SmallMatrix<W> ay = blas_product(lapack, a_, y);
    const SmallMatrix<W> by = blas_product(lapack, b_, y);
    std::vector<double> result;
    for (int j = 0; j < y.cols(); ++j) {
        double of_a = 0;
        double of_b = 0;
        for (int i = 0; i < n_; ++i) {
            of_a += std::real(conjugate(y(i, j)) * ay(i, j));
            of_b += std::real(conjugate(y(i, j)) * by(i, j));
        }
        result.push_back(of_a / of_b);
    }
    return result;
}

template class DenseSpectrum<double>;
template class DenseSpectrum<std::complex<double>>;

}  // namespace quiver

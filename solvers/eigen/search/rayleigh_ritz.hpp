// SPDX-License-Identifier: BSD-3-Clause
// The common part of all projections of an operator: the check that it is Hermitian, and
// Rayleigh-Ritz with given products. Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/number_text.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/eigen/search/spectral_order.hpp"

namespace quiver {

/// How far a projected operator is from Hermitian, relative to the largest of its entries and a
/// lower bound `norm` of the operator's norm.
class HermitianDefect {
  public:
    explicit HermitianDefect(double norm) : norm_(norm) {}

    /// Uses an entry u^H A v for the bound of the norm: |u^H A v| <= ||A||.
    template <class T>
    void see(T entry) {
        norm_ = std::max(norm_, static_cast<double>(std::abs(entry)));
    }
    /// Compares u^H A v with the conjugate of v^H A u.
    template <class T>
    void compare(T entry, T mirrored) {
        skew_ = std::max(skew_, static_cast<double>(std::abs(entry - mirrored)));
    }
    /// Does both for all entries of a projected matrix H = V^H A V.
    template <class T>
    void see_matrix(const SmallMatrix<T>& h) {
        for (int i = 0; i < h.rows(); ++i) {
            for (int j = 0; j <= i; ++j) {
                see(h(i, j));
                see(h(j, i));
                compare(h(i, j), conjugate(h(j, i)));
            }
        }
    }

    double norm() const { return norm_; }
    /// Calls fail(text) if the defect is above sqrt(eps) + `more`, relative to the norm. `where`
    /// precedes the finding: "in step 3 ".
    template <class T, class Fail>
    void check(Fail&& fail, const std::string& where = "", double more = 0) const {
        const double allowed = std::sqrt(static_cast<double>(epsilon_v<T>)) + more;
        if (skew_ > allowed * norm_) {
            fail("the operator is not Hermitian: " + where + "<u, A v> and <A u, v> differ by " +
                 number_text(skew_ / norm_, 2) + " of the norm");
        }
    }

  private:
    double norm_;
    double skew_ = 0;
};

/// Rayleigh-Ritz on the orthonormal columns X with the given AX = (A - shift B) X. With a B, X is
/// B-orthonormal and BX = B X is a separate block; without B pass X as BX.
///
///     H = X^H AX,  H S = S Theta,  X <- X S,  BX <- BX S,  AX <- AX S - BX S Theta
///
/// Returns the values theta + shift with the residuals ||AX(:, j)|| / ||x_j||_2 of the final AX,
/// the smallest key(theta + shift) first. check(H) is called before anything changes and may throw;
/// fail(text) must throw.
template <class T, class Key, class Check, class Fail>
std::vector<RitzPair> rayleigh_ritz(Context& ctx, BlockView<T> x, BlockView<T> bx, BlockView<T> ax,
                                    double shift, Key&& key, Check&& check, Fail&& fail) {
    using Real = real_t<T>;
    const int n = x.cols;
    SmallMatrix<T> h(n, n);
    tsmttsm(ctx, T(1), BlockView<const T>(x), BlockView<const T>(ax), T(0), h);
    check(std::as_const(h));
    const HermitianEigen<T> eigen = projected_eigen(ctx, h);
    if (!eigen.converged) {
        fail("the dense eigensolver failed on " + std::to_string(n) + " rows");
    }
    const auto value = [&](int j) {
        return shift + static_cast<double>(eigen.values[static_cast<std::size_t>(j)]);
    };
    std::vector<int> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int i, int j) { return key(value(i)) < key(value(j)); });
    SmallMatrix<T> rotation(n, n);
    std::vector<T> minus_theta;
    for (int j = 0; j < n; ++j) {
        const int from = order[static_cast<std::size_t>(j)];
        minus_theta.push_back(T(-eigen.values[static_cast<std::size_t>(from)]));
        for (int i = 0; i < n; ++i) {
            rotation(i, j) = eigen.vectors(i, from);
        }
    }
    const bool with_b = bx.data != x.data;
    tsmm(ctx, T(1), x, rotation.view(), T(0), x);
    tsmm(ctx, T(1), ax, rotation.view(), T(0), ax);
    if (with_b) {
        tsmm(ctx, T(1), bx, rotation.view(), T(0), bx);
    }
    const std::vector<T> ones(static_cast<std::size_t>(n), T(1));
    axpby(ctx, minus_theta, bx, ones, ax);
    std::vector<Real> residual(static_cast<std::size_t>(n));
    std::vector<Real> length(static_cast<std::size_t>(n), Real(1));
    norms(ctx, BlockView<const T>(ax), std::span<Real>(residual));
    if (with_b) {
        norms(ctx, BlockView<const T>(x), std::span<Real>(length));
    }
    std::vector<RitzPair> pairs;
    for (std::size_t j = 0; j < order.size(); ++j) {
        pairs.push_back({value(order[j]), static_cast<double>(residual[j] / length[j])});
    }
    return pairs;
}

}  // namespace quiver

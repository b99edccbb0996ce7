// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/shifted_pencil.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"

namespace quiver {
namespace {

constexpr double rounding_unit = std::numeric_limits<double>::epsilon();

/// A factorisation whose error is below this many units of rounding of the norm is as good as one
/// with pivoting.
constexpr double good_units = 1e4;
/// Pivots below this many units of rounding of the norm indicate an eigenvalue at the shift.
constexpr double singular_units = 100;
/// Moves of a shift, in units of rounding of the norm.
constexpr double move_units[] = {0, 1e4, -1e4, 1e6, -1e6, 1e8, -1e8};

/// Threads wait longer for each other than they compute on blocks of fewer rows.
constexpr std::int64_t few_rows = 20000;

}  // namespace

template <class W>
ShiftedPencil<W>::ShiftedPencil(int threads, CsrRows<W> a, std::optional<CsrRows<W>> b,
                                Factorisation<W>& factorisation)
    : factorisation_(factorisation),
      ctx_(Comm(), Device::host(a.map.global_rows() < few_rows ? 1 : threads)),
      a_(std::move(a)),
      b_(std::move(b)) {
    matrix_.emplace(ctx_, a_);
    ends_ = estimate_spectrum<W>(ctx_, *matrix_);
    norm_ = ends_.norm();
    if (b_) {
        mass_.emplace(ctx_, *b_);
        inner_ = inner_product<W>(ctx_, &*mass_);
        norm_b_ = estimate_spectrum<W>(ctx_, *mass_).norm();
    }
}

template <class W>
double ShiftedPencil<W>::least_ratio() const {
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t row = 0; row < rows(); ++row) {
        least = std::min(least, diagonal_entry(a_, row) / (b_ ? diagonal_entry(*b_, row) : 1));
    }
    return least;
}

template <class W>
double ShiftedPencil<W>::lower_bound() const {
    return std::max(gershgorin_bounds(a_).low, least_ritz_value() - (ends_.bound - ends_.largest));
}

template <class W>
void ShiftedPencil<W>::negate() {
    for (W& value : a_.value) {
        value = -value;
    }
    sign_ = -sign_;
}

template <class W>
double ShiftedPencil<W>::scale(double sigma) const {
    const double size = norm_ + std::abs(sigma) * norm_b_;
    return size > 0 ? size : 1;
}

template <class W>
RayleighPairs ShiftedPencil<W>::rayleigh_pairs(BlockView<const W> x) {
    const auto count = static_cast<std::size_t>(x.cols);
    BlockVector<W> ax(ctx_, map(), x.cols);
    matrix_->apply(ctx_, x, ax.view());
    std::vector<W> products(count);
    dots(ctx_, x, std::as_const(ax).view(), std::span<W>(products));
    RayleighPairs pairs;
    std::vector<W> minus;
    for (const W& product : products) {
        pairs.values.push_back(sign_ * std::real(product));
        minus.push_back(W(-std::real(product)));
    }
    // A X - B X diag(q); A has not changed its sign in matrix_
    const std::vector<W> ones(count, W(1));
    if (has_b()) {
        BlockVector<W> bx(ctx_, map(), x.cols);
        mass_->apply(ctx_, x, bx.view());
        axpby(ctx_, minus, std::as_const(bx).view(), ones, ax.view());
    } else {
        axpby(ctx_, minus, x, ones, ax.view());
    }
    std::vector<double> lengths(count);
    pairs.residuals.resize(count);
    norms(ctx_, x, std::span<double>(lengths));
    norms(ctx_, std::as_const(ax).view(), std::span<double>(pairs.residuals));
    for (std::size_t j = 0; j < count; ++j) {
        pairs.residuals[j] /= scale(pairs.values[j]) * lengths[j];
    }
    return pairs;
}

template <class W>
ShiftedFactor ShiftedPencil<W>::try_factor(double sigma) {
    const double infinity = std::numeric_limits<double>::infinity();
    const FactorFacts facts = factorisation_.factor(a_, b_ ? &*b_ : nullptr, sigma);
    ++factorisations_;
    ShiftedFactor result{sigma, facts.complete, facts.below, infinity, infinity};
    const bool singular = facts.zero > 0 ||
                          facts.least_pivot <= singular_units * rounding_unit * scale(sigma) ||
                          (facts.error && !std::isfinite(*facts.error));
    if (!facts.complete || singular) {
        return result;
    }
    if (facts.error) {
        result.error = result.backward = *facts.error;
    } else {
        measure(result);
    }
    return result;
}

/// Measures the backward error by solves for known random solutions. The computed Y solves (A -
/// sigma B + E) Y = C up to the rounding of the solve, so that its residual is E Y, and ||E||_2 <=
/// ||E||_F, whose square is n times the mean of ||E y||^2 / ||y||^2 over all y.
template <class W>
void ShiftedPencil<W>::measure(ShiftedFactor& factor) {
    constexpr int samples = 8;
    // E of rank one is the worst case: all samples are below half of its norm once in 2000 times.
    constexpr double safety = 2;
    // An error of the solution above this shows an eigenvalue within `singular_units` of the shift.
    constexpr double most_moved = 1 / singular_units;
    BlockVector<W> x(ctx_, map(), samples);
    BlockVector<W> y(ctx_, map(), samples);
    BlockVector<W> r(ctx_, map(), samples);
    BlockVector<W> right(ctx_, map(), samples);
    fill_random(ctx_, 1, x);
    fill(ctx_, W(0), r.view());
    residual(factor.sigma, std::as_const(r).view(), std::as_const(x).view(), right.view());
    copy(ctx_, std::as_const(right).view(), y.view());
    factorisation_.solve(y.view());  // near -X
    residual(factor.sigma, std::as_const(right).view(), std::as_const(y).view(), r.view());
    axpby(ctx_, W(1), std::as_const(y).view(), W(1), x.view());
    const auto lengths = [&](const BlockVector<W>& block) {
        std::vector<double> result(samples);
        norms(ctx_, block.view(), std::span<double>(result));
        return result;
    };
    const std::vector<double> residuals = lengths(r);
    const std::vector<double> solutions = lengths(y);
    const std::vector<double> moved = lengths(x);
    double largest = 0;
    bool good = true;
    for (std::size_t j = 0; j < samples; ++j) {
        const double ratio = residuals[j] / solutions[j];
        good = good && std::isfinite(ratio) && moved[j] <= most_moved;
        largest = std::max(largest, ratio);
    }
    if (good) {
        factor.backward = largest;
        factor.error = std::max(safety * std::sqrt(static_cast<double>(rows())) * largest,
                                rounding_unit * scale(factor.sigma));
    }
}

template <class W>
ShiftedFactor ShiftedPencil<W>::factor(double sigma) {
    ShiftedFactor best;
    ShiftedFactor last;
    bool is_clear = false;  // of `best`: it has not moved, or farther than its error
    const double unit = rounding_unit * scale(sigma);
    for (const double units : move_units) {
        last = try_factor(sigma + units * unit / norm_b_);
        const bool clear =
            std::isfinite(last.error) && (units == 0 || last.error < std::abs(units) * unit);
        if (last.complete && (!best.complete || (clear && !is_clear) ||
                              (clear == is_clear && last.error < best.error))) {
            best = last;
            is_clear = clear;
        }
        if (is_clear && best.backward <= good_units * unit) {
            break;
        }
    }
    if (best.complete && best.sigma != last.sigma) {
        best = try_factor(best.sigma);
    }
    largest_move_ = std::max(largest_move_, std::abs(best.sigma - sigma) / scale(sigma));
    return best;
}

template <class W>
void ShiftedPencil<W>::residual(double sigma, BlockView<const W> x, BlockView<const W> y,
                                BlockView<W> r) {
    matrix_->apply(ctx_, y, r);
    axpby(ctx_, W(1), x, W(-sign_), r);
    if (has_b()) {
        BlockVector<W> by(ctx_, map(), y.cols);
        mass_->apply(ctx_, y, by.view());
        axpby(ctx_, W(sigma), std::as_const(by).view(), W(1), r);
    } else {
        axpby(ctx_, W(sigma), y, W(1), r);
    }
}

template <class W>
void ShiftedPencil<W>::solve(const ShiftedFactor& factor, BlockView<const W> x, BlockView<W> y) {
    copy(ctx_, x, y);
    factorisation_.solve(y);
    solves_ += x.cols;
    constexpr double fine = 100;
    if (factor.backward <= fine * rounding_unit * scale(factor.sigma)) {
        return;
    }
    // Y <- Y + (A - sigma B)^-1 (X - (A - sigma B) Y)
    BlockVector<W> r(ctx_, map(), x.cols);
    residual(factor.sigma, x, BlockView<const W>(y), r.view());
    factorisation_.solve(r.view());
    axpby(ctx_, W(1), std::as_const(r).view(), W(1), y);
}

template class ShiftedPencil<double>;
template class ShiftedPencil<std::complex<double>>;

}  // namespace quiver

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
#include "solvers/precond/chebyshev.hpp"

namespace quiver {
namespace {

constexpr double rounding_unit = std::numeric_limits<double>::epsilon();

/// A factorisation whose error is below this many units of rounding of the norm is as good as one
/// with pivoting.
constexpr double good_units = 1e4;
/// Pivots below this many units of rounding of the norm belong to an eigenvalue at the shift.
constexpr double singular_units = 100;
/// Moves of a shift, in units of rounding of the norm.
constexpr double move_units[] = {0, 1e4, -1e4, 1e6, -1e6, 1e8, -1e8};

/// Threads wait longer for each other than they compute on blocks of fewer rows.
constexpr std::int64_t few_rows = 20000;

/// max |eigenvalue| by Lanczos steps.
template <class W>
double norm_of(Context& ctx, Operator<W>& a) {
    const SpectrumEstimate estimate = estimate_spectrum<W>(ctx, a);
    return std::max(std::abs(estimate.least), std::abs(estimate.largest));
}

}  // namespace

template <class W>
ShiftedPencil<W>::ShiftedPencil(int threads, CsrRows<W> a, std::optional<CsrRows<W>> b)
    : ctx_(Comm(), Device::host(a.map.global_rows() < few_rows ? 1 : threads)),
      a_(std::move(a)),
      b_(std::move(b)) {
    matrix_.emplace(ctx_, a_);
    norm_ = norm_of<W>(ctx_, *matrix_);
    if (b_) {
        mass_.emplace(ctx_, *b_);
        inner_ = inner_product<W>(ctx_, &*mass_);
        norm_b_ = norm_of<W>(ctx_, *mass_);
    }
}

template <class W>
double ShiftedPencil<W>::least_ratio() const {
    const auto diagonal = [](const CsrRows<W>& rows, std::int64_t row) {
        double sum = 0;
        for (auto e = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(row)]);
             e < static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(row) + 1]); ++e) {
            sum += rows.column[e] == row ? std::real(rows.value[e]) : 0;
        }
        return sum;
    };
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t row = 0; row < rows(); ++row) {
        least = std::min(least, diagonal(a_, row) / (b_ ? diagonal(*b_, row) : 1));
    }
    return least;
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
std::vector<double> ShiftedPencil<W>::quotients(BlockView<const W> x) {
    BlockVector<W> ax(ctx_, map(), x.cols);
    matrix_->apply(ctx_, x, ax.view());
    std::vector<W> products(static_cast<std::size_t>(x.cols));
    dots(ctx_, x, std::as_const(ax).view(), std::span<W>(products));
    std::vector<double> result;
    for (const W& product : products) {
        result.push_back(sign_ * std::real(product));
    }
    return result;
}

template <class W>
ShiftedFactor<W> ShiftedPencil<W>::try_factor(double sigma) {
    ShiftedFactor<W> result{sigma, nullptr, 0, std::numeric_limits<double>::infinity()};
    auto ldlt = std::make_shared<SparseLdlt<W>>(a_, b_ ? &*b_ : nullptr, sigma);
    ++factorisations_;
    if (!ldlt->complete()) {
        return result;
    }
    double least = std::numeric_limits<double>::infinity();
    for (const double pivot : ldlt->pivots()) {
        result.below += pivot < 0 ? 1 : 0;
        least = std::min(least, std::abs(pivot));
    }
    const double error = ldlt->error();
    result.ldlt = std::move(ldlt);
    if (std::isfinite(error) && least > singular_units * rounding_unit * scale(sigma)) {
        result.error = error;
    }
    return result;
}

template <class W>
ShiftedFactor<W> ShiftedPencil<W>::factor(double sigma) {
    ShiftedFactor<W> best;
    best.error = std::numeric_limits<double>::infinity();
    for (const double units : move_units) {
        const double move = units * rounding_unit * scale(sigma) / norm_b_;
        ShiftedFactor<W> next = try_factor(sigma + move);
        if (next.ldlt && (!best.ldlt || next.error < best.error)) {
            best = std::move(next);
        }
        if (best.error <= good_units * rounding_unit * scale(sigma)) {
            break;
        }
    }
    largest_move_ = std::max(largest_move_, std::abs(best.sigma - sigma) / scale(sigma));
    return best;
}

template <class W>
void ShiftedPencil<W>::solve(const ShiftedFactor<W>& factor, BlockView<const W> x, BlockView<W> y) {
    copy(ctx_, x, y);
    factor.ldlt->solve(y);
    solves_ += x.cols;
    constexpr double fine = 100;
    if (factor.error <= fine * rounding_unit * scale(factor.sigma)) {
        return;
    }
    // R = X - (A - sigma B) Y, Y <- Y + (A - sigma B)^-1 R
    BlockVector<W> r(ctx_, map(), x.cols);
    BlockVector<W> by(ctx_, map(), has_b() ? x.cols : 0);
    matrix_->apply(ctx_, BlockView<const W>(y), r.view());
    axpby(ctx_, W(1), x, W(-sign_), r.view());
    if (has_b()) {
        mass_->apply(ctx_, BlockView<const W>(y), by.view());
        axpby(ctx_, W(factor.sigma), std::as_const(by).view(), W(1), r.view());
    } else {
        axpby(ctx_, W(factor.sigma), BlockView<const W>(y), W(1), r.view());
    }
    factor.ldlt->solve(r.view());
    axpby(ctx_, W(1), std::as_const(r).view(), W(1), y);
}

template class ShiftedPencil<double>;
template class ShiftedPencil<std::complex<double>>;

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/row_units.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <utility>

#include "blockvec/comm.hpp"
#include "solvers/precond/chebyshev.hpp"

namespace quiver {
namespace {

/// Squares of units and their products with entries stay in range for eigenvalues of this size.
constexpr double largest_size = 0x1p+400;

/// Eigenvalues whose size differs by less need no other units.
constexpr double close_size = 256;

}  // namespace

template <class W>
RowUnits<W>::RowUnits(const CsrRows<W>& a, const CsrRows<W>& b, EigenOptions options, Which which,
                      double ratio)
    : ctx_(Comm(), Device::host(1)), options_(std::move(options)), which_(which) {
    a_.emplace(ctx_, a);
    b_.emplace(ctx_, b);
    problem_.emplace(EigenProblem<W>{*a_, &*b_});
    balance_.emplace(ctx_, *problem_, Method::shift_invert, options_.seed, ratio);
    if (is_needed()) {
        norm_a_ = estimate_spectrum<W>(ctx_, *a_).norm();
        norm_b_ = estimate_spectrum<W>(ctx_, *b_).norm();
    }
}

template <class W>
void RowUnits<W>::choose_for(double size) {
    size_ = std::clamp(size, 1 / largest_size, largest_size);
    balance_->balance(size_);
}

template <class W>
void RowUnits<W>::choose() {
    double size = 0;
    if (options_.window) {
        size = std::max(std::abs(options_.window->low), std::abs(options_.window->high));
    } else if (which_ == Which::target) {
        size = std::abs(options_.target);
    }
    if (size == 0) {
        const bool at_zero = options_.window || which_ == Which::target;
        size = balance_->likely_value(at_zero ? Which::smallest_magnitude : which_, options_.k);
    }
    // No finite eigenvalue is much larger than this.
    largest_ = balance_->likely_value(Which::largest_magnitude, 1);
    choose_for(std::min(size, largest_));
}

template <class W>
bool RowUnits<W>::choose_for_largest() {
    const std::vector<int> before = exponents();
    choose_for(largest_);
    return balance_->differs_from(before);
}

template <class W>
bool RowUnits<W>::choose_others(double size) {
    if (size <= close_size * size_ && size_ <= close_size * size) {
        return false;
    }
    const std::vector<int> before = exponents();
    choose_for(size);
    return balance_->differs_from(before);
}

template <class W>
void RowUnits<W>::apply(CsrRows<W>& m) const {
    const std::vector<int>& e = exponents();
    for (std::size_t row = 0; row + 1 < m.row_start.size(); ++row) {
        for (auto at = static_cast<std::size_t>(m.row_start[row]);
             at < static_cast<std::size_t>(m.row_start[row + 1]); ++at) {
            m.value[at] *= std::ldexp(1.0, e[row] + e[static_cast<std::size_t>(m.column[at])]);
        }
    }
}

template class RowUnits<double>;
template class RowUnits<std::complex<double>>;

}  // namespace quiver

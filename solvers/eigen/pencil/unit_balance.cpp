// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/unit_balance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {
namespace {

/// With fewer random columns the estimated norm of some row would be far too small.
constexpr int probe_columns = 8;
constexpr int most_passes = 8;
/// Rows whose estimates differ by less are alike: the estimates themselves vary by a few times.
constexpr double alike = 16;
/// Rows of B (squares of units) that differ by less than 2^bits_needed need no other units.
constexpr int bits_needed = 8;
/// The least x^H B x of a wanted eigenvector, relative to ||B|| ||x||^2, in units of rounding.
constexpr double least_share = 1024;

}  // namespace

template <class T>
UnitBalance<T>::UnitBalance(Context& ctx, const EigenProblem<T>& problem, Method method,
                            std::uint64_t seed, double ratio)
    : ctx_(ctx), problem_(problem), method_(method), seed_(seed) {
    const RowMap& map = problem.a.row_map();
    BlockVector<T> random;
    ctx.comm().agree([&] {
        random = BlockVector<T>(ctx, map, probe_columns);
        probes_ = SmallMatrix<T>(static_cast<int>(map.local_rows()), probe_columns);
        exponents_.assign(static_cast<std::size_t>(map.local_rows()), 0);
    });
    fill_random(ctx, seed + 0xa0761d6478bd642fu, random);
    copy(ctx, std::as_const(random).view(), probes_.view());
    const std::vector<double> sizes = row_sizes(*problem.b, nullptr);
    const auto first_zero = std::find(sizes.begin(), sizes.end(), 0.0);
    zero_rows_ = std::count(first_zero, sizes.end(), 0.0);
    first_zero_row_ =
        zero_rows_ == 0 ? map.global_rows() : map.first_row() + (first_zero - sizes.begin());
    const SizeRange range = size_range(ctx_.comm(), sizes);
    is_needed_for_b_ = range.largest > std::ldexp(range.least, bits_needed);
    is_needed_ = is_needed_for_b_;
    if (is_needed_) {
        equilibrate([&] { return row_sizes(*problem.b, nullptr); });
        normalise();
    }
    of_b_ = exponents_;
    if (!is_needed_ && std::isfinite(ratio)) {
        const SizeRange of_a = size_range(ctx_.comm(), row_sizes(problem.a, nullptr));
        is_needed_ = of_a.largest > ratio * of_a.least;
        if (is_needed_) {
            normalise();
            of_b_ = exponents_;
        }
    }
}

template <class T>
void UnitBalance<T>::refuse_zero_rows() const {
    const std::int64_t zero = ctx_.comm().sum(zero_rows_);
    if (zero > 0) {
        const std::int64_t first = -ctx_.comm().max(-first_zero_row_);
        const std::string row_number = std::to_string(first + 1) + " (counted from 1)";
        throw_indefinite(
            IndefiniteError::Operand::mass,
            std::string(to_string(method_)) + ": B is not positive definite: " +
                (zero == 1 ? "its row " + row_number + " is zero"
                           : std::to_string(zero) + " of its rows are zero, the first is row " +
                                 row_number) +
                singular_mass_cure);
    }
}

template <class T>
std::vector<double> UnitBalance<T>::row_sizes(Operator<T>& m, std::vector<double>* quotients) {
    const RowMap& map = m.row_map();
    SmallMatrix<T> x(probes_.rows(), probe_columns);
    for (int i = 0; i < x.rows(); ++i) {
        const real_t<T> unit = std::ldexp(real_t<T>(1), exponents_[static_cast<std::size_t>(i)]);
        for (int j = 0; j < probe_columns; ++j) {
            x(i, j) = unit * probes_(i, j);
        }
    }
    BlockVector<T> columns;
    BlockVector<T> images;
    ctx_.comm().agree([&] {
        columns = BlockVector<T>(ctx_, map, probe_columns);
        images = BlockVector<T>(ctx_, map, probe_columns);
    });
    copy(ctx_, std::as_const(x).view(), columns.view());
    checked_product(ctx_, method_, m, std::as_const(columns).view(), images.view());
    applications_ += &m == &problem_.a ? probe_columns : 0;
    SmallMatrix<T> y(x.rows(), probe_columns);
    copy(ctx_, std::as_const(images).view(), y.view());
    std::vector<double> sizes(exponents_.size());
    std::vector<double> sums(probe_columns, 0.0);
    for (int i = 0; i < y.rows(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        for (int j = 0; j < probe_columns; ++j) {
            const double size = std::ldexp(static_cast<double>(std::abs(y(i, j))), exponents_[at]);
            sizes[at] = std::max(sizes[at], size);
            sums[static_cast<std::size_t>(j)] +=
                static_cast<double>(std::real(conjugate(x(i, j)) * y(i, j)));
        }
    }
    if (quotients != nullptr) {
        ctx_.comm().sum(std::span<double>(sums));
        *quotients = std::move(sums);
    }
    return sizes;
}

template <class T>
void UnitBalance<T>::equilibrate(const std::function<std::vector<double>()>& sizes) {
    // The squares of units, times entries of A and B, must not overflow.
    constexpr int most = std::numeric_limits<real_t<T>>::max_exponent / 4;
    for (int pass = 0; pass < most_passes; ++pass) {
        const std::vector<double> size = sizes();
        const SizeRange range = size_range(ctx_.comm(), size);
        if (!(range.largest > alike * range.least)) {
            return;
        }
        // The middle, so that the exponents stay as small as possible.
        const double middle = std::sqrt(range.least) * std::sqrt(range.largest);
        for (std::size_t i = 0; i < size.size(); ++i) {
            if (size[i] > 0) {
                const double wanted = std::log2(middle / size[i]) / 2;
                exponents_[i] =
                    std::clamp(exponents_[i] + static_cast<int>(std::lround(wanted)), -most, most);
            }
        }
    }
}

template <class T>
void UnitBalance<T>::normalise() {
    const double norm = largest_row(*problem_.b);
    const int exponent = norm > 0 ? std::ilogb(norm) / 2 : 0;
    for (int& e : exponents_) {
        e -= exponent;
    }
}

template <class T>
double UnitBalance<T>::likely_value(Which which, int k) {
    std::vector<double> quotients;
    const std::vector<double> sizes = row_sizes(problem_.a, &quotients);
    constexpr int most = 1100;  // exponents of doubles
    std::vector<double> rows(2 * most + 1, 0.0);
    for (const double size : sizes) {
        if (size > 0) {
            rows[static_cast<std::size_t>(most + std::ilogb(size))] += 1;
        }
    }
    ctx_.comm().sum(std::span<double>(rows));
    // The smallest eigenvalues of a definite A are found where its rows are small.
    const bool positive =
        std::all_of(quotients.begin(), quotients.end(), [](double q) { return q > 0; });
    const bool negative =
        std::all_of(quotients.begin(), quotients.end(), [](double q) { return q < 0; });
    const bool near_zero = (positive && which == Which::smallest) ||
                           (negative && which == Which::largest) ||
                           which == Which::smallest_magnitude;
    if (!near_zero) {
        const SizeRange range = size_range(ctx_.comm(), sizes);
        least_value_ = least_share * static_cast<double>(epsilon_v<T>) * range.largest;
    }
    double seen = 0;
    for (int at = 0; at <= 2 * most; ++at) {
        const int exponent = near_zero ? at - most : most - at;
        seen += rows[static_cast<std::size_t>(most + exponent)];
        if (seen >= k) {
            return std::max(std::ldexp(1.0, exponent), least_value_);
        }
    }
    return 1;  // A has fewer than k rows that are not 0
}

template <class T>
void UnitBalance<T>::balance(double theta) {
    exponents_ = of_b_;
    equilibrate([&] {
        std::vector<double> sizes = row_sizes(problem_.a, nullptr);
        const std::vector<double> of_b = row_sizes(*problem_.b, nullptr);
        std::vector<double> ratios(sizes.size(), 0.0);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            ratios[i] = of_b[i] > 0 ? sizes[i] / of_b[i] : 0;
        }
        // A smaller theta would change only the units of rows of A that are zero, and make these
        // rows of B so large that the others vanish beside them.
        const double least = size_range(ctx_.comm(), ratios).least;
        const double size = std::isfinite(least) ? std::max(theta, least) : theta;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            sizes[i] = std::max(sizes[i], size * of_b[i]);
        }
        return sizes;
    });
    normalise();
}

template <class T>
bool UnitBalance<T>::differs_from(const std::vector<int>& before) const {
    int least = std::numeric_limits<int>::max();
    int largest = std::numeric_limits<int>::lowest();
    for (std::size_t i = 0; i < before.size(); ++i) {
        least = std::min(least, exponents_[i] - before[i]);
        largest = std::max(largest, exponents_[i] - before[i]);
    }
    const std::int64_t up = ctx_.comm().max(static_cast<std::int64_t>(largest));
    const std::int64_t down = ctx_.comm().max(-static_cast<std::int64_t>(least));
    return 2 * (up + down) > bits_needed;
}

#define QUIVER_INSTANTIATE(T) template class UnitBalance<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/unit_residuals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"
#include "solvers/eigen/pencil/identity_mass.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"

namespace quiver {
namespace {

/// Columns whose residuals are computed at once.
constexpr int residual_columns = 64;
/// Eigenvalues whose size differs by less need no other units.
constexpr double close_size = 256;
/// Residuals of eigenvalues whose size differs by less are computed in the same units.
constexpr double close_residuals = 0x1p+16;

}  // namespace

template <class T>
UnitResiduals<T>::UnitResiduals(Context& ctx, const EigenProblem<T>& problem, Method method,
                                std::uint64_t seed)
    : ctx_(ctx),
      problem_(problem),
      method_(method),
      // Only shift_invert() solves in units of A; pairs of other methods would be rejected in them.
      units_(ctx, problem, method, seed,
             method == Method::shift_invert ? stiff_row_ratio<T>()
                                            : std::numeric_limits<double>::infinity()) {}

template <class T>
void UnitResiduals<T>::choose_for(double size) {
    if (size_ && size <= close_size * *size_ && *size_ <= close_size * size) {
        return;
    }
    size_ = size;
    units_.balance(size > 0 ? size : units_.likely_value(Which::smallest_magnitude, 1));
    take_units();
}

template <class T>
void UnitResiduals<T>::take_units() {
    balanced_.emplace(ctx_, problem_, BlockView<const T>(), units_.exponents());
    norm_a_ = units_.largest_row(problem_.a);
    norm_b_ = units_.largest_row(*problem_.b);
    normals_ = constraint_normals(ctx_, method_, balanced_->problem());
}

template <class T>
std::vector<double> UnitResiduals<T>::distances(BlockView<const T> x,
                                                const std::vector<double>& values) {
    size_.reset();
    units_.balance_b();
    take_units();
    const CountedBounds bounds =
        bounds_of_spectrum<T>(ctx_, *balanced_->problem().b, units_.seed());
    const double unit = bounds.least > 0 ? std::sqrt(bounds.least) : 0;
    std::vector<double> all;
    for (const Residual& residual : in_present_units(x, values)) {
        const double norm = residual.relative * residual.scale * residual.length;
        all.push_back(norm == 0 ? 0 : norm / unit);
    }
    return all;
}

template <class T>
std::vector<typename UnitResiduals<T>::Residual> UnitResiduals<T>::residuals(
    BlockView<const T> x, const std::vector<double>& values) {
    const auto size = [&](std::size_t j) { return std::abs(values[j]); };
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t i, std::size_t j) { return size(i) > size(j); });
    std::vector<Residual> all(values.size());
    for (std::size_t first = 0, next = 0; first < order.size(); first = next) {
        choose_for(size(order[first]));
        const std::vector<Residual> some = in_present_units(x, values);
        do {
            all[order[next]] = some[order[next]];
            ++next;
        } while (next < order.size() && size(order[first]) <= close_residuals * size(order[next]));
    }
    return all;
}

template <class T>
std::vector<typename UnitResiduals<T>::Residual> UnitResiduals<T>::in_present_units(
    BlockView<const T> x, const std::vector<double>& values) {
    const RowMap& map = problem_.a.row_map();
    BlockVector<T> panel;
    ctx_.comm().agree(
        [&] { panel = BlockVector<T>(ctx_, map, std::min(residual_columns, x.cols)); });
    const PencilExponents exponents{even_exponent(norm_a_), even_exponent(norm_b_)};
    std::vector<Residual> all;
    for (int first = 0; first < x.cols; first += residual_columns) {
        const int width = std::min(residual_columns, x.cols - first);
        const auto begin = values.begin() + first;
        const std::vector<double> some(begin, begin + width);
        applications_ += width;
        balanced_->convert(ctx_, x.columns(first, width), panel.columns(0, width));
        const BlockView<const T> y = std::as_const(panel).columns(0, width);
        const std::vector<double> sizes =
            scaled_residuals(ctx_, method_, balanced_->problem(), y, some, exponents,
                             std::as_const(normals_).view());
        std::vector<real_t<T>> lengths(some.size());
        norms(ctx_, y, std::span<real_t<T>>(lengths));
        for (std::size_t j = 0; j < some.size(); ++j) {
            const double scale = norm_a_ + std::abs(some[j]) * norm_b_;
            // The scale of A = 0 may be 0.
            const double relative = sizes[j] == 0 ? 0 : sizes[j] / scale;
            all.push_back({relative, scale, static_cast<double>(lengths[j])});
        }
    }
    return all;
}

#define QUIVER_INSTANTIATE(T) template class UnitResiduals<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

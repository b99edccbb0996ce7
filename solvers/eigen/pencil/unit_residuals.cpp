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
#include "solvers/eigen/search/both_ends.hpp"
#include "solvers/eigen/search/given_columns.hpp"
#include "solvers/eigen/search/scaled_problem.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"

namespace quiver {
namespace {

/// Columns whose residuals are computed at once.
constexpr int residual_columns = 64;
/// Eigenvalues whose size differs by less need no other units.
constexpr double close_size = 256;
/// Residuals of eigenvalues whose size differs by less are computed in the same units.
constexpr double close_residuals = 0x1p+16;
/// Rounding errors of an eigenvalue in units of eps ||A||.
constexpr double units_of_rounding = 8;

template <class T>
std::vector<double> standard_errors(const EigenOptions& options, const EigenResult<T>& result) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double>& values = result.eigenvalues;
    const std::vector<double>& residuals = result.residuals;
    const bool in_one_piece = result.multiplicity == Multiplicity::verified &&
                              !wants_both_ends(options.which) &&
                              options.which != Which::largest_magnitude;
    // A lower bound of the distance between value j and the exact eigenvalue of neighbour i. If
    // there is no neighbour: infinity at an end of the spectrum, else 0 for an unknown distance.
    const auto distance = [&](std::size_t j, std::size_t i, Which end) {
        const bool is_end = !options.window && options.which == end;
        return i >= values.size() ? (is_end ? infinity : 0)
                                  : std::abs(values[j] - values[i]) - residuals[i];
    };
    std::vector<double> errors;
    for (std::size_t j = 0; j < values.size(); ++j) {
        const double r = residuals[j];
        const double gap = in_one_piece ? std::min(distance(j, j - 1, Which::smallest),
                                                   distance(j, j + 1, Which::largest))
                                        : 0;
        errors.push_back((gap > 2 * r ? r * (r / (gap - r)) : r) +
                         units_of_rounding * static_cast<double>(epsilon_v<T>) *
                             result.norm_estimate);
    }
    return errors;
}

/// eigenvalue_errors() of a pencil whose norms lie within NormRange, for the vectors X.
template <class T>
std::vector<double> pencil_errors(Context& ctx, const EigenProblem<T>& problem, std::uint64_t seed,
                                  const EigenResult<T>& result, BlockView<const T> x) {
    const std::vector<double>& values = result.eigenvalues;
    const double rounding = units_of_rounding * static_cast<double>(epsilon_v<T>);
    std::vector<real_t<T>> lengths(values.size());
    norms(ctx, x, std::span<real_t<T>>(lengths));
    std::vector<double> errors;
    for (std::size_t j = 0; j < values.size(); ++j) {
        const auto length = static_cast<double>(lengths[j]);
        errors.push_back((result.residuals[j] + rounding * result.norm_estimate) * length * length);
    }
    UnitResiduals<T> units(ctx, problem, result.method, seed);
    if (!units.is_needed()) {
        return errors;
    }
    const auto in_units = units.residuals(x, values);
    for (std::size_t j = 0; j < values.size(); ++j) {
        const auto& [relative, size, length] = in_units[j];
        errors[j] = (relative + rounding) * size * length * length;
    }
    return errors;
}

}  // namespace

template <class T>
UnitResiduals<T>::UnitResiduals(Context& ctx, const EigenProblem<T>& problem, Method method,
                                std::uint64_t seed)
    : ctx_(ctx), problem_(problem), method_(method), units_(ctx, problem, method, seed) {}

template <class T>
void UnitResiduals<T>::choose_for(double size) {
    if (size_ && size <= close_size * *size_ && *size_ <= close_size * size) {
        return;
    }
    size_ = size;
    units_.balance(size > 0 ? size : units_.likely_value(Which::smallest_magnitude, 1));
    balanced_.emplace(ctx_, problem_, BlockView<const T>(), units_.exponents());
    EigenProblem<T>& pencil = balanced_->problem();
    norm_a_ = units_.largest_row(problem_.a);
    norm_b_ = units_.largest_row(*problem_.b);
    const BlockView<const T> given = pencil.constraints;
    if (given.cols > 0) {
        const RowMap& map = pencil.a.row_map();
        BlockVector<T> images;
        ctx_.comm().agree([&] {
            images = BlockVector<T>(ctx_, map, given.cols);
            normals_ = BlockVector<T>(ctx_, map, given.cols);
        });
        checked_product(ctx_, method_, *pencil.b, given, images.view());
        take_constraints(ctx_, map, std::as_const(images).view(), normals_.view());
    }
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
            all.push_back({sizes[j] / scale, scale, static_cast<double>(lengths[j])});
        }
    }
    return all;
}

template <class T>
std::vector<double> eigenvalue_errors(Context& ctx, const EigenProblem<T>& problem,
                                      const EigenOptions& options, const EigenResult<T>& result) {
    if (problem.b == nullptr) {
        return standard_errors(options, result);
    }
    if (result.eigenvalues.empty()) {
        return {};
    }
    const PencilExponents needed = needed_exponents(ctx, problem);
    if (needed.a == 0 && needed.b == 0) {
        return pencil_errors(ctx, problem, options.seed, result, result.vectors.view());
    }
    const ScaledProblem<T> scaled(problem, needed);
    EigenResult<T> pairs;
    pairs.method = result.method;
    pairs.norm_estimate = std::ldexp(result.norm_estimate, -needed.a);
    for (std::size_t j = 0; j < result.eigenvalues.size(); ++j) {
        pairs.eigenvalues.push_back(std::ldexp(result.eigenvalues[j], needed.b - needed.a));
        pairs.residuals.push_back(std::ldexp(result.residuals[j], -needed.a));
    }
    BlockVector<T> x;
    ctx.comm().agree([&] { x = BlockVector<T>(ctx, problem.a.row_map(), result.vectors.width()); });
    copy(ctx, result.vectors.view(), x.view());
    scale(ctx, T(std::ldexp(real_t<T>(1), needed.b / 2)), x.view());
    std::vector<double> errors =
        pencil_errors(ctx, scaled.problem(), options.seed, pairs, std::as_const(x).view());
    for (double& error : errors) {
        error = std::ldexp(error, needed.a - needed.b);
    }
    return errors;
}

#define QUIVER_INSTANTIATE(T)                                                        \
    template class UnitResiduals<T>;                                                 \
    template std::vector<double> eigenvalue_errors(Context&, const EigenProblem<T>&, \
                                                   const EigenOptions&, const EigenResult<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

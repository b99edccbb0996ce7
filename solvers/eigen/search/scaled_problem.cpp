// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/scaled_problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {
namespace {

/// True if ||A||_F, from one pass over the entries, shows that ||A||_2 lies within NormRange.
template <class T>
bool fits_norm_range(Context& ctx, const SparseMatrix<T>& a) {
    const MatrixArray entries = a.arrays().front();
    const BlockView<const T> column(static_cast<const T*>(entries.data),
                                    static_cast<std::int64_t>(entries.bytes / sizeof(T)), 1, 1,
                                    ctx.place());
    real_t<T> norm = 0;
    norms(ctx, column, std::span<real_t<T>>(&norm, 1));
    const NormRange<T> range;
    const auto size = static_cast<double>(norm);
    return size / std::sqrt(static_cast<double>(a.row_map().global_rows())) >= range.least &&
           size <= range.most;
}

/// As even_exponent(); 0 for entries that are not finite.
template <class T>
int exponent_of(Context& ctx, const SparseMatrix<T>& a) {
    double largest = 0;
    ctx.comm().agree([&] {
        a.for_each_entry(ctx, [&](std::size_t, std::int64_t, T value) {
            largest = std::max(largest, static_cast<double>(std::abs(value)));
        });
    });
    largest = ctx.comm().max(largest);
    constexpr int most = std::numeric_limits<real_t<T>>::max_exponent - 2;
    return std::isfinite(largest) ? std::clamp(even_exponent(largest), -most, most) : 0;
}

}  // namespace

template <class T>
void ScaledOperator<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    a_.apply(ctx, x, y);
    scale(ctx, T(std::ldexp(real_t<T>(1), -exponent_)), y);
}

template <class T>
PencilExponents needed_exponents(Context& ctx, const EigenProblem<T>& problem) {
    const auto* const a = dynamic_cast<const SparseMatrix<T>*>(&problem.a);
    const auto* const b = dynamic_cast<const SparseMatrix<T>*>(problem.b);
    if (a == nullptr || (problem.b != nullptr && b == nullptr)) {
        return {};
    }
    const bool a_fits = fits_norm_range(ctx, *a);
    if (a_fits && (b == nullptr || fits_norm_range(ctx, *b))) {
        return {};
    }
    return {exponent_of(ctx, *a), b == nullptr ? 0 : exponent_of(ctx, *b)};
}

template <class T>
ScaledProblem<T>::ScaledProblem(const EigenProblem<T>& problem, PencilExponents exponents)
    : exponents_(exponents), a_(problem.a, exponents.a) {
    const auto wrap = [](std::optional<ScaledOperator<T>>& wrapped, Operator<T>* of, int exponent) {
        return of == nullptr ? nullptr : &wrapped.emplace(*of, exponent);
    };
    problem_.emplace(EigenProblem<T>{a_});
    problem_->b = wrap(b_, problem.b, exponents.b);
    // These approximate the inverse of A.
    problem_->preconditioner = wrap(preconditioner_, problem.preconditioner, -exponents.a);
    problem_->inverse = wrap(inverse_, problem.inverse, -exponents.a);
    problem_->start = problem.start;
    problem_->constraints = problem.constraints;
}

template <class T>
EigenOptions ScaledProblem<T>::scaled(EigenOptions options) const {
    // Values far outside the spectrum stay there, and their squares fit.
    const double far = std::ldexp(1.0, 60);
    const auto smaller = [&](double value) {
        return std::clamp(std::ldexp(value, exponents_.b - exponents_.a), -far, far);
    };
    options.target = smaller(options.target);
    if (options.window) {
        options.window = Window{smaller(options.window->low), smaller(options.window->high)};
    }
    return options;
}

template <class T>
EigenResult<T> ScaledProblem<T>::restored(Context& ctx, EigenResult<T> result) const {
    for (double& value : result.eigenvalues) {
        value = std::ldexp(value, exponents_.a - exponents_.b);
    }
    for (double& residual : result.residuals) {
        residual = std::ldexp(residual, exponents_.a);
    }
    result.norm_estimate = std::ldexp(result.norm_estimate, exponents_.a);
    result.cut_depth = std::ldexp(result.cut_depth, exponents_.a - exponents_.b);
    if (exponents_.b != 0 && result.vectors.width() > 0) {
        scale(ctx, T(std::ldexp(real_t<T>(1), -exponents_.b / 2)), result.vectors.view());
    }
    return result;
}

#define QUIVER_INSTANTIATE(T)         \
    template class ScaledOperator<T>; \
    template class ScaledProblem<T>;  \
    template PencilExponents needed_exponents(Context&, const EigenProblem<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/scaled_residuals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/search/given_columns.hpp"

namespace quiver {

int even_exponent(double largest) {
    constexpr int most = 1000;
    return largest > 0 ? std::clamp(2 * (std::ilogb(largest) / 2), -most, most) : 0;
}

template <class T>
void refuse_product(GuardedOperator<T>& a, Method method) {
    a.rethrow_pending();
    NumericalError error(std::string(to_string(method)) +
                         ": the operator failed on some rank, or its product is not finite");
    error.set_collective();
    throw error;
}

template <class T>
void checked_product(Context& ctx, Method method, Operator<T>& a, BlockView<const T> x,
                     BlockView<T> y) {
    GuardedOperator<T> guarded(a);
    guarded.apply(ctx, x, y);
    SmallMatrix<T> rows(static_cast<int>(y.rows), y.cols);
    copy(ctx, BlockView<const T>(y), rows.view());
    std::int64_t bad = 0;
    for (int i = 0; i < rows.rows(); ++i) {
        for (int j = 0; j < rows.cols(); ++j) {
            bad += is_finite(rows(i, j)) ? 0 : 1;
        }
    }
    if (ctx.comm().max(bad) > 0) {
        refuse_product(guarded, method);
    }
}

namespace {

/// Columns whose residuals are computed at once.
constexpr int panel_columns = 64;

template <class T>
std::vector<double> panel_residuals(Context& ctx, Method method, const EigenProblem<T>& problem,
                                    BlockView<const T> x, const std::vector<double>& values,
                                    PencilExponents exponents, BlockView<const T> normals) {
    using Real = real_t<T>;
    constexpr int most = std::numeric_limits<Real>::max_exponent - 8;
    const int exponent = std::clamp(exponents.a - exponents.b / 2, -most, most);
    const double factor = std::ldexp(1.0, -exponent);
    const RowMap& map = problem.a.row_map();
    BlockVector<T> r;
    BlockVector<T> bx;
    ctx.comm().agree([&] {
        r = BlockVector<T>(ctx, map, x.cols);
        bx = BlockVector<T>(ctx, map, problem.b == nullptr ? 0 : x.cols);
    });
    checked_product(ctx, method, problem.a, x, r.view());
    std::vector<T> shifts;
    shifts.reserve(values.size());
    for (const double value : values) {
        shifts.push_back(T(static_cast<Real>(-factor * value)));
    }
    const std::vector<T> factors(shifts.size(), T(static_cast<Real>(factor)));
    if (problem.b != nullptr) {
        checked_product(ctx, method, *problem.b, x, bx.view());
        axpby(ctx, shifts, bx.view(), factors, r.view());
    } else {
        axpby(ctx, shifts, x, factors, r.view());
    }
    if (normals.cols > 0) {
        SmallMatrix<T> share(normals.cols, x.cols);
        tsmttsm(ctx, T(1), normals, std::as_const(r).view(), T(0), share);
        tsmm(ctx, T(-1), normals, share.view(), T(1), r.view());
    }
    std::vector<Real> residuals(shifts.size());
    std::vector<Real> lengths(shifts.size());
    norms(ctx, std::as_const(r).view(), std::span<Real>(residuals));
    norms(ctx, x, std::span<Real>(lengths));
    std::vector<double> quotients;
    for (std::size_t j = 0; j < shifts.size(); ++j) {
        quotients.push_back(std::ldexp(
            static_cast<double>(residuals[j]) / static_cast<double>(lengths[j]), exponent));
    }
    return quotients;
}

}  // namespace

template <class T>
std::vector<double> scaled_residuals(Context& ctx, Method method, const EigenProblem<T>& problem,
                                     BlockView<const T> x, const std::vector<double>& values,
                                     PencilExponents exponents, BlockView<const T> normals) {
    std::vector<double> all;
    for (int first = 0; first < x.cols; first += panel_columns) {
        const int width = std::min(panel_columns, x.cols - first);
        const auto begin = values.begin() + first;
        const std::vector<double> some =
            panel_residuals(ctx, method, problem, x.columns(first, width),
                            std::vector<double>(begin, begin + width), exponents, normals);
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

template <class T>
BlockVector<T> constraint_normals(Context& ctx, Method method, const EigenProblem<T>& problem) {
    const BlockView<const T> given = problem.constraints;
    BlockVector<T> normals;
    if (given.cols == 0) {
        return normals;
    }
    const RowMap& map = problem.a.row_map();
    BlockVector<T> images;
    ctx.comm().agree([&] {
        images = BlockVector<T>(ctx, map, problem.b == nullptr ? 0 : given.cols);
        normals = BlockVector<T>(ctx, map, given.cols);
    });
    if (problem.b != nullptr) {
        checked_product(ctx, method, *problem.b, given, images.view());
    }
    take_constraints(ctx, map, problem.b == nullptr ? given : std::as_const(images).view(),
                     normals.view());
    return normals;
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template void refuse_product(GuardedOperator<T>&, Method);                                    \
    template void checked_product(Context&, Method, Operator<T>&, BlockView<const T>,             \
                                  BlockView<T>);                                                  \
    template std::vector<double> scaled_residuals(Context&, Method, const EigenProblem<T>&,       \
                                                  BlockView<const T>, const std::vector<double>&, \
                                                  PencilExponents, BlockView<const T>);           \
    template BlockVector<T> constraint_normals(Context&, Method, const EigenProblem<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver

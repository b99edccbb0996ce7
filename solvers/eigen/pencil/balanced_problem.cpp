// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/balanced_problem.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

/// diag(2^(sign e)).
template <class T>
SparseMatrix<T> diagonal_of_powers(Context& ctx, const RowMap& map, const std::vector<int>& e,
                                   int sign) {
    CsrRows<T> rows;
    ctx.comm().agree([&] {
        rows.map = map;
        rows.global_cols = map.global_rows();
        for (std::size_t i = 0; i < e.size(); ++i) {
            rows.column.push_back(map.first_row() + static_cast<std::int64_t>(i));
            rows.value.push_back(T(std::ldexp(real_t<T>(1), sign * e[i])));
            rows.row_start.push_back(rows.nonzeros());
        }
    });
    return SparseMatrix<T>(ctx, std::move(rows));
}

/// Y = S A S X with a diagonal S.
template <class T>
CongruentOperator<T> in_units(Operator<T>& a, SparseMatrix<T>& s) {
    const auto multiply = [&s](Context& ctx, BlockView<const T> x, BlockView<T> y) {
        s.apply(ctx, x, y);
    };
    return CongruentOperator<T>(
        a, multiply, multiply,
        [&s](Context& ctx, std::span<const int> widths) { s.prepare(ctx, widths); });
}

}  // namespace

template <class T>
BalancedProblem<T>::BalancedProblem(Context& ctx, const EigenProblem<T>& problem,
                                    BlockView<const T> start, const std::vector<int>& exponents)
    : d_(diagonal_of_powers<T>(ctx, problem.a.row_map(), exponents, 1)),
      inverse_d_(diagonal_of_powers<T>(ctx, problem.a.row_map(), exponents, -1)),
      a_(in_units(problem.a, d_)),
      b_(in_units(*problem.b, d_)),
      problem_{a_} {
    problem_.b = &b_;
    if (problem.preconditioner != nullptr) {
        problem_.preconditioner =
            &preconditioner_.emplace(in_units(*problem.preconditioner, inverse_d_));
    }
    if (problem.inverse != nullptr) {
        problem_.inverse = &approximate_inverse_.emplace(in_units(*problem.inverse, inverse_d_));
    }
    problem_.start = converted(ctx, start, start_);
    problem_.constraints = converted(ctx, problem.constraints, constraints_);
}

template <class T>
BlockView<const T> BalancedProblem<T>::converted(Context& ctx, BlockView<const T> x,
                                                 BlockVector<T>& y) {
    if (x.cols == 0) {
        return {};
    }
    ctx.comm().agree([&] { y = BlockVector<T>(ctx, a_.row_map(), x.cols); });
    convert(ctx, x, y.view());
    return std::as_const(y).view();
}

#define QUIVER_INSTANTIATE(T) template class BalancedProblem<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
